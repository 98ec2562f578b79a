/* SPDX-License-Identifier: BSD-2-Clause */
/* Symbols without a size: what code they name, by shapes of code in assembly and by real programs
 * that have lost sizes, local symbols and FDEs. */
#include <elf.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/util.h"
#include "target/elf_file.h"
#include "target/symtab.h"
#include "toolrun.h"

/* ---- shapes of code ---- */

/*
 * "yes" marks an instruction that belongs to the function of this name, "no" one that may belong to
 * another. The marks become local symbols, which are stripped; the function is left, without a size.
 */
struct shape {
	const char *name, *code;
};

static const struct shape shapes[] = {
	{ "behind_ret", "yes: nop; ret; no: nop; ret" },
	{ "behind_padding", "ret; .balign 16; no: mov %rdi, %rax; ret" },
	{ "loop", "mov $3, %ecx; 1: yes: dec %ecx; jnz 1b; yes: ret; no: ret" },
	{ "behind_indirect", "jmp *%rax; no: mov %rax, %rdi; ret" },
	{ "behind_ud2", "ud2; no: nop; ret" },
	{ "behind_hlt", "hlt; no: nop; ret" },
	/* with nothing on the stack, jumps may be tail calls */
	{ "tail", "jmp 1f; no: nop; ret; 1: no: mov %rdi, %rax; ret" },
	{ "tail_if", "test %edi, %edi; je 1f; yes: ret; 1: no: lea 1(%rdi), %rax; ret" },
	{ "tail_popped", "push %rbx; yes: pop %rbx; jmp 1f; nop; 1: no: push %rbx; pop %rbx; ret" },
	{ "tail_left",
	  "push %rbp; mov %rsp, %rbp; sub $16, %rsp; leave; jmp 1f; nop; "
	  "1: no: mov %rdi, %rsi; ret" },
	{ "tail_added", "sub $24, %rsp; add $24, %rsp; jmp 1f; nop; 1: no: mov %esi, %edi; ret" },
	{ "tail_unknown", "mov %rdi, %rsp; jmp 1f; nop; 1: no: mov %rsi, %rdi; ret" },
	/* of varargs functions, al says something */
	{ "tail_varargs", "mov $1, %eax; jmp 1f; nop; 1: no: test %al, %al; je 2f; 2: ret" },
	/* idioms that read no value */
	{ "tail_xor", "jmp 1f; nop; 1: no: xor %eax, %eax; ret" },
	{ "tail_or", "jmp 1f; nop; 1: no: or $-1, %eax; ret" },
	{ "tail_push", "jmp 1f; nop; 1: no: push %rax; pop %rdx; ret" },
	{ "tail_nop", "jmp 1f; nop; 1: no: nopw 0x0(%rax,%rax,1); ret" },
	{ "tail_sub", "jmp 1f; nop; 1: no: sub %eax, %eax; ret" },
	{ "tail_sete", "jmp 1f; nop; 1: no: test %edi, %edi; sete %al; movzx %al, %eax; ret" },
	/* what knows rax is no beginning */
	{ "rax",
	  "mov %esi, %eax; ja 1f; ret; no: nop; 1: yes: mov %rdi, %r8; mov %rax, (%rdi); "
	  "yes: ret" },
	/* what leaves something on the stack is no tail call */
	{ "pushed",
	  "push %rbx; je 1f; yes: pop %rbx; ret; no: nop; 1: yes: pop %rbx; ret; no: ret" },
	{ "framed",
	  "push %rbp; mov %rsp, %rbp; and $-32, %rsp; sub $64, %rsp; je 1f; leave; ret; "
	  "1: yes: lea -8(%rbp), %rsp; pop %rbx; pop %rbp; ret; no: ret" },
	{ "allocated",
	  "sub $24, %rsp; je 1f; add $24, %rsp; ret; 1: yes: add $24, %rsp; yes: ret" },
	/* calls that may not return */
	{ "noreturn", "yes: call outside@PLT; no: mov %rdi, %rsi; ret" },
	{ "noreturn_varargs", "call outside@PLT; no: test %al, %al; je 1f; 1: ret" },
	{ "noreturn_padded", "call outside@PLT; no: nop; no: mov %rax, %rdi; ret" },
	{ "noreturn_zeros", "call outside@PLT; no: .quad 0; no: mov %rax, %rdi; ret" },
	{ "result", "call outside@PLT; yes: mov %rbx, %rdi; test %eax, %eax; yes: ret" },
	{ "restores",
	  "mov %rsp, %r13; call outside@PLT; yes: lea 0(%rip), %rdx; mov %r13, %rsp; yes: jmp "
	  "*%r12; "
	  "no: nop" },
	{ "leaves", "push %rbp; mov %rsp, %rbp; call outside@PLT; yes: leave; yes: ret; no: ret" },
	{ "framed_again",
	  "call outside@PLT; no: push %rbp; mov %rsp, %rbp; lea 8(%rdi), %rax; leave; ret" },
	{ "exits", "mov $60, %eax; yes: syscall; no: mov $1, %eax; ret" },
	{ "syscalls", "mov $35, %eax; syscall; yes: mov %rax, %rdi; yes: ret" },
	/* whatever is called is a function */
	{ "into_called", "yes: nop; no: called: nop; no: ret" },
	{ "caller", "call called; ret" },
	/* further than anyone looks */
	{ "far", "yes: nop; .fill 40000, 1, 0xf8; no: nop; ret" },
	/* through padding */
	{ "aligned", "yes: clc; yes: nop; .balign 16; no: mov %rdi, %rax; ret" },
	{ "aligned_loop",
	  "push %rbx; nop; .balign 16; 1: yes: dec %edi; jnz 1b; yes: pop %rbx; ret" },
	/* FDEs */
	{ "fde",
	  ".cfi_startproc; yes: ret; yes: nop; ret; .cfi_endproc; no: nop; .cfi_startproc; "
	  "no: nop; ret; .cfi_endproc" },
	{ "in_other_fde", "yes: nop; .cfi_startproc; no: nop; ret; .cfi_endproc" },
	{ "behind_fde", ".cfi_startproc; nop; .cfi_endproc; no: nop; ret" },
	{ "signal_frame",
	  ".cfi_startproc; .cfi_signal_frame; yes: mov $15, %eax; syscall; yes: nop; "
	  ".cfi_endproc" },
	{ "plain", "yes: nop; ret" },
	/* a function whose body is unreachable, before one without symbol */
	{ "_Z5emptyv", ".cfi_startproc; no: nop; ret; .cfi_endproc" },
};

static void add_shape(FILE *f, const struct shape *s)
{
	const char *code = s->code, *mark;
	bool yes;
	int n = 0;

	/* that of a signal frame begins a byte early */
	if (!strcmp(s->name, "signal_frame"))
		fprintf(f, ".cfi_startproc\n.cfi_signal_frame\nnop\n"), code = strstr(code, "yes:");
	fprintf(f, ".globl %s\n.type %s, @function\n%s:\n", s->name, s->name, s->name);
	for (; (mark = strstr(code, "yes:")) || strstr(code, "no:"); n++) {
		const char *no = strstr(code, "no:");

		yes = mark && (!no || mark < no);
		mark = yes ? mark : no;
		fprintf(f, "%.*s %s_%d_%s:\n", (int)(mark - code), code, yes ? "yes" : "no", n,
			s->name);
		code = mark + (yes ? 4 : 3);
	}
	fprintf(f, "%s\n", code);
}

static void find_name(const struct elf_file *elf, uint64_t addr, char ret[static 256])
{
	struct symtab_answers a;

	assert_int_equal(symtab_resolve(elf, NULL, &addr, 1, &a), 0);
	snprintf(ret, 256, "%s", a.names + a.symbols[0].name);
	symtab_answers__done(&a);
}

/* Every mark of a file that was stripped of them. Returns how many there are. */
static int check_marks(const char *full, const char *stripped)
{
	FILE *f = toolrun_open("nm %s", full);
	char line[512], name[256], found[256];
	struct elf_file *elf;
	int n, cnt = 0;
	uint64_t addr;
	void *image;
	size_t sz;

	image = toolrun_read(toolrun_path(stripped), &sz);
	elf = elf_file__open_memory(image, sz);
	assert_non_null(elf);
	while (fgets(line, sizeof(line), f)) {
		const char *want = name;

		if (sscanf(line, "%" SCNx64 " t yes_%d_%255s", &addr, &n, name) != 3) {
			if (sscanf(line, "%" SCNx64 " t no_%d_%255s", &addr, &n, name) != 3)
				continue;
			want = "";
		}
		find_name(elf, addr, found);
		if (strcmp(found, want))
			fail_msg("mark %d of %s is named '%s'", n, name, found);
		cnt++;
	}
	pclose(f);
	elf_file__free(elf);
	free(image);
	return cnt;
}

static void test_shapes(void **state)
{
	FILE *f = fopen(toolrun_path("shapes.s"), "w");
	size_t i;

	(void)state;
	fputs(".text\n", f);
	for (i = 0; i < ARRAY_SIZE(shapes); i++)
		add_shape(f, &shapes[i]);
	fclose(f);
	assert_true(
		toolrun("gcc -shared -nostdlib -o shapes shapes.s && strip -o shapes.stripped "
			"shapes"));
	assert_int_equal(check_marks("shapes", "shapes.stripped"), 77);
}

/* Marks that linkers make, and symbols of no type where a function begins. */
static void test_no_functions(void **state)
{
	static const char src[] =
		".section own, \"ax\"\n.cfi_startproc\nno_0_x: nop\nno_1_x: ret\n.cfi_endproc\n"
		".section other, \"ax\"\nno_2_x: nop\nno_3_x: ret\n"
		".text\n.globl mark\nmark:\n.cfi_startproc\nno_4_x: nop\nno_5_x: ret\n"
		".cfi_endproc\n.data\n.quad __start_own, __start_other\n";

	(void)state;
	toolrun_write("marks.s", src, sizeof(src) - 1);
	assert_true(
		toolrun("gcc -shared -nostdlib -Wl,-z,start-stop-visibility=default -o marks "
			"marks.s && strip -o marks.stripped marks"));
	assert_true(toolrun("nm -D marks.stripped | grep -q __start_other"));
	assert_int_equal(check_marks("marks", "marks.stripped"), 6);
}

/* FDEs that cannot be read say nothing: no label names anything then. */
static void test_unreadable(void **state)
{
	static const char src[] =
		".globl f\n.type f, @function\nf: nop\nret\n"
		".cfi_startproc\nnop\n.cfi_endproc\n";
	struct elf_section sec;
	struct elf_file *elf;
	uint8_t *image;
	char found[256];
	uint64_t addr;
	size_t sz;
	FILE *f;

	(void)state;
	toolrun_write("one.s", src, sizeof(src) - 1);
	assert_true(toolrun("gcc -shared -nostdlib -o one one.s"));
	f = toolrun_open("nm one | grep ' f$'");
	assert_int_equal(fscanf(f, "%" SCNx64, &addr), 1);
	pclose(f);
	image = toolrun_read(toolrun_path("one"), &sz);
	elf = elf_file__open_memory(image, sz);
	find_name(elf, addr + 1, found);
	assert_string_equal(found, "f");
	assert_true(elf_file__section(elf, ".eh_frame", &sec));
	memset(image + sec.offset, 0x7f, sec.size);
	find_name(elf, addr + 1, found);
	assert_string_equal(found, "");
	elf_file__free(elf);
	free(image);
}

/* ---- real programs ---- */

struct symbol {
	uint64_t start, end;
	const char *name; /* in the image */
	bool sized;
};

struct program {
	uint8_t *image, *copy; /* the copy has lost what the test takes away */
	size_t sz, cnt;
	struct symbol *symbols; /* of code, ascending */
	uint64_t *addrs;
	size_t addr_cnt;
};

static Elf64_Shdr *section(uint8_t *image, size_t i)
{
	Elf64_Shdr *sh = (void *)(image + ((Elf64_Ehdr *)image)->e_shoff);

	return sh + i;
}

static const char *section_name(uint8_t *image, size_t i)
{
	const Elf64_Shdr *names = section(image, ((Elf64_Ehdr *)image)->e_shstrndx);

	return (char *)image + names->sh_offset + section(image, i)->sh_name;
}

static size_t find_section(uint8_t *image, const char *name)
{
	size_t i, cnt = ((Elf64_Ehdr *)image)->e_shnum;

	for (i = 1; i < cnt; i++) {
		if (!strcmp(section_name(image, i), name))
			return i;
	}
	return 0;
}

static Elf64_Sym *symbol_table(uint8_t *image, size_t *ret_cnt)
{
	const Elf64_Shdr *sh = section(image, find_section(image, ".symtab"));

	*ret_cnt = sh->sh_size / sizeof(Elf64_Sym);
	return (void *)(image + sh->sh_offset);
}

static bool is_code(uint8_t *image, const Elf64_Sym *s)
{
	int type = ELF64_ST_TYPE(s->st_info);

	return (type == STT_FUNC || type == STT_NOTYPE || type == STT_GNU_IFUNC) && s->st_name &&
	       s->st_shndx && s->st_shndx < SHN_LORESERVE &&
	       section(image, s->st_shndx)->sh_flags & SHF_EXECINSTR;
}

static int compare_symbols(const void *a, const void *b)
{
	uint64_t x = ((const struct symbol *)a)->start, y = ((const struct symbol *)b)->start;

	return x < y ? -1 : x > y;
}

static void load(struct program *p, const char *name)
{
	const Elf64_Shdr *text;
	Elf64_Sym *s;
	size_t cnt, i;
	const char *strings;

	*p = (struct program){};
	p->image = toolrun_read(toolrun_path(name), &p->sz);
	p->copy = malloc(p->sz);
	s = symbol_table(p->image, &cnt);
	strings =
		(char *)p->image + section(p->image, find_section(p->image, ".strtab"))->sh_offset;
	p->symbols = calloc(cnt, sizeof(*p->symbols));
	for (i = 0; i < cnt; i++) {
		if (is_code(p->image, &s[i]))
			p->symbols[p->cnt++] =
				(struct symbol){ s[i].st_value, s[i].st_value + s[i].st_size,
						 strings + s[i].st_name, s[i].st_size };
	}
	qsort(p->symbols, p->cnt, sizeof(*p->symbols), compare_symbols);
	text = section(p->image, find_section(p->image, ".text"));
	p->addrs = calloc(text->sh_size, sizeof(*p->addrs));
	for (i = 0; i < text->sh_size; i += 5)
		p->addrs[p->addr_cnt++] = text->sh_addr + i;
}

static void unload(struct program *p)
{
	free(p->image);
	free(p->copy);
	free(p->symbols);
	free(p->addrs);
}

#define NO_SIZES 1U
#define NO_LOCALS 2U
#define NO_FDES 4U

static void take_away(struct program *p, unsigned int what)
{
	size_t cnt, i;
	Elf64_Sym *s;

	memcpy(p->copy, p->image, p->sz);
	s = symbol_table(p->copy, &cnt);
	for (i = 0; i < cnt; i++) {
		if (!is_code(p->image, &s[i]))
			continue;
		if (what & NO_SIZES)
			s[i].st_size = 0;
		if (what & NO_LOCALS && (ELF64_ST_BIND(s[i].st_info) == STB_LOCAL ||
					 ELF64_ST_VISIBILITY(s[i].st_other) == STV_HIDDEN))
			s[i].st_shndx = SHN_UNDEF;
	}
	if (what & NO_FDES)
		section(p->copy, find_section(p->copy, ".eh_frame"))->sh_type = SHT_NULL;
}

/* Is it one of the names that the complete file has for the address? What GCC splits off a function
 * bears its name; the padding between functions has none, but functions may fall through it. */
static bool is_right(const struct program *p, uint64_t addr, const char *name)
{
	size_t lo = 0, hi = p->cnt, len = strlen(name), i;
	bool has_name = false;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (p->symbols[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (i = lo; i-- > 0;) {
		const struct symbol *s = &p->symbols[i];

		if (addr >= s->end)
			continue;
		has_name = true;
		if (!strncmp(s->name, name, len) && (!s->name[len] || s->name[len] == '.'))
			return true;
	}
	if (has_name)
		return false;
	for (i = lo; i-- > 0 && p->symbols[i].start == p->symbols[lo - 1].start;) {
		has_name |= !p->symbols[i].sized;
		if (!p->symbols[i].sized && !strcmp(p->symbols[i].name, name))
			return true;
	}
	return !has_name;
}

/* Returns how many addresses keep a name; each has to be the right one. */
static size_t check(struct program *p, unsigned int what)
{
	struct symtab_answers a;
	struct elf_file *elf;
	size_t named = 0, i;

	take_away(p, what);
	elf = elf_file__open_memory(p->copy, p->sz);
	assert_non_null(elf);
	assert_int_equal(symtab_resolve(elf, NULL, p->addrs, p->addr_cnt, &a), 0);
	for (i = 0; i < p->addr_cnt; i++) {
		const char *name = a.names + a.symbols[i].name;

		if (!name[0])
			continue;
		named++;
		if (!is_right(p, p->addrs[i], name))
			fail_msg("%#" PRIx64 " is named %s", p->addrs[i], name);
	}
	symtab_answers__done(&a);
	elf_file__free(elf);
	print_message("%zu of %zu addresses keep a name\n", named, p->addr_cnt);
	return named;
}

static const char MAIN[] = "int main(void) { return 0; }\n";

/* FDEs for nearly all, and much code in assembly. */
static void test_glibc(void **state)
{
	struct program p;

	(void)state;
	toolrun_write("main.c", MAIN, sizeof(MAIN) - 1);
	assert_true(toolrun("gcc -static -o glibc main.c"));
	load(&p, "glibc");
	assert_true(check(&p, NO_LOCALS) > 10000);
	assert_true(check(&p, NO_SIZES) > 10000);
	assert_true(check(&p, NO_SIZES | NO_LOCALS) > 10000);
	assert_true(check(&p, NO_SIZES | NO_LOCALS | NO_FDES) > 1000);
	unload(&p);
}

/* No FDEs at all. */
static void test_musl(void **state)
{
	struct program p;

	(void)state;
	if (!toolrun_have("musl-gcc"))
		skip();
	toolrun_write("main.c", MAIN, sizeof(MAIN) - 1);
	assert_true(
		toolrun("musl-gcc -static -o musl main.c -Wl,--whole-archive -lc "
			"-Wl,--no-whole-archive"));
	load(&p, "musl");
	assert_true(check(&p, NO_LOCALS) > 10000);
	assert_true(check(&p, NO_SIZES) > 10000);
	assert_true(check(&p, NO_SIZES | NO_LOCALS) > 10000);
	unload(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes),	   cmocka_unit_test(test_no_functions),
		cmocka_unit_test(test_unreadable), cmocka_unit_test(test_glibc),
		cmocka_unit_test(test_musl),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs every reader of ELF files over files, under the sanitizers.
 *
 * parse FILE...
 *	what was found in each, and what it cost: a line of JSON
 *
 * parse --corrupt COPIES SEED FILE...
 *	each file, cut to its first 8 MiB, in so many copies with flipped bits
 *
 * Bits are flipped where the readers look: in headers, in sections of unwind information, symbols,
 * notes and DWARF. A copy is bad if a sanitizer reports, if it takes 16 MiB more memory than the
 * file as it was, or if it does not end within 60 s of CPU time. A bad one is left in the current
 * folder.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sanitizer/allocator_interface.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "target/elf_file.h"
#include "tests/fuzz/parsers.h"

#define MAX_COPIED (8U << 20)
#define MAX_TARGETS 64
#define BUILD_ID_SZ (2 * ELF_FILE_MAX_BUILD_ID + 1)
#define MAX_FLIPS 24
#define MAX_CPU_SECONDS 60
#define MAX_BAD 20 /* of a file: enough is known */
#define MAX_MORE (16U << 20)

/* ---- cost: bytes held of malloc, by every library of this program ---- */

static atomic_size_t held, peak;

static void on_malloc(const volatile void *p, size_t sz)
{
	size_t now = atomic_fetch_add(&held, sz) + sz;

	if (p && now > peak)
		peak = now;
}

static void on_free(const volatile void *p)
{
	if (p)
		held -= __sanitizer_get_allocated_size(p);
}

/* Of one file. */
static size_t peak_from(size_t before)
{
	return peak > before ? peak - before : 0;
}

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/* Bytes that this process has read. */
static uint64_t bytes_read(void)
{
	uint64_t n = 0;
	FILE *f = fopen("/proc/self/io", "re");

	NEED(f && fscanf(f, "rchar: %" SCNu64, &n) == 1);
	fclose(f);
	return n;
}

/* False if it is no ELF file of ours. */
static bool parse(int fd, struct parsers_found *ret, char build_id[static BUILD_ID_SZ])
{
	struct elf_file *elf = elf_file__open(fd);
	const uint8_t *id;
	size_t sz, i;

	*ret = (struct parsers_found){};
	build_id[0] = '\0';
	if (!elf)
		return false;
	id = elf_file__build_id(elf, &sz);
	for (i = 0; i < sz; i++)
		snprintf(build_id + 2 * i, 3, "%02x", id[i]);
	parsers_frame(elf);
	parsers_unwind(elf, ret);
	parsers_symbols(elf, ret);
	parsers_usdt(elf, ret);
	parsers_sites(elf);
	parsers_allocators(elf, ret);
	parsers_dwarf(elf, ret);
	parsers_names(elf, ret);
	elf_file__free(elf);
	return true;
}

static int report(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	uint64_t start = cpu_ns(), read = bytes_read();
	size_t before = held;
	char build_id[BUILD_ID_SZ];
	struct parsers_found f;
	bool elf;

	if (fd < 0) {
		perror(path);
		return 1;
	}
	peak = held;
	elf = parse(fd, &f, build_id);
	printf("{\"elf\": %s, \"build_id\": \"%s\", \"unwind\": %d, \"rows\": %" PRIu64
	       ", \"symbols\": %d, \"named\": %zu, \"dwarf\": %d, \"dwarf_named\": %zu, \"names\": "
	       "%d, \"usdt\": "
	       "%d, \"sites\": %zu, \"allocators\": %d, \"points\": %zu, \"ms\": %" PRIu64
	       ", \"peak\": %zu, \"read\": %" PRIu64 "}\n",
	       elf ? "true" : "false", build_id, f.unwind_err, f.rows, f.symbols_err, f.symbols,
	       f.dwarf_err, f.dwarf, f.names_err, f.usdt_err, f.usdt_sites, f.allocators_err,
	       f.allocators, (cpu_ns() - start) / 1000000, peak_from(before), bytes_read() - read);
	fflush(stdout);
	close(fd);
	return 0;
}

/* ---- copies ---- */

static uint64_t random_state;

/* splitmix64 */
static uint64_t next_random(void)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

struct original {
	const char *path;
	uint8_t *data;
	size_t sz;
	struct {
		uint64_t offset, size;
	} targets[MAX_TARGETS];
	size_t target_cnt;
	size_t peak; /* memory that it takes as it is */
};

static void add_target(struct original *o, uint64_t offset, uint64_t size)
{
	if (o->target_cnt == MAX_TARGETS || offset >= o->sz || !size)
		return;
	o->targets[o->target_cnt].offset = offset;
	o->targets[o->target_cnt++].size = MIN(size, o->sz - offset);
}

static void find_targets(struct original *o)
{
	static const char *const names[] = {
		".eh_frame",
		".eh_frame_hdr",
		".debug_frame",
		".symtab",
		".strtab",
		".dynsym",
		".dynstr",
		".gnu.hash",
		".rela.plt",
		".plt",
		".note.gnu.build-id",
		".note.stapsdt",
		".shstrtab",
		".gnu_debuglink",
		".dynamic",
		".debug_info",
		".debug_abbrev",
		".debug_line",
		".debug_str",
		".debug_line_str",
		".debug_ranges",
		".debug_rnglists",
		".debug_aranges",
		".gopclntab",
		".data.rel.ro.gopclntab",
		".go.buildinfo",
		".go.module",
		".noptrdata",
	};
	struct elf_file *elf = elf_file__open_memory(o->data, o->sz);
	struct elf_section s;
	Elf64_Ehdr eh;
	size_t i;

	add_target(o, 0, sizeof(eh));
	if (!elf)
		return;
	memcpy(&eh, o->data, sizeof(eh));
	add_target(o, eh.e_phoff, (uint64_t)eh.e_phnum * sizeof(Elf64_Phdr));
	add_target(o, eh.e_shoff, (uint64_t)eh.e_shnum * sizeof(Elf64_Shdr));
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (elf_file__section(elf, names[i], &s))
			add_target(o, s.offset, s.size);
	}
	elf_file__free(elf);
}

static void load(struct original *o, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	NEED(fd >= 0 && !fstat(fd, &st));
	*o = (struct original){ .path = path, .sz = MIN((size_t)st.st_size, MAX_COPIED) };
	o->data = malloc(o->sz);
	NEED(o->data && !util_pread_full(fd, o->data, o->sz, 0));
	close(fd);
	find_targets(o);
}

struct flips {
	size_t cnt;
	size_t pos[MAX_FLIPS];
	uint8_t byte[MAX_FLIPS];
};

/* Changes at 1 to MAX_FLIPS places of two targets, mostly of a bit, else to a byte that parsers are
 * wrong about. */
static void choose_flips(const struct original *o, uint64_t seed, uint64_t copy, struct flips *ret)
{
	static const uint8_t bytes[] = { 0, 1, 0x7f, 0x80, 0xff };
	size_t targets[2], i, t;

	random_state = seed * 1000003 + copy;
	targets[0] = next_random() % o->target_cnt;
	targets[1] = next_random() % o->target_cnt;
	ret->cnt = 1 + next_random() % MAX_FLIPS;
	for (i = 0; i < ret->cnt; i++) {
		t = targets[i & 1];
		ret->pos[i] = o->targets[t].offset + next_random() % o->targets[t].size;
		if (next_random() % 4)
			ret->byte[i] = o->data[ret->pos[i]] ^ 1U << next_random() % 8;
		else
			ret->byte[i] = bytes[next_random() % sizeof(bytes)];
	}
}

static void put(int fd, const struct flips *f)
{
	size_t i;

	for (i = 0; i < f->cnt; i++)
		NEED(pwrite(fd, &f->byte[i], 1, (off_t)f->pos[i]) == 1);
}

static void take_back(int fd, const struct flips *f, const uint8_t *data)
{
	size_t i;

	for (i = 0; i < f->cnt; i++)
		NEED(pwrite(fd, &data[f->pos[i]], 1, (off_t)f->pos[i]) == 1);
}

static void write_all(int fd, const uint8_t *data, size_t sz)
{
	ssize_t n;

	for (; sz; data += n, sz -= (size_t)n) {
		n = write(fd, data, sz);
		NEED(n > 0);
	}
}

/* What a child tells of itself. */
struct progress {
	uint64_t copy;
	uint64_t worst_ns;
	size_t worst_more;
	size_t peak;
};

/* Ends the program if the copy is bad. */
static void parse_copy(int fd, struct progress *p)
{
	struct itimerval limit = { .it_value.tv_sec = MAX_CPU_SECONDS };
	char build_id[BUILD_ID_SZ];
	struct parsers_found found;
	uint64_t start = cpu_ns();
	size_t before = held, used;

	setitimer(ITIMER_PROF, &limit, NULL);
	peak = before;
	parse(fd, &found, build_id);
	used = peak_from(before);
	if (!p->copy) {
		p->peak = used;
		return;
	}
	p->worst_ns = MAX(p->worst_ns, cpu_ns() - start);
	p->worst_more = MAX(p->worst_more, MAX(used, p->peak) - p->peak);
	if (used > p->peak + MAX_MORE) {
		fprintf(stderr, "%zu bytes of memory, %zu for the file as it was\n", used, p->peak);
		_exit(1);
	}
}

/* Parses copies from p->copy on; number 0 is the file itself. */
static void parse_copies(const struct original *o, uint64_t copies, uint64_t seed,
			 struct progress *p)
{
	int fd = memfd_create("copy", MFD_CLOEXEC);
	struct flips flips = {};

	NEED(fd >= 0);
	write_all(fd, o->data, o->sz);
	for (; p->copy <= copies; p->copy++) {
		if (p->copy)
			choose_flips(o, seed, p->copy, &flips);
		put(fd, &flips);
		parse_copy(fd, p);
		take_back(fd, &flips, o->data);
	}
	close(fd);
}

static void save(const struct original *o, uint64_t seed, uint64_t copy)
{
	const char *base = strrchr(o->path, '/');
	struct flips flips;
	char name[300];
	int fd;

	snprintf(name, sizeof(name), "bad-%s-%" PRIu64 "-%" PRIu64, base ? base + 1 : o->path, seed,
		 copy);
	fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	NEED(fd >= 0);
	write_all(fd, o->data, o->sz);
	choose_flips(o, seed, copy, &flips);
	put(fd, &flips);
	close(fd);
	fprintf(stderr, "left as %s\n", name);
}

/* Returns how many copies were bad. In a child, which a sanitizer may end. */
static uint64_t run_copies(const struct original *o, uint64_t copies, uint64_t seed)
{
	struct progress *p =
		mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t bad = 0;
	int status;
	pid_t pid;

	NEED(p != MAP_FAILED);
	while (p->copy <= copies) {
		pid = fork();
		NEED(pid >= 0);
		if (!pid) {
			parse_copies(o, copies, seed, p);
			exit(0);
		}
		NEED(waitpid(pid, &status, 0) == pid);
		if (!status)
			break;
		fprintf(stderr, "%s: copy %" PRIu64 " of seed %" PRIu64 ": %s %d\n", o->path,
			p->copy, seed, WIFSIGNALED(status) ? "signal" : "exit status",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		/* the file itself is none of the copies, but then they say nothing */
		if (++bad > MAX_BAD || !p->copy)
			break;
		/* leaks are told at the end, of no copy in particular */
		if (p->copy > copies)
			break;
		save(o, seed, p->copy++);
	}
	printf("%s: %" PRIu64 " copies, %" PRIu64 " bad; at most %" PRIu64
	       " ms and %zu KiB more than the %zu KiB of the file as it was\n",
	       o->path, copies, bad, p->worst_ns / 1000000, p->worst_more >> 10, p->peak >> 10);
	fflush(stdout);
	munmap(p, sizeof(*p));
	return bad;
}

static int corrupt_files(uint64_t copies, uint64_t seed, char **paths)
{
	struct original o;
	uint64_t bad = 0;

	for (; *paths; paths++) {
		load(&o, *paths);
		bad += run_copies(&o, copies, seed);
		free(o.data);
	}
	return bad > 0;
}

int main(int argc, char **argv)
{
	uint64_t copies, seed;
	int i, status = 0;

	NEED(__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free));
	if (argc > 4 && !strcmp(argv[1], "--corrupt")) {
		if (util_parse_u64(argv[2], 1, 1000000, &copies) ||
		    util_parse_u64(argv[3], 0, UINT32_MAX, &seed))
			return 2;
		return corrupt_files(copies, seed, argv + 4);
	}
	for (i = 1; i < argc; i++)
		status |= report(argv[i]);
	return status;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* objects: what is the same object, and names from DWARF, symbols, separate debug files and the
 * vDSO. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/util.h"
#include "target/debugfile.h"
#include "target/file_stat.h"
#include "target/objects.h"
#include "target/objects_parts.h"
#include "target/unwind_build.h"
#include "toolrun.h"

static const char cxx[] =
	"namespace app { struct Node { int v; int depth() const; };\n"
	"inline __attribute__((always_inline)) int twice(int x) { volatile int y = x; return y * "
	"2; }\n"
	"__attribute__((noinline)) int Node::depth() const {\n"
	"  return twice(v) + 1; }\n"
	"}\n"
	"int main(int c, char **) { app::Node n{c}; return n.depth(); }\n";

static uint32_t add(struct objects *o, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return objects__add(o, fd, path);
}

static void build(const char *name, const char *flags)
{
	toolrun_write("node.cc", cxx, sizeof(cxx) - 1);
	assert_true(toolrun("g++ -O2 -g %s -o %s node.cc", flags, name));
}

static uint64_t symbol_address(const char *file, const char *symbol)
{
	char line[512], name[256];
	uint64_t addr, ret = 0;
	FILE *f = toolrun_open("nm %s", file);

	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 " %*c %255s", &addr, name) == 2 &&
		    !strcmp(name, symbol))
			ret = addr;
	}
	pclose(f);
	assert_true(ret);
	return ret;
}

static void test_identity(void **state)
{
	struct objects *o = objects__new();
	struct timespec times[2] = { { 0, UTIME_OMIT }, { 12345, 0 } };
	uint32_t a, no_id;
	size_t sz;
	char *buf;

	(void)state;
	build("a", "");
	build("other", "-DOTHER");
	build("no-id", "-Wl,--build-id=none");
	assert_true(toolrun(
		"cp a copy && strip -o stripped a && ln -f no-id link && cp no-id no-id-copy"));
	a = add(o, toolrun_path("a"));
	assert_int_not_equal(a, OBJECTS_NONE);
	assert_true(objects__info(o, a)->readable);
	assert_string_equal(objects__info(o, a)->path, toolrun_path("a"));
	assert_int_equal(strlen(objects__info(o, a)->build_id), 40);
	assert_int_equal(add(o, toolrun_path("a")), a);
	assert_int_equal(add(o, toolrun_path("copy")), a);
	assert_int_equal(add(o, toolrun_path("copy")), a);
	assert_int_equal(add(o, toolrun_path("stripped")), a);
	assert_int_equal(objects__cnt(o), 1);
	/* the id of another object, claimed by one whose segments lie elsewhere */
	buf = toolrun_read(toolrun_path("a"), &sz);
	for (size_t i = 0; i < ((Elf64_Ehdr *)buf)->e_phnum; i++) {
		Elf64_Phdr *ph = (Elf64_Phdr *)(buf + ((Elf64_Ehdr *)buf)->e_phoff) + i;

		if (ph->p_type == PT_LOAD && ph->p_flags & PF_X)
			ph->p_vaddr += 0x10000;
	}
	toolrun_write("forged", buf, sz);
	free(buf);
	assert_int_not_equal(add(o, toolrun_path("forged")), a);
	/* without a build id it is the file that counts, not its name */
	no_id = add(o, toolrun_path("no-id"));
	assert_int_not_equal(no_id, a);
	assert_string_equal(objects__info(o, no_id)->build_id, "");
	assert_int_equal(add(o, toolrun_path("link")), no_id);
	assert_int_not_equal(add(o, toolrun_path("no-id-copy")), no_id);
	assert_int_equal(utimensat(AT_FDCWD, toolrun_path("no-id"), times, 0), 0);
	assert_int_not_equal(add(o, toolrun_path("no-id")), no_id);
	objects__free(o);
}

/* The lowest descriptor that is free. */
static int lowest_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

/* A file of somebody else's does not pass for one of the system's by carrying its build id. */
static void test_foreign_build_id(void **state)
{
	struct objects *o = objects__new();
	uint32_t a;

	(void)state;
	build("a", "");
	assert_true(toolrun("cp a writable && chmod 666 writable && cp a foreign"));
	a = add(o, toolrun_path("writable"));
	assert_int_not_equal(add(o, toolrun_path("a")), a);
	a = add(o, toolrun_path("a"));
	assert_int_not_equal(add(o, toolrun_path("writable")), a);
	if (!geteuid()) {
		assert_int_equal(chown(toolrun_path("foreign"), 65534, 65534), 0);
		assert_int_not_equal(add(o, toolrun_path("foreign")), a);
	}
	objects__free(o);
}

/* A file that was overwritten in place answers nothing any more: not even from what is new in it.
 */
static void test_overwritten(void **state)
{
	struct objects *o = objects__new();
	struct unwind_table t;
	struct symbols s;
	uint64_t vaddr = 0x1000;
	uint32_t id;
	char byte;

	(void)state;
	build("a", "");
	assert_true(toolrun("cp a victim && touch -d @1000000000 victim"));
	id = add(o, toolrun_path("victim"));
	assert_int_equal(objects__unwind_table(o, id, &t), 0);
	unwind_table__done(&t);
	assert_true(objects__unchanged(o, id));
	assert_false(objects__rewritten(o, id));
	assert_true(toolrun("cat a > victim"));
	assert_false(objects__unchanged(o, id));
	assert_true(objects__rewritten(o, id));
	assert_int_equal(objects__unwind_table(o, id, &t), -ESTALE);
	assert_int_equal(objects__symbolize(o, id, &vaddr, 1, false, &s), -ESTALE);
	assert_int_equal(objects__read(o, id, vaddr, &byte, 1), -ESTALE);
	objects__free(o);
}

static void test_interp(void **state)
{
	struct objects *o = objects__new();

	(void)state;
	/* this program is linked dynamically; the vDSO has nothing to be linked */
	assert_int_equal(strncmp(objects__info(o, add(o, "/proc/self/exe"))->interp, "ld-", 3), 0);
	assert_string_equal(objects__info(o, objects__add_vdso(o))->interp, "");
	assert_true(objects__unchanged(o, objects__add_vdso(o)));
	assert_false(objects__rewritten(o, objects__add_vdso(o)));
	objects__free(o);
}

static void test_unreadable(void **state)
{
	struct objects *o = objects__new();
	uint64_t vaddr = 0;
	struct symbols s;
	int fd = lowest_fd();
	uint32_t id;
	char byte;

	(void)state;
	toolrun_write("text", "no elf", 6);
	id = add(o, toolrun_path("text"));
	assert_int_equal(lowest_fd(), fd); /* it is of no use */
	assert_int_not_equal(id, OBJECTS_NONE);
	assert_false(objects__info(o, id)->readable);
	assert_int_equal(add(o, toolrun_path("text")), id);
	assert_false(objects__unchanged(o, id));
	assert_false(objects__rewritten(o, id));
	assert_false(objects__vaddr(o, id, 0, 0, &vaddr));
	assert_int_equal(objects__read(o, id, 0, &byte, 1), -ENOEXEC);
	assert_int_equal(objects__symbolize(o, id, &vaddr, 1, false, &s), -ENOEXEC);
	assert_int_equal(objects__add(o, open("/", O_RDONLY | O_CLOEXEC), "/"), OBJECTS_NONE);
	assert_int_equal(objects__add(o, open("/dev/null", O_RDONLY | O_CLOEXEC), "/dev/null"),
			 OBJECTS_NONE);
	objects__free(o);
}

/* The youngest child of ours with this name, or 0. */
static pid_t child_named(const char *name)
{
	char path[64], comm[32];
	pid_t child, pid = 0;
	FILE *f, *g;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "r");
	assert_non_null(f);
	while (fscanf(f, "%d", &child) == 1) {
		snprintf(path, sizeof(path), "/proc/%d/comm", child);
		g = fopen(path, "r");
		if (!g)
			continue;
		if (fscanf(g, "%31s", comm) == 1 && !strcmp(comm, name))
			pid = child;
		fclose(g);
	}
	fclose(f);
	return pid;
}

/* Stops the youngest reader, once it has its name: a signal to 0 would stop the test's own group. */
static void stop_reader(void)
{
	uint64_t end = util_monotonic_ns() + 60 * NSEC_PER_SEC;
	pid_t pid;

	while (!(pid = child_named("bpfprof-reader"))) {
		assert_true(util_monotonic_ns() < end);
		usleep(1000);
	}
	assert_int_equal(kill(pid, SIGSTOP), 0);
}

/* What keeps its reader waiting is asked once: it, and nothing else, is not readable any more. */
static void test_set_aside(void **state)
{
	struct objects *o = objects__new();
	struct objects_stats stats;
	uint64_t vaddr, wakes, before = util_monotonic_ns();
	struct unwind_table t;
	uint32_t a, b;
	char byte;

	(void)state;
	build("a", "");
	build("b", "-DB -O1");
	/* not only ours, so that there is less patience with them */
	assert_true(toolrun("chmod 666 a b"));
	a = add(o, toolrun_path("a"));
	b = add(o, toolrun_path("b"));
	stop_reader();
	assert_false(objects__has_usdt(o, a));
	assert_false(objects__info(o, a)->readable);
	assert_int_equal(objects__unwind_table(o, a, &t), -ENOEXEC);
	assert_true(objects__unanswered(o, a, -ENOEXEC));
	assert_false(objects__unanswered(o, a, 0));
	assert_true(objects__vaddr(o, a, 0x1000, 0, &vaddr));
	assert_int_equal(objects__read(o, a, vaddr, &byte, 1), -ENOEXEC);
	assert_int_equal(add(o, toolrun_path("a")), a);
	assert_int_equal(objects__unwind_table(o, b, &t), 0);
	unwind_table__done(&t);
	objects__stats(o, &stats);
	assert_int_equal(stats.set_aside, 1);
	assert_int_equal(stats.readers_timed_out, 1);
	/* after a minute it is asked once more */
	assert_in_range(o->objects[a].rest.until_ns, before + REST_NS,
			util_monotonic_ns() + REST_NS);
	assert_int_equal(o->wake_ns, o->objects[a].rest.until_ns);
	wakes = objects__wakes(o);
	assert_int_equal(objects__wakes(o), wakes);
	o->objects[a].rest.until_ns = o->wake_ns = 1;
	assert_int_equal(objects__wakes(o), wakes + 1);
	assert_true(objects__info(o, a)->readable);
	assert_false(objects__rests(o, a));
	assert_int_equal(o->wake_ns, 0);
	assert_int_equal(objects__unwind_table(o, a, &t), 0);
	unwind_table__done(&t);
	objects__stats(o, &stats);
	assert_int_equal(stats.set_aside, 0);
	/* and let alone for two if that was in vain, too */
	before = util_monotonic_ns();
	stop_reader();
	assert_false(objects__has_usdt(o, a));
	assert_in_range(o->objects[a].rest.until_ns, before + 2 * REST_NS,
			util_monotonic_ns() + 2 * REST_NS);
	assert_false(objects__info(o, a)->readable);
	objects__free(o);
}

/* What others can write does not meet the reader of the system's files. */
static void test_two_readers(void **state)
{
	struct objects *o = objects__new();
	struct objects_stats stats;
	struct unwind_table t;
	uint32_t id;

	(void)state;
	build("a", "");
	assert_true(toolrun("cp a writable && chmod 666 writable"));
	stop_reader();
	id = add(o, toolrun_path("writable"));
	assert_true(objects__info(o, id)->readable);
	assert_int_equal(objects__unwind_table(o, id, &t), 0);
	unwind_table__done(&t);
	objects__stats(o, &stats);
	assert_int_equal(stats.readers_timed_out, 0);
	objects__free(o);
}

static int open_fds(void)
{
	int cnt = 0;

	for (int fd = 0; fd < 512; fd++)
		cnt += fcntl(fd, F_GETFD) >= 0;
	return cnt;
}

/* In a process of its own, whose hard limit is lowered for good. Returns what was wrong, 0 if
 * nothing. */
static int many_files(uint64_t vaddr)
{
	struct rlimit lim = { .rlim_cur = 80, .rlim_max = 200 };
	int before = lowest_fd(), i, fd;
	struct objects *o = objects__new();
	struct objects_stats stats;
	uint8_t byte;

	if (setrlimit(RLIMIT_NOFILE, &lim))
		return 1;
	for (i = 0; i < 300; i++) {
		char name[16];

		snprintf(name, sizeof(name), "many%d", i);
		fd = open(toolrun_path(name), O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return 2;
		if (objects__add(o, fd, toolrun_path(name)) != (uint32_t)i)
			return 3;
		/* the first one is asked for all the time */
		if (objects__read(o, 0, vaddr, &byte, 1))
			return 4;
	}
	/* more than the soft limit allowed, and some left for others */
	if (open_fds() < 100 || open_fds() > 160)
		return 5;
	/* of one that is closed nothing is known without opening it */
	if (!objects__unchanged(o, 0) || objects__unchanged(o, 3))
		return 11;
	if (unlink(toolrun_path("many0")) || unlink(toolrun_path("many5")))
		return 6;
	/* one that is in use stays; of the others those that are there are opened again, and those
	 * that are not are lost, and said to be */
	if (objects__read(o, 0, vaddr, &byte, 1) || objects__read(o, 3, vaddr, &byte, 1) ||
	    objects__read(o, 5, vaddr, &byte, 1) != -ENOENT ||
	    objects__read(o, 5, vaddr, &byte, 1) != -ESTALE)
		return 7;
	objects__stats(o, &stats);
	if (stats.lost != 1 || stats.set_aside || open_fds() > 160)
		return 8;
	/* another file where one was */
	if (rename(toolrun_path("many7"), toolrun_path("many6")) ||
	    objects__read(o, 6, vaddr, &byte, 1) != -ESTALE)
		return 9;
	objects__free(o);
	return lowest_fd() == before ? 0 : 10;
}

static void test_descriptors(void **state)
{
	uint64_t vaddr;
	int status;
	pid_t pid;

	(void)state;
	build("a", "-Wl,--build-id=none");
	vaddr = symbol_address("a", "main");
	assert_true(toolrun("sh -c 'for i in $(seq 0 299); do cp a many$i; done'"));
	pid = fork();
	if (!pid)
		_exit(many_files(vaddr));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(toolrun("rm many*"));
}

struct released {
	struct objects *o;
	uint32_t ids[8], cnt;
};

static void note_gone(void *ctx, uint32_t id)
{
	struct released *r = ctx;

	/* it is still there */
	assert_non_null(objects__info(r->o, id)->path);
	assert_true(r->cnt < ARRAY_SIZE(r->ids));
	r->ids[r->cnt++] = id;
}

static struct released release(struct objects *o)
{
	struct released r = { .o = o };

	objects__release_unused(o, note_gone, &r);
	return r;
}

/* What nobody refers to goes with its descriptor, and its number is another's then: with another
 * serial number, under which the file is known when it comes back. */
static void test_release_unused(void **state)
{
	struct objects *o = objects__new();
	uint32_t a, no_id, vdso = objects__add_vdso(o), back;
	uint64_t a_serial, no_id_serial;
	struct released gone;
	int fd;

	(void)state;
	build("a", "");
	build("no-id", "-Wl,--build-id=none");
	assert_true(toolrun("cp a copy && cp no-id no-id2"));
	fd = lowest_fd();
	a = add(o, toolrun_path("a"));
	assert_int_equal(add(o, toolrun_path("copy")), a);
	no_id = add(o, toolrun_path("no-id"));
	a_serial = objects__info(o, a)->serial;
	no_id_serial = objects__info(o, no_id)->serial;
	assert_true(a_serial && no_id_serial && a_serial != no_id_serial);
	objects__ref(o, a);
	objects__ref(o, a);
	objects__ref(o, no_id);
	assert_int_equal(release(o).cnt, 0);
	objects__unref(o, a);
	assert_int_equal(release(o).cnt, 0);
	assert_true(objects__info(o, a)->readable);
	objects__unref(o, a);
	gone = release(o);
	assert_int_equal(gone.cnt, 1);
	assert_int_equal(gone.ids[0], a);
	assert_int_equal(objects__cnt(o), 2);
	assert_int_equal(objects__info(o, no_id)->serial, no_id_serial);
	/* another file has its number, and neither its files nor its build id are taken for it */
	back = add(o, toolrun_path("no-id2"));
	assert_int_equal(back, a);
	assert_string_equal(objects__info(o, back)->build_id, "");
	assert_int_not_equal(objects__info(o, back)->serial, a_serial);
	objects__ref(o, back);
	a = add(o, toolrun_path("copy"));
	assert_int_not_equal(a, back);
	assert_int_equal(strlen(objects__info(o, a)->build_id), 40);
	assert_string_equal(objects__info(o, a)->path, toolrun_path("copy"));
	assert_int_equal(add(o, toolrun_path("a")), a);
	assert_int_equal(add(o, toolrun_path("no-id")), no_id);
	assert_int_equal(add(o, toolrun_path("no-id2")), back);
	/* the vDSO is everybody's */
	objects__unref(o, no_id);
	objects__unref(o, back);
	assert_int_equal(release(o).cnt, 3);
	assert_int_equal(objects__cnt(o), vdso == OBJECTS_NONE ? 0 : 1);
	assert_int_equal(objects__add_vdso(o), vdso);
	assert_int_equal(lowest_fd(), fd);
	objects__free(o);
}

/* Any number of objects come and go: their numbers, and so all that goes by them, stay few. A file
 * that changes each time is another object each time. */
static void test_many_released(void **state)
{
	struct objects *o = objects__new();
	struct objects_stats stats;
	uint64_t serial = 0;

	(void)state;
	build("no-id", "-Wl,--build-id=none");
	for (int i = 0; i < 200; i++) {
		struct timespec t[2] = { { 1000 + i, 0 }, { 1000 + i, 0 } };
		uint32_t id;

		assert_int_equal(utimensat(AT_FDCWD, toolrun_path("no-id"), t, 0), 0);
		id = add(o, toolrun_path("no-id"));
		assert_int_equal(id, 0);
		assert_true(objects__info(o, id)->serial > serial);
		serial = objects__info(o, id)->serial;
		assert_int_equal(release(o).cnt, 1);
	}
	assert_int_equal(objects__end(o), 1);
	assert_int_equal(objects__cnt(o), 0);
	objects__stats(o, &stats);
	assert_int_equal(stats.lost + stats.set_aside, 0);
	objects__free(o);
}

static const struct symbol_frame *only(const struct symbols *s, size_t i)
{
	assert_int_equal(s->first[i + 1], s->first[i] + 1);
	return &s->frames[s->first[i]];
}

/* depth() with its inlined function, main, and an address of nobody. */
static void check_names(const char *name, bool dwarf)
{
	struct objects *o = objects__new();
	uint32_t id = add(o, toolrun_path(name)), i, inlined = 0;
	uint64_t addrs[13], depth = symbol_address("a", "_ZNK3app4Node5depthEv");
	const struct symbol_frame *outer;
	struct symbols s;

	addrs[0] = 1;
	for (i = 1; i < 13; i++)
		addrs[i] = depth + i - 1;
	assert_int_equal(objects__symbolize(o, id, addrs, 13, false, &s), 0);
	assert_int_equal(s.cnt, 13);
	assert_int_equal(s.first[0], 0);
	assert_int_equal(s.first[1], 0);
	assert_int_equal(s.strings[0], '\0');
	for (i = 1; i < 13; i++) {
		assert_true(s.first[i + 1] > s.first[i]);
		outer = &s.frames[s.first[i + 1] - 1];
		assert_string_equal(s.strings + outer->name, "app::Node::depth() const");
		assert_string_equal(s.strings + outer->system_name, "_ZNK3app4Node5depthEv");
		assert_string_equal(s.strings + outer->file, dwarf ? toolrun_path("node.cc") : "");
		assert_int_equal(outer->start_line, dwarf ? 3 : 0);
		assert_in_range(outer->line, dwarf ? 3 : 0, dwarf ? 4 : 0);
		/* an inlined function has no beginning of its own */
		assert_int_equal(outer->from_entry, i);
		assert_int_equal(s.frames[s.first[i]].from_entry, i);
		if (s.first[i + 1] - s.first[i] == 2) {
			assert_string_equal(s.strings + s.frames[s.first[i]].name,
					    "app::twice(int)");
			assert_int_equal(s.frames[s.first[i]].line, 2);
			assert_int_equal(outer->line, 4);
			inlined++;
		}
	}
	assert_int_equal(inlined > 0, dwarf);
	symbols__done(&s);
	objects__free(o);
}

static void test_names(void **state)
{
	(void)state;
	build("a", "");
	assert_true(toolrun("objcopy -g a symbols"));
	check_names("a", true);
	check_names("symbols", false);
}

static void test_no_addresses(void **state)
{
	struct objects *o = objects__new();
	struct symbols s;

	(void)state;
	build("a", "");
	assert_int_equal(objects__symbolize(o, add(o, toolrun_path("a")), NULL, 0, false, &s), 0);
	assert_int_equal(s.frame_cnt, 0);
	symbols__done(&s);
	objects__free(o);
}

/* File offset, address and contents belong together. */
static void test_read(void **state)
{
	struct objects *o = objects__new();
	uint8_t a[16], b[16];
	uint64_t vaddr, main_addr;
	uint32_t id;
	long off;
	FILE *f;

	(void)state;
	build("a", "-Wl,-z,separate-code");
	id = add(o, toolrun_path("a"));
	main_addr = symbol_address("a", "main");
	f = fopen(toolrun_path("a"), "r");
	assert_non_null(f);
	for (off = 0; off < 1 << 16; off++) {
		if (objects__vaddr(o, id, off, 0, &vaddr) && vaddr == main_addr)
			break;
	}
	assert_int_equal(fseek(f, off, SEEK_SET), 0);
	assert_int_equal(fread(a, 1, sizeof(a), f), sizeof(a));
	fclose(f);
	assert_int_equal(objects__read(o, id, main_addr, b, sizeof(b)), 0);
	assert_memory_equal(a, b, sizeof(a));
	assert_true(objects__read(o, id, UINT64_MAX - 7, b, sizeof(b)) < 0);
	objects__free(o);
}

static void test_vdso(void **state)
{
	const Elf64_Ehdr *image = (const void *)getauxval(AT_SYSINFO_EHDR);
	struct objects *o = objects__new();
	uint32_t id = objects__add_vdso(o);
	char line[512], name[256];
	struct symbols s;
	size_t cnt = 0;
	FILE *f;

	(void)state;
	if (!image)
		skip();
	assert_int_not_equal(id, OBJECTS_NONE);
	assert_int_equal(objects__add_vdso(o), id);
	assert_true(objects__info(o, id)->readable);
	toolrun_write("vdso", image, image->e_shoff + image->e_shnum * image->e_shentsize);
	f = toolrun_open("readelf -sW vdso");
	while (fgets(line, sizeof(line), f)) {
		uint64_t value, size;

		if (sscanf(line, " %*d: %" SCNx64 " %" SCNu64 " FUNC GLOBAL %*s %*s %255[^@ \n]",
			   &value, &size, name) != 3)
			continue;
		value += size - 1;
		assert_int_equal(objects__symbolize(o, id, &value, 1, false, &s), 0);
		assert_string_equal(s.strings + only(&s, 0)->name, name);
		symbols__done(&s);
		cnt++;
	}
	pclose(f);
	assert_true(cnt >= 3);
	objects__free(o);
}

/* Is a debug file found for a file of the test's folder, mapped at path in the root that is the
 * folder "root"? owner: of the object, instead of its own; -1: its own. */
static bool finds_for(const char *name, const char *path, int owner)
{
	struct reader *r = reader__new(1);
	struct reader_file object;
	struct file_stat st;
	struct debugfile d;
	struct debugfile_object of = { .reader = r, .file = &object, .st = &st, .path = path };
	int fd, err;

	fd = open(toolrun_path(name), O_RDONLY | O_CLOEXEC);
	assert_int_equal(reader__describe(r, fd, false, &object), 0);
	assert_int_equal(file_stat_regular(fd, &st), 0);
	if (owner >= 0)
		st.uid = (uint32_t)owner;
	of.roots[of.root_cnt++] = open(toolrun_path("root"), O_PATH | O_CLOEXEC);
	err = debugfile__open(&d, &of);
	assert_true(err == 0 || err == -ENOENT);
	assert_int_equal(d.fd >= 0, !err);
	debugfile__close(&d);
	reader_file__done(&object);
	reader__free(r);
	close(of.roots[0]);
	close(fd);
	return !err;
}

static bool finds(const char *name, const char *path)
{
	return finds_for(name, path, -1);
}

/* n without a build id, stripped, with a link to n.debug. */
static void build_linked(void)
{
	build("n", "-Wl,--build-id=none");
	assert_true(
		toolrun("rm -rf root && mkdir -p root/opt/x/.debug root/opt/y "
			"root/usr/lib/debug/opt/x && "
			"objcopy --only-keep-debug n n.debug && strip -o n.stripped n && "
			"objcopy --add-gnu-debuglink=n.debug n.stripped"));
}

static void test_debugfile(void **state)
{
	struct objects *o = objects__new();
	const char *id;

	(void)state;
	build("a", "");
	build("b", "-DB -O1");
	id = objects__info(o, add(o, toolrun_path("a")))->build_id;
	assert_true(toolrun("rm -rf root && mkdir -p root/usr/lib/debug/.build-id/%.2s", id));
	assert_true(toolrun("objcopy --only-keep-debug a a.debug && strip -o a.stripped a"));
	assert_false(finds("a.stripped", "/opt/x/a"));
	/* if it is the right one */
	assert_true(
		toolrun("objcopy --only-keep-debug b root/usr/lib/debug/.build-id/%.2s/%s.debug",
			id, id + 2));
	assert_false(finds("a.stripped", "/opt/x/a"));
	assert_true(toolrun("cp a.debug root/usr/lib/debug/.build-id/%.2s/%s.debug", id, id + 2));
	assert_true(finds("a.stripped", "/opt/x/a"));
	objects__free(o);
}

static void test_debugfile_by_link(void **state)
{
	static const char *const places[] = { "opt/x", "opt/x/.debug", "usr/lib/debug/opt/x" };

	(void)state;
	build_linked();
	assert_false(finds("n.stripped", "/opt/x/n"));
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		assert_true(toolrun("cp n.debug root/%s/", places[i]));
		assert_true(finds("n.stripped", "/opt/x/n"));
		assert_true(finds("n.stripped", "/opt/x/n (deleted)"));
		assert_false(finds("n.stripped", "/opt/y/n"));
		assert_false(finds("n.stripped", "opt/x/n"));
		assert_false(finds("n.stripped", "[heap]"));
		assert_true(toolrun("printf x >> root/%s/n.debug", places[i]));
		assert_false(finds("n.stripped", "/opt/x/n"));
		assert_true(toolrun("cd root/%s && rm n.debug && mkfifo n.debug", places[i]));
		assert_false(finds("n.stripped", "/opt/x/n"));
		assert_true(toolrun("rm root/%s/n.debug", places[i]));
	}
	/* one that is there but is another's does not hide the next place */
	assert_true(toolrun("cp n root/opt/x/n.debug && cp n.debug root/opt/x/.debug/"));
	assert_true(finds("n.stripped", "/opt/x/n"));
}

/* What has a build id needs no CRC, but the same build id. */
static void test_debugfile_by_link_and_id(void **state)
{
	(void)state;
	build("a", "");
	build("b", "-DB -O1");
	assert_true(
		toolrun("rm -rf root && mkdir -p root/opt/x && strip -o a.stripped a && "
			"objcopy --only-keep-debug a a.debug && "
			"objcopy --only-keep-debug b b.debug && "
			"objcopy --add-gnu-debuglink=a.debug a.stripped && "
			"cp b.debug root/opt/x/a.debug"));
	assert_false(finds("a.stripped", "/opt/x/a"));
	assert_true(toolrun("cp a.debug root/opt/x/a.debug"));
	assert_true(finds("a.stripped", "/opt/x/a"));
	/* the object itself is not its debug file */
	assert_true(toolrun("cd root/opt/x && rm a.debug && ln ../../../a.stripped a.debug"));
	assert_false(finds("a.stripped", "/opt/x/a"));
}

/* Links lead on as if the root were "/", and not out of it: H10. */
static void test_debugfile_elsewhere(void **state)
{
	char *buf, *link;
	size_t sz;

	(void)state;
	build_linked();
	assert_true(toolrun("cp n.debug elsewhere && cp n.debug root/opt/y/"));
	assert_true(toolrun("ln -s ../y/n.debug root/opt/x/"));
	assert_true(finds("n.stripped", "/opt/x/n"));
	assert_true(toolrun("ln -sf /opt/y/n.debug root/opt/x/"));
	assert_true(finds("n.stripped", "/opt/x/n"));
	assert_true(toolrun("ln -sf ../../../../../opt/y/n.debug root/opt/x/"));
	assert_true(finds("n.stripped", "/opt/x/n"));
	assert_true(toolrun("ln -sf ../../../elsewhere root/opt/x/n.debug"));
	assert_false(finds("n.stripped", "/opt/x/n"));
	assert_true(toolrun("ln -sf \"$PWD/elsewhere\" root/opt/x/n.debug"));
	assert_false(finds("n.stripped", "/opt/x/n"));
	assert_true(toolrun("ln -sf n.debug root/opt/x/n.debug"));
	assert_false(finds("n.stripped", "/opt/x/n"));
	assert_true(toolrun("rm -r root/opt/x && ln -s ../.. root/opt/x"));
	assert_false(finds("n.stripped", "/opt/x/n"));
	/* a name that leads upwards, to a file that would be the right one */
	buf = toolrun_read(toolrun_path("n.stripped"), &sz);
	link = memmem(buf, sz, "n.debug", sizeof("n.debug"));
	assert_non_null(link);
	memcpy(link, "../x.db", sizeof("../x.db"));
	toolrun_write("upwards", buf, sz);
	free(buf);
	assert_true(toolrun("cp n.debug root/opt/x.db"));
	assert_false(finds("upwards", "/opt/y/n"));
}

/* Whose debug file it may be: who has written the object, or who may be read by everybody; and for
 * what only root can have written, what only root can have written. */
static void test_debugfile_owner(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	build_linked();
	assert_true(toolrun("cp n.debug root/opt/x/ && chmod 600 root/opt/x/n.debug"));
	assert_true(finds_for("n.stripped", "/opt/x/n", 0));
	assert_false(finds_for("n.stripped", "/opt/x/n", 12345));
	assert_true(toolrun("chmod 644 root/opt/x/n.debug"));
	assert_true(finds_for("n.stripped", "/opt/x/n", 12345));
	assert_true(toolrun("chown 12345 root/opt/x/n.debug && chmod 600 root/opt/x/n.debug"));
	assert_true(finds_for("n.stripped", "/opt/x/n", 12345));
	assert_true(toolrun("chmod 644 root/opt/x/n.debug"));
	assert_false(finds_for("n.stripped", "/opt/x/n", 0));
	assert_true(toolrun("chown 0 root/opt/x/n.debug && chmod 664 root/opt/x/n.debug"));
	assert_false(finds_for("n.stripped", "/opt/x/n", 0));
}

/* The C library's debug package, where it is installed: its build id leads to inlined frames of
 * functions that we know. */
static void test_libc_debug(void **state)
{
	struct objects *o = objects__new();
	uint32_t id;
	struct symbols s;
	uint64_t addr;
	char debug[256];

	(void)state;
	assert_true(toolrun("cp -L $(gcc -print-file-name=libc.so.6) libc.so"));
	id = add(o, toolrun_path("libc.so"));
	snprintf(debug, sizeof(debug), "%s/.build-id/%.2s/%s.debug", DEBUGFILE_FOLDER,
		 objects__info(o, id)->build_id, objects__info(o, id)->build_id + 2);
	if (access(debug, R_OK)) {
		objects__free(o);
		skip();
	}
	addr = symbol_address("$(readlink -f libc.so) -D --without-symbol-versions", "qsort") + 1;
	assert_int_equal(objects__symbolize(o, id, &addr, 1, false, &s), 0);
	assert_true(s.frame_cnt >= 1);
	assert_non_null(strstr(s.strings + s.frames[s.frame_cnt - 1].name, "qsort"));
	assert_non_null(strstr(s.strings + s.frames[s.frame_cnt - 1].file, "msort.c"));
	assert_true(s.frames[0].line > 0);
	symbols__done(&s);
	objects__free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_foreign_build_id),
		cmocka_unit_test(test_overwritten),
		cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_interp),
		cmocka_unit_test(test_descriptors),
		cmocka_unit_test(test_release_unused),
		cmocka_unit_test(test_many_released),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_no_addresses),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_debugfile),
		cmocka_unit_test(test_debugfile_by_link),
		cmocka_unit_test(test_debugfile_by_link_and_id),
		cmocka_unit_test(test_debugfile_elsewhere),
		cmocka_unit_test(test_debugfile_owner),
		cmocka_unit_test(test_libc_debug),
		cmocka_unit_test(test_set_aside),
		cmocka_unit_test(test_two_readers),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}

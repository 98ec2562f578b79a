/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names and inlined functions of a program whose debug information lies elsewhere, in each place
 * where gdb finds it: the same as gdb has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "target/objects.h"
#include "target/reader.h"
#include "toolrun.h"

/* What is asked for: the addresses of three functions and, if they have debug information, of every
 * line of theirs. */
static const char main_c[] =
	"extern int other(int);\n"
	"static volatile int s;\n"
	"static inline __attribute__((always_inline)) void deepest(int n) { s += n * 3; }\n"
	"static inline __attribute__((always_inline)) void inner(int n) { s ^= n; deepest(n); }\n"
	"static __attribute__((noipa)) int leaf(int n) { inner(n); s++; inner(n + 1); return s; }\n"
	"static __attribute__((cold, noipa)) int rare(int n) { inner(n); return s + 2; }\n"
	"int main(int c, char **v) { (void)v; return c > 9 ? rare(c) : leaf(c) + other(c); }\n";
static const char other_c[] =
	"static volatile int t;\n"
	"static inline __attribute__((always_inline)) void hidden(int n) { t += n; }\n"
	"static __attribute__((noipa)) int second(int n) { hidden(n); t++; return t; }\n"
	"int other(int n) { return second(n) - 1; }\n";

#define MAX_PLACES 16

struct answer {
	uint64_t addr;
	char names[512]; /* innermost first, each with a blank behind */
};

static size_t place_cnt;
static struct answer gdbs[MAX_PLACES];

/* The addresses in the middle of the functions, by the symbols of the program before it was
 * stripped. */
static void find_places(void)
{
	FILE *f = toolrun_open(
		"nm -S --numeric-sort full | grep -E ' [tT] "
		"(leaf|rare|main|second|other)$'");
	uint64_t addr, size;

	place_cnt = 0;
	while (fscanf(f, "%" SCNx64 " %" SCNx64 " %*[^\n]", &addr, &size) == 2) {
		/* instructions begin anywhere: gdb and we ask for bytes */
		for (unsigned int part = 0; part < 3; part++)
			gdbs[place_cnt++] = (struct answer){ .addr = addr + size * part / 3 };
	}
	pclose(f);
	assert_int_equal(place_cnt, 15);
}

/* What gdb has for them: the functions of its blocks, else the symbol that it finds. */
static void ask_gdb(void)
{
	static const char script[] =
		"import gdb\n"
		"for a in open('places'):\n"
		"    a = int(a, 16)\n"
		"    b, names = gdb.block_for_pc(a), []\n"
		"    while b and not b.is_static and not b.is_global:\n"
		"        if b.function:\n"
		"            names.append(b.function.name)\n"
		"        b = b.superblock\n"
		"    if not names:\n"
		"        s = gdb.execute('info symbol %#x' % a, to_string=True).split()\n"
		"        names = s[:1] if s[0] != 'No' else []\n"
		"    print('answer', ' '.join(names) or '-', '')\n";
	char line[600];
	size_t n = 0;
	FILE *f = fopen(toolrun_path("places"), "w");

	assert_non_null(f);
	for (size_t i = 0; i < place_cnt; i++)
		fprintf(f, "%" PRIx64 "\n", gdbs[i].addr);
	fclose(f);
	toolrun_write("ask.py", script, sizeof(script) - 1);
	f = toolrun_open(
		"gdb -nx -batch -ex 'set debuginfod enabled off' -ex \"set sysroot $PWD/root\" "
		"-ex \"set debug-file-directory $PWD/root/usr/lib/debug\" "
		"-ex \"file root/opt/x/prog\" -x ask.py 2>gdb.err");
	while (fgets(line, sizeof(line), f) && n < place_cnt)
		if (sscanf(line, "answer %511[^\n]", gdbs[n].names) == 1)
			n++;
	pclose(f);
	assert_int_equal(n, place_cnt);
}

/* Gives it what it lacks and is in the folder `fetched`, as ID.debug. */
static void give(struct objects *o, uint32_t id)
{
	uint8_t build_id[ELF_FILE_MAX_BUILD_ID];
	char name[256] = "fetched/";
	size_t sz;
	int fd;

	while (!objects__lacks(o, id, build_id, &sz)) {
		for (size_t i = 0; i < sz; i++)
			sprintf(name + 8 + 2 * i, "%02x", build_id[i]);
		strcat(name, ".debug");
		fd = open(toolrun_path(name), O_PATH | O_CLOEXEC);
		if (fd < 0)
			return;
		assert_int_equal(objects__give(o, build_id, sz, fd), 0);
		assert_true(objects__has_given(o, build_id, sz));
		objects__learn(o, id);
	}
}

/* The same from us. */
static void ask_us(struct answer *ret)
{
	struct objects *o = objects__new();
	uint32_t id = objects__add(o, open(toolrun_path("root/opt/x/prog"), O_PATH | O_CLOEXEC),
				   "/opt/x/prog");
	uint64_t addrs[MAX_PLACES];
	struct symbols s;

	assert_int_not_equal(id, OBJECTS_NONE);
	assert_true(objects__wants_root(o, id));
	objects__set_root(o, id, open(toolrun_path("root"), O_PATH | O_CLOEXEC));
	assert_false(objects__wants_root(o, id));
	give(o, id);
	for (size_t i = 0; i < place_cnt; i++)
		addrs[i] = gdbs[i].addr;
	assert_int_equal(objects__symbolize(o, id, addrs, place_cnt, false, &s), 0);
	for (size_t i = 0; i < place_cnt; i++) {
		ret[i] = (struct answer){ .addr = addrs[i] };
		for (uint32_t k = s.first[i]; k < s.first[i + 1]; k++) {
			strcat(ret[i].names, s.strings + s.frames[k].name);
			strcat(ret[i].names, " ");
		}
		if (!ret[i].names[0])
			strcpy(ret[i].names, "- ");
	}
	symbols__done(&s);
	objects__free(o);
}

/* Makes `full`, unless it is there. */
static void build(const char *cc, const char *flags)
{
	static char built[256];
	char what[sizeof(built)];

	snprintf(what, sizeof(what), "%s %s", cc, flags);
	if (!strcmp(what, built))
		return;
	strcpy(built, what);
	toolrun_write("main.c", main_c, sizeof(main_c) - 1);
	toolrun_write("other.c", other_c, sizeof(other_c) - 1);
	assert_true(
		toolrun("rm -f *.dwo *.dwp; %s -O2 -g -c main.c && %s -O2 -g -c other.c && "
			"%s -o full main.o other.o",
			what, what, what));
}

/* flags: of the compiler; prepare: makes what is below root of `full`, the linked program; then: what changes
 * between gdb's answer and ours. */
static void compare_then(const char *cc, const char *flags, const char *prepare, const char *then,
			 bool inlined)
{
	struct answer ours[MAX_PLACES];
	unsigned int names = 0, inner = 0;

	build(cc, flags);
	assert_true(toolrun("rm -rf root fetched && mkdir -p root/opt/x root/usr/lib/debug"));
	assert_true(
		toolrun("set -e; id=$(readelf -n full | sed -n 's/.*Build ID: //p'); "
			"by_id=root/usr/lib/debug/.build-id/${id%%\"${id#??}\"}; "
			"by_id_file=$by_id/${id#??}.debug; %s",
			prepare));
	find_places();
	ask_gdb();
	assert_true(toolrun("set -e; %s", then));
	ask_us(ours);
	for (size_t i = 0; i < place_cnt; i++) {
		assert_string_equal(ours[i].names, gdbs[i].names);
		names += gdbs[i].names[0] != '-';
		inner += strchr(gdbs[i].names, ' ')[1] != '\0';
	}
	/* gdb has found it */
	assert_int_equal(names, place_cnt);
	assert_int_equal(inner > 0, inlined);
}

static void compare(const char *cc, const char *flags, const char *prepare, bool inlined)
{
	compare_then(cc, flags, prepare, ":", inlined);
}

#define SPLIT_OFF "objcopy --only-keep-debug full prog.debug; strip -o root/opt/x/prog full; "
#define LINK "objcopy --add-gnu-debuglink=prog.debug root/opt/x/prog; "

static void test_beside(void **state)
{
	(void)state;
	compare("gcc", "", SPLIT_OFF LINK "cp prog.debug root/opt/x/", true);
}

static void test_in_debug(void **state)
{
	(void)state;
	compare("gcc", "-Wl,--build-id=none",
		SPLIT_OFF LINK "mkdir root/opt/x/.debug; cp prog.debug root/opt/x/.debug/", true);
}

static void test_below_folder(void **state)
{
	(void)state;
	compare("gcc", "",
		SPLIT_OFF LINK
		"mkdir -p root/usr/lib/debug/opt/x; "
		"cp prog.debug root/usr/lib/debug/opt/x/",
		true);
}

static void test_by_build_id(void **state)
{
	(void)state;
	compare("gcc", "", SPLIT_OFF "mkdir -p $by_id; cp prog.debug $by_id_file", true);
}

/* ---- from elsewhere ---- */

/* What gdb had found by its build id is fetched for us. */
#define FETCHED                                                                            \
	"mkdir fetched; mv $(find root/usr/lib/debug/.build-id -name '*.debug') fetched; " \
	"cd fetched; for f in *; do "                                                      \
	"mv $f $(readelf -n $f 2>/dev/null | sed -n 's/.*Build ID: //p').debug; done"

static void test_fetched(void **state)
{
	(void)state;
	compare_then("gcc", "", SPLIT_OFF "mkdir -p $by_id; cp prog.debug $by_id_file", FETCHED,
		     true);
}

/* A file of a build id that was not asked for, or of none, is none, nor is a part of the right one. */
static void test_fetched_other(void **state)
{
	struct objects *o = objects__new();
	uint32_t id = objects__add(o, open(toolrun_path("root/opt/x/prog"), O_PATH | O_CLOEXEC),
				   "/opt/x/prog");
	uint8_t build_id[ELF_FILE_MAX_BUILD_ID];
	static const char *const others[] = { "id.debug", "no.debug", "places", "cut", "half" };
	size_t sz;

	(void)state;
	assert_true(
		toolrun("gcc -g -shared -Wl,--build-id=sha1 -o id.debug -fPIC other.c; "
			"gcc -g -shared -Wl,--build-id=none -o no.debug -fPIC other.c; "
			"head -c -1 fetched/*.debug >cut; "
			"head -c $(($(stat -c %%s cut) / 2)) cut >half"));
	assert_int_equal(objects__lacks(o, id, build_id, &sz), 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		int fd = open(toolrun_path(others[i]), O_PATH | O_CLOEXEC);

		assert_int_equal(objects__give(o, build_id, sz, fd), -EBADMSG);
		assert_int_equal(fcntl(fd, F_GETFD), -1);
	}
	assert_false(objects__has_given(o, build_id, sz));
	assert_int_equal(objects__give(o, build_id, 0, open(toolrun_path("no.debug"), O_PATH)),
			 -EBADMSG);
	objects__free(o);
}

/* What reads a fetched file dies of it: it is forgotten, and what it was for is named without it. */
static bool harm;
static unsigned int harmed;

/* It takes so long to read a .dwo. */
static uint64_t slow_ns, ahead_ns;
static unsigned int slow_cnt, plain_cnt;

/* The answer to the first request with a .dwo, and how many there were. */
static int refusal;
static unsigned int refused;

/* Each .dwo has as many strings as a request may be answered with. */
static bool vast;
static unsigned int vast_cnt;

uint64_t __wrap_util_monotonic_ns(void);
uint64_t __real_util_monotonic_ns(void);
uint64_t __wrap_util_monotonic_ns(void)
{
	return __real_util_monotonic_ns() + ahead_ns;
}

int __wrap_reader__names(struct reader *r, const int fds[static READER_NAMES_FILES],
			 const uint64_t *vaddrs, size_t cnt, bool plain, struct symbols *ret);
int __real_reader__names(struct reader *r, const int fds[static READER_NAMES_FILES],
			 const uint64_t *vaddrs, size_t cnt, bool plain, struct symbols *ret);
int __wrap_reader__names(struct reader *r, const int fds[static READER_NAMES_FILES],
			 const uint64_t *vaddrs, size_t cnt, bool plain, struct symbols *ret)
{
	int err;

	if (harm && fds[READER_FD_DEBUG] >= 0) {
		harmed++;
		return -EPIPE;
	}
	plain_cnt += plain;
	if (slow_ns && fds[READER_FD_SPLIT] >= 0) {
		slow_cnt++;
		ahead_ns += slow_ns;
	}
	if (refusal && fds[READER_FD_SPLIT] >= 0 && !refused++)
		return refusal;
	err = __real_reader__names(r, fds, vaddrs, cnt, plain, ret);
	if (!err && vast && fds[READER_FD_SPLIT] >= 0) {
		char *strings = calloc(READER_MAX_STRINGS, 1);

		assert_non_null(strings);
		memcpy(strings, ret->strings, ret->strings_sz);
		free(ret->strings);
		ret->strings = strings;
		ret->strings_sz = READER_MAX_STRINGS;
		vast_cnt++;
	}
	return err;
}

static uint32_t add_prog(struct objects *o)
{
	uint32_t id = objects__add(o, open(toolrun_path("root/opt/x/prog"), O_PATH | O_CLOEXEC),
				   "/opt/x/prog");

	assert_int_not_equal(id, OBJECTS_NONE);
	return id;
}

static size_t frames_at(struct objects *o, uint32_t id, uint64_t addr)
{
	struct symbols s;
	size_t cnt;

	assert_int_equal(objects__symbolize(o, id, &addr, 1, false, &s), 0);
	cnt = s.frame_cnt;
	symbols__done(&s);
	return cnt;
}

/* A debug file that was not there is not looked for with each address, but after a while, and where there
 * is a place that was not looked into. */
static void test_looked_for_again(void **state)
{
	struct objects *o = objects__new();
	uint32_t id;

	(void)state;
	build("gcc", "");
	assert_true(toolrun("set -e; rm -rf root; mkdir -p root/opt/x; " SPLIT_OFF LINK ":"));
	find_places();
	id = add_prog(o);
	objects__set_root(o, id, open(toolrun_path("root"), O_PATH | O_CLOEXEC));
	assert_int_equal(frames_at(o, id, gdbs[0].addr), 0);
	assert_true(toolrun("cp prog.debug root/opt/x/"));
	assert_int_equal(frames_at(o, id, gdbs[0].addr), 0);
	ahead_ns += 60 * NSEC_PER_SEC;
	assert_true(frames_at(o, id, gdbs[0].addr) > 0);
	objects__free(o);
	o = objects__new();
	id = add_prog(o);
	assert_int_equal(frames_at(o, id, gdbs[0].addr), 0);
	objects__set_root(o, id, open(toolrun_path("root"), O_PATH | O_CLOEXEC));
	assert_true(frames_at(o, id, gdbs[0].addr) > 0);
	objects__free(o);
}

/* A stranger's program has no debug file that lies where its owner cannot look. */
static void test_others_folder(void **state)
{
	struct objects *o;
	uint32_t id;

	(void)state;
	if (geteuid())
		skip();
	build("gcc", "");
	assert_true(toolrun("set -e; rm -rf root; mkdir -p root/opt/x/.debug; " SPLIT_OFF LINK
			    "mv prog.debug root/opt/x/.debug; chown 1000:1000 root/opt/x/prog; "
			    "chmod 755 root root/opt root/opt/x; chmod 700 root/opt/x/.debug"));
	find_places();
	for (int own = 0; own < 2; own++) {
		o = objects__new();
		id = add_prog(o);
		objects__set_root(o, id, open(toolrun_path("root"), O_PATH | O_CLOEXEC));
		assert_int_equal(frames_at(o, id, gdbs[0].addr) > 0, own);
		objects__free(o);
		assert_true(toolrun("chown 1000:1000 root/opt/x/.debug"));
	}
}

static void test_fetched_harm(void **state)
{
	uint8_t build_id[ELF_FILE_MAX_BUILD_ID];
	struct objects_stats stats;
	struct objects *o;
	struct symbols s;
	size_t sz;
	uint32_t id;

	(void)state;
	test_fetched(state);
	o = objects__new();
	id = objects__add(o, open(toolrun_path("root/opt/x/prog"), O_PATH | O_CLOEXEC),
			  "/opt/x/prog");
	assert_int_equal(objects__lacks(o, id, build_id, &sz), 0);
	give(o, id);
	assert_int_equal(objects__info(o, id)->fetched, 1);
	harm = true;
	assert_int_equal(objects__symbolize(o, id, &gdbs[0].addr, 1, false, &s), 0);
	harm = false;
	symbols__done(&s);
	assert_int_equal(harmed, 1);
	assert_false(objects__has_given(o, build_id, sz));
	assert_true(objects__info(o, id)->readable);
	objects__stats(o, &stats);
	assert_int_equal(stats.set_aside, 1);
	objects__free(o);
}

/* The same of a stranger's object: another one of that build id keeps what was fetched. */
static void test_fetched_harm_of_stranger(void **state)
{
	uint8_t build_id[ELF_FILE_MAX_BUILD_ID];
	struct objects *o = objects__new();
	uint32_t ids[2];
	struct symbols s;
	size_t sz;

	(void)state;
	assert_true(toolrun("cp root/opt/x/prog other_prog; chmod 0777 other_prog"));
	ids[0] = objects__add(o, open(toolrun_path("root/opt/x/prog"), O_PATH | O_CLOEXEC),
			      "/opt/x/prog");
	ids[1] = objects__add(o, open(toolrun_path("other_prog"), O_PATH | O_CLOEXEC),
			      toolrun_path("other_prog"));
	assert_int_not_equal(ids[0], ids[1]);
	assert_int_equal(objects__lacks(o, ids[0], build_id, &sz), 0);
	give(o, ids[0]);
	harm = true;
	assert_int_equal(objects__symbolize(o, ids[1], &gdbs[0].addr, 1, false, &s), 0);
	harm = false;
	symbols__done(&s);
	assert_true(objects__has_given(o, build_id, sz));
	assert_int_equal(objects__lacks(o, ids[0], build_id, &sz), -ENOENT);
	/* it does without from then on */
	harm = true;
	harmed = 0;
	assert_int_equal(objects__symbolize(o, ids[1], &gdbs[0].addr, 1, false, &s), 0);
	harm = false;
	symbols__done(&s);
	assert_int_equal(harmed, 0);
	objects__free(o);
}

/* ---- compressed ---- */

static void compare_packed(const char *how)
{
	char prepare[512];

	snprintf(prepare, sizeof(prepare),
		 SPLIT_OFF
		 "objcopy --compress-debug-sections=%s prog.debug; "
		 "readelf -tW prog.debug 2>/dev/null | grep -Eq 'ZLIB|ZSTD|zdebug'; " LINK
		 "cp prog.debug root/opt/x/",
		 how);
	compare("gcc", "-Wl,--build-id=none", prepare, true);
}

static void test_zlib(void **state)
{
	(void)state;
	compare_packed("zlib");
}

static void test_zlib_gnu(void **state)
{
	(void)state;
	compare_packed("zlib-gnu");
}

/* Debug sections of the debug file, and of the program itself. */
static void test_zstd(void **state)
{
	(void)state;
	if (!toolrun("objcopy --help | grep -q zstd"))
		skip();
	compare_packed("zstd");
	compare("gcc", "", "objcopy --compress-debug-sections=zstd full root/opt/x/prog", true);
}

/* ---- what several debug files share ---- */

/* Two debug files, with what they share in another one; shared_as: how they refer to it. */
#define DWZ(shared, shared_as)                                                        \
	SPLIT_OFF                                                                     \
	"cp prog.debug second.debug; "                                                \
	"mkdir -p $by_id; rm -f " shared                                              \
	"; "                                                                          \
	"dwz -m " shared " -M " shared_as " prog.debug second.debug; test -s " shared \
	"; "                                                                          \
	"readelf -SW prog.debug 2>/dev/null | grep -q gnu_debugaltlink; "             \
	"cp prog.debug $by_id_file; "

static void test_dwz_relative(void **state)
{
	(void)state;
	if (!toolrun_have("dwz"))
		skip();
	compare("gcc", "", DWZ("common.dwz", "../../common.dwz") "mv common.dwz $by_id/../../",
		true);
}

static void test_dwz_by_build_id(void **state)
{
	(void)state;
	if (!toolrun_have("dwz"))
		skip();
	compare("gcc", "",
		DWZ("common.dwz", "nowhere")
		"id=$(readelf -n common.dwz 2>/dev/null | sed -n 's/.*Build ID: //p'); "
		"by=root/usr/lib/debug/.build-id/${id%\"${id#??}\"}; mkdir -p $by; "
		"mv common.dwz $by/${id#??}.debug",
		true);
}

/* Both are fetched: the second one once the first one is there and tells of it. */
static void test_dwz_fetched(void **state)
{
	(void)state;
	if (!toolrun_have("dwz"))
		skip();
	compare_then("gcc", "",
		     DWZ("common.dwz", "nowhere")
		     "id=$(readelf -n common.dwz 2>/dev/null | sed -n 's/.*Build ID: //p'); "
		     "by=root/usr/lib/debug/.build-id/${id%\"${id#??}\"}; mkdir -p $by; "
		     "mv common.dwz $by/${id#??}.debug",
		     FETCHED, true);
}

/* ---- split DWARF ---- */

static void test_dwo(void **state)
{
	(void)state;
	compare("gcc", "-gsplit-dwarf", "cp full root/opt/x/prog", true);
}

/* Of one .dwo the names are those of symbols: each has one, gdb's outermost. */
static void assert_one_has_symbols(const struct answer *ours)
{
	unsigned int inner = 0;

	for (size_t i = 0; i < place_cnt; i++) {
		const char *outermost = strstr(gdbs[i].names, ours[i].names);

		assert_true(strlen(ours[i].names) > 2 && outermost &&
			    !strcmp(outermost, ours[i].names));
		inner += strchr(ours[i].names, ' ')[1] != '\0';
	}
	assert_int_not_equal(inner, 0);
}

/* No more are read when it has taken too long, and what they would have named has symbols. */
static void test_dwo_slow(void **state)
{
	struct answer ours[MAX_PLACES];

	(void)state;
	compare("gcc", "-gsplit-dwarf", "cp full root/opt/x/prog", true);
	slow_ns = 21 * UINT64_C(1000000000);
	ask_us(ours);
	slow_ns = ahead_ns = 0;
	assert_int_equal(slow_cnt, 1);
	assert_int_equal(plain_cnt, 1);
	assert_one_has_symbols(ours);
}

/* A .dwo that the reader refuses, whatever it says of it, takes no names from the others. */
static void test_dwo_refused(void **state)
{
	static const int answers[] = { -ENOENT, -EBADMSG, -E2BIG };
	struct answer ours[MAX_PLACES];

	(void)state;
	compare("gcc", "-gsplit-dwarf", "cp full root/opt/x/prog", true);
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		refusal = answers[i];
		refused = 0;
		ask_us(ours);
		refusal = 0;
		/* each of the two once */
		assert_int_equal(refused, 2);
		assert_one_has_symbols(ours);
	}
}

/* Names of all of them together are no more than those of one may be: the rest has symbols. */
static void test_dwo_vast(void **state)
{
	struct answer ours[MAX_PLACES];

	(void)state;
	compare("gcc", "-gsplit-dwarf", "cp full root/opt/x/prog", true);
	plain_cnt = 0;
	vast = true;
	ask_us(ours);
	vast = false;
	assert_int_equal(vast_cnt, 2);
	assert_int_equal(plain_cnt, 1);
	assert_one_has_symbols(ours);
}

static void test_dwo_4(void **state)
{
	(void)state;
	compare("gcc", "-gsplit-dwarf -gdwarf-4", "cp full root/opt/x/prog", true);
}

static void test_dwp_4(void **state)
{
	(void)state;
	if (!toolrun_have("dwp"))
		skip();
	compare("gcc", "-gsplit-dwarf -gdwarf-4",
		"cp full root/opt/x/prog; dwp -e full -o root/opt/x/prog.dwp; "
		"mkdir away; mv *.dwo away",
		true);
	assert_true(toolrun("mv away/* . && rmdir away"));
}

/* Beside the debug file, by the program's name; and in the folder of debug files. */
static void test_dwp_elsewhere(void **state)
{
	static const char *const places[] = {
		SPLIT_OFF LINK
		"mkdir root/opt/x/.debug; cp prog.debug root/opt/x/.debug; "
		"dwp -e full -o root/opt/x/.debug/prog.dwp; ",
		"cp full root/opt/x/prog; dwp -e full -o root/usr/lib/debug/prog.dwp; ",
	};
	char prepare[512];

	(void)state;
	if (!toolrun_have("dwp"))
		skip();
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		snprintf(prepare, sizeof(prepare), "%smkdir away; mv *.dwo away", places[i]);
		compare("gcc", "-gsplit-dwarf -gdwarf-4", prepare, true);
		assert_true(toolrun("mv away/* . && rmdir away"));
	}
}

/* Their folder is gone, as that of a package's build: they are beside the program, or where debug files are. */
static void test_dwo_elsewhere(void **state)
{
	static const char *const places[] = { "root/opt/x", "root/usr/lib/debug" };
	char prepare[128];

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		snprintf(prepare, sizeof(prepare), "cp full root/opt/x/prog; mv *.dwo %s",
			 places[i]);
		compare("gcc", "-gsplit-dwarf", prepare, true);
		assert_true(toolrun("mv %s/*.dwo .", places[i]));
	}
}

/* Of clang's files, since LLVM's tool reads no others; gdb has these files, since it reads no package of DWARF 5. */
static void test_dwp_5(void **state)
{
	(void)state;
	if (!toolrun_have("llvm-dwp") || !toolrun_have("clang"))
		skip();
	compare_then(
		"clang", "-gsplit-dwarf -gdwarf-5 -Dnoipa=noinline", "cp full root/opt/x/prog",
		"timeout 60 llvm-dwp -e full -o root/opt/x/prog.dwp; "
		"readelf --debug-dump=cu_index root/opt/x/prog.dwp 2>&1 | grep -q 'Version: *5'; "
		"mkdir away; mv *.dwo away",
		true);
	assert_true(toolrun("mv away/* . && rmdir away"));
}

/* ---- .gnu_debugdata ---- */

/* As rpmbuild makes it: the functions that .dynsym has not. */
#define MINI                                                                                      \
	"nm -D full --format=posix --defined-only | cut -d' ' -f1 | sort >dyn; "                  \
	"nm full --format=posix --defined-only | grep -E ' [TtD] ' | cut -d' ' -f1 | sort >all; " \
	"comm -13 dyn all >keep; objcopy -S --keep-symbols=keep full mini; xz -kf0 mini; "        \
	"strip -o root/opt/x/prog full; "
#define ADD_MINI "objcopy --add-section .gnu_debugdata=mini.xz root/opt/x/prog"

static void test_minidebug(void **state)
{
	(void)state;
	compare("gcc", "-rdynamic", MINI ADD_MINI, false);
}

/* What has both is named by what says more. */
static void test_minidebug_and_debug(void **state)
{
	(void)state;
	compare("gcc", "", MINI SPLIT_OFF ADD_MINI "; " LINK "cp prog.debug root/opt/x/", true);
}

/* How many of the places have a name? */
static size_t named(void)
{
	struct answer ours[MAX_PLACES];
	size_t ret = 0;

	ask_us(ours);
	for (size_t i = 0; i < place_cnt; i++)
		ret += ours[i].names[0] != '-';
	return ret;
}

/* What cannot be expanded, or would expand to too much, does no harm and gives no names. */
static void test_minidebug_damaged(void **state)
{
	static const char *const made[] = {
		"truncate -s 400 mini.xz",
		"printf x | dd of=mini.xz bs=1 seek=300 conv=notrunc status=none",
		"echo no xz at all >mini.xz",
		"xz -k0 places && mv places.xz mini.xz",
		/* a good one, but for its size: MAX_IMAGE of minidebug.c */
		"cp mini big && truncate -s 257M big && xz -0c big >mini.xz && rm big",
	};

	(void)state;
	compare("gcc", "", MINI ADD_MINI, false);
	assert_int_equal(named(), place_cnt);
	for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++) {
		assert_true(toolrun("%s && strip -o root/opt/x/prog full && " ADD_MINI, made[i]));
		assert_int_equal(named(), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_beside),
		cmocka_unit_test(test_below_folder),
		cmocka_unit_test(test_by_build_id),
		cmocka_unit_test(test_fetched),
		cmocka_unit_test(test_fetched_other),
		cmocka_unit_test(test_fetched_harm),
		cmocka_unit_test(test_fetched_harm_of_stranger),
		cmocka_unit_test(test_looked_for_again),
		cmocka_unit_test(test_others_folder),
		cmocka_unit_test(test_dwz_fetched),
		cmocka_unit_test(test_dwz_relative),
		cmocka_unit_test(test_dwz_by_build_id),
		cmocka_unit_test(test_minidebug_and_debug),
		cmocka_unit_test(test_minidebug_damaged),
		cmocka_unit_test(test_minidebug),
		cmocka_unit_test(test_in_debug),
		cmocka_unit_test(test_zlib),
		cmocka_unit_test(test_zlib_gnu),
		cmocka_unit_test(test_zstd),
		cmocka_unit_test(test_dwo),
		cmocka_unit_test(test_dwo_slow),
		cmocka_unit_test(test_dwo_refused),
		cmocka_unit_test(test_dwo_vast),
		cmocka_unit_test(test_dwo_4),
		cmocka_unit_test(test_dwp_4),
		cmocka_unit_test(test_dwp_elsewhere),
		cmocka_unit_test(test_dwo_elsewhere),
		cmocka_unit_test(test_dwp_5),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}

// SPDX-License-Identifier: BSD-2-Clause
/* seconds: 17 */
/*
 * The preload library: its arithmetic against libm, its set against an array, and as a whole by a
 * program that listens to its probes (preload_prog.cc), with several allocators behind it. And that
 * other programs do not notice it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <libgen.h>
#include <linux/types.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/heap.h"
#include "sample.h"
#include "toolrun.h"

/* ---- Arithmetic ---- */

static void test_one_minus_exp(void **state)
{
	(void)state;
	for (double x = 1e-15; x < 100; x *= 1.00173) {
		double truth = -expm1(-x);

		assert_true(fabs(heap_one_minus_exp(x) - truth) <= 1e-13 * truth);
	}
	assert_true(heap_one_minus_exp(0) == 0);
}

static void test_weight(void **state)
{
	static const uint64_t rates[] = { 2, 100, 4096, 65536, 524288, 1ULL << 40 };

	(void)state;
	assert_int_equal(heap_weight(0, 1), 0);
	assert_int_equal(heap_weight(123, 1), 123);
	assert_int_equal(heap_weight(123, 0), 123);
	assert_int_equal(heap_weight(0, 524288), 0);
	assert_int_equal(heap_weight(UINT64_MAX, 524288), UINT64_MAX);
	assert_int_equal(heap_weight(1ULL << 62, 2), 1ULL << 62);
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		for (uint64_t size = 1; size < 1ULL << 34; size = size * 5 / 4 + 1) {
			double w = size / -expm1(-(double)size / rates[i]);

			assert_true(fabs(heap_weight(size, rates[i]) - w) <= 0.5 + 1e-12 * w);
		}
	}
}

/* ---- The set ---- */

static void *pointer(uint64_t i)
{
	return (void *)(0x7f0000000000 + i * 48);
}

static void test_set(void **state)
{
	const uint64_t n = 300000;
	struct heap_set *s = calloc(1, sizeof(*s));

	(void)state;
	assert_non_null(s);
	assert_false(heap_set__remove(s, NULL));
	assert_false(heap_set__remove(s, pointer(0)));
	for (uint64_t i = 0; i < n; i += 2)
		assert_int_equal(heap_set__add(s, pointer(i)), 0);
	assert_null(s->more[3]); /* it has not grown beyond need */
	for (uint64_t i = 0; i < n; i++) {
		if (i % 2 == 0)
			assert_true(heap_set__may_have(s, pointer(i)));
		if (i % 3 == 0)
			assert_int_equal(heap_set__remove(s, pointer(i)), i % 2 == 0);
	}
	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(heap_set__remove(s, pointer(i)), i % 2 == 0 && i % 3);
	for (int i = 0; i < HEAP_SET_FIRST; i++)
		assert_int_equal(s->first[i], 0);
	for (unsigned int t = 1; t < HEAP_SET_TABLES && s->more[t - 1]; t++)
		munmap(s->more[t - 1], heap_set__slots(t) * sizeof(uintptr_t));
	free(s);
}

/* The filter is empty with the set, but for counters that were full. */
static void test_filter(void **state)
{
	struct heap_set *s = calloc(1, sizeof(*s));
	int used = 0;

	(void)state;
	assert_non_null(s);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(heap_set__add(s, pointer(i)), 0);
	for (int i = 0; i < HEAP_SET_FILTER; i++)
		used += s->filter[i];
	assert_int_equal(used, 1000);
	for (int i = 0; i < 1000; i++)
		assert_true(heap_set__remove(s, pointer(i)));
	for (int i = 0; i < HEAP_SET_FILTER; i++)
		assert_int_equal(s->filter[i], 0);
	for (int i = 0; i < 300; i++) /* all of one counter */
		heap_set__count(s, pointer(0), 1);
	for (int i = 0; i < 300; i++)
		heap_set__count(s, pointer(0), -1);
	assert_true(heap_set__may_have(s, pointer(0)));
	free(s);
}

#define SET_THREADS 4
static struct heap_set shared;
static void *boxes[64];
static long removed, failed;

static void *juggle(void *arg)
{
	uint64_t seed = (uintptr_t)arg, own = (uintptr_t)arg << 32;

	for (int i = 0; i < 100000; i++) {
		void *p = pointer(own + i), **box = &boxes[sample_random64(seed, i) % 64];

		if (heap_set__add(&shared, p))
			__atomic_add_fetch(&failed, 1, __ATOMIC_RELAXED);
		p = __atomic_exchange_n(box, p, __ATOMIC_ACQ_REL);
		if (!p)
			continue;
		if (!heap_set__may_have(&shared, p) || !heap_set__remove(&shared, p))
			__atomic_add_fetch(&failed, 1, __ATOMIC_RELAXED);
		__atomic_add_fetch(&removed, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/* Each removes what others added: all of it is found, and nothing is left. */
static void test_set_threads(void **state)
{
	pthread_t ids[SET_THREADS];

	(void)state;
	for (uintptr_t i = 0; i < SET_THREADS; i++)
		assert_int_equal(pthread_create(&ids[i], NULL, juggle, (void *)(i + 1)), 0);
	for (int i = 0; i < SET_THREADS; i++)
		pthread_join(ids[i], NULL);
	for (int i = 0; i < 64; i++)
		removed += boxes[i] && heap_set__remove(&shared, boxes[i]);
	assert_int_equal(failed, 0);
	assert_int_equal(removed, SET_THREADS * 100000);
	for (int i = 0; i < HEAP_SET_FILTER; i++)
		assert_int_equal(shared.filter[i], 0);
	for (int i = 0; i < HEAP_SET_FIRST; i++)
		assert_int_equal(shared.first[i], 0);
}

/* ---- The library ---- */

static char library[PATH_MAX], program[PATH_MAX];

/* Both are built beside this test: OUT/libbpfprof-heap.so and OUT/tests/unit/preload_prog. The library is
 * copied: a run of bpfprof beside us, over the whole machine, sets breakpoints in its file. */
static int find_built(void **state)
{
	char self[PATH_MAX - 64];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	(void)state;
	if (len < 0)
		return -1;
	self[len] = 0;
	snprintf(program, sizeof(program), "%s/preload_prog", dirname(self));
	snprintf(library, sizeof(library), "%s/libbpfprof-heap.so", toolrun_folder());
	return access(program, X_OK) ||
	       !toolrun("cp %s/libbpfprof-heap.so .", dirname(dirname(self)));
}

static void run_mode(const char *mode, unsigned long rate, const char *other)
{
	if (!toolrun("env OTHER=%s BPFPROF_HEAP_RATE=%lu LD_PRELOAD=%s:%s timeout 60 %s %s", other,
		     rate, library, other, program, mode))
		fail_msg("%s at rate %lu with %s", mode, rate, *other ? other : "libc");
}

static void test_entries(void **state)
{
	static const char *const modes[] = {
		"entries", "realloc", "cxx", "healing", "full", "fork"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		run_mode(modes[i], 1, "");
	run_mode("fork", 4096, "");
}

static void test_threads(void **state)
{
	(void)state;
	run_mode("threads", 1, "");
	run_mode("threads", 4096, "");
}

static void test_other_allocators(void **state)
{
	static const char *const others[] = { "libjemalloc.so.2", "libtcmalloc_minimal.so.4",
					      "libmimalloc.so.2" };
	static const char *const modes[] = { "entries", "realloc", "cxx", "fork" };
	int tried = 0;

	(void)state;
	for (int i = 0; i < 3; i++) {
		/* the dynamic linker says so if there is none */
		if (!toolrun("LD_PRELOAD=%s env true 2>&1 | { ! grep -q .; }", others[i]))
			continue;
		for (int k = 0; k < 4; k++)
			run_mode(modes[k], 1, others[i]);
		tried++;
	}
	if (!tried)
		skip();
}

/* With a seed it is known of each allocation whether it is sampled. */
static void check_chance(const char *mode, const char *other)
{
	const uint64_t rate = 4096;

	for (uint64_t seed = 1; seed <= 3; seed++) {
		FILE *f = toolrun_open(
			"BPFPROF_SAMPLE_SEED=%lu BPFPROF_HEAP_RATE=%lu "
			"LD_PRELOAD=%s:%s timeout 60 %s %s",
			seed, rate, library, other, program, mode);
		uint64_t draws = 0, left = sample_distance(sample_random(seed, draws++), rate);
		unsigned long size, cnt, samples, weights;
		int lines = 0;

		while (fscanf(f, "%lu %lu %lu %lu", &size, &cnt, &samples, &weights) == 4) {
			uint64_t bytes = size ?: 1, wanted = 0;

			for (lines++; cnt; cnt--) {
				if (bytes < left) {
					left -= bytes;
					continue;
				}
				left = sample_distance(sample_random(seed, draws++), rate);
				wanted++;
			}
			assert_int_equal(samples, wanted);
			assert_int_equal(weights, wanted * heap_weight(size, rate));
		}
		assert_int_equal(lines, 6);
		assert_int_equal(pclose(f), 0);
	}
}

static void test_chance(void **state)
{
	(void)state;
	check_chance("chance", "");
	check_chance("chance_zeroed", "");
}

/* What an allocator does by its own public names is the same allocation, whether it is sampled or not. */
static void test_allocator_calls_itself(void **state)
{
	static const char *const modes[] = { "entries", "realloc", "cxx", "fork", "threads" };
	const char *progs = getenv("PROGS");
	char path[PATH_MAX], other[PATH_MAX];

	(void)state;
	snprintf(path, sizeof(path), "%s/liballoc_plt.so", progs ? progs : "build/tests/progs");
	assert_non_null(realpath(path, other));
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		run_mode(modes[i], 1, other);
	check_chance("chance", other);
	check_chance("chance_zeroed", other);
}

/* The notes as binutils read them, and one-byte nops where they point to. */
static void test_notes(void **state)
{
	unsigned long site;
	int sites = 0;
	FILE *f;

	(void)state;
	if (!toolrun_have("readelf") || !toolrun_have("objdump"))
		skip();
	assert_true(toolrun("readelf -n %s >notes", library));
	assert_true(toolrun("[ $(grep -c 'Provider: otel_memory' notes) = 2 ]"));
	assert_true(toolrun("grep -A2 'Name: alloc' notes >alloc"));
	assert_true(toolrun("grep -q 'Arguments: 8@%%rdi 8@%%rsi 8@%%rdx$' alloc"));
	assert_true(toolrun("grep -A2 'Name: free' notes | grep -q 'Arguments: 8@%%rdi$'"));
	assert_true(toolrun("[ $(grep -c 'Semaphore: 0x0*$' notes) = 2 ]"));
	assert_true(toolrun("objdump -d %s >code", library));
	f = toolrun_open("sed -n 's/.*Location: 0x0*\\([0-9a-f]*\\),.*/\\1/p' notes");
	while (fscanf(f, "%lx", &site) == 1) {
		assert_true(toolrun("grep -qE '^ *%lx:[[:space:]]+90[[:space:]]+nop$' code", site));
		sites++;
	}
	pclose(f);
	assert_int_equal(sites, 2);
}

/* It depends on nothing but libc, and defines nothing that programs test for by its presence. */
static void test_symbols(void **state)
{
	(void)state;
	if (!toolrun_have("readelf") || !toolrun_have("nm"))
		skip();
	assert_true(toolrun("readelf -d %s >dynamic", library));
	assert_true(toolrun("[ \"$(grep NEEDED dynamic | grep -c -v libc.so.6)\" = 0 ]"));
	assert_true(toolrun("nm -D --defined-only %s >defined", library));
	assert_true(toolrun("grep -qw malloc defined"));
	assert_false(toolrun("grep -E 'mallocx|mallctl|probe|heap_' defined"));
}

/* ---- Other programs ---- */

static void bare_output(const char *script)
{
	toolrun_write("script", script, strlen(script));
	assert_true(toolrun("bash script >bare 2>&1"));
}

static void same_output(const char *script, unsigned long rate)
{
	if (!toolrun("BPFPROF_HEAP_RATE=%lu LD_PRELOAD=%s bash script >preloaded 2>&1", rate,
		     library) ||
	    !toolrun("cmp bare preloaded"))
		fail_msg("%s at rate %lu", script, rate);
}

static void test_programs(void **state)
{
	static const struct {
		const char *tool, *script;
	} progs[] = {
		{ "bash", "for i in {1..200}; do a=$(echo $i); b+=$a; done; echo $b" },
		{ "python3",
		  "python3 -c 'import json, threading\n"
		  "print(len(json.dumps([str(i) for i in range(100000)])))'" },
		{ "perl", "perl -e 'my %h; $h{$_} = 1 x 10 for 1..20000; print scalar keys %h'" },
		{ "gcc", "echo 'int main(void) { return 0; }' | gcc -O2 -x c -S -o - -" },
		{ "g++", "echo '#include <map>' | g++ -O2 -x c++ -S -o - - | wc -l" },
		{ "node",
		  "node -e 'let a = []; for (let i = 0; i < 1e5; i++) a.push({i});"
		  "console.log(a.length)'" },
		{ "redis-server",
		  "redis-server --port 0 --unixsocket sock --save '' >/dev/null &\n"
		  "for i in {1..100}; do redis-cli -s sock ping 2>&1 | grep -q PONG && "
		  "break; sleep 0.05; done\n"
		  "redis-cli -s sock debug populate 10000 key 100 2>&1\n"
		  "redis-cli -s sock dbsize\n"
		  "kill $!; wait $!; echo $?" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(progs) / sizeof(progs[0]); i++) {
		if (!toolrun_have(progs[i].tool))
			continue;
		bare_output(progs[i].script);
		same_output(progs[i].script, 524288);
		same_output(progs[i].script, 1);
	}
}

static const char cxx_library[] =
	"#include <new>\n"
	"#include <string>\n"
	"#include <stdexcept>\n"
	"struct alignas(128) Wide { char c[128]; };\n"
	"extern \"C\" int work(volatile unsigned long huge)\n"
	"{\n"
	"	int ok = 0;\n"
	"	std::string s(1000, 'x');\n"
	"	Wide *w = new Wide;\n"
	"	ok += s.size() == 1000 && (unsigned long)w % 128 == 0;\n"
	"	delete w;\n"
	"	try { delete[] new char[huge]; } catch (const std::bad_alloc &) { ok++; }\n"
	"	ok += !new (std::nothrow) char[huge];\n"
	"	try { throw std::runtime_error(s); } catch (const std::exception &e) { ok++; }\n"
	"	return ok == 4 ? 0 : 1;\n"
	"}\n";
static const char c_program[] =
	"#include <dlfcn.h>\n"
	"int main(void)\n"
	"{\n"
	"	void *h = dlopen(\"./cxx.so\", RTLD_NOW | RTLD_LOCAL);\n"
	"	int (*work)(unsigned long) = h ? (int (*)(unsigned long))dlsym(h, \"work\") : 0;\n"
	"	return work ? work(~0ul / 4) : 2;\n"
	"}\n";

/* The C++ runtime comes with a library of a C program, in a scope that we are not in. */
static void test_late_runtime(void **state)
{
	(void)state;
	if (!toolrun_have("g++") || !toolrun_have("gcc"))
		skip();
	toolrun_write("cxx.cc", cxx_library, strlen(cxx_library));
	toolrun_write("late.c", c_program, strlen(c_program));
	assert_true(toolrun("g++ -O1 -shared -fPIC -o cxx.so cxx.cc && gcc -o late late.c"));
	assert_true(toolrun("./late"));
	assert_true(toolrun("BPFPROF_HEAP_RATE=1 LD_PRELOAD=%s ./late", library));
	assert_true(toolrun("LD_PRELOAD=%s ./late", library));
}

/*
 * Programs that would not run behind it are started without it, whichever function executes them,
 * also by a script's first line; what else is preloaded stays. Those of clang have all of it inside.
 */
static const char starter[] =
	"#include <spawn.h>\n"
	"#include <stdlib.h>\n"
	"#include <string.h>\n"
	"#include <sys/wait.h>\n"
	"#include <unistd.h>\n"
	"int main(int argc, char **v)\n"
	"{\n"
	"	extern char **environ;\n"
	"	char *a[] = { v[2], 0 };\n"
	"	int err = 0, status;\n"
	"	pid_t pid = 0;\n"
	"	switch (argc == 3 ? atoi(v[1]) : -1) {\n"
	"	case 0: execve(v[2], a, environ); break;\n"
	"	case 1: execv(v[2], a); break;\n"
	"	case 2: execvp(v[2], a); break;\n"
	"	case 3: execl(v[2], v[2], (char *)0); break;\n"
	"	case 4: execlp(v[2], v[2], (char *)0); break;\n"
	"	case 5: execle(v[2], v[2], (char *)0, environ); break;\n"
	"	case 6: err = posix_spawn(&pid, v[2], 0, 0, a, environ); break;\n"
	"	case 7: err = posix_spawnp(&pid, v[2], 0, 0, a, environ); break;\n"
	"	case 8: if (!(pid = vfork())) { execv(v[2], a); _exit(126); } break;\n"
	"	case 9: return system(v[2]);\n"
	"	}\n"
	"	return err || !pid || waitpid(pid, &status, 0) != pid || status;\n"
	"}\n";
static const char checked[] =
	"#include <stdio.h>\n"
	"#include <stdlib.h>\n"
	"int main(void)\n"
	"{\n"
	"	const char *s = getenv(\"LD_PRELOAD\");\n"
	"	free(malloc(10));\n"
	"	printf(\"%s\\n\", s ? s : \"none\");\n"
	"	return 0;\n"
	"}\n";

static void test_sanitizers(void **state)
{
	static const char *const sanitizers[] = { "address", "thread", "leak" };
	bool tried = false;

	(void)state;
	if (!toolrun_have("gcc"))
		skip();
	toolrun_write("starter.c", starter, strlen(starter));
	toolrun_write("checked.c", checked, strlen(checked));
	assert_true(toolrun("gcc -o starter starter.c"));
	for (size_t i = 0; i < sizeof(sanitizers) / sizeof(sanitizers[0]); i++) {
		/* each way with one of them: they are told by the same function */
		int first = tried ? 2 : 0, last = tried ? 2 : 9;

		if (!toolrun("gcc -fsanitize=%s -o checked checked.c 2>&1 && ./checked >/dev/null",
			     sanitizers[i]))
			continue;
		tried = true;
		for (int how = first; how <= last; how++)
			if (!toolrun("[ \"$(LD_PRELOAD=%s ./starter %d ./checked)\" = none ]",
				     library, how))
				fail_msg("%s, %d", sanitizers[i], how);
	}
	if (!tried)
		skip();
	assert_true(
		toolrun("[ \"$(PATH=/nowhere:$PWD:$PATH LD_PRELOAD=%s ./starter 4 checked)\" = "
			"none ]",
			library));
	assert_true(toolrun("echo \"#! $PWD/checked\" >script && chmod +x script"));
	assert_true(toolrun("[ \"$(LD_PRELOAD=%s ./starter 0 ./script)\" = none ]", library));
	/* not preloaded before a program that bears it, and not taken from it */
	assert_true(toolrun("gcc -o checked checked.c"));
	assert_true(
		toolrun("[ \"$(LD_PRELOAD=%s ./starter 0 ./checked)\" = %s ]", library, library));
	/* beside a sanitizer that is preloaded itself; libdl is there in every glibc */
	assert_true(toolrun("cp /lib/x86_64-linux-gnu/libdl.so.2 libasan.so.0"));
	assert_true(toolrun(
		"[ \"$(LD_PRELOAD=\"$PWD/libasan.so.0 %s:libdl.so.2\" ./starter 0 ./checked)\" = "
		"$PWD/libasan.so.0:libdl.so.2 ]",
		library));
}

/* dlopen is called from where it is called: a library beside the caller is found by the caller's
 * RUNPATH, which is not ours. */
static void test_loads(void **state)
{
	static const char there[] = "int there(void) { return 7; }\n";
	static const char middle[] =
		"#define _GNU_SOURCE\n"
		"#include <dlfcn.h>\n"
		"int middle(int deep)\n"
		"{\n"
		"	void *h = deep == 2 ? dlmopen(LM_ID_NEWLM, \"there.so\", RTLD_NOW) :\n"
		"		dlopen(\"there.so\", RTLD_NOW | (deep ? RTLD_DEEPBIND : 0));\n"
		"	int (*f)(void) = h ? (int (*)(void))dlsym(h, \"there\") : 0;\n"
		"	return f ? f() : 1;\n"
		"}\n";
	static const char mains[] =
		"int middle(int deep);\n"
		"int main(int argc, char **v) { return middle(argc - 1) != 7; }\n";

	(void)state;
	if (!toolrun_have("gcc"))
		skip();
	toolrun_write("there.c", there, strlen(there));
	toolrun_write("middle.c", middle, strlen(middle));
	toolrun_write("mains.c", mains, strlen(mains));
	assert_true(toolrun("mkdir -p beside && gcc -shared -fPIC -o beside/there.so there.c"));
	assert_true(
		toolrun("gcc -shared -fPIC -Wl,--enable-new-dtags,-rpath,'$ORIGIN/beside' "
			"-o libmiddle.so middle.c"));
	assert_true(toolrun("gcc -o mains mains.c -L. -lmiddle -Wl,-rpath,'$ORIGIN'"));
	for (int i = 0; i < 3; i++) {
		const char *args = i == 2 ? "x x" : i ? "x" : "";

		assert_true(toolrun("./mains %s", args));
		if (!toolrun("LD_PRELOAD=%s ./mains %s", library, args))
			fail_msg("%d", i);
	}
}

/* A value that is no number means the default, not a crash; 0 is as 1. */
static void test_rates(void **state)
{
	static const char *const rates[] = {
		"", "0", "x", "12x", "-1", "99999999999999999999999999"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
		assert_true(toolrun("BPFPROF_HEAP_RATE='%s' LD_PRELOAD=%s ls >/dev/null", rates[i],
				    library));
	assert_true(toolrun("env -i LD_PRELOAD=%s ls >/dev/null", library));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_minus_exp),
		cmocka_unit_test(test_weight),
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_set_threads),
		cmocka_unit_test(test_entries),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_other_allocators),
		cmocka_unit_test(test_chance),
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_symbols),
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_late_runtime),
		cmocka_unit_test(test_sanitizers),
		cmocka_unit_test(test_loads),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_allocator_calls_itself),
	};
	int err = cmocka_run_group_tests(tests, find_built, NULL);

	toolrun_cleanup();
	return err;
}

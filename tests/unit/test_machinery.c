/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What of a stack is the program itself, and what readers are told to hide: stacks as real programs
 * have them, and those that mislead. The expressions are tried by regcomp(3) and by pprof.
 */
#include <inttypes.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <linux/types.h>

#include "base/util.h"
#include "golden.h"
#include "profile/machinery.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "target/allocators.h"

#define MAX_FRAMES 8
#define KERNEL "[kernel.kallsyms]"
#define APP "/srv/app/bin/app"
#define OWN_LIBRARY "/opt/app/lib/libown.so.1"
#define PLUGIN "/usr/lib/app/modules/mod_app.so"
#define LIBC "/usr/lib/x86_64-linux-gnu/libc.so.6"
#define MUSL "/lib/ld-musl-x86_64.so.1"
#define LIBSTDCXX "/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30"
#define LIBSSL "/usr/lib/x86_64-linux-gnu/libssl.so.3"
#define JEMALLOC "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
#define PYTHON "/usr/bin/python3.11"
#define NODE "/usr/local/bin/node"
#define JVM "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so"
#define JIT "//anon"
#define MARKER NULL

struct frame {
	const char *object; /* its file */
	const char *name;
	const char *system_name; /* NULL: the name; "": "object+0xoffset" */
	const char *file;	 /* of the source */
	bool inlined;		 /* into the next one */
};

/* what is left out is NULL, or false */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

static const struct profile_value_type types[] = { { "waits", "count" } };

static struct profile *new_profile(void)
{
	struct profile *p = profile__new(types, 1, types[0], 1);

	assert_non_null(p);
	return p;
}

static uint32_t add_function(struct profile *p, const struct frame *f)
{
	struct profile_function function = { .name = profile__string(p, f->name),
					     .system_name = profile__string(
						     p, f->system_name ? f->system_name : f->name),
					     .filename = profile__string(p, f->file) };

	return profile__add_function(p, &function);
}

/* The place that the name has in the object, so that equal frames are one location. */
static uint32_t add_location(struct profile *p, const struct frame *f)
{
	struct profile_mapping m = { .start = 0x10000, .limit = 0x7fffffff };
	uint64_t address = m.start + util_hash(f->name, strlen(f->name), 0) % 0x70000000;

	if (!f->object)
		return profile__add_marker(p, f->name);
	if (!strcmp(f->object, KERNEL))
		address |= 1ULL << 63;
	m.filename = profile__string(p, f->object);
	return profile__add_location(p, profile__add_mapping(p, &m), address);
}

/* frames: leaf first, up to one without a name */
static uint32_t add_stack(struct profile *p, const struct frame *frames, int64_t value)
{
	uint32_t locs[MAX_FRAMES];
	size_t cnt = 0, i = 0;

	while (i < MAX_FRAMES && frames[i].name) {
		struct profile_line lines[MAX_FRAMES] = { 0 };
		size_t line_cnt = 0;

		locs[cnt] = add_location(p, &frames[i]);
		do
			lines[line_cnt++].function = add_function(p, &frames[i]);
		while (frames[i++].inlined);
		if (frames[i - 1].object)
			assert_int_equal(profile__set_lines(p, locs[cnt], lines, line_cnt), 0);
		cnt++;
	}
	return profile__add_sample(p, locs, cnt, NULL, 0, &value);
}

static const char *name_at(const struct profile *p, const struct profile_sample *s,
			   struct machinery_frame at)
{
	const struct profile_location *l = &p->locations[p->loc_ids[s->loc + at.loc]];

	return strtab__get(p->strings, p->functions[p->lines[l->line + at.line].function].name);
}

/* ---- The first frame of the program ---- */

static const struct {
	struct frame frames[MAX_FRAMES];
	const char *want;
} stacks[] = {
	/* objects: the program's own come before a distribution's */
	{ { { KERNEL, "futex_do_wait" },
	    { KERNEL, "entry_SYSCALL_64_after_hwframe" },
	    { LIBC, "__futex_abstimed_wait_common64" },
	    { LIBC, "___pthread_cond_wait" },
	    { APP, "take_job" },
	    { APP, "worker" },
	    { LIBC, "start_thread" } },
	  "take_job" },
	{ { { LIBC, "__libc_read" }, { OWN_LIBRARY, "fetch" }, { APP, "main" } }, "fetch" },
	{ { { LIBC, "__poll" }, { PLUGIN, "handle" }, { APP, "main" } }, "handle" },
	{ { { LIBC, "__libc_read" }, { LIBSSL, "SSL_read" }, { APP, "serve" } }, "serve" },
	{ { { LIBC, "libc.so.6+0x8c5a1", "" }, { APP, "app+0x1234", "" } }, "app+0x1234" },
	/* statically linked: names */
	{ { { APP, "__futex_abstimed_wait_common" },
	    { APP, "___pthread_cond_timedwait64" },
	    { APP, "worker" },
	    { APP, "start_thread" } },
	  "worker" },
	{ { { APP, "__syscall_cp_c" }, { APP, "__timedwait_cp" }, { APP, "worker" } }, "worker" },
	{ { { APP, "__new_sem_wait_slow64.constprop.0" }, { APP, "take" } }, "take" },
	{ { { APP, "__GI___libc_write" }, { APP, "log_line" } }, "log_line" },
	{ { { APP, "__futex_wait" }, { APP, "__pthread_once_slow" }, { APP, "init" } }, "init" },
	{ { { APP, "nanosleep@plt" }, { APP, "nap" }, { LIBC, "start_thread" } }, "nap" },
	/* the same names, of the program itself */
	{ { { LIBC, "__poll" }, { APP, "poll" }, { LIBC, "__libc_start_main_impl" } }, "poll" },
	{ { { KERNEL, "irqentry_exit_to_user_mode" },
	    { APP, "wait" },
	    { APP, "run" },
	    { LIBC, "start_thread" } },
	  "wait" },
	{ { { APP, "__poll" }, { APP, "poll(Queue&)", "_Z4pollR5Queue" }, { APP, "main" } },
	  "poll(Queue&)" },
	{ { { LIBC, "__nanosleep" }, { APP, "Monitor::wait(long)", "_ZN7Monitor4waitEl" } },
	  "Monitor::wait(long)" },
	{ { { LIBC, "__nanosleep" }, { APP, "core::run()", "_ZN4core3runEv" } }, "core::run()" },
	{ { { LIBC, "__nanosleep" }, { APP, "sort.part.0" } }, "sort.part.0" },
	{ { { LIBC, "__nanosleep" }, { APP, "uv_map_mesh" } }, "uv_map_mesh" },
	{ { { LIBC, "__nanosleep" }, { APP, "tc_process" } }, "tc_process" },
	/* C++: what is made of templates and headers in the program */
	{ { { LIBC, "___pthread_cond_wait" },
	    { LIBSTDCXX, "std::condition_variable::wait(std::unique_lock<std::mutex>&)" },
	    { APP, "void std::condition_variable::wait<Queue::pop()::{lambda()#1}>(Queue)",
	      "_ZNSt18condition_variable4waitIZN5Queue3popEvEUlvE_EEvRSt11unique_lockI" },
	    { APP, "Queue::pop()", "_ZN5Queue3popEv" } },
	  "Queue::pop()" },
	{ { { LIBC, "___pthread_rwlock_rdlock" },
	    { APP, "__glibcxx_rwlock_rdlock", NULL, "/usr/include/c++/12/shared_mutex", true },
	    { APP, "construct<Foo>", NULL, "/usr/include/c++/12/bits/alloc_traits.h", true },
	    { APP, "reader()", "_Z6readerv", "/src/reader.cc" } },
	  "reader()" },
	/* Rust */
	{ { { APP, "std::sys::pal::unix::futex::futex_wait",
	      "_ZN3std3sys3pal4unix5futex10futex_wait17h0123456789abcdefE" },
	    { APP, "<core::option::Option<T> as core::ops::Try>::branch", "_RNvXs_NtC4core" },
	    { APP, "app::worker", "_ZN3app6worker17h0123456789abcdefE" } },
	  "app::worker" },
	/* Go */
	{ { { APP, "internal/runtime/syscall.Syscall6" },
	    { APP, "syscall.read" },
	    { APP, "internal/poll.(*FD).Read" },
	    { APP, "os.(*File).Read" },
	    { APP, "main.readAll" } },
	  "main.readAll" },
	{ { { APP, "runtime.futex" }, { APP, "go.uber.org/zap.(*Logger).Sync" } },
	  "go.uber.org/zap.(*Logger).Sync" },
	{ { { APP, "runtime.futex" },
	    { APP, "runtime.notesleep" },
	    { APP, "runtime.stopm" },
	    { APP, "runtime.findRunnable" },
	    { APP, "runtime.schedule" } },
	  "runtime.findRunnable" },
	{ { { LIBC, "usleep" },
	    { APP, "_cgo_13742c74209e_Cfunc_usleep" },
	    { APP, "runtime.asmcgocall" },
	    { APP, "runtime.cgocall" },
	    { APP, "main._Cfunc_usleep" },
	    { APP, "main.callC" } },
	  "main.callC" },
	/* what carries out another program: its own functions say what for, if nothing else does */
	{ { { LIBC, "__new_sem_wait_slow64" },
	    { PYTHON, "PyThread_acquire_lock_timed" },
	    { PYTHON, "python3.11+0x5899ae", "" },
	    { PYTHON, "_PyEval_EvalFrameDefault" },
	    { LIBC, "start_thread" } },
	  "PyThread_acquire_lock_timed" },
	{ { { KERNEL, "do_nanosleep" },
	    { LIBC, "__GI___clock_nanosleep" },
	    { LIBC, "__clock_nanosleep" },
	    { PYTHON, "python3.11+0x5d64b3", "" },
	    { PYTHON, "_PyEval_EvalFrameDefault" },
	    { LIBC, "__libc_start_main_impl" } },
	  "__clock_nanosleep" },
	{ { { LIBC, "__new_sem_wait_slow64" },
	    { PYTHON, "PyThread_acquire_lock_timed" },
	    { PYTHON, "_PyEval_EvalFrameDefault" },
	    { JIT, "py::Condition.wait:/usr/lib/python3.12/threading.py" },
	    { JIT, "py::getter:/srv/app/jobs.py" } },
	  "py::getter:/srv/app/jobs.py" },
	{ { { LIBC, "__poll" },
	    { JIT, "py::send:/srv/app/lib/python3.12/site-packages/acme/http.py" } },
	  "py::send:/srv/app/lib/python3.12/site-packages/acme/http.py" },
	{ { { LIBC, "epoll_wait" }, { NODE, "uv__io_poll" }, { NODE, "uv_run" }, { NODE, "main" } },
	  "uv__io_poll" },
	{ { { LIBC, "__libc_read" },
	    { NODE, "uv_fs_read" },
	    { JIT, "JS:^readFileSync node:fs:441:22" },
	    { JIT, "anon+0x1234", "" },
	    { JIT, "JS:^load /srv/app.js:3:18" },
	    { NODE, "node::Start(int, char**)" } },
	  "JS:^load /srv/app.js:3:18" },
	{ { { LIBC, "___pthread_cond_timedwait64" },
	    { JVM, "os::PlatformEvent::park(long)", "_ZN2os13PlatformEvent4parkEl" },
	    { JVM, "ObjectMonitor::EnterI(JavaThread*)",
	      "_ZN13ObjectMonitor6EnterIEP10JavaThread" },
	    { JVM, "InterpreterRuntime::monitorenter(JavaThread*)", "_ZN18InterpreterRuntime12" },
	    { JIT, "anon+0x1b7ab", "" } },
	  "InterpreterRuntime::monitorenter(JavaThread*)" },
	{ { { LIBC, "___pthread_cond_timedwait64" },
	    { JVM, "JavaThread::sleep(long)", "_ZN10JavaThread5sleepEl" },
	    { JIT, "void java.lang.Thread.sleep(long)" },
	    { JIT, "Interpreter" },
	    { JIT, "java.util.List com.acme.Jobs.await(long)" } },
	  "java.util.List com.acme.Jobs.await(long)" },
	/* memory */
	{ { { LIBC, "malloc" }, { APP, "my_malloc_wrapper" }, { APP, "main" } },
	  "my_malloc_wrapper" },
	{ { { JEMALLOC, "libjemalloc.so.2+0x39a46", "" },
	    { APP, "zmalloc_usable" },
	    { APP, "sdsnewlen" } },
	  "sdsnewlen" },
	{ { { LIBC, "__strdup" }, { APP, "xstrdup" }, { APP, "remember" } }, "remember" },
	{ { { APP, "operator new(unsigned long)", "_Znwm" },
	    { APP, "std::__new_allocator<int>::allocate(unsigned long)",
	      "_ZNSt15__new_allocatorI" },
	    { APP, "fill()", "_Z4fillv" } },
	  "fill()" },
	/* nothing of the program */
	{ { { KERNEL, "do_nanosleep" }, { KERNEL, "kthread" }, { KERNEL, "ret_from_fork" } },
	  "do_nanosleep" },
	{ { { LIBC, "clock_nanosleep" }, { LIBC, "timer_helper" }, { LIBC, "start_thread" } },
	  "clock_nanosleep" },
	{ { { MUSL, "ld-musl-x86_64.so.1+0x68bf5", "" }, { MARKER, "[unwind: no table]" } },
	  "ld-musl-x86_64.so.1+0x68bf5" },
	{ { { JIT, "anon+0x10", "" }, { APP, "call_jit" } }, "call_jit" },
};

static void first_frames(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(stacks); i++) {
		struct profile *p = new_profile();
		uint32_t s = add_stack(p, stacks[i].frames, 1);
		struct machinery *m = machinery__new(p);
		const char *got;

		assert_non_null(m);
		got = name_at(p, &p->samples[s], machinery__first(m, &p->samples[s]));
		if (strcmp(got, stacks[i].want))
			fail_msg("row %zu: '%s', not '%s'", i, got, stacks[i].want);
		machinery__free(m);
		profile__free(p);
	}
}

static void empty_stacks(void **state)
{
	struct profile *p = new_profile();
	uint32_t s = add_stack(p, (struct frame[]){ { 0 } }, 1);
	struct machinery *m = machinery__new(p);
	struct machinery_frame first;

	(void)state;
	assert_non_null(m);
	first = machinery__first(m, &p->samples[s]);
	assert_int_equal(first.loc + first.line, 0);
	machinery__free(m);
	assert_int_equal(machinery_hide(p, MACHINERY_DROP_WAITS), 0);
	profile__free(p);
}

/* ---- What is hidden, by its name ---- */

static const struct {
	const char *name;
	unsigned int what;
} dropped[] = {
	{ "malloc", MACHINERY_DROP_ALLOCS },
	{ "__libc_malloc", MACHINERY_DROP_ALLOCS },
	{ "malloc.part.0", MACHINERY_DROP_ALLOCS },
	{ "operator new", MACHINERY_DROP_ALLOCS },
	{ "operator new[]", MACHINERY_DROP_ALLOCS },
	{ "(anonymous namespace)::do_malloc", MACHINERY_DROP_ALLOCS },
	{ "libjemalloc.so.2+0x39a46", MACHINERY_DROP_ALLOCS },
	{ "tc_newarray_nothrow", MACHINERY_DROP_ALLOCS },
	{ "alloc::raw_vec::finish_grow", MACHINERY_DROP_ALLOCS },
	{ "libc.so.6+0x8c5a1", MACHINERY_DROP_ALLOCS | MACHINERY_DROP_WAITS },
	{ "__futex_abstimed_wait_common64", MACHINERY_DROP_WAITS },
	{ "___pthread_cond_timedwait64", MACHINERY_DROP_WAITS },
	{ "__GI___libc_read", MACHINERY_DROP_WAITS },
	{ "__read_nocancel", MACHINERY_DROP_WAITS },
	{ "__new_sem_wait_slow64.constprop.0", MACHINERY_DROP_WAITS },
	{ "std::condition_variable::wait", MACHINERY_DROP_WAITS },
	{ "runtime.gopark", MACHINERY_DROP_WAITS },
	{ "runtime.futex.abi0", MACHINERY_DROP_WAITS },
	{ "os::PlatformEvent::park", MACHINERY_DROP_WAITS },
	{ "entry_SYSCALL_64_after_hwframe", MACHINERY_DROP_KERNEL },
	{ "asm_exc_page_fault", MACHINERY_DROP_KERNEL },
	{ "malloc@plt", MACHINERY_DROP_ALLOCS | MACHINERY_DROP_WAITS },
	{ "", 0 },
	{ "main", 0 },
	{ "my_malloc_wrapper", 0 },
	{ "malloc_wrapper", 0 },
	{ "mallocs", 0 },
	{ "xmalloc2", 0 },
	{ "Foo::operator new", 0 },
	{ "operator newer", MACHINERY_DROP_ALLOCS },
	{ "reader", 0 },
	{ "read_all", 0 },
	{ "poller", 0 },
	{ "libcrypto.so.3+0x123", 0 },
	{ "app+0x1234", 0 },
	{ "main.runtime.gopark", 0 },
	{ "runtimeXgopark", 0 },
	{ "runtime.gopanic", 0 },
	{ "runtime.asmcgocall", 0 },
	{ "_PyEval_EvalFrameDefault", 0 },
	{ "std::call_once", 0 },
	{ "pthread_once", 0 },
};

static char *written_regex(void (*write)(unsigned int what, FILE *f), unsigned int what)
{
	char *text, *all;
	size_t sz;
	FILE *f = open_memstream(&text, &sz);

	write(what, f);
	assert_int_equal(fclose(f), 0);
	/* as pprof has it, profile/prune.go, RemoveUninteresting */
	assert_true(asprintf(&all, "^(%s)$", text) > 0);
	free(text);
	return all;
}

static bool matches(const char *regex, const char *s)
{
	regex_t re;
	bool ret;

	assert_int_equal(regcomp(&re, regex, REG_EXTENDED | REG_NOSUB), 0);
	ret = !regexec(&re, s, 0, NULL, 0);
	regfree(&re);
	return ret;
}

/* The tables say the same as the expressions made of them, of each single kind and of all. */
static void expressions_are_the_tables(void **state)
{
	(void)state;
	for (unsigned int what = 1; what < 8; what++) {
		char *drops = written_regex(machinery_write_drops, what);
		char *keeps = written_regex(machinery_write_keeps, what);

		for (size_t i = 0; i < ARRAY_SIZE(dropped); i++) {
			const char *s = dropped[i].name;
			bool kept = *s && strcmp(keeps, "^()$") && matches(keeps, s);
			bool drop = matches(drops, s) && !kept;

			if (drop != machinery_drops(what, s, strlen(s)))
				fail_msg("%u: the expressions drop '%s': %d", what, s, drop);
			if (drop != !!(dropped[i].what & what))
				fail_msg("%u: '%s' is dropped: %d", what, s, drop);
		}
		free(drops);
		free(keeps);
	}
}

/* Each allocator that the heap profile probes is one that is hidden. */
static void allocators_are_dropped(void **state)
{
	static const char *const prefixes[] = { "", "__libc_", "je_", "_rjem_", "tc_", "mi_" };
	static const char *const names[] = {
		"malloc",	"calloc",	  "realloc",
		"reallocarray", "posix_memalign", "aligned_alloc",
		"memalign",	"valloc",	  "pvalloc",
		"mallocx",	"rallocx",	  "free",
		"cfree",	"free_sized",	  "free_aligned_sized",
		"new",		"new_nothrow",	  "newarray",
		"delete",	"deletearray",	  "zalloc",
		"malloc_small", "heap_malloc",	  "rezalloc_aligned_at",
		"new_n",	"reallocf",	  "new_realloc",
		"recalloc",
	};
	static const char *const others[] = {
		"_Znwm",	"_ZnamRKSt9nothrow_t", "_ZdlPvm",
		"__rust_alloc", "__rdl_realloc",       "__rg_dealloc"
	};
	char name[64];
	size_t cnt = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		for (size_t j = 0; j < ARRAY_SIZE(names); j++) {
			snprintf(name, sizeof(name), "%s%s", prefixes[i], names[j]);
			if (!allocators_is_name(name))
				continue;
			cnt++;
			if (!machinery_drops(MACHINERY_DROP_ALLOCS, name, strlen(name)))
				fail_msg("%s is not dropped", name);
		}
	assert_true(cnt > 90);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		assert_true(allocators_is_name(others[i]));
		assert_true(machinery_drops(MACHINERY_DROP_ALLOCS, others[i], strlen(others[i])));
	}
}

static void names_are_simplified(void **state)
{
	static const char *const rows[][2] = {
		{ "main", "main" },
		{ "operator new(unsigned long)", "operator new" },
		{ ".f(int)", "f" },
		{ "(anonymous namespace)::f(int)", "(anonymous namespace)::f" },
		{ "A::operator()(int) const", "A::operator()" },
		{ "A::operator()", "A::operator()" },
		{ "sync.(*Mutex).Lock", "sync." },
		{ "f(", "f" },
		{ "(", "" },
		{ ".", "" },
		{ "", "" },
		{ "(anonymous namespace", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *s;
		size_t len = machinery_simplified(rows[i][0], &s);

		if (len != strlen(rows[i][1]) || memcmp(s, rows[i][1], len))
			fail_msg("'%s': '%.*s'", rows[i][0], (int)len, s);
	}
}

/* ---- What is kept ---- */

struct kept {
	struct frame frames[MAX_FRAMES];
	const char *keeps;
};

static const char *keeps_of(struct profile *p, unsigned int what)
{
	assert_int_equal(machinery_hide(p, what), 0);
	assert_true(p->drop_frames);
	return strtab__get(p->strings, p->keep_frames);
}

/* What is hidden takes all that it has called with it: where that is the program's, it stays. */
static void callers_are_kept(void **state)
{
	static const struct kept rows[] = {
		{ { { LIBC, "malloc" }, { APP, "my_malloc_wrapper" }, { APP, "main" } }, "" },
		/* an operator new of the program */
		{ { { LIBC, "malloc" },
		    { APP, "pool_take" },
		    { APP, "operator new(unsigned long)", "_Znwm" },
		    { APP, "main" } },
		  "operator new" },
		{ { { LIBC, "malloc" },
		    { APP, "pool_take", NULL, NULL, true },
		    { APP, "operator new(unsigned long)", "_Znwm", NULL, true },
		    { APP, "main" } },
		  "operator new" },
		/* a read() of the program, and a hook that an allocator calls */
		{ { { JIT, "anon+0x12", "" }, { LIBC, "malloc" }, { APP, "main" } }, "malloc" },
		{ { { APP, "hook" }, { APP, "je_[a]|b*" }, { APP, "main" } }, "je_\\[a\\]\\|b\\*" },
		/* at the root nothing is hidden before something else has been seen */
		{ { { LIBC, "malloc" }, { APP, "main" }, { LIBC, "libc.so.6+0x27249", "" } }, "" },
		{ { { LIBC, "malloc" },
		    { APP, "main" },
		    { LIBC, "libc.so.6+0x27249", "" },
		    { APP, "_start" } },
		  "libc\\.so\\.6\\+0x27249" },
		/* nothing but machinery: what says most of it */
		{ { { LIBC, "_int_malloc" },
		    { LIBC, "__libc_calloc" },
		    { PYTHON, "python3.11+0x4fb51b", "" } },
		  "__libc_calloc" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct profile *p = new_profile();
		const char *got;

		add_stack(p, rows[i].frames, 1);
		got = keeps_of(p, MACHINERY_DROP_ALLOCS);
		if (strcmp(got, rows[i].keeps))
			fail_msg("row %zu: '%s', not '%s'", i, got, rows[i].keeps);
		profile__free(p);
	}
}

/* Each stack in turn is added, and then that is kept. */
static void check_growing(const struct kept *rows, size_t cnt)
{
	struct profile *p = new_profile();

	for (size_t i = 0; i < cnt; i++) {
		add_stack(p, rows[i].frames, 1);
		assert_string_equal(keeps_of(p, MACHINERY_DROP_ALLOCS), rows[i].keeps);
	}
	profile__free(p);
}

/* What is kept because of one stack is seen in another one, where it lets more be hidden. */
static void keeping_goes_on(void **state)
{
	static const struct kept rows[] = {
		{ { { APP, "own" }, { LIBC, "realloc" }, { LIBC, "malloc" } }, "" },
		{ { { APP, "hook" }, { LIBC, "malloc" }, { APP, "main" } }, "malloc|realloc" },
	};

	(void)state;
	check_growing(rows, ARRAY_SIZE(rows));
}

/* Below a function of the program it is hidden, though another stack has nothing better to show. */
static void hiding_comes_first(void **state)
{
	static const struct kept rows[] = {
		{ { { LIBC, "malloc" }, { PYTHON, "python3.11+0x1", "" } }, "malloc" },
		{ { { LIBC, "malloc" }, { APP, "main" } }, "" },
	};

	(void)state;
	check_growing(rows, ARRAY_SIZE(rows));
}

/* More than a reader should be asked to compare: then nothing is hidden. */
static void too_much_to_keep(void **state)
{
	struct profile *p = new_profile();
	char name[64];

	(void)state;
	for (int i = 0; i < 4000; i++) {
		const struct frame frames[MAX_FRAMES] = { { .object = APP, .name = "hook" },
							  { .object = APP, .name = name },
							  { .object = APP, .name = "main" } };

		snprintf(name, sizeof(name), "je_%d", i);
		add_stack(p, frames, 1);
	}
	assert_int_equal(machinery_hide(p, MACHINERY_DROP_ALLOCS), 0);
	assert_int_equal(p->drop_frames, 0);
	assert_int_equal(p->keep_frames, 0);
	profile__free(p);
}

/* Each kept function is what lets the next one hide something, and each stack comes before the one
 * that does so: rounds without end are not gone through. */
static void too_many_rounds(void **state)
{
	struct profile *p = new_profile();
	char name[2][16];

	(void)state;
	for (int i = 500; i >= 0; i--) {
		const struct frame frames[MAX_FRAMES] = { { .object = APP, .name = "hook" },
							  { .object = APP, .name = name[0] },
							  { .object = APP,
							    .name = i ? name[1] : "main" } };

		snprintf(name[0], sizeof(name[0]), "je_%d", i);
		snprintf(name[1], sizeof(name[1]), "je_%d", i - 1);
		add_stack(p, frames, 1);
	}
	assert_int_equal(machinery_hide(p, MACHINERY_DROP_ALLOCS), 0);
	assert_int_equal(p->drop_frames, 0);
	profile__free(p);
}

/* ---- The reference reader ---- */

/* pprof shows every stack from the frame that the summary counts it at, or from above it, where a
 * library's function is that no expression knows; all of them, and with their values. */
static void go_hides_it(void **state)
{
	struct profile *p = new_profile();
	char *data, *text, total[64];
	int64_t sum = 0;
	size_t sz;
	FILE *f;

	(void)state;
	if (!golden_have_pprof())
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(stacks); i++) {
		add_stack(p, stacks[i].frames, 1000 + i);
		sum += 1000 + i;
	}
	assert_int_equal(machinery_hide(p, MACHINERY_DROP_WAITS | MACHINERY_DROP_ALLOCS |
						   MACHINERY_DROP_KERNEL),
			 0);
	assert_int_equal(profile__finish(p), 0);
	f = open_memstream(&data, &sz);
	assert_int_equal(pprof_write(p, f), 0);
	assert_int_equal(fclose(f), 0);
	text = golden_pprof("-traces", data, sz, NULL);
	golden_squeeze(text);
	for (size_t i = 0; i < ARRAY_SIZE(stacks); i++)
		if (!strstr(text, stacks[i].want))
			fail_msg("row %zu: '%s' is not in:\n%s", i, stacks[i].want, text);
	assert_null(strstr(text, " __futex_abstimed_wait_common64\n"));
	assert_null(strstr(text, " entry_SYSCALL_64_after_hwframe\n"));
	assert_null(strstr(text, " malloc\n"));
	assert_non_null(strstr(text, " my_malloc_wrapper\n"));
	free(text);
	text = golden_pprof("-top", data, sz, NULL);
	snprintf(total, sizeof(total), "of %" PRId64 " total", sum);
	assert_non_null(strstr(text, total));
	free(text);
	free(data);
	profile__free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_frames),
		cmocka_unit_test(empty_stacks),
		cmocka_unit_test(expressions_are_the_tables),
		cmocka_unit_test(allocators_are_dropped),
		cmocka_unit_test(names_are_simplified),
		cmocka_unit_test(callers_are_kept),
		cmocka_unit_test(keeping_goes_on),
		cmocka_unit_test(hiding_comes_first),
		cmocka_unit_test(too_much_to_keep),
		cmocka_unit_test(too_many_rounds),
		cmocka_unit_test(go_hides_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

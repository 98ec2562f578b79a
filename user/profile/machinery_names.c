/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of machinery: names as they are shown, demangled, without parameters.
 *
 * Of a set that is dropped each function is one that has nothing of the program below it, as a rule;
 * machinery.c finds the exceptions.
 */
#include "profile/machinery_names.h"

#include <assert.h>

#include "base/util.h"

/* ---- Objects, by the name of the file without its folders ---- */

/* What sleeps and allocates for all others: glibc, musl, the C++ libraries, compilers' own. Their
 * stripped code is shown as object+0xoffset. */
static const char libc_objects[] =
	"libc.so*|libc-2.*.so|libc.musl-*|libpthread.so*|libpthread-2.*.so|librt.so*|"
	"librt-2.*.so|ld-linux*.so*|ld-2.*.so|ld-musl-*.so*|libstdc++.so*|libc++.so*|"
	"libc++abi.so*|libgcc_s.so*|libgomp.so*|libomp.so*|libiomp5.so*";
static const char allocator_objects[] =
	"libjemalloc.so*|libtcmalloc*.so*|libmimalloc*.so*|libbpfprof-heap.so*";

/* Of runtimes, wherever they lie. */
static const char runtime_objects[] =
	"libpython*.so*|libruby*.so*|libperl.so*|libphp*.so*|libnode.so*|libv8*.so*|libuv.so*|"
	"libjvm.so*|libjli.so*|libjava.so*|libnio.so*|libnet.so*|libluajit*.so*|liblua*.so*|"
	"libcoreclr.so*|libclrjit.so*|libSystem.*.so*|libmono*.so*|libjulia*.so*|"
	"libglib-2.0.so*|libasan.so*|libtsan.so*";

/* Programs that carry out another one; digits, dots and '-' at the end are a version's. */
static const char interpreters[] =
	"python|pypy|node|nodejs|deno|java|ruby|php|php-fpm|php-cgi|perl|lua|luajit|beam.smp|"
	"dotnet|mono|mono-sgen|julia|guile|tclsh";

/* Folders of distributions, with or without a folder for the architecture in them. */
static const char system_folders[] = "/lib|/lib64|/usr/lib|/usr/lib64";

/* ---- Functions ---- */

/* arch/x86/entry/entry_64.S, arch/x86/include/asm/idtentry.h */
static const char kernel_entries[] =
	"entry_SYSCALL_64*|entry_SYSENTER_compat*|entry_INT80*|asm_exc_*|asm_sysvec_*|"
	"asm_common_interrupt|ret_from_fork*";

/* Stubs by which an object calls another one's functions, as this profile names them. */
static const char plt_stubs[] = "*@plt";

/* Where a stack ends early: what is left of one that has nothing but machinery stays. */
static const char markers[] = "[unwind: *";

/* glibc: nptl/, sysdeps/unix/sysv/linux/; musl: src/thread/, src/time/ */
static const char libc_waits[] =
	"futex_*|lll_*|pthread_mutex_*|pthread_cond_*|pthread_rwlock_*|pthread_spin_*|"
	"pthread_barrier_*|pthread_*cancel*|pthread_join|pthread_*join*|pthread_create*|"
	"pthread_kill*|sem_wait*|sem_timedwait*|sem_clockwait*|sem_post*|sem_trywait*|mtx_lock|"
	"mtx_timedlock|mtx_unlock|cnd_wait|cnd_timedwait|cnd_signal|cnd_broadcast|thrd_join|"
	"thrd_sleep|thrd_yield|create_thread|clone|clone3|clone_internal*|nanosleep*|"
	"clock_nanosleep*|usleep|sleep|pause|sigsuspend|sigwait|sigwaitinfo|sigtimedwait|poll|"
	"ppoll|poll_chk|ppoll_chk|select|pselect|epoll_wait|epoll_pwait|epoll_pwait2|read|"
	"read_chk|pread|pread_chk|readv|preadv|preadv2|write|pwrite|writev|pwritev|pwritev2|"
	"recv|recv_chk|recvfrom|recvfrom_chk|recvmsg|recvmmsg|send|sendto|sendmsg|sendmmsg|"
	"sendfile|splice|copy_file_range|accept|accept4|connect|open|openat|close|fsync|"
	"fdatasync|sync_file_range|msync|flock|lockf|fcntl|ioctl|wait|wait3|wait4|waitid|"
	"waitpid|munmap|madvise|sched_yield|io_getevents|io_uring_enter|semop|semtimedop|msgrcv|"
	"msgsnd|mq_receive|mq_timedreceive|mq_send|mq_timedsend|syscall|*syscall_cancel*|"
	"flockfile";
/* what calls the program, or allocates or copies for it */
static const char libc_calls[] =
	"pthread_*|start_thread|libc_start_*|qsort|qsort_r|msort_with_tmp|bsearch|IO_*|getdelim|"
	"getline|fopen|fopen64|fdopen|opendir|setlocale|memcpy|memmove|memset";
static const char musl_waits[] =
	"__syscall_cp*|__cp_end|__timedwait*|__lock|__unlock|__lockfile|__unlockfile|__wait|"
	"__wake|__unmapself";

/* libstdc++, libc++: what is made of templates in programs; the gthreads of GCC */
static const char cxx_waits[] =
	"std::condition_variable*::*|* std::condition_variable*::wait*|"
	"std::_V2::condition_variable*::*|std::__condvar::*|std::thread::join|"
	"std::thread::_M_start_thread|std::*mutex::lock|std::*mutex::unlock|"
	"std::*mutex::lock_shared|std::*mutex::unlock_shared|std::*mutex::_M_lock*|"
	"std::*mutex::_M_unlock*|std::__shared_mutex_pthread::*|__glibcxx_rwlock_*|"
	"std::__glibcxx_rwlock_*|std::unique_lock<*>::*lock|std::lock_guard<*>::*lock_guard|"
	"std::shared_lock<*>::*lock|std::scoped_lock<*>::*scoped_lock|"
	"std::__basic_future<*>::_M_get_result|std::__future_base::_State_baseV2::wait*|"
	"std::__atomic_futex_unsigned<*>::*|std::__atomic_futex_unsigned_base::*|"
	"void std::this_thread::sleep_*|std::__1::this_thread::sleep_for|__gthread_mutex_*|"
	"__gthread_recursive_*|__gthread_cond_*|__gthread_join|__gthread_create|gomp_*barrier*|"
	"gomp_*lock*|gomp_sem_*|GOMP_barrier|GOMP_critical_start|GOMP_critical_name_start|"
	"absl::*Mutex::*|absl::*CondVar::*|AbslInternal*";

/* Names of namespaces std and of its nicknames, of libstdc++'s own, of Boost and Abseil. */
static const char cxx_libraries[] =
	"_ZNSt*|_ZNKSt*|_ZSt*|_ZNSa*|_ZNSb*|_ZNSs*|_ZNSi*|_ZNSo*|_ZNSd*|_ZNKSa*|_ZNKSb*|_ZNKSs*|"
	"_ZNKSi*|_ZNKSo*|_ZNKSd*|_ZN9__gnu_cxx*|_ZNK9__gnu_cxx*|_ZN10__cxxabiv1*|_ZN5boost*|"
	"_ZNK5boost*|_ZN4absl*|_ZNK4absl*|__cxa_*|__dynamic_cast";

/* Headers, of which functions are compiled into programs; Rust's standard library. */
static const char library_files[] =
	"/usr/include/*|*/include/c++/*|*/lib/gcc/*/include/*|/rustc/*/library/*|"
	"*/rustc*/library/*";

/* Rust's library/std/src/sys, library/std/src/thread; parking_lot_core */
static const char rust_waits[] =
	"std::sys::*futex*|<std::sys::*futex*|std::sys::*mutex*|std::sys::*condvar*|"
	"std::sys::*rwlock*|std::thread::sleep*|std::thread::park*|std::thread::parker::*|"
	"std::thread::JoinInner<*>::join|std::thread::JoinHandle<*>::join|"
	"std::sys::*::thread::Thread::sleep*|std::sys::*::thread::Thread::join|"
	"std::sync::*Mutex<*>::lock|std::sync::*Condvar::*|parking_lot_core::*|"
	"parking_lot::raw_*|<parking_lot_core::*|<parking_lot::raw_*";
static const char rust_libraries[] =
	"std::*|core::*|alloc::*|<std::*|<core::*|<alloc::*|tokio::*|<tokio::*|parking_lot::*|"
	"<parking_lot::*|mio::*|<mio::*|crossbeam_*|<crossbeam_*|rayon_core::*|<rayon_core::*|"
	"futures_*|<futures_*|hashbrown::*|<hashbrown::*|__rust_begin_short_backtrace|"
	"__rust_try*|rust_begin_*";

/* Go: src/runtime/{lock_futex,os_linux,proc,sema,netpoll*}.go, internal/runtime/syscall, syscall */
static const char go_waits[] =
	"runtime.futex*|runtime.usleep*|runtime.osyield*|runtime.note*|runtime.notewakeup|"
	"runtime.mPark|runtime.stopm|runtime.park_m|runtime.gopark*|runtime.goready*|"
	"runtime.ready*|runtime.mcall*|runtime.systemstack*|runtime.lock*|runtime.unlock*|"
	"runtime.sema*|runtime.semacquire*|runtime.semrelease*|runtime.netpoll*|runtime.epoll*|"
	"runtime.entersyscall*|runtime.exitsyscall*|internal/runtime/syscall*|"
	"runtime/internal/syscall.*|internal/syscall/unix.*|internal/poll.*|syscall.*";
static const char go_runtime[] = "runtime.*|internal/runtime/*|runtime/internal/*";
/* Below these runs what is the program's: panics run deferred functions, cgocall C. As pprof's own
 * list for heaps has it (profile/legacy_profile.go), with the names of today. */
static const char go_keeps[] =
	"runtime.*panic*|runtime.Goexit|runtime.defer*|runtime.reflectcall*|runtime.call*|"
	"runtime.cgo*|runtime.asmcgocall*|runtime.debugCall*";
/* what cgo puts between Go and C: src/runtime/cgo, and what it generates */
static const char cgo_calls[] = "crosscall1|crosscall2|threadentry|x_cgo_*|_cgo_*|*._Cfunc_*";
/* the standard library's packages, by the first part of their path (go list std) */
static const char go_packages[] =
	"archive|bufio|bytes|cmp|compress|container|context|crypto|database|debug|embed|"
	"encoding|errors|expvar|flag|fmt|go|hash|html|image|index|internal|io|iter|log|maps|"
	"math|mime|net|os|path|plugin|reflect|regexp|runtime|slices|sort|strconv|strings|"
	"structs|sync|syscall|testing|text|time|unicode|unique|unsafe|vendor|weak";

/* CPython: Python/ceval.c, Objects/call.c, Modules/main.c and what calls from object to object */
static const char python_calls[] =
	"_PyEval_*|PyEval_Eval*|_PyFunction_*|PyFunction_*|PyObject_Call*|_PyObject_Call*|"
	"_PyObject_FastCall*|PyObject_Vectorcall*|_PyObject_Vectorcall*|_PyObject_MakeTpCall*|"
	"PyVectorcall_*|_PyVectorcall_*|_PyStack_*|PyRun_*|_PyRun_*|Py_RunMain|Py_BytesMain|"
	"Py_Main|pymain_*|PyImport_*|_PyGen_*|PyIter_*|PyNumber_*|PySequence_*";
static const char python_calls_inside[] =
	"*vectorcall*|cfunction_*|method_*call*|slot_tp_*|slot_sq_*|slot_mp_*|type_call*|"
	"object_vacall|run_mod*|run_eval_code_obj|builtin_exec*|builtin_eval*|gen_send_ex*|"
	"gen_iternext*|thread_run|t_bootstrap|pythread_wrapper|context_run|do_call_core|"
	"call_function|PyCOND_*|partial_call*|trace_call_function|wrap_call|wrapperdescr_*|main|"
	"_start|bounded_lru_*";
/* libuv: src/unix/thread.c, src/threadpool.c */
static const char uv_waits[] =
	"uv_cond_*|uv_mutex_*|uv_sem_*|uv__sem_*|uv_rwlock_*|uv_barrier_*|uv_thread_join|"
	"uv_thread_create*";
/* V8: src/base/platform; the builtins and the stubs that code in JavaScript is called by */
static const char v8_waits[] =
	"v8::base::*Mutex::*|v8::base::ConditionVariable::*|v8::base::Semaphore::*|"
	"v8::base::OS::Sleep";
static const char v8_calls[] = "Builtins_*|Builtin:*|BytecodeHandler:*";
static const char v8_runtime[] = "v8::*|uv__*|uv_run|uv_fs_*|uv_queue_work";
/* Hotspot: src/hotspot/os/posix/{os_posix,semaphore_posix}.cpp, share/runtime */
static const char jvm_waits[] =
	"os::Platform*::*|PlatformEvent::*|PlatformMonitor::*|PlatformMutex::*|"
	"PosixSemaphore::*|Parker::park|ParkEvent::*|Monitor::*|Mutex::*|MutexLocker*::*|"
	"ObjectMonitor::*|ObjectSynchronizer::*|Semaphore::*|os::naked_*";
/* Ruby: thread.c, thread_pthread.c, vm.c; PHP: Zend/zend_execute.c */
static const char other_calls_inside[] =
	"native_sleep|native_cond_*|native_ppoll_*|sleep_hrtime*|sleep_forever*|vm_exec*|"
	"rb_vm_exec*|rb_vm_*|vm_call_*|vm_sendish|rb_funcall*|rb_nogvl|"
	"rb_thread_call_without_gvl*|execute_ex|zend_execute*|zend_call_*|php_execute*|lj_BC_*|"
	"lj_vm_*|lua_call*|lua_pcall*";
/* glib: glib/gthread-posix.c, glib/gpoll.c */
static const char glib_waits[] =
	"g_cond_*|g_mutex_*|g_rec_mutex_*|g_rw_lock_*|g_poll|g_usleep|g_system_thread_*";

/* What runtimes write into perf maps beside the program: stubs, and their own libraries' functions.
 */
static const char jit_calls[] =
	"Interpreter|StubRoutines*|* stub|*_stub|call_stub*|*adapters*|*Blob|JS:* native *|"
	"Trampoline*";
static const char jit_libraries[] =
	"* java.*|* javax.*|* jdk.*|* sun.*|Ljava/*|Ljavax/*|Ljdk/*|Lsun/*|JS:* node:*|"
	"py::*:*/lib/python3*|py::*:<frozen *";
/* in the folders of the above, but installed by somebody */
static const char jit_own[] = "py::*/site-packages/*|py::*/dist-packages/*";

/* ---- Allocators ---- */

/* C11 7.22.3, malloc(3), posix_memalign(3), jemalloc(3), and glibc's own (malloc/malloc.c) */
static const char c_allocators[] =
	"malloc|free|calloc|realloc|reallocarray|posix_memalign|aligned_alloc|memalign|valloc|"
	"pvalloc|cfree|free_sized|free_aligned_sized|mallocx|rallocx|xallocx|dallocx|sdallocx|"
	"int_malloc|int_free*|int_realloc|int_memalign|mid_memalign|sysmalloc*|"
	"malloc_consolidate|tcache_*|malloc_zone_*|strdup|strndup|asprintf|vasprintf";
/* gperftools, mimalloc, jemalloc with a prefix, also Rust's; C++ operators */
static const char allocators[] =
	"tc_*alloc*|tc_memalign|tc_posix_memalign|tc_new*|tc_free*|tc_cfree|tc_delete*|"
	"tcmalloc::*|(anonymous namespace)::do_malloc*|(anonymous namespace)::do_memalign*|"
	"mi_*alloc*|mi_*memalign|mi_new*|mi_free*|mi_cfree|mi_heap_*|_mi_*|je_*|_rjem_*|"
	"operator new*|operator delete*|_Znwm*|_Znam*|_ZdlPv*|_ZdaPv*|__builtin_*new|"
	"__builtin_*delete|std::__new_allocator<*>::allocate|std::allocator<*>::allocate|"
	"__gnu_cxx::new_allocator<*>::allocate|__gnu_cxx::malloc_allocator<*>::allocate|"
	"std::allocator_traits<*>::allocate|std::_Vector_base<*>::_M_allocate";
static const char rust_allocators[] =
	"__rust_alloc*|__rust_realloc*|__rust_dealloc*|__rdl_*|__rg_*|__rustc*::__r*|"
	"alloc::alloc::*|<alloc::alloc::*|alloc::raw_vec::*|<alloc::raw_vec::*|std::alloc::*";
/* What runtimes, libraries and programs have put on top of one, each by its source. */
static const char wrappers[] =
	/* glib/gmem.c, glib/gslice.c */
	"g_malloc*|g_try_malloc*|g_realloc*|g_try_realloc*|g_slice_alloc*|g_strdup|g_strndup|"
	"g_memdup*|"
	/* CPython: Objects/obmalloc.c */
	"PyMem_*|_PyMem_*|PyObject_Malloc|PyObject_Calloc|PyObject_Realloc|_PyObject_Malloc|"
	"_PyObject_Calloc|_PyObject_Realloc|_PyObject_Arena*|"
	/* libuv, V8, Hotspot */
	"uv__malloc|uv__calloc|uv__realloc*|uv__strdup|v8::base::Malloc|"
	"v8::internal::AllocWithRetry|os::malloc|os::realloc|AllocateHeap|"
	/* Ruby's gc.c, PHP's Zend/zend_alloc.c, Lua's lmem.c, OpenSSL's crypto/mem.c, SQLite */
	"ruby_x*alloc*|rb_x*alloc*|objspace_x*alloc*|_emalloc*|_ecalloc|_erealloc*|_safe_*alloc|"
	"zend_mm_*|__zend_*alloc|luaM_*|CRYPTO_malloc*|CRYPTO_zalloc*|CRYPTO_realloc*|"
	"CRYPTO_strdup|CRYPTO_memdup|sqlite3Malloc*|sqlite3MemMalloc|sqlite3MemRealloc|"
	"sqlite3Realloc|sqlite3DbMalloc*|sqlite3DbRealloc*|sqlite3_malloc*|sqlite3_realloc*|"
	/* gnulib's xalloc.h, which many programs have; APR; nginx; Redis; PostgreSQL */
	"xmalloc|xcalloc|xrealloc|xzalloc|xnmalloc|xstrdup|xstrndup|xmemdup|apr_palloc*|"
	"apr_pcalloc*|ngx_alloc|ngx_calloc|ngx_memalign|ngx_palloc*|ngx_pnalloc|ngx_pcalloc|"
	"ngx_pmemalign|ngx_create_pool|zmalloc|zmalloc_usable*|zcalloc*|zrealloc*|ztrymalloc*|"
	"ztrycalloc*|ztryrealloc*|zstrdup|palloc|palloc0|palloc_extended|palloc_aligned|"
	"repalloc*|pstrdup|pnstrdup|MemoryContextAlloc*|MemoryContextStrdup|AllocSetAlloc*|"
	"AllocSetRealloc|GenerationAlloc*|SlabAlloc*";
static const char wrappers_inside[] =
	"Arena::*|ChunkPool::*|Chunk::*|ResourceObj::*|CHeapObj*::*|new_arena*|"
	"allocate_from_new_pool*|pymalloc_*|address_in_range";

/* ---- The sets, in the order in which they are looked at ---- */

#define WAITS MACHINERY_DROP_WAITS
#define ALLOCS MACHINERY_DROP_ALLOCS

const struct machinery_set machinery_sets[] = {
	{ kernel_entries, ANYWHERE, MACHINERY_SYSTEM, MACHINERY_DROP_KERNEL },
	{ markers, ANYWHERE, MACHINERY_SYSTEM, MACHINERY_DROP_KERNEL | WAITS | ALLOCS },
	{ plt_stubs, ANYWHERE, MACHINERY_SYSTEM, WAITS | ALLOCS },
	{ libc_waits, LIBC, MACHINERY_SYSTEM, WAITS },
	{ libc_calls, LIBC, MACHINERY_SYSTEM, 0 },
	{ musl_waits, ANYWHERE, MACHINERY_SYSTEM, WAITS },
	{ c_allocators, DECORATED, MACHINERY_SYSTEM, ALLOCS },
	{ allocators, ANYWHERE, MACHINERY_SYSTEM, ALLOCS },
	{ rust_allocators, ANYWHERE, MACHINERY_SYSTEM, ALLOCS },
	{ wrappers, ANYWHERE, MACHINERY_SYSTEM, ALLOCS },
	{ wrappers_inside, IN_RUNTIME, MACHINERY_SYSTEM, 0 },
	{ cxx_waits, ANYWHERE, MACHINERY_SYSTEM, WAITS },
	{ cxx_libraries, MANGLED, MACHINERY_RUNTIME, 0 },
	{ rust_waits, RUST, MACHINERY_SYSTEM, WAITS },
	{ rust_libraries, RUST, MACHINERY_RUNTIME, 0 },
	{ go_waits, GO, MACHINERY_SYSTEM, WAITS },
	{ go_runtime, GO, MACHINERY_RUNTIME, WAITS },
	{ cgo_calls, ANYWHERE, MACHINERY_RUNTIME, 0 },
	{ go_packages, GO_PACKAGE, MACHINERY_RUNTIME, 0 },
	{ python_calls, ANYWHERE, MACHINERY_SYSTEM, 0 },
	{ python_calls_inside, IN_RUNTIME, MACHINERY_SYSTEM, 0 },
	{ uv_waits, ANYWHERE, MACHINERY_SYSTEM, WAITS },
	{ v8_waits, ANYWHERE, MACHINERY_SYSTEM, WAITS },
	{ v8_calls, ANYWHERE, MACHINERY_SYSTEM, 0 },
	{ v8_runtime, ANYWHERE, MACHINERY_RUNTIME, 0 },
	{ jvm_waits, IN_RUNTIME, MACHINERY_SYSTEM, WAITS },
	{ other_calls_inside, IN_RUNTIME, MACHINERY_SYSTEM, 0 },
	{ glib_waits, ANYWHERE, MACHINERY_SYSTEM, WAITS },
	{ jit_own, IN_ANONYMOUS, MACHINERY_OWN, 0 },
	{ jit_calls, IN_ANONYMOUS, MACHINERY_SYSTEM, 0 },
	{ jit_libraries, IN_ANONYMOUS, MACHINERY_RUNTIME, 0 },
	{ library_files, FILENAME, MACHINERY_RUNTIME, 0 },
};

static_assert(ARRAY_SIZE(machinery_sets) <= 64, "a bit for each");
const size_t machinery_set_cnt = ARRAY_SIZE(machinery_sets);

const char *const machinery_libc_objects = libc_objects;
const char *const machinery_allocator_objects = allocator_objects;
const char *const machinery_runtime_objects = runtime_objects;
const char *const machinery_interpreters = interpreters;
const char *const machinery_system_folders = system_folders;
const char *const machinery_go_keeps = go_keeps;

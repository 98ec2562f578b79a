// SPDX-License-Identifier: BSD-2-Clause
/*
 * The preload library (with loads.c and starts.c): samples the allocations of the program that it
 * is loaded into and hands the samples to whoever listens at its two USDT probes.
 *
 *   LD_PRELOAD=libbpfprof-heap.so BPFPROF_HEAP_RATE=524288 program
 *
 * BPFPROF_HEAP_RATE is the mean distance between samples in bytes; 1 samples every allocation. For
 * tests, BPFPROF_SAMPLE_SEED makes what each thread samples follow from a number of 32 bits.
 *
 * The probes, after the design of the OpenTelemetry profiler, so that other tools can listen too:
 *
 *   otel_memory:alloc(pointer, size, weight)  a sampled allocation, before the program gets it.
 *       size is what was asked for, weight the bytes it stands for, size/(1-exp(-size/rate)).
 *   otel_memory:free(pointer)                 a sampled allocation ends, before the memory can be
 *       given out again. Once for each alloc, unless it is never freed. NULL, which is no
 *       allocation: a library was loaded that is out of our sight (loads.c).
 *
 * So a listener with a map keyed by process and pointer is always right, whatever threads do. Where
 * the truth does not fit that:
 *   - realloc is free(old), and alloc(new) if that is sampled, also if the block stays in place.
 *     Once the real realloc has run, old may belong to another thread already, hence free is told
 *     first. Should realloc then fail, the old block lives on untold: memory in use is too small by
 *     it. Sizes above PTRDIFF_MAX always fail, and are not told at all.
 *   - What is freed in ways that we do not see (dallocx, a call inside the allocator) is told as
 *     freed when its address is given out and sampled again.
 *   - Where no memory is left to remember a sampled pointer, alloc is followed by free at once:
 *     what is allocated stays true, and nothing that may be free counts as in use.
 *   - A forked child has its parent's sampled pointers, and tells of those it frees.
 *
 * Not interposed: mallocx and its kin. Programs take their mere presence as a sign of jemalloc.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <linux/types.h>
#include <sys/auxv.h>

#include "heap.h"
#include "next.h"
#include "probes.h"
#include "sample.h"

#define EXPORT __attribute__((visibility("default")))
#define SLOW __attribute__((noinline, cold))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define DEFAULT_RATE (512 << 10)
#define MAX_RATE UINT32_MAX

/* ---- Probe sites ---- */

/*
 * In assembly, since everything about them matters: the arguments are where the calling convention
 * puts them, which the note can say for good; the frame is a whole one; nothing lives below rsp;
 * and the probed instruction is a nop of one byte, which Linux emulates and never replaces by a
 * call, as 6.18 does with those of five, at the price of what is below rsp.
 *
 * The note is that of systemtap's sys/sdt.h, version 3: address, address of .stapsdt.base (by which
 * tools notice that addresses were changed after linking), semaphore, names, arguments.
 */
/* clang-format off */
#define PROBE_SITE(func, name, args)                                   \
	__asm__(".pushsection .text\n"                                 \
		".p2align 4\n"                                         \
		".globl " func "\n.hidden " func "\n"                   \
		".type " func ", @function\n"                          \
		func ":\n"                                             \
		".cfi_startproc\n"                                     \
		"push %rbp\n"                                          \
		".cfi_def_cfa_offset 16\n"                             \
		".cfi_offset %rbp, -16\n"                              \
		"mov %rsp, %rbp\n"                                     \
		".cfi_def_cfa_register %rbp\n"                         \
		"1: nop\n"                                             \
		"pop %rbp\n"                                           \
		".cfi_def_cfa %rsp, 8\n"                               \
		"ret\n"                                                \
		".cfi_endproc\n"                                       \
		".size " func ", . - " func "\n"                       \
		".popsection\n"                                        \
		".pushsection .note.stapsdt, \"\", \"note\"\n"         \
		".p2align 2\n"                                         \
		".long 3f - 2f, 5f - 4f, 3\n"                          \
		"2: .asciz \"stapsdt\"\n"                              \
		"3: .p2align 2\n"                                      \
		"4: .quad 1b, _.stapsdt.base, 0\n"                     \
		".asciz \"otel_memory\", \"" name "\", \"" args "\"\n" \
		"5: .p2align 2\n"                                      \
		".popsection\n")
/* clang-format on */

__asm__(".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"
	".weak _.stapsdt.base\n"
	".hidden _.stapsdt.base\n"
	"_.stapsdt.base: .space 1\n"
	".size _.stapsdt.base, 1\n"
	".popsection\n");
PROBE_SITE("probe_alloc", "alloc", "8@%rdi 8@%rsi 8@%rdx");
PROBE_SITE("probe_free", "free", "8@%rdi");

/* ---- The allocator behind us ---- */

/*
 * The forms of operator new, and of operator delete, differ in what follows the first argument.
 * Passing on two more registers than a form has does no harm (x86-64 psABI 3.2.3).
 */
typedef void *new_fn(size_t size, uintptr_t a, uintptr_t b);
typedef void delete_fn(void *ptr, uintptr_t a, uintptr_t b);

/* clang-format off */
#define NEW_FORMS(X)                         \
	X(_Znwm)                             \
	X(_Znam)                             \
	X(_ZnwmRKSt9nothrow_t)               \
	X(_ZnamRKSt9nothrow_t)               \
	X(_ZnwmSt11align_val_t)              \
	X(_ZnamSt11align_val_t)              \
	X(_ZnwmSt11align_val_tRKSt9nothrow_t) \
	X(_ZnamSt11align_val_tRKSt9nothrow_t)
#define DELETE_FORMS(X)                       \
	X(_ZdlPv)                             \
	X(_ZdaPv)                             \
	X(_ZdlPvm)                            \
	X(_ZdaPvm)                            \
	X(_ZdlPvRKSt9nothrow_t)               \
	X(_ZdaPvRKSt9nothrow_t)               \
	X(_ZdlPvSt11align_val_t)              \
	X(_ZdaPvSt11align_val_t)              \
	X(_ZdlPvmSt11align_val_t)             \
	X(_ZdaPvmSt11align_val_t)             \
	X(_ZdlPvSt11align_val_tRKSt9nothrow_t) \
	X(_ZdaPvSt11align_val_tRKSt9nothrow_t)

#define FORM_ENUM(name) FORM##name,
#define FORM_NAME(name) #name,
enum { NEW_FORMS(FORM_ENUM) NR_NEW };
enum { DELETE_FORMS(FORM_ENUM) NR_DELETE };
/* clang-format on */
static const char *const new_names[] = { NEW_FORMS(FORM_NAME) };
static const char *const delete_names[] = { DELETE_FORMS(FORM_NAME) };

static void free_unready(void *ptr);

static struct {
	void *(*malloc)(size_t);
	void (*free)(void *);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	int (*posix_memalign)(void **, size_t, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	void *(*memalign)(size_t, size_t);
	void *(*valloc)(size_t);
	void *(*pvalloc)(size_t);
	void (*free_sized)(void *, size_t);
	void (*free_aligned_sized)(void *, size_t, size_t);
	/*
	 * Of each form at most one is set. Those of libstdc++ call malloc and free, which count:
	 * then we only hand on. Those of an allocator that has malloc too are counted here.
	 * Neither: the program has no C++ library, but something that it loads later may bring one
	 * along, out of our sight yet bound to our operators.
	 */
	new_fn *new_forward[NR_NEW], *new_own[NR_NEW];
	delete_fn *delete_forward[NR_DELETE], *delete_own[NR_DELETE];
} real = { .free = free_unready };

/* Of those that call back, which `real` calls through quiet_malloc and its kin. */
static struct {
	void *(*malloc)(size_t);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
} behind;

/* ---- State ---- */

static uint64_t rate = DEFAULT_RATE;
static uint64_t seed;	    /* that of the next thread is made from */
static uint64_t fixed_seed; /* that of all threads, for tests; 0: there is none */
static struct heap_set set;

static __thread struct {
	uint64_t left; /* bytes to the next sample; 0: see the slow path */
	uint64_t seed;
	uint64_t draws; /* how many distances it has drawn */
	bool drawn;
} self;

/* While dlsym looks for the real functions, it may itself allocate. */
static char arena[16 << 10] __attribute__((aligned(16)));
static size_t arena_used;
static bool called_back; /* while getting ready: one of our functions was called */

static bool in_arena(const void *ptr)
{
	return (uintptr_t)ptr - (uintptr_t)arena < sizeof(arena);
}

/* Zeroed memory, its size in front, and marked in the filter for free to notice it. */
static SLOW void *arena_alloc(size_t size)
{
	size_t need = 16 + ((size + 15) & ~(size_t)15), at;

	if (size > sizeof(arena) / 2)
		return NULL;
	at = __atomic_fetch_add(&arena_used, need, __ATOMIC_RELAXED);
	if (at > sizeof(arena) - need)
		return NULL;
	memcpy(arena + at, &size, sizeof(size));
	heap_set__count(&set, arena + at + 16, 1);
	return arena + at + 16;
}

static SLOW void *arena_realloc(void *old, size_t size)
{
	void *new = malloc(size);
	size_t old_size;

	memcpy(&old_size, (char *)old - 16, sizeof(old_size));
	if (new)
		memcpy(new, old, old_size < size ? old_size : size);
	return new;
}

/* A decimal number from the environment, at most max; what is none changes nothing. */
static void read_number(const char *name, uint64_t max, uint64_t *ret)
{
	const char *s = getenv(name);
	uint64_t n = 0;

	if (!s || !*s)
		return;
	for (; *s >= '0' && *s <= '9' && n < max; s++)
		n = n * 10 + (uint64_t)(*s - '0');
	if (*s >= '0' && *s <= '9')
		n = max;
	else if (*s)
		return;
	*ret = n < max ? n : max;
}

static void read_environment(void)
{
	read_number("BPFPROF_HEAP_RATE", MAX_RATE, &rate);
	read_number("BPFPROF_SAMPLE_SEED", UINT32_MAX, &fixed_seed);
}

static void stir(void)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &now);
	seed ^= (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static const void *object_of(const void *addr)
{
	Dl_info info;

	return addr && dladdr(addr, &info) ? info.dli_fbase : NULL;
}

/* Does the operator allocate by a call of malloc or its kin, as libstdc++'s does? */
static bool calls_back(new_fn *func, int form)
{
	static const int delete_forms[NR_NEW] = {
		FORM_ZdlPv,
		FORM_ZdaPv,
		FORM_ZdlPvRKSt9nothrow_t,
		FORM_ZdaPvRKSt9nothrow_t,
		FORM_ZdlPvSt11align_val_t,
		FORM_ZdaPvSt11align_val_t,
		FORM_ZdlPvSt11align_val_tRKSt9nothrow_t,
		FORM_ZdaPvSt11align_val_tRKSt9nothrow_t,
	};
	delete_fn *end = real.delete_own[delete_forms[form]];
	/* of std::nothrow only the address is ever passed on */
	uintptr_t a = form < FORM_ZnwmSt11align_val_t ? (uintptr_t)&called_back : 64;
	void *ptr;

	called_back = false;
	ptr = func(64, a, (uintptr_t)&called_back);
	if (end)
		end(ptr, a, (uintptr_t)&called_back);
	return called_back;
}

/*
 * Only an operator of the object that has malloc, too, is tried: nothing else must be called before
 * its constructors have run. jemalloc's for aligned types call back, its others do not.
 */
static void find_operators(void)
{
	const void *malloc_object = object_of((void *)real.malloc);

	for (int i = 0; i < NR_DELETE; i++) {
		delete_fn *next;

		next_function(delete_names[i], &next);
		if (next && object_of((void *)next) == malloc_object)
			real.delete_own[i] = next;
		else
			real.delete_forward[i] = next;
	}
	for (int i = 0; i < NR_NEW; i++) {
		new_fn *next;

		next_function(new_names[i], &next);
		if (next && object_of((void *)next) == malloc_object && !calls_back(next, i))
			real.new_own[i] = next;
		else
			real.new_forward[i] = next;
	}
}

/*
 * An allocator in a shared library may call its own functions by their public names, which are ours: the program
 * allocates once then, not twice. What is called until the end of a call that is counted passes.
 */
#define QUIET(call)                         \
	({                                  \
		uint64_t left_ = self.left; \
                                            \
		self.left = UINT64_MAX;     \
		__auto_type ret_ = (call);  \
		self.left = left_;          \
		ret_;                       \
	})

static void *quiet_malloc(size_t size)
{
	return QUIET(behind.malloc(size));
}

static void *quiet_calloc(size_t n, size_t each)
{
	return QUIET(behind.calloc(n, each));
}

static void *quiet_realloc(void *old, size_t size)
{
	return QUIET(behind.realloc(old, size));
}

/*
 * Those that call back are called through that, and no others, which would take longer. It is found out by
 * trying; of another object than malloc's, which may not be ready to be called, it is taken for granted. One that is called
 * like that and does not call back counts all the same.
 */
static void find_callers(void)
{
	static const size_t sizes[] = { 64, 1 << 16 };
	const void *object = object_of((void *)real.malloc);
	bool try_calloc = real.calloc && object_of((void *)real.calloc) == object;
	bool try_realloc = real.realloc && object_of((void *)real.realloc) == object;
	bool by_malloc = false, by_calloc = !try_calloc, by_realloc = !try_realloc;

	if (!real.malloc)
		return;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		void *ptr, *zeroed = NULL;

		called_back = false;
		ptr = real.malloc(sizes[i]);
		by_malloc |= called_back;
		called_back = false;
		if (try_calloc)
			zeroed = real.calloc(1, sizes[i]);
		by_calloc |= called_back;
		called_back = false;
		if (ptr && try_realloc)
			ptr = real.realloc(ptr, 2 * sizes[i]) ?: ptr;
		by_realloc |= called_back;
		real.free(ptr);
		real.free(zeroed);
	}
	behind.malloc = real.malloc;
	behind.calloc = real.calloc;
	behind.realloc = real.realloc;
	if (by_malloc)
		real.malloc = quiet_malloc;
	if (by_calloc && real.calloc)
		real.calloc = quiet_calloc;
	if (by_realloc && real.realloc)
		real.realloc = quiet_realloc;
}

static void find_all(void)
{
	void (*next)(void *);

	next_function("malloc", &real.malloc);
	next_function("calloc", &real.calloc);
	next_function("realloc", &real.realloc);
	next_function("free", &next);
	if (next)
		real.free = next;
	next_function("posix_memalign", &real.posix_memalign);
	next_function("aligned_alloc", &real.aligned_alloc);
	next_function("memalign", &real.memalign);
	next_function("valloc", &real.valloc);
	next_function("pvalloc", &real.pvalloc);
	next_function("free_sized", &real.free_sized);
	next_function("free_aligned_sized", &real.free_aligned_sized);
	find_operators();
	/* what it puts in front has another object */
	find_callers();
	dlerror(); /* what was not found is not the program's business */
}

/* False: not yet, it is this thread that is just getting ready. Threads do not exist before the
 * first allocation: making one allocates. */
static SLOW bool get_ready(void)
{
	static enum {
		NOT_YET,
		GETTING,
		READY
	} state;
	int err = errno;

	if (state == NOT_YET) {
		const uint64_t *noise = (const uint64_t *)getauxval(AT_RANDOM);

		state = GETTING;
		if (noise)
			memcpy(&seed, noise, sizeof(seed));
		stir();
		read_environment();
		find_all();
		state = READY;
	}
	errno = err;
	called_back = state == GETTING;
	return state == READY;
}

static void draw_anew(void)
{
	self.left = 0;
	self.drawn = false;
}

/* A child would otherwise sample what its parent and its siblings do. */
static void forked_child(void)
{
	int err = errno;

	stir();
	draw_anew();
	errno = err;
}

__attribute__((constructor)) static void start(void)
{
	get_ready();
	/* again: the dynamic linker may have allocated when there was no environment yet */
	read_environment();
	draw_anew();
	call_in_children(forked_child);
}

/* ---- Sampling ---- */

/* Nothing to be done with an allocation of this size, but to have counted its bytes. */
static inline bool pass(size_t size)
{
	uint64_t bytes = size + !size;

	if (unlikely(bytes >= self.left))
		return false;
	self.left -= bytes;
	return true;
}

static uint64_t draw(void)
{
	return sample_distance(sample_random(self.seed, self.draws++), rate);
}

/* Is this allocation, which did not pass, to be sampled? */
static bool sample(size_t size)
{
	if (rate <= 1)
		return true;
	if (!self.drawn) {
		uint64_t own = __atomic_add_fetch(&seed, 1, __ATOMIC_RELAXED);

		self.seed = fixed_seed ?: sample_random64(own, 0);
		self.draws = 0;
		self.drawn = true;
		self.left = draw();
		if (pass(size))
			return false;
	}
	self.left = draw();
	return true;
}

/* A pointer is about to be freed. */
static void forget(const void *ptr)
{
	if (heap_set__remove(&set, ptr))
		probe_free(ptr);
}

/* An allocation that sample() has chosen was made. */
static SLOW void record(const void *ptr, size_t size)
{
	int err = errno;
	bool kept;

	if (!ptr)
		return;
	if (heap_set__may_have(&set, ptr))
		forget(ptr);
	kept = heap_set__add(&set, ptr) == 0;
	probe_alloc(ptr, size, heap_weight(size, rate));
	if (!kept)
		probe_free(ptr);
	errno = err;
}

/* ---- malloc and its kin ---- */

static SLOW void *malloc_slow(size_t size)
{
	bool sampled;
	void *ptr;

	if (!get_ready())
		return real.malloc ? real.malloc(size) : arena_alloc(size);
	sampled = !pass(size) && sample(size);
	ptr = real.malloc(size);
	if (sampled)
		record(ptr, size);
	return ptr;
}

EXPORT void *malloc(size_t size)
{
	return likely(pass(size)) ? real.malloc(size) : malloc_slow(size);
}

static SLOW void *calloc_slow(size_t n, size_t each, size_t size)
{
	bool sampled;
	void *ptr;

	if (!get_ready())
		return real.calloc ? real.calloc(n, each) : arena_alloc(size);
	sampled = !pass(size) && sample(size);
	ptr = real.calloc(n, each);
	if (sampled)
		record(ptr, size);
	return ptr;
}

EXPORT void *calloc(size_t n, size_t each)
{
	size_t size;

	if (unlikely(__builtin_mul_overflow(n, each, &size)))
		size = SIZE_MAX; /* will fail */
	return likely(pass(size)) ? real.calloc(n, each) : calloc_slow(n, each, size);
}

static SLOW void *realloc_slow(void *old, size_t size)
{
	bool sampled;
	void *ptr;

	if (in_arena(old))
		return arena_realloc(old, size);
	if (!get_ready())
		return real.realloc ? real.realloc(old, size) : old ? NULL : arena_alloc(size);
	sampled = !pass(size) && sample(size);
	if (size <= PTRDIFF_MAX)
		forget(old);
	ptr = real.realloc(old, size);
	if (sampled)
		record(ptr, size);
	return ptr;
}

EXPORT void *realloc(void *old, size_t size)
{
	if (unlikely(heap_set__may_have(&set, old)))
		return realloc_slow(old, size);
	return likely(pass(size)) ? real.realloc(old, size) : realloc_slow(old, size);
}

/* glibc's is one of realloc, which would be counted; other allocators leave it to glibc. */
EXPORT void *reallocarray(void *old, size_t n, size_t each)
{
	size_t size;

	if (unlikely(__builtin_mul_overflow(n, each, &size))) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(old, size);
}

/* For the functions that are called less often. Those of C are called by QUIET; a C++ exception would pass it. */
#define SAMPLED_CALL(func, size, call)                                                             \
	({                                                                                         \
		bool sampled_ = (likely(self.left) || get_ready()) && !pass(size) && sample(size); \
		void *ptr_ = likely(func) ? (call) : NULL;                                         \
                                                                                                   \
		if (unlikely(sampled_))                                                            \
			record(ptr_, size);                                                        \
		ptr_;                                                                              \
	})

EXPORT int posix_memalign(void **ret, size_t align, size_t size)
{
	int err = ENOMEM;

	SAMPLED_CALL(real.posix_memalign, size,
		     (err = QUIET(real.posix_memalign(ret, align, size))) ? NULL : *ret);
	return err;
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
	return SAMPLED_CALL(real.aligned_alloc, size, QUIET(real.aligned_alloc(align, size)));
}

void *memalign(size_t align, size_t size);
EXPORT void *memalign(size_t align, size_t size)
{
	return SAMPLED_CALL(real.memalign, size, QUIET(real.memalign(align, size)));
}

EXPORT void *valloc(size_t size)
{
	return SAMPLED_CALL(real.valloc, size, QUIET(real.valloc(size)));
}

void *pvalloc(size_t size);
EXPORT void *pvalloc(size_t size)
{
	return SAMPLED_CALL(real.pvalloc, size, QUIET(real.pvalloc(size)));
}

/* ---- free and its kin ---- */

static void free_unready(void *ptr)
{
	/* what an allocator not found yet gave out cannot be freed: nobody else could have either
	 */
	if (get_ready() && real.free != free_unready)
		real.free(ptr);
}

static SLOW void free_slow(void *ptr)
{
	if (in_arena(ptr))
		return;
	forget(ptr);
	real.free(ptr);
}

static inline void free_any(void *ptr)
{
	if (unlikely(heap_set__may_have(&set, ptr)))
		free_slow(ptr);
	else
		real.free(ptr);
}

EXPORT void free(void *ptr)
{
	free_any(ptr);
}

void cfree(void *ptr);
EXPORT void cfree(void *ptr) /* of programs linked before glibc 2.26 */
{
	free_any(ptr);
}

/* C23's, which mean the same as free wherever the allocator does not know them. */
void free_sized(void *ptr, size_t size);
EXPORT void free_sized(void *ptr, size_t size)
{
	if (!real.free_sized || in_arena(ptr)) {
		free_any(ptr);
		return;
	}
	if (heap_set__may_have(&set, ptr))
		forget(ptr);
	real.free_sized(ptr, size);
}

void free_aligned_sized(void *ptr, size_t align, size_t size);
EXPORT void free_aligned_sized(void *ptr, size_t align, size_t size)
{
	if (!real.free_aligned_sized || in_arena(ptr)) {
		free_any(ptr);
		return;
	}
	if (heap_set__may_have(&set, ptr))
		forget(ptr);
	real.free_aligned_sized(ptr, align, size);
}

/* ---- C++ ---- */

/* The C++ runtime's operator, as the object of this address sees it, or that of the usual runtime.
 */
static SLOW new_fn *find_runtime(int form, const void *caller)
{
	const char *names[] = { NULL, "libstdc++.so.6" };
	Dl_info info;

	if (dladdr(caller, &info))
		names[0] = info.dli_fname;
	for (int i = 0; i < 2; i++) {
		void *handle = names[i] ? dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD) : NULL;
		new_fn *func;

		if (!handle)
			continue;
		func = (new_fn *)dlsym(handle, new_names[form]);
		dlclose(handle); /* it stays, since it is being used */
		if (func)
			return func;
	}
	return NULL;
}

/*
 * Operator new for a library that was loaded with its C++ runtime after the program had started.
 * Its delete comes to us too, so malloc will do; but to fail is the runtime's business: a handler,
 * an exception.
 */
static __attribute__((noinline)) void *new_unknown(int form, size_t size, uintptr_t a, uintptr_t b,
						   const void *caller)
{
	void *ptr = form < FORM_ZnwmSt11align_val_t ? malloc(size + !size) : memalign(a, size);
	new_fn *func;

	if (likely(ptr))
		return ptr;
	/* new[] of libstdc++ is a jump to new, which would be ours again: take the latter (each
	 * even form is followed by that of arrays) */
	func = find_runtime(form & ~1, caller);
	if (func)
		return func(size, a, b);
	if (!strstr(new_names[form], "nothrow"))
		__builtin_trap(); /* it must not return NULL, and nobody is there to throw */
	return NULL;
}

static __attribute__((noinline)) void *new_rare(int form, size_t size, uintptr_t a, uintptr_t b,
						const void *caller)
{
	if (get_ready() && real.new_own[form])
		return SAMPLED_CALL(true, size, real.new_own[form](size, a, b));
	if (real.new_forward[form])
		return real.new_forward[form](size, a, b);
	return new_unknown(form, size, a, b, caller);
}

static inline void *new_any(int form, size_t size, uintptr_t a, uintptr_t b)
{
	if (real.new_forward[form])
		return real.new_forward[form](size, a, b);
	if (likely(real.new_own[form]) && likely(pass(size)))
		return real.new_own[form](size, a, b);
	return new_rare(form, size, a, b, __builtin_return_address(0));
}

static __attribute__((noinline)) void delete_rare(int form, void *ptr, uintptr_t a, uintptr_t b)
{
	if (!real.delete_own[form] || in_arena(ptr)) {
		free_any(ptr);
		return;
	}
	forget(ptr);
	real.delete_own[form](ptr, a, b);
}

static inline void delete_any(int form, void *ptr, uintptr_t a, uintptr_t b)
{
	if (real.delete_forward[form])
		real.delete_forward[form](ptr, a, b);
	else if (likely(real.delete_own[form]) && likely(!heap_set__may_have(&set, ptr)))
		real.delete_own[form](ptr, a, b);
	else
		delete_rare(form, ptr, a, b);
}

#define NEW(name)                                                 \
	EXPORT void *name(size_t size, uintptr_t a, uintptr_t b); \
	void *name(size_t size, uintptr_t a, uintptr_t b)         \
	{                                                         \
		return new_any(FORM##name, size, a, b);           \
	}

#define DELETE(name)                                           \
	EXPORT void name(void *ptr, uintptr_t a, uintptr_t b); \
	void name(void *ptr, uintptr_t a, uintptr_t b)         \
	{                                                      \
		delete_any(FORM##name, ptr, a, b);             \
	}

NEW_FORMS(NEW)
DELETE_FORMS(DELETE)

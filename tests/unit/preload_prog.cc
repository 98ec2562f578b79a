// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program to be run with libbpfprof-heap.so in LD_PRELOAD, which listens to that library as a
 * debugger would: it reads the probes' notes from the library's file, puts breakpoints there and
 * writes down what the registers hold that the notes name. Then it allocates and frees, and
 * compares with what it did.
 *
 *   preload_prog entries|realloc|cxx|threads|fork|healing|full|chance|chance_zeroed
 *
 * OTHER=NAME in the environment: the allocator is not that of libc.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <math.h>
#include <new>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <unistd.h>

#define DIE(...)                                                                       \
	(fprintf(stderr, "%s:%d: ", __FILE__, __LINE__), fprintf(stderr, __VA_ARGS__), \
	 fputc('\n', stderr), exit(1))
#define CHECK(cond) ((cond) ? (void)0 : DIE("%s", #cond))

/* ---- The listener ---- */

enum kind {
	ALLOC,
	FREE
};

struct event {
	kind what;
	uintptr_t ptr;
	uint64_t size, weight;
};

static const size_t MAX_EVENTS = 4 << 20;
static event *events;
static size_t event_cnt;
static uintptr_t sites[2];

static void on_trap(int, siginfo_t *, void *context)
{
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
	uintptr_t at = (uintptr_t)r[REG_RIP] - 1;
	size_t i = __atomic_fetch_add(&event_cnt, 1, __ATOMIC_SEQ_CST);

	if (i >= MAX_EVENTS || (at != sites[ALLOC] && at != sites[FREE]))
		_exit(99);
	events[i] = { at == sites[ALLOC] ? ALLOC : FREE, (uintptr_t)r[REG_RDI],
		      (uint64_t)r[REG_RSI], (uint64_t)r[REG_RDX] };
}

static int find_library(dl_phdr_info *info, size_t, void *ret)
{
	if (!strstr(info->dlpi_name, "libbpfprof-heap.so"))
		return 0;
	*(dl_phdr_info *)ret = *info;
	return 1;
}

static void set_breakpoint(uintptr_t at)
{
	uintptr_t page = at & ~4095UL;

	CHECK(*(uint8_t *)at == 0x90);
	CHECK(!mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC));
	*(uint8_t *)at = 0xcc;
}

/* One note; the offsets are those of sys/sdt.h's description. */
static void read_note(const char *desc, uintptr_t bias, uint64_t base_addr)
{
	uint64_t pc, base, semaphore;
	const char *provider = desc + 24, *name = provider + strlen(provider) + 1;
	const char *args = name + strlen(name) + 1;

	memcpy(&pc, desc, 8);
	memcpy(&base, desc + 8, 8);
	memcpy(&semaphore, desc + 16, 8);
	CHECK(base == base_addr && !semaphore);
	CHECK(!strcmp(provider, "otel_memory"));
	if (!strcmp(name, "alloc")) {
		CHECK(!strcmp(args, "8@%rdi 8@%rsi 8@%rdx"));
		sites[ALLOC] = bias + pc;
	} else {
		CHECK(!strcmp(name, "free") && !strcmp(args, "8@%rdi"));
		sites[FREE] = bias + pc;
	}
}

static void listen()
{
	struct sigaction action = {};
	dl_phdr_info info = {};
	struct stat st;
	int fd;

	CHECK(dl_iterate_phdr(find_library, &info));
	fd = open(info.dlpi_name, O_RDONLY);
	CHECK(fd >= 0 && !fstat(fd, &st));
	const char *file = (const char *)mmap(nullptr, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	CHECK(file != MAP_FAILED);
	auto *ehdr = (const Elf64_Ehdr *)file;
	auto *shdr = (const Elf64_Shdr *)(file + ehdr->e_shoff);
	const char *names = file + shdr[ehdr->e_shstrndx].sh_offset;
	uint64_t base = 0;

	for (int i = 0; i < ehdr->e_shnum; i++) {
		if (!strcmp(names + shdr[i].sh_name, ".stapsdt.base"))
			base = shdr[i].sh_addr;
	}
	for (int i = 0; i < ehdr->e_shnum; i++) {
		if (strcmp(names + shdr[i].sh_name, ".note.stapsdt"))
			continue;
		const char *p = file + shdr[i].sh_offset, *end = p + shdr[i].sh_size;

		while (p < end) {
			auto *n = (const Elf64_Nhdr *)p;

			CHECK(n->n_type == 3 && n->n_namesz == 8 && !strcmp(p + 12, "stapsdt"));
			read_note(p + 20, info.dlpi_addr, base);
			p += 20 + (n->n_descsz + 3) / 4 * 4;
		}
	}
	events = (event *)mmap(nullptr, MAX_EVENTS * sizeof(event), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(events != MAP_FAILED);
	action.sa_sigaction = on_trap;
	action.sa_flags = SA_SIGINFO;
	CHECK(!sigaction(SIGTRAP, &action, nullptr));
	set_breakpoint(sites[ALLOC]);
	set_breakpoint(sites[FREE]);
}

/* ---- Expectations, one thread, rate 1 ---- */

static size_t told; /* events already compared */

static void expect(int line, const char *what, kind k, void *ptr, size_t size = 0)
{
	if (told >= event_cnt)
		DIE("line %d: %s: nothing was told", line, what);
	event e = events[told++];

	if (e.what != k || e.ptr != (uintptr_t)ptr ||
	    (k == ALLOC && (e.size != size || e.weight != size)))
		DIE("line %d: %s: told %s(%#lx, %lu, %lu), not %s(%p, %zu)", line, what,
		    e.what == ALLOC ? "alloc" : "free", e.ptr, e.size, e.weight,
		    k == ALLOC ? "alloc" : "free", ptr, size);
}

static void expect_no_more(int line, const char *what)
{
	if (told != event_cnt)
		DIE("line %d: %s: %zu events too many, the first is %s(%#lx, %lu)", line, what,
		    event_cnt - told, events[told].what == ALLOC ? "alloc" : "free",
		    events[told].ptr, events[told].size);
}

#define ALLOCS_AT_LEAST(ptr, size, call)                             \
	do {                                                         \
		told = event_cnt;                                    \
		errno = 77;                                          \
		call;                                                \
		CHECK(ptr &&errno == 77);                            \
		expect(__LINE__, #call, ALLOC, (void *)(ptr), size); \
	} while (0)
#define ALLOCS(ptr, size, call)                   \
	do {                                      \
		ALLOCS_AT_LEAST(ptr, size, call); \
		expect_no_more(__LINE__, #call);  \
	} while (0)
#define FREES(ptr, call)                             \
	do {                                         \
		void *old_ = ptr;                    \
                                                     \
		told = event_cnt;                    \
		errno = 77;                          \
		call;                                \
		CHECK(errno == 77);                  \
		expect(__LINE__, #call, FREE, old_); \
		expect_no_more(__LINE__, #call);     \
	} while (0)
#define REALLOCS(ptr, size, call)                                    \
	do {                                                         \
		void *old_ = ptr;                                    \
                                                                     \
		told = event_cnt;                                    \
		call;                                                \
		expect(__LINE__, #call, FREE, old_);                 \
		expect(__LINE__, #call, ALLOC, (void *)(ptr), size); \
		expect_no_more(__LINE__, #call);                     \
	} while (0)
#define NOTHING(call)                            \
	do {                                     \
		told = event_cnt;                \
		call;                            \
		expect_no_more(__LINE__, #call); \
	} while (0)

static const char *other_allocator()
{
	return getenv("OTHER");
}

static volatile size_t huge = SIZE_MAX / 2 - 100; /* volatile: or the compiler knows better */

static void entries()
{
	void (*sized)(void *, size_t) = (decltype(sized))dlsym(RTLD_DEFAULT, "free_sized");
	void (*aligned)(void *, size_t, size_t) =
		(decltype(aligned))dlsym(RTLD_DEFAULT, "free_aligned_sized");
	void *p = nullptr;

	ALLOCS(p, 100, p = malloc(100));
	FREES(p, free(p));
	ALLOCS(p, 0, p = malloc(0));
	FREES(p, free(p));
	NOTHING(free(nullptr));
	ALLOCS(p, 3 * 41, p = calloc(3, 41));
	for (int i = 0; i < 123; i++)
		CHECK(!((char *)p)[i]);
	FREES(p, free(p));
	ALLOCS(p, 1000, CHECK(!posix_memalign(&p, 64, 1000)));
	CHECK((uintptr_t)p % 64 == 0);
	FREES(p, free(p));
	ALLOCS(p, 256, p = aligned_alloc(128, 256));
	CHECK((uintptr_t)p % 128 == 0);
	FREES(p, free(p));
	ALLOCS(p, 300, p = memalign(512, 300));
	CHECK((uintptr_t)p % 512 == 0);
	FREES(p, free(p));
	ALLOCS(p, 77, p = valloc(77));
	CHECK((uintptr_t)p % 4096 == 0);
	FREES(p, free(p));
	if (!other_allocator()) { /* of glibc alone, so mixed up with the others' free */
		ALLOCS(p, 78, p = pvalloc(78));
		FREES(p, free(p));
	}
	ALLOCS(p, 6, p = strdup("hello"));
	FREES(p, free(p));
	ALLOCS(p, 1 << 20, p = malloc(1 << 20));
	FREES(p, free(p));
	CHECK(sized && aligned);
	ALLOCS(p, 40, p = malloc(40));
	FREES(p, sized(p, 40));
	ALLOCS(p, 640, p = aligned_alloc(64, 640));
	FREES(p, aligned(p, 64, 640));
	/* what fails is nothing, and errno tells why */
	errno = 0;
	NOTHING(CHECK(!malloc(huge) && errno == ENOMEM));
	errno = 0; /* tcmalloc leaves it */
	NOTHING(CHECK(!calloc(huge, 16) && (errno == ENOMEM || other_allocator())));
	NOTHING(CHECK(posix_memalign(&p, 3, 16) == EINVAL));
	NOTHING(CHECK(posix_memalign(&p, 64, huge) == ENOMEM));
	NOTHING(CHECK(!aligned_alloc(64, huge)));
}

static void reallocs()
{
	volatile size_t most = SIZE_MAX;
	void *p = nullptr, *q;

	ALLOCS(p, 50, p = realloc(nullptr, 50));
	memset(p, 7, 50);
	REALLOCS(p, 60000, p = realloc(p, 60000));
	CHECK(((char *)p)[49] == 7);
	REALLOCS(p, 59000, p = realloc(p, 59000)); /* in place */
	REALLOCS(p, 20, p = realloc(p, 20));
	CHECK(((char *)p)[19] == 7);
	REALLOCS(p, 30 * 40, p = reallocarray(p, 30, 40));
	errno = 0;
	NOTHING(CHECK(!realloc(p, most) && (errno == ENOMEM || other_allocator())));
	errno = 0;
	NOTHING(CHECK(!reallocarray(p, most, 2) && errno == ENOMEM));
	if (!other_allocator())
		FREES(p, CHECK(!realloc(p, 0)));
	else
		FREES(p, free(p));
	ALLOCS(p, 70, p = reallocarray(nullptr, 7, 10));
	/* one that may succeed as far as we know: free comes too early, but only once */
	q = p;
	FREES(p, CHECK(!realloc(p, huge)); errno = 77);
	NOTHING(free(q));
	/* most of a block's life */
	p = nullptr;
	for (size_t i = 1; i < 3000; i++) {
		void *old = p;

		told = event_cnt;
		p = realloc(p, i * 37);
		if (old)
			expect(__LINE__, "realloc", FREE, old);
		expect(__LINE__, "realloc", ALLOC, p, i * 37);
		expect_no_more(__LINE__, "realloc");
	}
	FREES(p, free(p));
}

struct alignas(256) Wide {
	char c[512];
};

static void cxx()
{
	auto al = std::align_val_t(64);
	void *p = nullptr;

	ALLOCS(p, 10, p = ::operator new(10));
	FREES(p, ::operator delete(p));
	ALLOCS(p, 11, p = ::operator new[](11));
	FREES(p, ::operator delete[](p));
	ALLOCS(p, 12, p = ::operator new(12, std::nothrow));
	FREES(p, ::operator delete(p, std::nothrow));
	ALLOCS(p, 13, p = ::operator new[](13, std::nothrow));
	FREES(p, ::operator delete[](p, std::nothrow));
	ALLOCS(p, 128, p = ::operator new(128, al));
	FREES(p, ::operator delete(p, al));
	ALLOCS(p, 192, p = ::operator new[](192, al));
	FREES(p, ::operator delete[](p, al));
	ALLOCS(p, 256, p = ::operator new(256, al, std::nothrow));
	FREES(p, ::operator delete(p, al, std::nothrow));
	ALLOCS(p, 320, p = ::operator new[](320, al, std::nothrow));
	FREES(p, ::operator delete[](p, al, std::nothrow));
	CHECK(((uintptr_t)p & 63) == 0);
	ALLOCS(p, 18, p = ::operator new(18));
	FREES(p, ::operator delete(p, 18));
	ALLOCS(p, 19, p = ::operator new[](19));
	FREES(p, ::operator delete[](p, 19));
	ALLOCS(p, 640, p = ::operator new(640, al));
	FREES(p, ::operator delete(p, 640, al));
	ALLOCS(p, 704, p = ::operator new[](704, al));
	FREES(p, ::operator delete[](p, 704, al));
	Wide *w = nullptr;
	ALLOCS(w, sizeof(Wide), w = new Wide);
	FREES(w, delete w);
	if (other_allocator() && strstr(other_allocator(), "mimalloc"))
		return;				    /* does not throw, but aborts */
	CHECK(!::operator new(huge, std::nothrow)); /* libstdc++ throws and catches within */
	bool caught = false;
	try {
		p = ::operator new(huge);
	} catch (const std::bad_alloc &) {
		caught = true;
	}
	CHECK(caught);
	/* and the thread is counted on */
	ALLOCS(p, 10, p = ::operator new(10));
	FREES(p, ::operator delete(p));
}

/* ---- Threads ---- */

static const int THREADS = 8, MAILBOXES = 64;
static void *mailboxes[MAILBOXES];
static long rounds;

static void *mailer(void *arg)
{
	uint32_t x = 12345 + (uint32_t)(intptr_t)arg * 777;

	for (long i = 0; i < rounds; i++) {
		x = x * 1664525 + 1013904223;
		void *p = malloc(1000 + x % 8); /* sizes that nobody else has */

		if (x >> 28 == 0)
			p = realloc(p, 1010 + x % 8);
		free(__atomic_exchange_n(&mailboxes[x >> 16 & 63], p, __ATOMIC_ACQ_REL));
	}
	return nullptr;
}

static int by_ptr(const void *a, const void *b)
{
	auto *x = *(const event *const *)a, *y = *(const event *const *)b;

	if (x->ptr != y->ptr)
		return x->ptr < y->ptr ? -1 : 1;
	return x < y ? -1 : x > y; /* in the order of time */
}

/*
 * Whatever the threads do, what a pointer is told to be goes alloc, free, alloc, free. Returns the
 * weight of allocations of the sizes from low to high; none of them may be left.
 */
static double check_pairing(uint64_t low, uint64_t high)
{
	size_t n = event_cnt;
	auto **sorted = (event **)mmap(nullptr, n * sizeof(event *), PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	double weight = 0;

	CHECK(sorted != MAP_FAILED);
	for (size_t i = 0; i < n; i++)
		sorted[i] = &events[i];
	/* in place, unlike qsort, which may allocate */
	struct heap {
		static void sift(event **a, size_t root, size_t cnt)
		{
			for (size_t child; (child = 2 * root + 1) < cnt; root = child) {
				if (child + 1 < cnt && by_ptr(&a[child], &a[child + 1]) < 0)
					child++;
				if (by_ptr(&a[root], &a[child]) >= 0)
					return;
				event *e = a[root];
				a[root] = a[child];
				a[child] = e;
			}
		}
	};
	for (size_t i = n / 2; i-- > 0;)
		heap::sift(sorted, i, n);
	for (size_t i = n; i-- > 1;) {
		event *e = sorted[0];
		sorted[0] = sorted[i];
		sorted[i] = e;
		heap::sift(sorted, 0, i);
	}
	for (size_t i = 0; i < n; i++) {
		event *e = sorted[i];
		bool first = i == 0 || sorted[i - 1]->ptr != e->ptr;
		bool last = i + 1 == n || sorted[i + 1]->ptr != e->ptr;

		if (e->what == FREE) /* at first: of what was allocated before we listened */
			CHECK(first || sorted[i - 1]->what == ALLOC);
		else
			CHECK(first || sorted[i - 1]->what == FREE);
		if (e->what == ALLOC && e->size >= low && e->size <= high) {
			weight += (double)e->weight / (double)e->size;
			CHECK(!last);
		}
	}
	return weight;
}

static void threads()
{
	pthread_t ids[THREADS];
	bool exact = atol(getenv("BPFPROF_HEAP_RATE")) == 1;

	rounds = exact ? 20000 : 400000;
	for (intptr_t i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&ids[i], nullptr, mailer, (void *)i));
	for (int i = 0; i < THREADS; i++)
		pthread_join(ids[i], nullptr);
	for (auto *p : mailboxes)
		free(p);
	double cnt = check_pairing(1000, 1007), truth = (double)rounds * THREADS;

	if (exact)
		CHECK(cnt == truth);
	else /* about the same: chance() looks closer */
		CHECK(fabs(cnt - truth) < truth * 0.1 && cnt != truth);
}

/* ---- The rest ---- */

/* Where the samples are: a number made of the indices of the sampled ones of 2000 allocations. */
static uint64_t pattern()
{
	uint64_t hash = 0;

	for (uint64_t i = 0; i < 2000; i++) {
		size_t before = event_cnt;
		void *p = malloc(100);

		if (event_cnt != before)
			hash = (hash ^ (i + 1)) * 0x100000001b3;
		free(p);
	}
	return hash;
}

/* A child has its parent's pointers, but chance of its own; and the parent notices nothing. */
static void forks()
{
	bool exact = atol(getenv("BPFPROF_HEAP_RATE")) == 1;
	uint64_t seen[4] = {};
	void *p = nullptr;
	int pipes[2];

	if (exact)
		ALLOCS(p, 100, p = malloc(100));
	CHECK(!pipe(pipes));
	for (int i = 0; i < 3; i++) {
		size_t before = event_cnt;
		pid_t pid = fork();
		int status;

		CHECK(pid >= 0);
		if (!pid) {
			if (exact)
				FREES(p, free(p));
			uint64_t own = pattern();
			_exit(write(pipes[1], &own, sizeof(own)) != sizeof(own));
		}
		CHECK(waitpid(pid, &status, 0) == pid && !status);
		CHECK(read(pipes[0], &seen[i], sizeof(seen[i])) == sizeof(seen[i]));
		CHECK(event_cnt == before);
	}
	seen[3] = pattern();
	for (int i = 0; !exact && i < 4; i++) {
		for (int j = 0; j < i; j++)
			CHECK(seen[i] != seen[j]);
	}
	if (exact)
		FREES(p, free(p));
}

/* A free that nobody sees is told when the address comes up again. */
static void healing()
{
	auto *behind = (void (*)(void *))dlsym(RTLD_DEFAULT, "__libc_free");
	void *p, *q;

	CHECK(behind);
	ALLOCS(p, 100, p = malloc(100));
	NOTHING(behind(p));
	told = event_cnt;
	q = malloc(100);
	CHECK(p == q);
	expect(__LINE__, "malloc", FREE, p);
	expect(__LINE__, "malloc", ALLOC, q, 100);
	expect_no_more(__LINE__, "malloc");
	FREES(q, free(q));
}

/* No memory to remember what was sampled: told as freed at once, and never again. */
static void full()
{
	static void *ptrs[9000];
	struct rlimit limit;
	size_t forgotten = 0;
	void *pool;

	/* memory that malloc keeps, but the library cannot map */
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 64 << 20);
	pool = malloc(16 << 20);
	CHECK(pool && malloc(1));
	free(pool);
	limit.rlim_cur = limit.rlim_max = 1 << 20; /* less than there is */
	CHECK(!setrlimit(RLIMIT_AS, &limit));
	for (auto &p : ptrs) {
		ALLOCS_AT_LEAST(p, 100, p = malloc(100));
		if (told == event_cnt)
			continue;
		expect(__LINE__, "malloc", FREE, p);
		expect_no_more(__LINE__, "malloc");
		p = nullptr;
		forgotten++;
	}
	CHECK(forgotten >= 9000 - 4096 && forgotten < 9000);
	for (auto *p : ptrs) {
		if (p)
			FREES(p, free(p));
	}
}

/* ---- chance ---- */

static struct {
	size_t size;
	long cnt;
	long samples;
	uint64_t weights;
} chances[] = { { 0, 300000, 0, 0 },   { 16, 300000, 0, 0 }, { 100, 200000, 0, 0 },
		{ 1000, 60000, 0, 0 }, { 5000, 20000, 0, 0 }, { 30000, 3000, 0, 0 } };

static void *take_chances(void *arg)
{
	bool zeroed = arg;

	for (auto &c : chances) {
		size_t from = event_cnt;

		for (long i = 0; i < c.cnt; i++)
			free(zeroed ? calloc(1, c.size) : malloc(c.size));
		for (size_t i = from; i < event_cnt; i++) {
			if (events[i].what != ALLOC)
				continue;
			CHECK(events[i].size == c.size);
			c.samples++;
			c.weights += events[i].weight;
		}
	}
	return arg;
}

/* What a thread allocates that does nothing else, and prints for each size how often, how many
 * samples were taken, and what these weigh together. */
static void chance_of(bool zeroed)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, nullptr, take_chances, zeroed ? chances : nullptr));
	CHECK(!pthread_join(thread, nullptr));
	for (auto &c : chances)
		printf("%zu %ld %ld %lu\n", c.size, c.cnt, c.samples, c.weights);
}

static void chance()
{
	chance_of(false);
}

static void chance_zeroed()
{
	chance_of(true);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)();
	} modes[] = { { "entries", entries }, { "realloc", reallocs }, { "cxx", cxx },
		      { "threads", threads }, { "fork", forks },       { "healing", healing },
		      { "full", full },	      { "chance", chance },
		      { "chance_zeroed", chance_zeroed } };

	listen();
	for (auto &m : modes) {
		if (argc > 1 && !strcmp(argv[1], m.name)) {
			m.run();
			return 0;
		}
	}
	return 2;
}

// SPDX-License-Identifier: BSD-2-Clause
/*
 * What probes on malloc and free cost that do nothing: the ground that the heap profile's stand on.
 *
 *   heap_links pairs
 *	prints the addresses of malloc and free; then, for each line COUNT of standard input, the
 *	CPU time of a malloc(64) + free pair in ns, the mean of COUNT
 *   heap_links empty|naive session|multi|perf PID
 *	puts probes with programs of two instructions on the C library of PID, prints "ready", and
 *	keeps them until standard input ends. empty: where bpfprof would put them. naive: on the
 *	first bytes of both, with a return probe on malloc in any case
 */
#include <linux/types.h>

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "kernel/uprobes.h"
#include "target/allocators.h"
#include "target/elf_file.h"

/* Keeps the compiler from leaving out an allocation that nobody reads. */
static void *used(void *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static int pairs(void)
{
	char line[32];

	/* through volatile pointers, so that these are the library's and not a PLT's */
	void *(*volatile alloc)(size_t) = malloc;
	void (*volatile release)(void *) = free;

	printf("%p %p\n", (void *)(uintptr_t)alloc, (void *)(uintptr_t)release);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		long count = atol(line);
		double start = cpu_ns();

		for (long i = 0; i < count; i++)
			free(used(malloc(64)));
		printf("%.2f\n", (cpu_ns() - start) / (count > 0 ? count : 1));
		fflush(stdout);
	}
	return 0;
}

static int load_empty(enum uprobe_method m, int ret)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = ret },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .expected_attach_type = (enum bpf_attach_type)uprobes_attach_type(m));

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "heap_links", "GPL", insns, ARRAY_SIZE(insns),
			     &opts);
}

/* The C library that the process maps, or -errno. */
static int open_libc(pid_t pid)
{
	char maps[64], path[64], line[4352];
	int fd = -ENOENT;
	FILE *f;

	snprintf(maps, sizeof(maps), "/proc/%d/maps", pid);
	f = fopen(maps, "re");
	if (!f)
		return -errno;
	while (fd == -ENOENT && fgets(line, sizeof(line), f)) {
		unsigned long start, end;

		if (!strstr(line, "/libc.so.6") || sscanf(line, "%lx-%lx", &start, &end) != 2)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", pid, start, end);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			fd = -errno;
	}
	fclose(f);
	return fd;
}

/* The points of malloc and free. skip: past what is dear to probe, as bpfprof does. 0 or -errno. */
static int find_points(int fd, bool skip, struct uprobe_point *alloc, struct uprobe_point *release)
{
	struct elf_file *elf = elf_file__open(fd);
	struct allocator_points found;
	int err, have = 0;

	if (!elf)
		return -errno;
	err = allocators_find(elf, &found);
	elf_file__free(elf);
	if (err)
		return err;
	for (size_t i = 0; i < found.cnt; i++) {
		const struct allocator_point *p = &found.points[i];
		struct uprobe_point *to = !strcmp(p->name, "malloc") ? alloc :
					  !strcmp(p->name, "free")   ? release :
								       NULL;

		if (!to)
			continue;
		*to = (struct uprobe_point){ .offset = p->offset - (skip ? 0 : p->skew) };
		have |= to == alloc ? 1 : 2;
	}
	allocator_points__done(&found);
	return have == 3 ? 0 : -ENOENT;
}

/* sets: entry and return of malloc, entry of free. 0 or -errno. */
static int attach(const char *what, enum uprobe_method m, pid_t pid, struct uprobes *sets[3])
{
	bool naive = !strcmp(what, "naive"), session = m == UPROBES_SESSION && !naive;
	/* a kernel with sessions has multi links, by which bpfprof attaches to what only enters */
	enum uprobe_method plain = m == UPROBES_SESSION ? UPROBES_MULTI : m;
	struct uprobe_point alloc, release;
	int both, one, err, fd = open_libc(pid);

	if (fd < 0)
		return fd;
	err = find_points(fd, !naive, &alloc, &release);
	if (err)
		return err;
	both = load_empty(session ? m : plain, 1);
	one = load_empty(plain, 0);
	if (both < 0 || one < 0)
		return -errno;
	sets[0] = uprobes__attach(plain, UPROBES_ENTRY, &one, fd, pid, &release, 1);
	if (!sets[0])
		return -errno;
	if (!session) {
		sets[1] = uprobes__attach(plain, UPROBES_RETURN, &one, fd, pid, &alloc, 1);
		if (!sets[1])
			return -errno;
	}
	sets[2] = uprobes__attach(session ? m : plain, session ? UPROBES_BOTH : UPROBES_ENTRY,
				  &both, fd, pid, &alloc, 1);
	return sets[2] ? 0 : -errno;
}

int main(int argc, char **argv)
{
	struct uprobes *sets[3] = { NULL };
	enum uprobe_method m;
	int err;

	if (argc == 2 && !strcmp(argv[1], "pairs"))
		return pairs();
	if (argc != 4)
		return 2;
	for (m = UPROBES_SESSION; m < UPROBES_NONE; m++)
		if (!strcmp(argv[2], uprobes_method_name(m)))
			break;
	if (uprobes_probe(m) != m) {
		puts("this kernel has no such links");
		return 1;
	}
	err = attach(argv[1], m, atoi(argv[3]), sets);
	if (err) {
		printf("cannot attach: %s\n", strerror(-err));
		return 1;
	}
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	uprobes__detach(sets, ARRAY_SIZE(sets));
	return 0;
}

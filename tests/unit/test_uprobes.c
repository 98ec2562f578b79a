// SPDX-License-Identifier: BSD-2-Clause
/* group: waits */
/* seconds: 25 */
/*
 * Links of programs to user code, by each method that this kernel has: what is counted against what
 * was called, and the breakpoints themselves, as they stand in the target's memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/types.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "kernel/cpus.h"
#include "kernel/uprobes.h"

#define FN_CNT 40
#define FN_SZ 16
#define CALLS 1000
#define PUSH_RBP 0x55
#define INT3 0xcc
#define HANGS_NS (60 * NSEC_PER_SEC) /* what takes so long will not end */
#define SLOT(cookie, ret) ((cookie)*2 + (ret))

/* ---- what is probed ---- */

/*
 * Functions at known distances that begin with a push, which the kernel need not single-step, and
 * return their argument: by that a program tells their return from their entry.
 */
__asm__(".pushsection .text\n"
	".balign 16\n"
	".type probed_fns, @function\n"
	"probed_fns:\n"
	".rept 40\n"
	".balign 16\n"
	"	push %rbp\n"
	"	mov %rdi, %rax\n"
	"	pop %rbp\n"
	"	ret\n"
	".endr\n"
	".size probed_fns, . - probed_fns\n"
	".balign 16\n"
	".type returns_to, @function\n"
	"returns_to:\n"
	"	push %rbp\n"
	"	mov 8(%rsp), %rax\n"
	"	pop %rbp\n"
	"	ret\n"
	".size returns_to, . - returns_to\n"
	".popsection\n");
extern const uint8_t probed_fns[];
/* The address that it returns to: a return probe puts another one in its place. */
extern uint64_t returns_to(void);

/* As a USDT semaphore is: in the file, and written to in memory. */
static volatile uint16_t semaphore __attribute__((section(".probes"))) = 0;

static void call(unsigned int fn, unsigned int cnt)
{
	uint64_t (*f)(uint64_t) = (uint64_t(*)(uint64_t))(uintptr_t)(probed_fns + fn * FN_SZ);
	static uint64_t serial = 0x5eed000000000000;

	/* no two arguments are equal: what an earlier call left in rax is not this one's result */
	for (unsigned int i = 0; i < cnt; i++)
		f(++serial);
}

/* Of this program's file, where addr was mapped from. */
static uint64_t file_offset(const volatile void *addr)
{
	uint64_t start, end, off, ret = 0;
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &off) == 3 &&
		    (uintptr_t)addr - start < end - start)
			ret = (uintptr_t)addr - start + off;
	fclose(f);
	assert_true(ret > 0);
	return ret;
}

static uint64_t fn_offset(unsigned int fn)
{
	return file_offset(probed_fns + fn * FN_SZ);
}

/* ---- a process that calls ---- */

enum order {
	ORDER_CALL,
	ORDER_CALL_IN_THREAD,
	ORDER_FORK, /* the child then takes orders by the target's other socket */
	ORDER_READ_SEMAPHORE,
};

struct order_msg {
	enum order order;
	unsigned int fn, cnt;
};

struct target {
	pid_t pid;
	int sock, child_sock;
};

static void *call_in_thread(void *arg)
{
	const struct order_msg *m = arg;

	call(m->fn, m->cnt);
	return NULL;
}

static void __attribute__((noreturn)) serve(int sock, int child_sock)
{
	struct order_msg m;
	pthread_t thread;

	while (read(sock, &m, sizeof(m)) == sizeof(m)) {
		int32_t reply = 0;

		switch (m.order) {
		case ORDER_CALL:
			call(m.fn, m.cnt);
			break;
		case ORDER_CALL_IN_THREAD:
			if (pthread_create(&thread, NULL, call_in_thread, &m))
				_exit(2);
			pthread_join(thread, NULL);
			break;
		case ORDER_FORK:
			reply = fork();
			if (!reply) {
				prctl(PR_SET_PDEATHSIG, SIGKILL);
				serve(child_sock, -1);
			}
			break;
		case ORDER_READ_SEMAPHORE:
			reply = semaphore;
			break;
		}
		if (write(sock, &reply, sizeof(reply)) != sizeof(reply))
			_exit(2);
	}
	_exit(0);
}

/* Ends, with its child, when the test does: whatever becomes of it. */
static struct target start_target(void)
{
	struct target t = { 0 };
	int a[2], b[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, a), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, b), 0);
	t.pid = fork();
	if (!t.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(a[1], b[1]);
	}
	assert_true(t.pid > 0);
	close(a[1]);
	close(b[1]);
	t.sock = a[0];
	t.child_sock = b[0];
	return t;
}

static void stop_target(struct target *t)
{
	close(t->sock);
	close(t->child_sock);
	kill(t->pid, SIGKILL);
	assert_int_equal(waitpid(t->pid, NULL, 0), t->pid);
}

static int32_t tell(int sock, enum order order, unsigned int fn, unsigned int cnt)
{
	struct order_msg m = { order, fn, cnt };
	int32_t reply;

	assert_int_equal(write(sock, &m, sizeof(m)), sizeof(m));
	assert_int_equal(read(sock, &reply, sizeof(reply)), sizeof(reply));
	return reply;
}

/* The byte that a process has where a function begins. */
static uint8_t first_byte(pid_t pid, unsigned int fn)
{
	char path[64];
	uint8_t byte = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, (off_t)(uintptr_t)(probed_fns + fn * FN_SZ)), 1);
	close(fd);
	return byte;
}

/* ---- programs that count ---- */

static int map_fd = -1, exe_fd = -1;

#define INSN(c, d, s, o, i) \
	((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
#define MOV_REG(d, s) INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define ALU_IMM(op, d, i) INSN(BPF_ALU64 | (op) | BPF_K, d, 0, 0, i)
#define CALL(fn) INSN(BPF_JMP | BPF_CALL, 0, 0, 0, fn)
/* In struct pt_regs. */
#define REGS_AX 80
#define REGS_DI 112

/* Adds 1 to slot cookie * 2 of the map, or the one behind it at a return; returns `result`. The
 * cookie is the probe's, or the program's own where a probe has none. */
static int load_counter(enum uprobe_method m, int result, int cookie)
{
	const struct bpf_insn insns[] = {
		MOV_REG(BPF_REG_6, BPF_REG_1),
		m == UPROBES_EVENT ? ALU_IMM(BPF_MOV, BPF_REG_0, cookie) :
				     CALL(BPF_FUNC_get_attach_cookie),
		MOV_REG(BPF_REG_7, BPF_REG_0),
		ALU_IMM(BPF_LSH, BPF_REG_7, 1),
		INSN(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_0, BPF_REG_6, REGS_AX, 0),
		INSN(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_1, BPF_REG_6, REGS_DI, 0),
		INSN(BPF_JMP | BPF_JNE | BPF_X, BPF_REG_0, BPF_REG_1, 1, 0),
		ALU_IMM(BPF_ADD, BPF_REG_7, 1),
		INSN(BPF_STX | BPF_MEM | BPF_W, BPF_REG_10, BPF_REG_7, -4, 0),
		MOV_REG(BPF_REG_2, BPF_REG_10),
		ALU_IMM(BPF_ADD, BPF_REG_2, -4),
		INSN(BPF_LD | BPF_IMM | BPF_DW, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map_fd),
		INSN(0, 0, 0, 0, 0),
		CALL(BPF_FUNC_map_lookup_elem),
		INSN(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 2, 0),
		ALU_IMM(BPF_MOV, BPF_REG_1, 1),
		INSN(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_0, BPF_REG_1, 0, BPF_ADD),
		ALU_IMM(BPF_MOV, BPF_REG_0, result),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .expected_attach_type = (enum bpf_attach_type)uprobes_attach_type(m));

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "count", "GPL", insns, ARRAY_SIZE(insns), &opts);
}

/* A program for this side; of a session, one that wants to see the return only if it is asked to.
 * Of events, one that only stands for those that attach loads. */
static int load_side(enum uprobe_method m, enum uprobe_side side)
{
	int fd = load_counter(m, m == UPROBES_SESSION && side == UPROBES_ENTRY, FN_CNT);

	assert_true(fd >= 0);
	return fd;
}

static uint64_t count_of(uint32_t slot)
{
	uint64_t v = 0;

	assert_int_equal(bpf_map_lookup_elem(map_fd, &slot, &v), 0);
	return v;
}

static void clear_counts(void)
{
	const uint64_t zero = 0;

	for (uint32_t i = 0; i < SLOT(FN_CNT + 1, 0); i++)
		assert_int_equal(bpf_map_update_elem(map_fd, &i, &zero, BPF_ANY), 0);
}

/* Everything counted, so that what hits where it should not is seen too. */
static uint64_t count_all(void)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < SLOT(FN_CNT + 1, 0); i++)
		sum += count_of(i);
	return sum;
}

/* The first cnt functions, each with its number plus 1 as cookie. */
static void fill_points(struct uprobe_point *points, unsigned int cnt)
{
	for (unsigned int i = 0; i < cnt; i++)
		points[i] = (struct uprobe_point){ .offset = fn_offset(i), .cookie = i + 1 };
}

static struct uprobes *attach(enum uprobe_method m, enum uprobe_side side, int prog_fd, int file_fd,
			      pid_t pid, const struct uprobe_point *points, size_t cnt)
{
	int prog_fds[FN_CNT] = { prog_fd }, err;
	struct uprobes *u;

	for (size_t i = 0; m == UPROBES_EVENT && prog_fd >= 0 && i < cnt; i++)
		prog_fds[i] = load_counter(m, 0, (int)points[i].cookie);
	u = uprobes__attach(m, side, prog_fds, file_fd, pid, points, cnt);
	err = errno;
	for (size_t i = 0; m == UPROBES_EVENT && prog_fd >= 0 && i < cnt; i++)
		close(prog_fds[i]);
	errno = err;
	return u;
}

static struct uprobes *attach_first(enum uprobe_method m, enum uprobe_side side, int prog_fd,
				    pid_t pid, unsigned int cnt)
{
	struct uprobe_point points[FN_CNT];
	struct uprobes *u;

	fill_points(points, cnt);
	u = attach(m, side, prog_fd, exe_fd, pid, points, cnt);
	if (!u)
		fail_msg("%s: %s", uprobes_method_name(m), strerror(errno));
	return u;
}

static unsigned int open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static int setup(void **state)
{
	(void)state;
	exe_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	map_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "counts", 4, 8, SLOT(FN_CNT + 1, 0), NULL);
	if (map_fd < 0)
		print_message("no BPF map: %s\n", strerror(errno));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close(exe_fd);
	close(map_fd);
	return 0;
}

/* Runs a test with each method that there is. */
static void each_method(void (*test)(enum uprobe_method m))
{
	unsigned int done = 0, before;
	bool online;

	if (map_fd < 0)
		skip();
	/* the list of those online stays open once it was read */
	assert_int_equal(cpus_online(&online, 1), 0);
	before = open_fds();
	for (enum uprobe_method m = UPROBES_SESSION; m < UPROBES_NONE; m++) {
		if (uprobes_probe(m) != m) {
			print_message("%s: not here\n", uprobes_method_name(m));
			continue;
		}
		clear_counts();
		test(m);
		done++;
	}
	assert_int_equal(open_fds(), before);
	if (!done)
		skip();
}

/* ---- what there is ---- */

/* What the kernel's own types say of enum bpf_attach_type; -1 if it has no such name. */
static int64_t attach_type_in_btf(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, "bpf_attach_type", BTF_KIND_ENUM);
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;

	for (int i = 0; t && i < btf_vlen(t); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_enum(t)[i].name_off), name))
			return btf_enum(t)[i].val;
	return -1;
}

static void test_probe(void **state)
{
	struct btf *btf = map_fd < 0 ? NULL : btf__load_vmlinux_btf();
	int64_t session, multi;
	unsigned int before;

	(void)state;
	if (!btf)
		skip();
	session = attach_type_in_btf(btf, "BPF_TRACE_UPROBE_SESSION");
	multi = attach_type_in_btf(btf, "BPF_TRACE_UPROBE_MULTI");
	btf__free(btf);
	before = open_fds();
	if (session >= 0) {
		assert_int_equal(session, uprobes_attach_type(UPROBES_SESSION));
		assert_int_equal(uprobes_probe(UPROBES_SESSION), UPROBES_SESSION);
	} else {
		assert_true(uprobes_probe(UPROBES_SESSION) > UPROBES_SESSION);
	}
	/* the first kernels with these links filter badly */
	if (multi >= 0)
		assert_int_equal(multi, uprobes_attach_type(UPROBES_MULTI));
	if (session >= 0)
		assert_int_equal(uprobes_probe(UPROBES_MULTI), UPROBES_MULTI);
	if (multi < 0)
		assert_true(uprobes_probe(UPROBES_MULTI) > UPROBES_MULTI);
	assert_int_equal(uprobes_attach_type(UPROBES_PERF), 0);
	assert_int_equal(uprobes_attach_type(UPROBES_EVENT), 0);
	if (uprobes_probe(UPROBES_PERF) == UPROBES_PERF)
		assert_int_equal(uprobes_probe(UPROBES_EVENT), UPROBES_EVENT);
	assert_int_equal(uprobes_probe(UPROBES_NONE), UPROBES_NONE);
	assert_int_equal(open_fds(), before);
}

static void test_probe_no_rights(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (geteuid()) {
		print_message("needs root: gives its rights up in a child\n");
		skip();
	}
	pid = fork();
	if (!pid)
		_exit(setgid(65534) || setuid(65534) ||
		      uprobes_probe(UPROBES_SESSION) != UPROBES_NONE ||
		      strcmp(uprobes_refused(), uprobes_refused_by(-EPERM, 0)) != 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_refused(void **state)
{
	static const struct {
		int program, event;
		const char *named;
	} cases[] = {
		{ -EPERM, 0, "CAP_BPF and CAP_PERFMON" },
		{ -EPERM, -ENODEV, "CAP_BPF and CAP_PERFMON" },
		{ -EINVAL, 0, "CONFIG_BPF_EVENTS" },
		{ 3, -ENODEV, "CONFIG_UPROBE_EVENTS" },
		{ 3, -EACCES, "CAP_SYS_ADMIN" },
		{ 3, -EOPNOTSUPP, "refuses perf events" },
	};

	(void)state;
	/* the cause, and none of the others */
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		for (size_t j = 0; j < ARRAY_SIZE(cases); j++)
			assert_int_equal(
				strstr(uprobes_refused_by(cases[i].program, cases[i].event),
				       cases[j].named) != NULL,
				!strcmp(cases[i].named, cases[j].named));
}

/* ---- what is counted ---- */

static void entries(enum uprobe_method m)
{
	struct target t = start_target();
	int prog = load_side(m, UPROBES_ENTRY);
	struct uprobes *u = attach_first(m, UPROBES_ENTRY, prog, t.pid, FN_CNT);

	close(prog);
	for (unsigned int i = 0; i < FN_CNT; i++)
		assert_int_equal(first_byte(t.pid, i), INT3);
	tell(t.sock, ORDER_CALL, 0, CALLS);
	tell(t.sock, ORDER_CALL, 7, 3);
	tell(t.sock, ORDER_CALL, FN_CNT - 1, 5);
	assert_int_equal(count_of(SLOT(1, 0)), CALLS);
	assert_int_equal(count_of(SLOT(8, 0)), 3);
	assert_int_equal(count_of(SLOT(FN_CNT, 0)), 5);
	/* no return, nobody else */
	call(0, 10);
	assert_int_equal(count_all(), CALLS + 8);
	assert_int_equal(first_byte(getpid(), 0), PUSH_RBP);

	uprobes__detach(&u, 1);
	assert_null(u);
	for (unsigned int i = 0; i < FN_CNT; i++)
		assert_int_equal(first_byte(t.pid, i), PUSH_RBP);
	tell(t.sock, ORDER_CALL, 0, 10);
	assert_int_equal(count_all(), CALLS + 8);
	stop_target(&t);
}

static void test_entries(void **state)
{
	(void)state;
	each_method(entries);
}

/* Both sides: one link of a session, else two links, which are let go of together. */
static void returns(enum uprobe_method m)
{
	enum uprobe_side side = m == UPROBES_SESSION ? UPROBES_BOTH : UPROBES_RETURN;
	struct target t = start_target();
	struct uprobes *sets[3] = { NULL };
	int entry = load_side(m, UPROBES_ENTRY), ret = load_side(m, side);

	if (m != UPROBES_SESSION)
		sets[0] = attach_first(m, UPROBES_ENTRY, entry, t.pid, 3);
	sets[2] = attach_first(m, side, ret, t.pid, 3);
	tell(t.sock, ORDER_CALL, 0, CALLS);
	tell(t.sock, ORDER_CALL, 2, 7);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(count_of(SLOT(1, i)), CALLS);
		assert_int_equal(count_of(SLOT(3, i)), 7);
	}
	assert_int_equal(count_all(), 2 * (CALLS + 7));
	uprobes__detach(sets, ARRAY_SIZE(sets));
	for (unsigned int i = 0; i < 3; i++) {
		assert_null(sets[i]);
		assert_int_equal(first_byte(t.pid, i), PUSH_RBP);
	}
	close(entry);
	close(ret);
	stop_target(&t);
}

static void test_returns(void **state)
{
	(void)state;
	each_method(returns);
}

static void threads(enum uprobe_method m)
{
	struct target t = start_target(), other = start_target();
	int prog = load_side(m, UPROBES_ENTRY);
	struct uprobes *u = attach_first(m, UPROBES_ENTRY, prog, t.pid, 1);

	tell(t.sock, ORDER_CALL_IN_THREAD, 0, CALLS);
	assert_int_equal(count_of(SLOT(1, 0)), CALLS);
	tell(other.sock, ORDER_CALL, 0, 10);
	tell(other.sock, ORDER_CALL_IN_THREAD, 0, 10);
	assert_int_equal(count_all(), CALLS);
	assert_int_equal(first_byte(other.pid, 0), PUSH_RBP);
	uprobes__detach(&u, 1);
	close(prog);
	stop_target(&t);
	stop_target(&other);
}

static void test_threads(void **state)
{
	(void)state;
	each_method(threads);
}

static void all_processes(enum uprobe_method m)
{
	struct target t = start_target();
	int prog = load_side(m, UPROBES_ENTRY);
	struct uprobes *u = attach_first(m, UPROBES_ENTRY, prog, 0, 2);
	/* not of ours, which would hold our descriptors too */
	pid_t child = tell(t.sock, ORDER_FORK, 0, 0);

	tell(t.sock, ORDER_CALL, 0, 11);
	tell(t.child_sock, ORDER_CALL, 0, 13);
	tell(t.child_sock, ORDER_CALL_IN_THREAD, 1, 17);
	call(0, 19);
	assert_int_equal(count_of(SLOT(1, 0)), 11 + 13 + 19);
	assert_int_equal(count_of(SLOT(2, 0)), 17);
	assert_int_equal(uprobes__clean_children(&u, 1), 0);
	assert_int_equal(first_byte(child, 0), INT3);
	uprobes__detach(&u, 1);
	assert_int_equal(first_byte(t.pid, 0), PUSH_RBP);
	assert_int_equal(first_byte(child, 0), PUSH_RBP);
	assert_int_equal(first_byte(getpid(), 0), PUSH_RBP);
	close(prog);
	stop_target(&t);
}

static void test_all_processes(void **state)
{
	(void)state;
	each_method(all_processes);
}

static void ref_ctr(enum uprobe_method m)
{
	struct uprobe_point point = { .offset = fn_offset(0), .cookie = 1 };
	struct target t = start_target();
	int prog = load_side(m, UPROBES_ENTRY);
	struct uprobes *u;

	point.ref_ctr = file_offset(&semaphore);
	assert_int_equal(tell(t.sock, ORDER_READ_SEMAPHORE, 0, 0), 0);
	u = attach(m, UPROBES_ENTRY, prog, exe_fd, t.pid, &point, 1);
	assert_non_null(u);
	assert_int_equal(tell(t.sock, ORDER_READ_SEMAPHORE, 0, 0), 1);
	tell(t.sock, ORDER_CALL, 0, 5);
	assert_int_equal(count_of(SLOT(1, 0)), 5);
	uprobes__detach(&u, 1);
	assert_int_equal(tell(t.sock, ORDER_READ_SEMAPHORE, 0, 0), 0);
	close(prog);
	stop_target(&t);
}

static void test_ref_ctr(void **state)
{
	(void)state;
	each_method(ref_ctr);
}

/* ---- what is left behind ---- */

static void failure(enum uprobe_method m)
{
	struct target t = start_target();
	int prog = load_side(m, UPROBES_ENTRY);
	struct uprobe_point points[5];
	unsigned int before = open_fds();

	/* behind the file's end */
	fill_points(points, 5);
	points[2].offset = UINT64_C(1) << 40;
	assert_null(attach(m, UPROBES_ENTRY, prog, exe_fd, t.pid, points, 5));
	assert_int_equal(errno, EINVAL);
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(first_byte(t.pid, i), PUSH_RBP);
	tell(t.sock, ORDER_CALL, 0, 10);
	assert_int_equal(count_all(), 0);

	fill_points(points, 5);
	assert_null(attach(m, UPROBES_ENTRY, -1, exe_fd, t.pid, points, 5));
	assert_int_equal(errno, EBADF);
	assert_null(attach(m, UPROBES_ENTRY, prog, -1, t.pid, points, 5));
	assert_int_equal(errno, EBADF);
	assert_null(attach(m, UPROBES_ENTRY, prog, exe_fd, t.pid, points, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(attach(m, m == UPROBES_SESSION ? UPROBES_RETURN : UPROBES_BOTH, prog, exe_fd,
			   t.pid, points, 5));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(open_fds(), before);
	stop_target(&t);
	/* nobody has that number now */
	assert_null(attach(m, UPROBES_ENTRY, prog, exe_fd, t.pid, points, 5));
	assert_int_equal(errno, ESRCH);
	close(prog);
}

static void test_failure(void **state)
{
	(void)state;
	each_method(failure);
}

/* Until the first functions' code is as it was. */
static void wait_clean(pid_t pid, unsigned int cnt)
{
	uint64_t since = util_monotonic_ns();

	for (unsigned int i = 0; i < cnt; i++)
		while (first_byte(pid, i) != PUSH_RBP && util_monotonic_ns() - since < HANGS_NS)
			usleep(1000);
	for (unsigned int i = 0; i < cnt; i++)
		assert_int_equal(first_byte(pid, i), PUSH_RBP);
}

static void killed(enum uprobe_method m)
{
	struct target t = start_target();
	int prog = load_side(m, UPROBES_ENTRY), ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		struct uprobe_point points[2];

		fill_points(points, 2);
		if (!attach(m, UPROBES_ENTRY, prog, exe_fd, t.pid, points, 2) ||
		    write(ready[1], "y", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	assert_int_equal(first_byte(t.pid, 0), INT3);
	kill(pid, SIGKILL);
	wait_clean(t.pid, 2);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(prog);
	stop_target(&t);
}

/* Killed once so many of the breakpoints are there: none stays. */
static void killed_attaching(enum uprobe_method m)
{
	/* the kernel takes 0.1 s for each perf event that goes */
	const unsigned int cnt = uprobes_by_events(m) ? 4 : FN_CNT;

	for (unsigned int fn = 0; fn < cnt - 1; fn += cnt / 4) {
		struct target t = start_target();
		int prog = load_side(m, UPROBES_ENTRY);
		uint64_t since;
		pid_t pid;

		pid = fork();
		if (!pid) {
			struct uprobe_point points[FN_CNT];

			setpgid(0, 0);
			fill_points(points, cnt);
			(void)attach(m, UPROBES_ENTRY, prog, exe_fd, t.pid, points, FN_CNT);
			for (;;)
				pause();
		}
		since = util_monotonic_ns();
		while (first_byte(t.pid, fn) != INT3 && util_monotonic_ns() - since < HANGS_NS)
			;
		/* with all of its group, as a shell does it */
		kill(-pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		wait_clean(t.pid, cnt);
		close(prog);
		stop_target(&t);
	}
}

static void test_killed_attaching(void **state)
{
	(void)state;
	each_method(killed_attaching);
}

static void test_killed(void **state)
{
	(void)state;
	each_method(killed);
}

static void children_of(enum uprobe_method m, enum uprobe_side side)
{
	struct target t = start_target();
	int prog = load_side(m, side);
	struct uprobes *u = attach_first(m, side, prog, t.pid, 3);
	pid_t child = tell(t.sock, ORDER_FORK, 0, 0);

	assert_true(child > 0);
	clear_counts();
	/* the memory was copied as it was */
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(first_byte(child, i), INT3);
	tell(t.child_sock, ORDER_CALL, 0, 10);
	assert_int_equal(count_all(), 0);
	assert_int_equal(uprobes__clean_children(&u, 1), 0);
	/* with perf events, what is called cleans itself */
	for (unsigned int i = 0; i < (uprobes_by_events(m) ? 1 : 3); i++)
		assert_int_equal(first_byte(child, i), PUSH_RBP);
	/* the process itself is counted as before */
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(first_byte(t.pid, i), INT3);
	tell(t.child_sock, ORDER_CALL, 0, 10);
	tell(t.sock, ORDER_CALL, 0, 10);
	assert_int_equal(count_of(SLOT(1, 0)), side == UPROBES_RETURN ? 0 : 10);
	assert_int_equal(count_of(SLOT(1, 1)), side == UPROBES_ENTRY ? 0 : 10);
	assert_int_equal(count_all(), side == UPROBES_BOTH ? 20 : 10);
	uprobes__detach(&u, 1);
	assert_int_equal(first_byte(t.pid, 0), PUSH_RBP);
	close(prog);
	stop_target(&t);
}

static void children(enum uprobe_method m)
{
	children_of(m, UPROBES_ENTRY);
	children_of(m, m == UPROBES_SESSION ? UPROBES_BOTH : UPROBES_RETURN);
}

/* By the links of several sets at once. */
static void children_of_several(enum uprobe_method m)
{
	struct target t = start_target();
	int prog = load_side(m, UPROBES_ENTRY);
	struct uprobe_point points[FN_CNT];
	struct uprobes *sets[3] = { attach_first(m, UPROBES_ENTRY, prog, t.pid, 2) };
	unsigned int before = 0;
	pid_t child;

	fill_points(points, 3);
	sets[2] = attach(m, UPROBES_ENTRY, prog, exe_fd, t.pid, points + 2, 1);
	assert_non_null(sets[2]);
	child = tell(t.sock, ORDER_FORK, 0, 0);
	before = open_fds();
	assert_int_equal(uprobes__clean_children(sets, ARRAY_SIZE(sets)), 0);
	assert_int_equal(open_fds(), before);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(first_byte(child, i), uprobes_by_events(m) ? INT3 : PUSH_RBP);
		assert_int_equal(first_byte(t.pid, i), INT3);
	}
	uprobes__detach(sets, ARRAY_SIZE(sets));
	close(prog);
	stop_target(&t);
}

static void test_children_of_several(void **state)
{
	(void)state;
	each_method(children_of_several);
}

static void test_children(void **state)
{
	(void)state;
	each_method(children);
}

static struct {
	_Atomic uint64_t calls, changed;
	_Atomic bool done;
} caller;

/* All its calls come from the same place. */
static __attribute__((noinline)) uint64_t call_site(void)
{
	uint64_t to = returns_to();

	__asm__ volatile("" : "+r"(to));
	return to;
}

static void *call_until_done(void *arg)
{
	uint64_t from = 0;

	(void)arg;
	while (!caller.done) {
		uint64_t to = call_site();

		from = from ?: to;
		caller.changed += to != from;
		caller.calls++;
	}
	return NULL;
}

/* An exception cannot pass a call whose return address is another one. */
static void returns_left_alone(enum uprobe_method m)
{
	struct uprobe_point point = { .offset = file_offset((const void *)returns_to),
				      .cookie = 1 };
	int prog = load_side(m, UPROBES_ENTRY);
	struct uprobes *u = attach(m, UPROBES_ENTRY, prog, exe_fd, getpid(), &point, 1);
	pthread_t thread;

	assert_non_null(u);
	caller.calls = caller.changed = 0;
	caller.done = false;
	assert_int_equal(pthread_create(&thread, NULL, call_until_done, NULL), 0);
	for (int i = 0; i < 5; i++) {
		/* it is called each time, also where others have the CPU */
		for (uint64_t before = caller.calls; caller.calls == before;)
			sched_yield();
		assert_int_equal(uprobes__clean_children(&u, 1), 0);
	}
	caller.done = true;
	pthread_join(thread, NULL);
	assert_int_equal(caller.changed, 0);
	uprobes__detach(&u, 1);
	close(prog);
}

static void test_returns_left_alone(void **state)
{
	(void)state;
	each_method(returns_left_alone);
}

/* Several at a time, with gaps; and none at all. */
static void many(enum uprobe_method m)
{
	struct target t = start_target();
	struct uprobes *sets[20] = { NULL };
	int prog = load_side(m, UPROBES_ENTRY);
	struct uprobe_point point;

	uprobes__detach(sets, ARRAY_SIZE(sets));
	uprobes__detach(sets, 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(sets); i++) {
		if (i == 5)
			continue;
		point = (struct uprobe_point){ .offset = fn_offset(i), .cookie = i };
		sets[i] = attach(m, UPROBES_ENTRY, prog, exe_fd, t.pid, &point, 1);
		assert_non_null(sets[i]);
		assert_int_equal(first_byte(t.pid, i), INT3);
	}
	uprobes__detach(sets, ARRAY_SIZE(sets));
	for (unsigned int i = 0; i < ARRAY_SIZE(sets); i++) {
		assert_null(sets[i]);
		assert_int_equal(first_byte(t.pid, i), PUSH_RBP);
	}
	close(prog);
	stop_target(&t);
}

static void test_many(void **state)
{
	(void)state;
	each_method(many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_probe),
		cmocka_unit_test(test_probe_no_rights),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_entries),
		cmocka_unit_test(test_returns),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_all_processes),
		cmocka_unit_test(test_ref_ctr),
		cmocka_unit_test(test_failure),
		cmocka_unit_test(test_killed),
		cmocka_unit_test(test_killed_attaching),
		cmocka_unit_test(test_children),
		cmocka_unit_test(test_children_of_several),
		cmocka_unit_test(test_returns_left_alone),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

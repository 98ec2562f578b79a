/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Kernel types that the BPF programs name, from the BTF of Linux 6.18.44. Made by scripts/gen-vmlinux: do not edit. */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

#ifndef BPF_NO_PRESERVE_ACCESS_INDEX
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#endif

struct __kernel_timespec;
struct bpf_iter_meta;
struct cfs_rq;
struct cgroup;
struct cgroup_subsys_state;
struct completion;
struct css_set;
struct fdtable;
struct file;
struct files_struct;
struct futex_pi_state;
struct inode;
struct kernfs_node;
struct mm_struct;
struct module;
struct nsproxy;
struct old_timespec32;
struct pid;
struct pid_namespace;
struct pollfd;
struct restart_block;
struct return_instance;
struct rq;
struct seq_file;
struct signal_struct;
struct spinlock;
struct task_struct;
struct uprobe_task;
struct xol_area;

typedef unsigned char __u8;

typedef __u8 u8;

typedef short unsigned int __u16;

typedef __u16 u16;

typedef unsigned int __u32;

typedef __u32 u32;

typedef long long unsigned int __u64;

typedef __u64 u64;

typedef signed char __s8;

typedef __s8 s8;

typedef short int __s16;

typedef __s16 s16;

typedef int __s32;

typedef __s32 s32;

typedef long long int __s64;

typedef __s64 s64;

typedef _Bool bool;

typedef int __kernel_pid_t;

typedef __kernel_pid_t pid_t;

typedef long unsigned int __kernel_ulong_t;

typedef __kernel_ulong_t __kernel_size_t;

typedef __kernel_size_t size_t;

typedef __u16 __be16;

typedef __u32 __be32;

typedef __u32 __wsum;

struct thread_info {
	long unsigned int flags;
	u32 status;
};

struct sched_entity {
	u64 exec_start;
	u64 sum_exec_runtime;
	u64 prev_sum_exec_runtime;
	struct cfs_rq *cfs_rq;
};

struct sched_info {
	long long unsigned int run_delay;
	long long unsigned int last_arrival;
};

typedef int __kernel_clockid_t;

typedef __kernel_clockid_t clockid_t;

enum timespec_type {
	TT_NONE = 0,
	TT_NATIVE = 1,
	TT_COMPAT = 2,
};

struct restart_block {
	long unsigned int arch_data;
	long int (*fn)(struct restart_block *);
	union {
		struct {
			u32 *uaddr;
			u32 val;
			u32 flags;
			u32 bitset;
			u64 time;
			u32 *uaddr2;
		} futex;
		struct {
			clockid_t clockid;
			enum timespec_type type;
			union {
				struct __kernel_timespec *rmtp;
				struct old_timespec32 *compat_rmtp;
			};
			u64 expires;
		} nanosleep;
		struct {
			struct pollfd *ufds;
			int nfds;
			int has_timeout;
			long unsigned int tv_sec;
			long unsigned int tv_nsec;
		} poll;
	};
};

typedef struct {
	long unsigned int sig[1];
} sigset_t;

struct sigpending {
	sigset_t signal;
};

struct thread_struct {
	long unsigned int sp;
	long unsigned int fsbase;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	void *stack;
	unsigned int flags;
	int on_cpu;
	struct sched_entity se;
	unsigned int policy;
	struct sched_info sched_info;
	struct mm_struct *mm;
	struct mm_struct *active_mm;
	int exit_state;
	long unsigned int jobctl;
	unsigned int sched_contributes_to_load : 1;
	unsigned int in_execve : 1;
	unsigned int in_iowait : 1;
	struct restart_block restart_block;
	pid_t pid;
	pid_t tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	struct completion *vfork_done;
	long unsigned int nvcsw;
	long unsigned int nivcsw;
	u64 start_boottime;
	char comm[16];
	struct files_struct *files;
	struct nsproxy *nsproxy;
	struct signal_struct *signal;
	sigset_t blocked;
	struct sigpending pending;
	u64 self_exec_id;
	struct css_set *cgroups;
	struct uprobe_task *utask;
	struct thread_struct thread;
};

struct bpf_iter_num {
	__u64 __opaque[1];
};

struct cfs_rq {
	struct rq *rq;
};

struct rq {
	u64 nr_switches;
	u64 clock;
	int cpu;
	u64 idle_stamp;
};

typedef struct spinlock spinlock_t;

union futex_key {
	struct {
		u64 i_seq;
		long unsigned int pgoff;
		unsigned int offset;
	} shared;
	struct {
		union {
			struct mm_struct *mm;
			u64 __tmp;
		};
		long unsigned int address;
		unsigned int offset;
	} private;
	struct {
		u64 ptr;
		long unsigned int word;
		unsigned int offset;
		unsigned int node;
	} both;
};

struct futex_q {
	spinlock_t *lock_ptr;
	union futex_key key;
	struct futex_pi_state *pi_state;
};

typedef struct {
	int counter;
} atomic_t;

struct rlimit {
	__kernel_ulong_t rlim_cur;
	__kernel_ulong_t rlim_max;
};

struct signal_struct {
	atomic_t live;
	struct sigpending shared_pending;
	struct rlimit rlim[16];
};

struct uprobes_state {
	struct xol_area *xol_area;
};

struct mm_struct {
	struct {
		long unsigned int arg_start;
		struct file *exe_file;
		struct uprobes_state uprobes_state;
	};
};

struct xol_area {
	long unsigned int vaddr;
};

struct uprobe_task {
	struct return_instance *return_instances;
};

struct return_instance {
	long unsigned int stack;
	long unsigned int orig_ret_vaddr;
	struct return_instance *next;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[0];
};

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	unsigned int level;
	struct ns_common ns;
};

struct nsproxy {
	struct pid_namespace *pid_ns_for_children;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	int level;
	struct kernfs_node *kn;
};

struct bpf_array {
	union {
		struct {
			void *ptrs[0];
		};
	};
};

struct kernfs_node {
	u64 id;
};

struct file_operations {
	struct module *owner;
};

struct file {
	const struct file_operations *f_op;
	struct inode *f_inode;
};

struct files_struct {
	struct fdtable *fdt;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct inode {
	long unsigned int i_ino;
};

typedef long unsigned int vm_flags_t;

struct vm_area_struct {
	union {
		struct {
			long unsigned int vm_start;
			long unsigned int vm_end;
		};
	};
	struct mm_struct *vm_mm;
	union {
		const vm_flags_t vm_flags;
	};
	long unsigned int vm_pgoff;
	struct file *vm_file;
};

struct linux_binprm {
	struct file *file;
};

struct bpf_iter__task {
	union {
		struct bpf_iter_meta *meta;
	};
	union {
		struct task_struct *task;
	};
};

struct bpf_iter__task_file {
	union {
		struct bpf_iter_meta *meta;
	};
	union {
		struct task_struct *task;
	};
	u32 fd;
	union {
		struct file *file;
	};
};

struct bpf_iter_meta {
	union {
		struct seq_file *seq;
	};
	u64 session_id;
	u64 seq_num;
};

enum bpf_map_type {
	BPF_MAP_TYPE_UNSPEC = 0,
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_STACK_TRACE = 7,
	BPF_MAP_TYPE_CGROUP_ARRAY = 8,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_LRU_PERCPU_HASH = 10,
	BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_HASH_OF_MAPS = 13,
	BPF_MAP_TYPE_DEVMAP = 14,
	BPF_MAP_TYPE_SOCKMAP = 15,
	BPF_MAP_TYPE_CPUMAP = 16,
	BPF_MAP_TYPE_XSKMAP = 17,
	BPF_MAP_TYPE_SOCKHASH = 18,
	BPF_MAP_TYPE_CGROUP_STORAGE_DEPRECATED = 19,
	BPF_MAP_TYPE_CGROUP_STORAGE = 19,
	BPF_MAP_TYPE_REUSEPORT_SOCKARRAY = 20,
	BPF_MAP_TYPE_PERCPU_CGROUP_STORAGE_DEPRECATED = 21,
	BPF_MAP_TYPE_PERCPU_CGROUP_STORAGE = 21,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_STACK = 23,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_DEVMAP_HASH = 25,
	BPF_MAP_TYPE_STRUCT_OPS = 26,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_INODE_STORAGE = 28,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_MAP_TYPE_BLOOM_FILTER = 30,
	BPF_MAP_TYPE_USER_RINGBUF = 31,
	BPF_MAP_TYPE_CGRP_STORAGE = 32,
	BPF_MAP_TYPE_ARENA = 33,
	__MAX_BPF_MAP_TYPE = 34,
};

enum bpf_func_id {
	BPF_FUNC_current_task_under_cgroup = 37,
	BPF_FUNC_get_stack = 67,
	BPF_FUNC_probe_read_user = 112,
	BPF_FUNC_get_ns_current_pid_tgid = 120,
	BPF_FUNC_ktime_get_boot_ns = 125,
	BPF_FUNC_seq_write = 127,
	BPF_FUNC_ringbuf_reserve = 131,
	BPF_FUNC_get_task_stack = 141,
	BPF_FUNC_get_current_task_btf = 158,
	BPF_FUNC_for_each_map_elem = 164,
	BPF_FUNC_get_attach_cookie = 174,
	BPF_FUNC_task_pt_regs = 175,
	BPF_FUNC_find_vma = 180,
	BPF_FUNC_loop = 181,
	BPF_FUNC_copy_from_user_task = 191,
	BPF_FUNC_ringbuf_reserve_dynptr = 198,
};

enum {
	false = 0,
	true = 1,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_EXIST = 2,
	BPF_F_LOCK = 4,
};

enum {
	BPF_F_NO_PREALLOC = 1,
	BPF_F_NO_COMMON_LRU = 2,
	BPF_F_NUMA_NODE = 4,
	BPF_F_RDONLY = 8,
	BPF_F_WRONLY = 16,
	BPF_F_STACK_BUILD_ID = 32,
	BPF_F_ZERO_SEED = 64,
	BPF_F_RDONLY_PROG = 128,
	BPF_F_WRONLY_PROG = 256,
	BPF_F_CLONE = 512,
	BPF_F_MMAPABLE = 1024,
	BPF_F_PRESERVE_ELEMS = 2048,
	BPF_F_INNER_MAP = 4096,
	BPF_F_LINK = 8192,
	BPF_F_PATH_FD = 16384,
	BPF_F_VTYPE_BTF_OBJ_FD = 32768,
	BPF_F_TOKEN_FD = 65536,
	BPF_F_SEGV_ON_FAULT = 131072,
	BPF_F_NO_USER_CONV = 262144,
};

enum {
	BPF_F_INDEX_MASK = 0xffffffffULL,
	BPF_F_CURRENT_CPU = 0xffffffffULL,
	BPF_F_CTXLEN_MASK = 0xfffff00000000ULL,
};

enum {
	BPF_F_SKIP_FIELD_MASK = 255,
	BPF_F_USER_STACK = 256,
	BPF_F_FAST_STACK_CMP = 512,
	BPF_F_REUSE_STACKID = 1024,
	BPF_F_USER_BUILD_ID = 2048,
};

enum {
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
};

enum {
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_RING_SIZE = 1,
	BPF_RB_CONS_POS = 2,
	BPF_RB_PROD_POS = 3,
};

enum {
	BPF_F_TIMER_ABS = 1,
	BPF_F_TIMER_CPU_PIN = 2,
};

enum {
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_SK_STORAGE_GET_F_CREATE = 1,
};

#ifndef BPF_NO_PRESERVE_ACCESS_INDEX
#pragma clang attribute pop
#endif

struct pt_regs {
	unsigned long r15;
	unsigned long r14;
	unsigned long r13;
	unsigned long r12;
	unsigned long bp;
	unsigned long bx;
	unsigned long r11;
	unsigned long r10;
	unsigned long r9;
	unsigned long r8;
	unsigned long ax;
	unsigned long cx;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long cs;
	unsigned long flags;
	unsigned long sp;
	unsigned long ss;
};

typedef struct pt_regs bpf_user_pt_regs_t;

struct bpf_perf_event_data {
	bpf_user_pt_regs_t regs;
	__u64 sample_period;
	__u64 addr;
};

#endif

/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Differences between kernels, decided while the programs are loaded: the path that is not taken is
 * dead code. */
#ifndef COMPAT_BPF_H
#define COMPAT_BPF_H

/*
 * The current task as a pointer that may be dereferenced: bpf_get_current_task_btf, 5.11
 * (3ca1032ab7ab). Below, each field is copied by bpf_probe_read_kernel.
 */
static __always_inline bool compat_have_task_btf(void)
{
	return bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf);
}

/* Both of it: a field of the current task, or of another one that may be dereferenced. */
#define COMPAT_TASK(task, field) \
	(compat_have_task_btf() ? (task)->field : BPF_CORE_READ(task, field))

static __always_inline struct task_struct *compat_current(void)
{
	return compat_have_task_btf() ? bpf_get_current_task_btf() : (void *)bpf_get_current_task();
}

/* bpf_task_pt_regs, 5.15 (dd6e10fbd9fb) */
static __always_inline bool compat_have_task_pt_regs(void)
{
	return bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs);
}

/* Where a function of the kernel is called until the program is loaded, see enum bpfprof_kfunc. */
#define COMPAT_KFUNC(name) __attribute__((unused)) = (void *)BPFPROF_KFUNC_##name

/* A pointer that may be followed though nothing is known of where it leads, and costs no call: 6.2
 * (a35b9af4ec2c). */
static void *(*const bpf_rdonly_cast)(const void *obj, __u32 btf_id)COMPAT_KFUNC(rdonly_cast);

static __always_inline const struct pt_regs *compat_as_regs(const void *at)
{
	return bpf_rdonly_cast(at, bp_config.type_regs);
}

static __always_inline struct task_struct *compat_as_task(__u64 at)
{
	return bpf_rdonly_cast((void *)at, bp_config.type_task);
}

/* A reference to the thread of that id, among those of the machine, or NULL: 6.2,
 * Documentation/bpf/kfuncs.rst */
static struct task_struct *(*const bpf_task_from_pid)(__s32 pid)COMPAT_KFUNC(task_from_pid);
static void (*const bpf_task_release)(struct task_struct *task) COMPAT_KFUNC(task_release);

/* Keeps interrupts out of this CPU in between: 6.14, Documentation/bpf/kfuncs.rst */
static void (*const bpf_local_irq_save)(unsigned long *flags) COMPAT_KFUNC(local_irq_save);
static void (*const bpf_local_irq_restore)(unsigned long *flags) COMPAT_KFUNC(local_irq_restore);

/* A loop that is followed once, not each time it goes round, and needs no callback: 6.4,
 * Documentation/bpf/verifier.rst */
static int (*const bpf_iter_num_new)(struct bpf_iter_num *it, int start, int end)
	COMPAT_KFUNC(iter_num_new);
static int *(*const bpf_iter_num_next)(struct bpf_iter_num *it)COMPAT_KFUNC(iter_num_next);
static void (*const bpf_iter_num_destroy)(struct bpf_iter_num *it) COMPAT_KFUNC(iter_num_destroy);

/* task_struct.__state, `state` before 5.14 (2f064a59a11f) */
struct task_struct___before_5_14 {
	volatile long state;
} __attribute__((preserve_access_index));

static __always_inline __u32 compat_task_state(const struct task_struct *task)
{
	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state);
	return BPF_CORE_READ((const struct task_struct___before_5_14 *)task, state);
}

/* task_struct.on_cpu, an int, and a u8 by 7.3: read as bit fields are, by the size that it has
 * here. Absent where there is only one CPU, which is ours. */
static __always_inline bool compat_on_cpu(const struct task_struct *task)
{
	if (!bpf_core_field_exists(task->on_cpu))
		return task == (void *)bpf_get_current_task();
	return BPF_CORE_READ_BITFIELD_PROBED(task, on_cpu) != 0;
}

/* PF_*, include/linux/sched.h */
#define COMPAT_PF_KTHREAD 0x00200000
#define COMPAT_PF_IO_WORKER 0x00000010
#define COMPAT_PF_USER_WORKER 0x00004000
#define COMPAT_PF_EXITING 0x00000004

/* Came with PF_USER_WORKER, 6.4. */
struct kernel_clone_args___since_6_4 {
	__u32 user_worker : 1;
} __attribute__((preserve_access_index));

/* Flags of threads that are kernel code on a program's memory, without a user stack: of io_uring, since 6.4 of
 * vhost, and later of KVM. Before 6.4 that bit said something else. */
static __always_inline __u32 compat_user_workers(void)
{
	const struct kernel_clone_args___since_6_4 *args = NULL;

	return bpf_core_field_exists(args->user_worker) ?
		       COMPAT_PF_IO_WORKER | COMPAT_PF_USER_WORKER :
		       COMPAT_PF_IO_WORKER;
}

/* The same, and of threads of the kernel. */
static __always_inline __u32 compat_workers(void)
{
	return COMPAT_PF_KTHREAD | compat_user_workers();
}

/* A thread's stack in the kernel, arch/x86/include/asm/page_64_types.h without KASAN */
#define COMPAT_THREAD_SIZE 16384

#endif

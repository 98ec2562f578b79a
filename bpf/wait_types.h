/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What the programs keep of waits, and how it is accessed. Pure C: common.bpf.h and tests/bpf
 * include it; how it is used is in wait_machine.h. */
#ifndef WAIT_TYPES_H
#define WAIT_TYPES_H

/* One access to memory that another CPU may use at the same time: the compiler neither tears nor
 * repeats it, nor moves it past another one. */
#ifndef WAIT_GET
#define WAIT_GET(x) (*(const volatile __typeof__(x) *)&(x))
#define WAIT_PUT(x, value) (*(volatile __typeof__(x) *)&(x) = (value))
#define WAIT_ZERO(x) __builtin_memset(&(x), 0, sizeof(x))
/* What the kernel has counted of a thread. */
#define WAIT_TASK(task, field) ((task)->field)
#endif

/* A sample of a wait: fields of struct bpfprof_rec. */
struct record_wait {
	__u64 units, amount;
	__u32 wait;
	__u32 draws; /* where they follow from a seed: how often it was drawn for this thread */
};

/* A watched thread's last switch-out, and its wait from there on. */
struct wait_task {
	__u64 off_ns;	   /* when it switched out; 0: that wait is over, or there was none */
	__u64 wake_ns;	   /* when a waker was seen: see wake_of */
	__u64 queued_ns;   /* that the thread had been on run queues in all its life, then */
	__u64 switch_outs; /* the number of that switch-out, written last: see wait_publish */
	__u64 sleeps;	   /* voluntary switch-outs, before the thread queued itself at a futex */
	__u8 state;	   /* enum bpfprof_thread_state, at the switch-out */
	__u8 woken;	   /* enum bpfprof_wake, if it was in a futex: see wake_of */
	__u8 may_futex;	   /* it may have been in one */
	__u8 early;	   /* a waker has come before it switched out: see wait_note_early */
	__u32 wake_of;	   /* which switch-out wake_ns and woken belong to: its lowest bits */
	__u64 futex;	   /* address of the entry of bp_futexes that counts it, or 0 */
	__u64 futex_create_ns;	     /* of that entry */
	__u64 futex_ns;		     /* since when it is counted there */
	struct record_wait waits[2]; /* that are being recorded */
};

#define WAIT_SLOTS 4096 /* 2^12 */

/* What a switch needs of it lies in one cache line. */
struct wait_slot {
	__u64 number; /* wait_number of the owner; 0: there is none */
	struct wait_task w;
} __attribute__((aligned(128)));

/* The thread on a CPU, as it was at its switch-in there. */
struct wait_arrival {
	__u64 switches;	 /* of the CPU; 0: none has been seen */
	__u64 stack;	 /* the thread's in the kernel; 0: it is certainly not watched */
	__u64 addr;	 /* of its task_struct */
	__u64 number;	 /* its wait_number */
	__u64 clock;	 /* of the scheduler */
	__u64 ran_ns;	 /* that the thread had run in all its life by then */
	__u64 queued_ns; /* and been on run queues */
	__u64 sleeps;	 /* its voluntary switch-outs */
	__u64 preempts;	 /* and the others */
	__u32 tid;
	__u32 pad;
};

#endif

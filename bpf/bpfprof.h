/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * The ABI between the BPF programs and user space: every type, limit, counter and result code that
 * both sides use. No kernel types and no includes: the includer has __u8 … __u64 in scope
 * (vmlinux.h in BPF, <linux/types.h> elsewhere). Padding is explicit, sizes are asserted.
 *
 * How the pieces meet:
 *
 *   user -> kernel   Chunks of table memory hold unwind tables (struct bpfprof_part) and, for each
 *                    process, a sorted list of its executable mappings. bp_procs maps a process to
 *                    its list.
 *   kernel -> user   bp_ring carries each distinct stack once (BPFPROF_REC_SAMPLE), and copies of
 *                    the stacks of processes or code that the kernel side does not know yet
 *                    (BPFPROF_REC_RAW). bp_counts says how often each distinct stack was seen.
 */
#ifndef BPFPROF_H
#define BPFPROF_H

/* Of the programs, as the kernel wants to hear it (include/linux/license.h) */
#define BPFPROF_LICENSE "Dual BSD/GPL"

/* ---- Limits ---- */
#define BPFPROF_MAX_UFRAMES 512 /* user frames of a stack where the kernel has bpf_loop (5.17) */
#define BPFPROF_MIN_UFRAMES 64	/* the same where it has not */
#define BPFPROF_MAX_KFRAMES 127 /* kernel.perf_event_max_stack's default */
#define BPFPROF_COMM_SZ 16	/* TASK_COMM_LEN */
/* DWARF numbers of x86-64: 0..15 general, 16 the return address column, here rip */
#define BPFPROF_NR_REGS 17
/* bytes of stack at most in a raw record: compilers recurse that far */
#define BPFPROF_RAW_STACK_SZ 65536
#define BPFPROF_RED_ZONE 128	   /* bytes below rsp that are the function's too (psABI, 3.2.2) */
#define BPFPROF_MAX_MAPS 4096	   /* executable mappings of a process (a power of two) */
#define BPFPROF_MAX_PROCS 16384	   /* processes known to the kernel side at a time */
#define BPFPROF_MAX_FILTERED 16384 /* processes, and threads, that a filter may name */
#define BPFPROF_MAX_CHOSEN 1024	   /* processes of which more is recorded than of all */
#define BPFPROF_MAX_COUNTS 32768   /* distinct stacks counted between two drains, at most */
#define BPFPROF_MAX_DUE 4096	   /* threads waiting to be sampled on a CPU */

/* ---- Profile kinds ---- */
enum bpfprof_kind {
	BPFPROF_CPU,
	BPFPROF_HEAP,
	BPFPROF_BLOCK,
	BPFPROF_MUTEX,
	BPFPROF_OFFCPU,
	BPFPROF_THREADCREATE,
	BPFPROF_THREADS,
	BPFPROF_FAULTS,
	BPFPROF_CUSTOM,
	BPFPROF_FDS,
	BPFPROF_NR_KINDS,
};

/*
 * ---- Why a sample was lost ----
 * A sample that passed the filters is either recorded or lost for exactly one of these reasons:
 * seen = recorded + sum(lost). X(name, sentence)
 */
#define BPFPROF_LOST_REASONS(X)                                       \
	X(ring_full, "the ring to user space was full")               \
	X(nested, "the sampler interrupted itself")                   \
	X(missed, "the kernel was recording another on that CPU")     \
	X(no_slot, "too many stacks were taken at once")              \
	X(no_state, "no memory for a thread's state")                 \
	X(may_throw, "a return probe could have met an exception")    \
	X(may_fail, "so large a call may fail, and was not followed") \
	X(ran_on, "the thread ran on before its stack was read")      \
	X(orphan, "the count of a stack that never arrived")          \
	X(no_memory, "user space was out of memory")

/*
 * ---- How a stack ended ----
 * Everything but `complete` ends in a marker frame "[unwind: SENTENCE]". X(name, sentence)
 */
#define BPFPROF_STACK_RESULTS(X)                                         \
	X(complete, "complete")                                          \
	X(no_mapping, "address outside of all known code")               \
	X(no_table, "no unwind table and no frame pointer")              \
	X(unsupported, "unwind rule not supported")                      \
	X(read_fault, "stack memory not readable")                       \
	X(bad_frame, "the stack does not lead on")                       \
	X(too_deep, "more frames than are recorded")                     \
	X(copy_short, "stack longer than the copy taken at first sight") \
	X(no_room, "no room in the ring for a copy of the stack")        \
	X(no_goroutine, "the goroutine's stack was not found")           \
	X(compat32, "32-bit program")                                    \
	X(gone, "process gone before its code was known")                \
	X(unproved, "code that cannot be proved to be its file's")

#define BPFPROF_ENUM_LOST(name, text) BPFPROF_LOST_##name,
enum bpfprof_lost {
	BPFPROF_LOST_REASONS(BPFPROF_ENUM_LOST) BPFPROF_NR_LOST
};
#define BPFPROF_ENUM_RESULT(name, text) BPFPROF_STACK_##name,
enum bpfprof_stack_result {
	BPFPROF_STACK_RESULTS(BPFPROF_ENUM_RESULT) BPFPROF_NR_RESULTS
};

/* Kinds of probes of the heap profile, which cost the program different amounts of time. */
enum bpfprof_hit {
	BPFPROF_HIT_ENTRY,  /* of a function that allocates */
	BPFPROF_HIT_RETURN, /* of one */
	BPFPROF_HIT_FREE,
	BPFPROF_HIT_BEGIN, /* of a function that allocates, whose return is not waited for */
	BPFPROF_HIT_USDT,  /* the program has sampled by itself */
	BPFPROF_HIT_OTHER, /* of a shared link, in a process that is not profiled */
	BPFPROF_NR_HITS,
};

#define BPFPROF_TIMED 16 /* one sample in so many is timed */
/* One that took longer was interrupted, or preempted: it counts as this. */
#define BPFPROF_TIMED_MAX_NS 200000

/* A cache of stacks checks itself: on each CPU, one hit in so many is walked all the same. */
#define BPFPROF_CHECKED 256

struct bpfprof_cache_stats {
	/* stacks that were remembered: to be counted, they need no walk; or frames whose rules were:
	 * to be walked over, they need no search */
	__u64 cached;
	__u64 checked;	  /* of these, walked, or looked up in the tables, and compared */
	__u64 mismatched; /* of these, something else was found, and was recorded */
};

/* Per-CPU counters of one kind, in one epoch. Key in bp_stats: */
#define BPFPROF_STATS_KEY(side, kind) ((side)*BPFPROF_NR_KINDS + (kind))
struct bpfprof_stats {
	__u64 seen;	/* samples that passed the filters */
	__u64 recorded; /* of these, counted in bp_counts or sent through bp_ring */
	__u64 lost[BPFPROF_NR_LOST];
	__u64 unwinds; /* user stacks walked in the kernel */
	__u64 frames;  /* user frames that these walks found */
	/* heap only */
	__u64 hits[BPFPROF_NR_HITS]; /* of probes */
	__u64 record_ns;	     /* time that sampled allocations took to be recorded */
	/* heap, custom, fds: recorded, but there was no room for them among those that are held:
	 * whether they are freed, removed or closed is not known */
	__u64 untracked;
	__u64 unseen; /* libraries that were loaded out of the preload library's sight */
	/* all kinds: samples that were timed, lost ones as well, and how long that took */
	__u64 timed;
	__u64 timed_ns;
	/* waits only */
	__u64 below;	/* shorter than --min-wait: not seen */
	__u64 below_ns; /* that these took together */
	struct bpfprof_cache_stats kernel_stacks, user_stacks;
	/* custom only; not in seen: */
	__u64 removed;	  /* values that had been added */
	__u64 duplicates; /* added, though they had been already: the first time counts */
	__u64 unknown;	  /* removed, though they had not been added since it is watched */
	/* the others */
	struct bpfprof_cache_stats rules;
};

/* ---- Unwind tables ---- */

/*
 * Table memory is a set of chunks, each one element of an mmapable array, so that user space fills
 * it without system calls and the kernel addresses it directly. Extents within a chunk are aligned
 * to 16 bytes.
 */
#define BPFPROF_CHUNK_SZ (1U << 20)
#define BPFPROF_MAX_CHUNKS 256

/*
 * How the canonical frame address (the caller's sp) is found: DWARF 5, 6.4.1, with the psABI's
 * register names.
 */
enum bpfprof_cfa {
	BPFPROF_CFA_NONE,     /* no information for this address */
	BPFPROF_CFA_SP,	      /* rsp + cfa_off */
	BPFPROF_CFA_FP,	      /* rbp + cfa_off */
	BPFPROF_CFA_REG,      /* register `reg` + cfa_off; only where all registers are known */
	BPFPROF_CFA_SP_DEREF, /* *(rsp + cfa_off) + aux */
	BPFPROF_CFA_FP_DEREF, /* *(rbp + cfa_off) + aux */
	/* *(rsp + cfa_off + 8 * register `reg`) + aux; only where all registers are known */
	BPFPROF_CFA_SP_INDEX,
	/* the rule that linkers write for .plt: rsp + cfa_off + ((rip & 15) >= aux ? 8 : 0) */
	BPFPROF_CFA_PLT,
	BPFPROF_CFA_SIGNAL,	 /* rsp points to the ucontext of an rt_sigframe */
	BPFPROF_CFA_UNSUPPORTED, /* an expression that is none of the above */
	/* functions of Go's runtime that switch stacks: see struct bpfprof_rule */
	BPFPROF_CFA_GO_SYSTEMSTACK,
	BPFPROF_CFA_GO_MORESTACK,
	BPFPROF_CFA_GO_ASMCGOCALL,
	BPFPROF_NR_CFA,
};

/* Where the caller's rbp is. */
enum bpfprof_fp {
	BPFPROF_FP_SAME,  /* still in rbp */
	BPFPROF_FP_CFA,	  /* *(cfa + fp_off) */
	BPFPROF_FP_FP,	  /* *(rbp + fp_off) */
	BPFPROF_FP_SP,	  /* *(rsp + fp_off) */
	BPFPROF_FP_UNDEF, /* lost */
};

/* Where the return address is. */
enum bpfprof_ra {
	BPFPROF_RA_CFA, /* *(cfa - 8) */
	BPFPROF_RA_END, /* undefined: this is the outermost frame */
	BPFPROF_RA_REG, /* in register `aux`; only where all registers are known (vfork) */
	BPFPROF_RA_OFF, /* *(cfa + aux) */
	/* *(cfa - 8) is where the caller was interrupted: Go's runtime makes it call its preemption,
	 * or the panic that a signal becomes */
	BPFPROF_RA_INTERRUPTED,
	/* *(cfa - 8), in the function of Go's scheduler that makes the next goroutine m.curg */
	BPFPROF_RA_GO_EXECUTE,
	/* *(cfa - 8), as code was worked out to do: if a call stands before what it leads to */
	BPFPROF_RA_CALL,
};

/*
 * Go switches from a goroutine's stack to that of the thread's goroutine g0, and keeps in its own
 * structures where the former was left (runtime/asm_amd64.s). The thread's current g is at a fixed
 * distance from the thread pointer; g.m is the thread (m), m.curg the goroutine that it works for,
 * and curg.sched (a gobuf: sp, pc …) where that goroutine's stack was left.
 *
 * Rules of SYSTEMSTACK and MORESTACK have
 *     cfa_off    of the word that holds g from the thread pointer; or, if reg is 1, of the word
 *                that holds this distance, from the first byte that the part covers
 *     fp_off     BPFPROF_GO_OFFSETS: of g.m in a g, of m.curg in an m
 *     aux        of sched.sp in a g; sched.pc is behind it
 *     bx_off     of sched.bp in a g
 * and ASMCGOCALL, besides, instead of the last two
 *     aux        of the word, from rsp, that says where the goroutine's stack was left: how far
 *                below its top
 *     bx_off     of the word, from rsp, that holds g; it holds 0 where no stack was switched, and
 *                the former word holds the address where the same stack was left
 */
#define BPFPROF_GO_OFFSETS(g_m, m_curg) ((__s32)((__u32)(m_curg) << 16 | (__u32)(g_m)))
#define BPFPROF_GO_G_M(offsets) ((__u32)(offsets)&0xffff)
#define BPFPROF_GO_M_CURG(offsets) ((__u32)(offsets) >> 16)
#define BPFPROF_GO_STACK_HI 8 /* of stack.hi in a g; stack.lo is at 0 (runtime2.go) */

struct bpfprof_rule {
	__u8 cfa; /* enum bpfprof_cfa */
	__u8 fp;  /* enum bpfprof_fp */
	__u8 ra;  /* enum bpfprof_ra */
	/* of BPFPROF_CFA_REG and _SP_INDEX: its DWARF number. Where the CFA is another: the caller's r12 is
	 * *(cfa - 8 * reg), or BPFPROF_R12_… */
	__u8 reg;
	__s32 cfa_off;
	__s32 fp_off;
	__s16 aux;
	/* the caller's rbx is *(cfa + bx_off); 0: still in rbx; or BPFPROF_BX_UNKNOWN */
	__s16 bx_off;
};
#define BPFPROF_BX_UNKNOWN (-32768)
/* Only objects have more than the first of these that have Go code which leaves its rsp there while C
 * runs on another stack: the race detector's. */
#define BPFPROF_R12_UNKNOWN 0
#define BPFPROF_R12_SAME 1 /* still in r12: none is saved where the return address is */
_Static_assert(sizeof(struct bpfprof_rule) == 16, "bpfprof_rule");

/*
 * A part: the unwind table of a contiguous range of one object's addresses. A row says which rule
 * holds from its address on, up to the next row. Rows are grouped in blocks of 256 bytes of code:
 * blk[b] is the number of the first row of block b, blk[blk_cnt] is row_cnt, off[row] is the row's
 * address within its block. An address before the first row of its block belongs to the last row of
 * an earlier block; before the first row of all, to no rule.
 *
 * One extent holds
 *
 *     at pos            struct bpfprof_part
 *     behind it         __u16 blk[blk_cnt + 1]
 *     at off_pos        __u8 off[row_cnt]
 *     at rule_pos       __u16 rule[row_cnt], each an index into rules
 *     at rules_pos      struct bpfprof_rule rules[]
 *
 * Positions are bytes from the start of the chunk once the part has been placed there, and from the
 * start of the part (pos 0) as ehframe builds it.
 */
#define BPFPROF_BLOCK_SHIFT 8
#define BPFPROF_PART_MAX_ROWS 65535
struct bpfprof_part {
	__u32 blk_cnt;
	__u32 row_cnt;
	__u32 off_pos;
	__u32 rule_pos;	 /* aligned to 2 */
	__u32 rules_pos; /* aligned to 16 */
	/* set to 1 by the kernel side when it walks through; cleared by user space, which evicts by
	 * it */
	__u32 used;
	__u32 pad[2];
};
_Static_assert(sizeof(struct bpfprof_part) == 32, "bpfprof_part");

/* ---- Processes ---- */

/* One program in one process: an exec or a reuse of the pid makes another key. */
struct bpfprof_proc_key {
	__u32 tgid;	/* as the initial pid namespace numbers it */
	__u32 exec_id;	/* task_struct.self_exec_id: counts execs along the line of descent */
	__u64 start_ns; /* task_struct.start_boottime of the thread group leader */
};
_Static_assert(sizeof(struct bpfprof_proc_key) == 16, "bpfprof_proc_key");

/* Values of bpfprof_map.chunk that name no chunk. */
#define BPFPROF_CHUNK_NO_TABLE 0xfffffffeU   /* code without a table: follow the frame pointers */
#define BPFPROF_CHUNK_NOT_LOADED 0xffffffffU /* a table may exist: send the stack raw */

/* An executable range of a process's addresses, covered by at most one part. */
struct bpfprof_map {
	__u32 size;  /* bytes */
	__u32 skew;  /* the range's first byte, counted from the first byte that the part covers */
	__u32 chunk; /* index into bp_chunks, or BPFPROF_CHUNK_… */
	__u32 pos;   /* of the part in the chunk */
};
_Static_assert(sizeof(struct bpfprof_map) == 16, "bpfprof_map");

/*
 * Of bpfprof_proc.flags: raw records of this process led nowhere. Its broken stacks are recorded as
 * they are, until its mappings change. A table that is not loaded is still asked for.
 */
#define BPFPROF_PROC_NO_RAW 1
/* The same: a table that is not loaded is not asked for, either. Set on the host alone, once it has
 * tried to load it. */
#define BPFPROF_PROC_NO_LOAD 2

/*
 * Value of bp_procs. The extent at `pos` holds the process's key (a reader that was overtaken by a
 * replacement sees by it that the list is not its own), __u64 start[map_cnt], ascending, and behind
 * them, rounded up to 16 bytes, struct bpfprof_map map[map_cnt]. Ranges do not overlap.
 */
struct bpfprof_proc {
	__u32 chunk;
	__u32 pos;
	__u16 map_cnt; /* below BPFPROF_MAX_MAPS */
	__u16 flags;   /* BPFPROF_PROC_… */
	/* changes when an address range changed its meaning: such stacks must not be merged */
	__u32 gen;
};
_Static_assert(sizeof(struct bpfprof_proc) == 16, "bpfprof_proc");

/*
 * ---- Epochs ----
 * A program reads the number of the epoch once for each event, and keeps all that belongs to the
 * event on that epoch's side: counters, counts, the record in the ring. User space begins an epoch,
 * and waits until every program that may have read the former number has ended. What is on that
 * side then is all of the former epoch, and nothing else; user space takes it before it begins the
 * next one.
 */
#define BPFPROF_SIDES 2
#define BPFPROF_SIDE(epoch) ((epoch) % BPFPROF_SIDES)

/* ---- Records in bp_ring ---- */
enum bpfprof_rec_type {
	/* followed by __u64 user[user_cnt], __u64 kernel[kernel_cnt], leaf first in each */
	BPFPROF_REC_SAMPLE,
	/* followed by struct bpfprof_raw, __u64 kernel[kernel_cnt], stack_sz bytes of the stack */
	BPFPROF_REC_RAW,
};

/*
 * A record stands for one sample. If it is a BPFPROF_REC_SAMPLE, further samples with the same
 * stack are only counted, in bp_counts under (hash, tgid, kernel_cnt, user_cnt), until that map is
 * drained.
 *
 * Frames: kernel frames are return addresses but for the first. A user frame is an address inside
 * the instruction that was executing: the pc itself where it was interrupted, the return address
 * less one everywhere else.
 */
struct bpfprof_rec {
	__u8 type;   /* enum bpfprof_rec_type */
	__u8 kind;   /* enum bpfprof_kind */
	__u8 result; /* enum bpfprof_stack_result, of the user part */
	__u8 side;   /* of its epoch */
	__u16 kernel_cnt;
	__u16 user_cnt;
	__u32 tid;
	/* block, mutex, offcpu, threads: BPFPROF_WAIT_PACK; faults: BPFPROF_FAULT_MAJOR, or 0;
	 * what differs in it is counted apart */
	__u32 wait;
	/* as in bp_counts; of a raw record of a kind that is joined to its stack later, a number of
	 * its own */
	__u64 hash;
	__u64 time_ns; /* CLOCK_MONOTONIC */
	__u64 size;    /* heap: bytes asked for; custom: number of the profile, from 1 on */
	/* heap: bytes that the sample stands for, as the program says; 0: by --heap-rate */
	__u64 weight;
	__u64 units;  /* block, mutex, offcpu: waits that it stands for, in 1 / BPFPROF_UNIT */
	__u64 amount; /* of these, together: ns; threads: for how long it has been so, ns */
	__u64 cgroup; /* id of the thread's control group (v2); 0: not asked for */
	struct bpfprof_proc_key proc;
	char comm[BPFPROF_COMM_SZ]; /* the thread's name; any bytes, NUL-terminated */
};
_Static_assert(sizeof(struct bpfprof_rec) == 104, "bpfprof_rec");

/* A function that a return probe waits for: its return address on the stack was replaced. */
#define BPFPROF_MAX_URETS 4
struct bpfprof_uret {
	__u64 at; /* address of the replaced word */
	__u64 ra; /* what stood there */
};

/* Code as it was when the stack was copied: by the time that the copy is looked at, a JIT compiler
 * may have put something else there. */
#define BPFPROF_RAW_CODES 32
struct bpfprof_raw_code {
	__u64 addr; /* 0: none */
	__u8 bytes[8];
};

struct bpfprof_raw {
	__u64 regs[BPFPROF_NR_REGS]; /* user registers by DWARF number */
	/* of the first byte copied: the red zone's, where epilogues have left what they popped */
	__u64 stack_addr;
	__u32 stack_sz; /* bytes copied */
	__u16 ra;	/* 1: rip is a return address (the task is in a system call) */
	__u16 holes;	/* bit i: page i of the copy, from stack_addr's on, could not be read */
	__u64 uret_pc;	/* what replaced return addresses were replaced with; 0: none was */
	struct bpfprof_uret uret[BPFPROF_MAX_URETS]; /* innermost first; at 0: none */
	/* From rip on; and before the return addresses on top of the stack and in the chain of
	 * frame pointers. */
	struct bpfprof_raw_code codes[BPFPROF_RAW_CODES];
};

/* ---- Counts ---- */
struct bpfprof_count_key {
	__u64 hash; /* of process, thread name, size, frames and result; seeded per run */
	__u32 tgid;
	__u16 kernel_cnt;
	__u16 user_cnt;
};
_Static_assert(sizeof(struct bpfprof_count_key) == 16, "bpfprof_count_key");

struct bpfprof_count {
	__u64 count; /* samples */
	/* sums of the records' fields of these names */
	__u64 units;
	__u64 amount;
};

/* ---- Waits ---- */

#define BPFPROF_UNIT (1U << 16) /* one wait: where not all are recorded, some stand for more */

/* Why a thread is not on a CPU. X(name, text): as /proc/PID/status puts it, or as it is called. */
#define BPFPROF_THREAD_STATES(X)         \
	X(running, "running")            \
	X(runnable, "runnable")          \
	X(sleeping, "sleeping")          \
	X(disk_sleep, "disk sleep")      \
	X(io, "waiting for a disk")      \
	X(stopped, "stopped")            \
	X(traced, "stopped by a tracer") \
	X(dead, "exiting")

#define BPFPROF_ENUM_STATE(name, text) BPFPROF_STATE_##name,
enum bpfprof_thread_state {
	BPFPROF_THREAD_STATES(BPFPROF_ENUM_STATE) BPFPROF_NR_STATES
};

/* How a wait for a futex ended. */
enum bpfprof_wake {
	BPFPROF_WAKE_PEER,    /* by a wake of the futex that was waited for */
	BPFPROF_WAKE_REQUEUE, /* by one of another futex, which it had been moved to */
	BPFPROF_WAKE_TIMEOUT, /* by the clock */
	BPFPROF_WAKE_SIGNAL,  /* by anything else: a signal, as a rule */
	BPFPROF_WAKE_NOT_YET, /* the run ended first */
	BPFPROF_NR_WAKES,
};

/* bpfprof_rec.wait. syscall: number of the system call, or one of these, which are none. */
#define BPFPROF_NO_SYSCALL 0xffff
#define BPFPROF_OF_KERNEL 0xfffe /* a kernel thread, in none ever */
#define BPFPROF_EXITING 0xfffd	 /* the thread ends, whatever it was in before */
#define BPFPROF_CALL32 0xfffc	 /* a 32-bit program's, which have numbers of their own */
#define BPFPROF_WAIT_PACK(syscall, state, wake) \
	((__u32)(syscall) | (__u32)(state) << 16 | (__u32)(wake) << 24)
#define BPFPROF_WAIT_SYSCALL(wait) ((wait)&0xffff)
#define BPFPROF_WAIT_IN_SYSCALL(wait) (BPFPROF_WAIT_SYSCALL(wait) < BPFPROF_EXITING)
#define BPFPROF_WAIT_STATE(wait) ((wait) >> 16 & 0xff) /* enum bpfprof_thread_state */
#define BPFPROF_WAIT_WAKE(wait) ((wait) >> 24)	       /* enum bpfprof_wake */

/* ---- Page faults ---- */

#define BPFPROF_FAULT_MAJOR 1 /* bpfprof_rec.wait: it had to wait for a disk */

/* ---- Heap ---- */

/* What a probed allocator function does: how its arguments give the size, and what it returns. */
enum bpfprof_alloc_op {
	BPFPROF_ALLOC_MALLOC,	      /* (size, ...): malloc, valloc, operator new, mallocx */
	BPFPROF_ALLOC_CALLOC,	      /* (n, size) */
	BPFPROF_ALLOC_ALIGNED,	      /* (alignment, size): memalign, aligned_alloc */
	BPFPROF_ALLOC_POSIX_MEMALIGN, /* (&pointer, alignment, size), returns 0 */
	BPFPROF_ALLOC_REALLOC,	      /* (pointer, size, ...): realloc, rallocx */
	BPFPROF_ALLOC_REALLOCARRAY,   /* (pointer, n, size) */
	BPFPROF_ALLOC_XALLOCX, /* (pointer, size, ...): in place, returns the size there is */
	BPFPROF_ALLOC_FREE,    /* (pointer, ...): free, operator delete, sdallocx */
};

/*
 * Attach cookie of a probe on an allocator: the operation, and whether the function may call
 * another probed one, which is then not to be counted again: its return is always waited for.
 */
#define BPFPROF_COOKIE_OP(cookie) ((cookie)&0xff)
#define BPFPROF_COOKIE_WRAPPER 0x100
/*
 * The function throws where it fails. An exception cannot pass a return address that a return probe
 * has replaced: it would end the program. So the return is not waited for where the call may fail.
 */
#define BPFPROF_COOKIE_THROWS 0x200
/* The call is recorded at its entry: its return is not waited for. */
#define BPFPROF_COOKIE_BEGIN 0x400
/*
 * The link is in all processes for those that are profiled, which share it. While links are changed,
 * both it and links of processes are there: hits of which count says the bit of the file's number
 * in heap_shared.
 */
#define BPFPROF_COOKIE_SHARED 0x800
#define BPFPROF_COOKIE_OF_FILE(number) ((__u64)(number) << 16)
#define BPFPROF_COOKIE_FILE(cookie) ((cookie) >> 16 & (BPFPROF_SHARED_FILES - 1))
#define BPFPROF_SHARED_FILES 64
/*
 * The links of a file are being changed, the seq-th change: from those of processes to the shared one, or
 * back. A hit passes the programs of both one after the other, and the bit of heap_shared may change in between:
 * so each thread changes over by itself, with the first hit of which the new link sees that it counts. A new
 * link comes before the old ones (consumer_add in kernel/events/uprobes.c).
 */
#define BPFPROF_CHANGE(seq, file, shared) ((__u64)(seq) << 8 | (file) << 1 | (shared))
#define BPFPROF_CHANGE_FILE(change) ((change) >> 1 & (BPFPROF_SHARED_FILES - 1))
#define BPFPROF_CHANGE_SHARED(change) ((change)&1)

/*
 * Attach cookie of a USDT probe: where its arguments are, 21 bits each, the first one lowest; above
 * them a bit that tells it from a function's. alloc(pointer, size, weighted bytes), free(pointer).
 */
#define BPFPROF_COOKIE_USDT (1ULL << 63)
#define BPFPROF_USDT_ARG_BITS 21
#define BPFPROF_USDT_REG(arg) ((arg)&0x1f)	  /* DWARF number 0..16; 31: the constant `off` */
#define BPFPROF_USDT_DEREF(arg) ((arg) >> 5 & 1)  /* 1: the word at register + off */
#define BPFPROF_USDT_NARROW(arg) ((arg) >> 6 & 1) /* 1: 4 bytes, 0: 8 */
#define BPFPROF_USDT_OFF(arg) ((__s32)((__u32)(arg) << 11) >> 18) /* signed, 14 bits */
#define BPFPROF_USDT_CONST 31

/*
 * ---- What is added and not removed ----
 * A sampled allocation that has not been freed yet; a value that was added to a custom profile and
 * not removed from it yet. What was added before an exec is found no more: the addresses mean
 * something else.
 */
struct bpfprof_live_key {
	__u64 value; /* heap: the address */
	__u32 tgid;
	__u32 exec_id;
	__u32 set; /* custom: number of the profile; heap: 0 */
	__u32 pad;
};
_Static_assert(sizeof(struct bpfprof_live_key) == 24, "bpfprof_live_key");

struct bpfprof_live {
	/* that it was counted under; of a raw record (hash, tgid, 0, 0) */
	struct bpfprof_count_key stack;
	__u64 time_ns; /* CLOCK_MONOTONIC */
};
_Static_assert(sizeof(struct bpfprof_live) == 24, "bpfprof_live");

/*
 * Attach cookie of a probe of a custom profile: in the lowest 21 bits where the value is, as the
 * arguments of a USDT probe are told; above it, in 16 bits, the number of the profile; above that
 * two flags.
 */
#define BPFPROF_CUSTOM_SET(cookie) ((__u32)((cookie) >> BPFPROF_USDT_ARG_BITS & 0xffff))
#define BPFPROF_CUSTOM_RETURNED (1ULL << 37) /* it is hit as a function returns */
/* 0 and -1 are no values: what a function returns that has failed, and what is then passed on */
#define BPFPROF_CUSTOM_MAY_FAIL (1ULL << 38)

/*
 * ---- Descriptors ----
 * Who has put a file into a place of a table of descriptors last. That it is still there is not known
 * from here: what is open is read from the kernel's tables, and is the same if it is the same file.
 */
struct bpfprof_fd_key {
	__u64 files; /* the table, struct files_struct: of a process, or of several (CLONE_FILES) */
	__u32 fd;
	__u32 pad;
};
_Static_assert(sizeof(struct bpfprof_fd_key) == 16, "bpfprof_fd_key");

struct bpfprof_fd {
	struct bpfprof_live live; /* time_ns 0: it was there when the recording began */
	__u64 file;		  /* tells files apart */
	__u64 start_ns; /* of the process, so that a later owner of the number is not meant */
	__u32 tgid;
	__u32 pad;
};
_Static_assert(sizeof(struct bpfprof_fd) == 48, "bpfprof_fd");

/* What is known of a descriptor that is open. */
enum bpfprof_fd_origin {
	BPFPROF_FD_OPENED,  /* by whom; hash 0: its stack was lost, which was counted then */
	BPFPROF_FD_BEFORE,  /* it was there when the recording began */
	BPFPROF_FD_UNKNOWN, /* neither: inherited, or opened in a way that is not seen */
};

/* Record of the iterator over descriptors (bpf_seq_write). */
struct bpfprof_fd_open {
	struct bpfprof_fd_key key;
	struct bpfprof_count_key stack;
	__u64 time_ns; /* when it was opened */
	__u32 origin;  /* enum bpfprof_fd_origin */
	__u32 pad;
};
_Static_assert(sizeof(struct bpfprof_fd_open) == 48, "bpfprof_fd_open");

/* ---- Kernel symbols, named in batches ---- */
#define BPFPROF_KSYM_BATCH 256
struct bpfprof_ksym {
	__u64 addr;	/* 0: the end of the batch */
	char text[248]; /* "symbol+0xoffset/0xsize [module]", or "0xaddress" */
};
_Static_assert(sizeof(struct bpfprof_ksym) == 256, "bpfprof_ksym");

/* ---- Record of the task scan (bpf_seq_write of an iterator) ---- */
struct bpfprof_task {
	struct bpfprof_proc_key key;
	__u32 ppid;
	__u32 kthread; /* 1: has no user memory */
	__u64 cgroup;  /* id of its control group (v2) */
	char comm[BPFPROF_COMM_SZ];
};
_Static_assert(sizeof(struct bpfprof_task) == 48, "bpfprof_task");

/*
 * ---- Record of the threads' iterator (bpf_seq_write) ----
 * kernel_cnt times __u64, the thread's kernel frames, leaf first, follow. Of a thread on a CPU
 * neither registers nor frames are known, nor what system call it is in.
 */
struct bpfprof_thread {
	struct bpfprof_proc_key key;
	__u32 tid;
	__u32 wait;	/* BPFPROF_WAIT_PACK */
	__u64 switches; /* times that it has left a CPU: it has not run if they stay the same */
	__u64 cgroup;	/* as in bpfprof_rec */
	__u64 since_ns; /* for how long it has not run; 0: it is running, or that is not known */
	/* of a thread that is watched for its waits: */
	__u64 off_ns;  /* CLOCK_MONOTONIC, when its wait began; 0: it is in none */
	__u64 wake_ns; /* when it was woken; 0: it was not */
	__u8 on_cpu;
	__u8 has_user; /* it has a user stack */
	__u8 ra;       /* 1: rip is a return address (the thread is in a system call) */
	__u8 compat32;
	__u8 same;  /* 1: it has not run since off_ns */
	__u8 woken; /* enum bpfprof_wake */
	__u16 kernel_cnt;
	char comm[BPFPROF_COMM_SZ];
	__u8 off_state; /* enum bpfprof_thread_state, of its wait, until it was woken */
	__u8 ended;	/* 1: that wait is over, and was not recorded */
	__u8 may_futex; /* 1: that wait may have been for a futex */
	__u8 block;	/* 1: the block kind is recorded of its process */
	__u8 pad[4];
	__u64 regs[BPFPROF_NR_REGS]; /* user registers by DWARF number */
	/* see struct bpfprof_raw */
	__u64 uret_pc;
	struct bpfprof_uret uret[BPFPROF_MAX_URETS];
};
_Static_assert(sizeof(struct bpfprof_thread) == 104 + 8 * BPFPROF_NR_REGS + 16 * BPFPROF_MAX_URETS,
	       "bpfprof_thread");

/* A process of which kinds are recorded that are not of all (bpfprof_config.chosen). */
struct bpfprof_chosen {
	__u64 start_ns; /* of the process, so that a later owner of the number is not meant */
	__u32 kinds;	/* bit i: kind i */
	__u32 pad;
};

/* ---- Configuration, read-only once loaded ---- */
#define BPFPROF_GLOB_MAX 63 /* bytes of a thread name pattern, without its stars */
struct bpfprof_config {
	/* of the hashes; secret, so that no program can make its stacks collide with another's */
	__u64 seed;
	__u8 filter_tgid;	       /* only processes in bp_tgids */
	__u8 filter_tid;	       /* only threads in bp_tids */
	__u8 filter_cgroup;	       /* only tasks below bp_cgroup[0] */
	__u8 filter_comm;	       /* only threads whose name the automaton below accepts */
	__u8 user_only;		       /* record no kernel frames, see no kernel threads */
	__u8 kernel_only;	       /* see only what runs in the kernel, record no user frames */
	__u8 thread_names;	       /* keep threads of different names apart */
	__u8 cgroups;		       /* and those of different control groups */
	__u8 record[BPFPROF_NR_KINDS]; /* kinds that are recorded */
	__u8 chosen[BPFPROF_NR_KINDS]; /* of these, only of the processes in bp_chosen */
	__u8 follow;		       /* children of watched processes are watched */
	__u8 switch_state;	       /* sched_switch tells prev's state (5.18, fa2c3254d7cf) */
	__u8 hash_states;	       /* threads' states are in hashes: there is no task storage */
	__u8 futex_probes; /* futex waits are watched where they are, not at every switch */
	__u8 wait_slots;   /* states of waits are in slots, see wait_machine.h */
	__u8 one_cookie;   /* the program's probes have the cookie below: the kernel has none */
	__u8 rdonly_cast;  /* the kernel has bpf_rdonly_cast */
	__u8 heap_shares;  /* there may be links of BPFPROF_COOKIE_SHARED */
	__u8 heap_strict;  /* memory is not overcommitted: any allocation may fail */
	/* both ends of a wait are seen at switch-in (sched_exit_tp) alone */
	__u8 switch_in_only;
	__u8 kthreads; /* waits of threads of the kernel are recorded, where they pass the filters */
	__u8 wake_at_fork; /* of a process that is followed, since its child is to be probed soon */
	__u64 cookie;
	__u32 max_uframes; /* at most BPFPROF_MAX_UFRAMES */
	__u32 self_tgid;   /* bpfprof's own, whose heap is left out */
	__u64 heap_rate;   /* mean bytes between heap samples; 1: every allocation */
	__u64 sample_seed; /* what is sampled follows from it: see sample.h; 0: chance decides */
	/* bytes; a smaller allocation fails only for a limit on the process, or where heap_strict */
	__u64 heap_cannot_fail_below;
	__u64 min_wait_ns[BPFPROF_NR_KINDS]; /* shorter waits are only counted */
	__u64 fds_since_ns; /* CLOCK_BOOTTIME: what older processes have open is known from the start on */
	/* of the preempt count from the run queue, among a CPU's variables; 0: unknown */
	__s64 preempt_count_off;
	/*
	 * Slots of bp_scratch and bp_raw: one a CPU for the sampler, from trace_slot on one a CPU
	 * for tracepoints, from fds_slot on one a CPU for one program of the fds kind, from
	 * first_slot on slot_cnt for programs that can be preempted.
	 */
	__u32 trace_slot;
	__u32 fds_slot;
	__u32 first_slot;
	__u32 slot_cnt;
	__u32 interrupt_mask; /* bits of the preempt count: see probe_waits.c */
	__u32 type_regs;      /* number of struct pt_regs among the kernel's types; 0: unknown */
	__u32 type_task;      /* of struct task_struct */
	__u32 pad;
	/*
	 * Thread name pattern as an automaton that reads one byte a step (shift-and, Baeza-Yates
	 * and Gonnet 1992): state bit i means that the first i bytes of the pattern, stars not
	 * counted, have matched.
	 */
	__u64 comm_match[256]; /* bit i: the byte may follow in state i */
	__u64 comm_loop;       /* bit i: a star stands here */
	__u64 comm_accept;     /* the final state */
};

/*
 * Functions of the kernel that are no helpers (kfuncs). The programs call helpers of these numbers,
 * which there are none of; when they are loaded the calls lead where the kernel's types say. As
 * externs they would make libbpf read all of these types.
 */
enum bpfprof_kfunc {
	BPFPROF_KFUNC_FIRST = 0x42500000,
	BPFPROF_KFUNC_rdonly_cast = BPFPROF_KFUNC_FIRST,
	BPFPROF_KFUNC_task_from_pid,
	BPFPROF_KFUNC_task_release,
	BPFPROF_KFUNC_local_irq_save,
	BPFPROF_KFUNC_local_irq_restore,
	BPFPROF_KFUNC_iter_num_new,
	BPFPROF_KFUNC_iter_num_next,
	BPFPROF_KFUNC_iter_num_destroy,
	BPFPROF_KFUNC_END,
};

/* Of fds_on. What is opened is recorded in all but the first. */
enum bpfprof_fds_on {
	BPFPROF_FDS_OFF,
	BPFPROF_FDS_BEGIN, /* what the iterator (fds_read) meets was open before */
	BPFPROF_FDS_READ,  /* the iterator tells what is open */
};

/* ---- While it runs ---- */

/* Only user space writes it. */
struct bpfprof_control {
	__u32 epoch;	 /* see BPFPROF_SIDE */
	__u32 heap_off;	 /* 1: the heap's probes, where they are hit, record nothing */
	__u32 coarse;	 /* 1: sizes are rounded to 6 bits, as there are too many different ones */
	__u32 no_live;	 /* 1: what was allocated is not kept until it is freed */
	__u32 waits_on;	 /* not 0: waits and new threads are recorded */
	__u32 only_tgid; /* the one process that is watched; 0: there may be others */
	/* CLOCK_MONOTONIC: of waits that are in progress then, the part in between counts */
	__u64 start_ns;
	__u64 waits_all_ns; /* since then all that were in progress are known; 0: not yet */
	__u64 stop_ns;	    /* 0: the run goes on */
	__s64 realtime_off; /* CLOCK_REALTIME less CLOCK_MONOTONIC, ns */
	/* a shorter wait is recorded with probability length / rate; 0: all are; below 2^32 */
	__u64 wait_rate_ns;
	__u64 heap_shared;     /* bit i: of the i-th file the heap's shared link counts */
	__u64 heap_change;     /* 0; while links are changed: BPFPROF_CHANGE */
	__u32 cpu_every;       /* of so many CPU samples one is taken, by chance; 0, 1: each */
	__u32 kinds_off;       /* bit i: kind i is not recorded for now: offcpu, block, mutex */
	__u32 ops_not_exec_id; /* operations of processes with this exec_id do not count */
	__u32 custom_on;       /* 1: what custom profiles' probes see is recorded */
	__u32 fds_on;	       /* enum bpfprof_fds_on */
	__u32 sampling_on;     /* 1: what perf events meet is recorded */
};
_Static_assert(sizeof(struct bpfprof_control) == 104, "bpfprof_control");

/* Only the programs write it, whichever CPU they are on. */
struct bpfprof_state {
	__u32 stateless;     /* 1: there was no memory for a thread's state */
	__u32 slot_overflow; /* 1: a state of waits is in task storage, its slot was taken */
	__u32 not_followed; /* children of watched processes that are not watched, for want of room */
	__u32 cpu_changes; /* steps that CPUs took to come or go */
	__u64 regs_off; /* where a thread's registers lie on its kernel stack, for bpf_rdonly_cast */
	/* where the return address into the caller of schedule() lies, see kstack.bpf.c; 0: unknown */
	__u64 kstack_caller;
	__u64 ops; /* operations of the command so far */
	/* which table the iterator of descriptors was at last, but for main threads', the place in it, and which
	 * iteration that was */
	__u64 fds_session, fds_files;
	__u32 fds_at;
	__u32 pad;
};
_Static_assert(sizeof(struct bpfprof_state) == 64, "bpfprof_state");

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links of BPF programs to instructions of user programs, by the cheapest way that this kernel has:
 *
 *   session   6.13 (d920179b3d48): one program sees entry and return; the return is waited for only
 *             if the entry asks for it
 *   multi     6.6 (89ae89f53d20): one link for many points; entry and return are two links
 *   perf      5.15 (b89fbfbb854c): a perf event for each point, and a link from it to the program
 *   event     a perf event for each point, which the program hangs on itself. It is given no cookie
 *             (7adfc6c9b315, 5.15, too): there is a program for each
 *
 * Made by bpf(2) and perf_event_open(2) themselves: libbpf knows the first two from 1.3 and 1.5 on.
 * Everything hangs on descriptors of this process: it goes when they are closed.
 */
#ifndef KERNEL_UPROBES_H
#define KERNEL_UPROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum uprobe_method {
	UPROBES_SESSION,
	UPROBES_MULTI,
	UPROBES_PERF,
	UPROBES_EVENT,
	UPROBES_NONE, /* this kernel, or these rights, allow none */
};

struct uprobe_point {
	uint64_t offset;  /* in the file */
	uint64_t ref_ctr; /* in the file, of a USDT semaphore; 0: none */
	uint64_t cookie;  /* for bpf_get_attach_cookie; with UPROBES_EVENT nobody asks */
};

/* enum bpf_attach_type, which libbpf 1.1's header does not have in full */
#define UPROBES_ATTACH_MULTI 48
#define UPROBES_ATTACH_SESSION 57

/*
 * The best method here, found by doing: loads a program of two instructions and asks for links that
 * the kernel refuses in different ways, depending on what it can; attaches nothing. at_best: try
 * this one and those behind it only. Takes less than a ms.
 */
enum uprobe_method uprobes_probe(enum uprobe_method at_best);
const char *uprobes_method_name(enum uprobe_method m); /* "session" */

/*
 * Why there is no method at all, and what to do: of this machine, and of a program and a perf event
 * for user code as the kernel answers (-errno; -ENODEV: it has no such events).
 */
const char *uprobes_refused(void);
const char *uprobes_refused_by(int program, int event);

/* Can a perf event be linked to a program? */
bool uprobes_have_links(void);

/* Is there a perf event for each point? */
bool uprobes_by_events(enum uprobe_method m);

/* What a program has to be told before it is loaded (bpf_program__set_expected_attach_type). */
int uprobes_attach_type(enum uprobe_method m); /* 0 where there are perf events */

enum uprobe_side {
	UPROBES_ENTRY,	/* the program is called at the point */
	UPROBES_RETURN, /* when the function returns that was entered there */
	UPROBES_BOTH, /* session only; there UPROBES_ENTRY is for a program that always returns 1 */
};

struct uprobes; /* one attachment */

/*
 * Attaches a program to cnt points of the file behind file_fd. prog_fds: the program; with
 * UPROBES_EVENT one for each point, which may be the same. pid: only in this process (all of its
 * threads, whichever it is started with); 0: wherever the file is mapped. NULL with errno, and then
 * nothing is attached; ETIMEDOUT: uprobes_are_late.
 */
struct uprobes *uprobes__attach(enum uprobe_method m, enum uprobe_side side, const int *prog_fds,
				int file_fd, pid_t pid, const struct uprobe_point *points,
				size_t cnt);

/*
 * Is a process left behind that attaches or detaches for us, since some process keeps the kernel waiting? What it has
 * to detach is there until then, and what it attaches goes at once. Meanwhile nothing can be attached.
 */
bool uprobes_are_late(void);

/* -errno of uprobes__attach, for people. */
const char *uprobes_failure(int err);

size_t uprobes__point_cnt(const struct uprobes *set);

/*
 * Detaches all of them and frees them; NULLs are allowed. The breakpoints are gone within some ms;
 * that the kernel also waits until nobody runs in them any more (20 to 90 ms) is done for all at
 * the same time. Perf events go one by one, 100 ms each, whatever we do. What takes too long goes on by
 * itself: uprobes_are_late.
 */
void uprobes__detach(struct uprobes **sets, size_t cnt);

/*
 * Removes the breakpoints that forked children of the sets' processes inherited, and which no link but
 * only their cost reaches; NULLs are allowed. To be called some time after a fork. Takes as long as a detach, whose
 * waiting all of them share, and nothing with perf events, which need none of it. 0, or -errno of one that
 * could not be cleaned.
 */
int uprobes__clean_children(struct uprobes *const *sets, size_t cnt);

#endif

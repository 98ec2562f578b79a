/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signal handlers, whose stack leads through the kernel's frame to the function that was
 * interrupted. Modes:
 *   - raise: main outer raise ... (trampoline) handler spin
 *   - altstack: the same, the handler on a stack of its own
 *   - first: main first (trampoline) handler spin; first is interrupted at its very first
 *     instruction, and the byte before belongs to a function with another unwind rule
 *   - pushed: main pushed (trampoline) handler spin; interrupted between two pushes
 *   - nested: a handler interrupted by another signal
 *   - timer: main hot [six] [(trampoline) handler]; a timer interrupts pushes and pops anywhere
 *   - sent: main send kill [(trampoline) answer]; a system call ends at the first instruction of
 *     the handler, and the byte before belongs to another function
 */
#include <sys/time.h>

#include "prog.h"

void first(void);
void pushed(void);
void six(void);
void answer(int sig);

/* decoy claims a big frame up to its last byte; its end is the beginning of first. */
__asm__(".text\n"
	".type decoy, @function\n"
	"decoy: .cfi_startproc\n"
	".cfi_def_cfa_offset 4096\n"
	"	nop; nop; nop; nop\n"
	".cfi_endproc\n"
	".size decoy, .-decoy\n"
	".globl first; .type first, @function\n"
	"first: .cfi_startproc\n"
	"	movl 0, %eax\n"
	"	ret\n"
	".cfi_endproc\n"
	".size first, .-first\n"
	".type other, @function\n"
	"other: .cfi_startproc\n"
	".cfi_def_cfa_offset 4096\n"
	"	nop; nop; nop; nop\n"
	".cfi_endproc\n"
	".size other, .-other\n"
	".globl answer; .type answer, @function\n"
	"answer: .cfi_startproc\n"
	"	ret\n"
	".cfi_endproc\n"
	".size answer, .-answer\n"
	".globl pushed; .type pushed, @function\n"
	"pushed: .cfi_startproc\n"
	"	push %rbx\n"
	".cfi_def_cfa_offset 16\n"
	"	push %rbp\n"
	".cfi_def_cfa_offset 24\n"
	".cfi_offset %rbp, -24\n"
	"	movl $1, %ebp\n"
	"	movl 0, %eax\n"
	"	pop %rbp\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_restore %rbp\n"
	"	pop %rbx\n"
	".cfi_def_cfa_offset 8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size pushed, .-pushed\n"
	".globl six; .type six, @function\n"
	"six: .cfi_startproc\n"
	"	push %rbx\n"
	".cfi_def_cfa_offset 16\n"
	"	push %rbp\n"
	".cfi_def_cfa_offset 24\n"
	".cfi_offset %rbp, -24\n"
	"	push %r12\n"
	".cfi_def_cfa_offset 32\n"
	"	push %r13\n"
	".cfi_def_cfa_offset 40\n"
	"	xor %ebp, %ebp\n"
	"	pop %r13\n"
	".cfi_def_cfa_offset 32\n"
	"	pop %r12\n"
	".cfi_def_cfa_offset 24\n"
	"	pop %rbp\n"
	".cfi_def_cfa_offset 16\n"
	".cfi_restore %rbp\n"
	"	pop %rbx\n"
	".cfi_def_cfa_offset 8\n"
	"	ret\n"
	".cfi_endproc\n"
	".size six, .-six\n");

static NOIPA void handler(int sig)
{
	(void)sig;
	prog_ready();
	spin();
	NO_TAIL_CALL();
}

static NOIPA void outer_handler(int sig)
{
	raise(sig == SIGUSR2 ? SIGUSR1 : SIGUSR2);
	NO_TAIL_CALL();
}

static NOIPA void tick(int sig)
{
	int n;

	(void)sig;
	for (n = 0; n < 1000000; n++)
		prog_sink++;
}

static NOIPA void outer(int sig)
{
	raise(sig);
	NO_TAIL_CALL();
}

static NOIPA void hot(void)
{
	while (!prog_stop)
		six();
}

static NOIPA void send(void)
{
	pid_t pid = getpid();

	while (!prog_stop)
		kill(pid, SIGUSR1);
}

static void handle(int sig, void (*function)(int), int flags)
{
	struct sigaction sa = { .sa_handler = function, .sa_flags = flags };

	if (sigaction(sig, &sa, NULL))
		_exit(1);
}

int main(int argc, char **argv)
{
	static char alt[256 * 1024];
	stack_t ss = { .ss_sp = alt, .ss_size = sizeof(alt) };
	struct itimerval period = { { 0, 10000 }, { 0, 10000 } };
	const char *mode = prog_start(argc, argv);

	handle(SIGUSR1, handler, 0);
	handle(SIGUSR2, outer_handler, 0);
	handle(SIGSEGV, handler, 0);
	if (!strcmp(mode, "altstack")) {
		sigaltstack(&ss, NULL);
		handle(SIGUSR1, handler, SA_ONSTACK);
	}
	if (!strcmp(mode, "timer")) {
		handle(SIGPROF, tick, SA_RESTART);
		setitimer(ITIMER_PROF, &period, NULL);
		prog_ready();
		hot();
	} else if (!strcmp(mode, "sent")) {
		handle(SIGUSR1, answer, 0);
		prog_ready();
		send();
	} else if (!strcmp(mode, "first")) {
		first();
	} else if (!strcmp(mode, "pushed")) {
		pushed();
	} else if (!strcmp(mode, "nested")) {
		outer(SIGUSR2);
	} else {
		outer(SIGUSR1);
	}
	return 0;
}

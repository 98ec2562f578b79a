/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How often samples may be taken: Documentation/admin-guide/sysctl/kernel.rst of Linux,
 * perf_event_max_sample_rate and perf_cpu_time_max_percent.
 */
#ifndef KERNEL_SAMPLE_RATE_H
#define KERNEL_SAMPLE_RATE_H

#include <stdint.h>

/* A second on each CPU, at most: the kernel refuses more, and lowers that by itself when the interrupts of
 * a counter take too long. UINT32_MAX: it is not known. */
uint32_t sample_rate__allowed(void);

/* What a sample by a clock takes of a CPU: its interrupt, with what a hypervisor takes for it, is measured, in
 * some ms; 5 us are added for the BPF program. ns; 0: it cannot be measured. */
uint64_t sample_rate__cost_ns(void);

/*
 * A clock of hz is to be started on each CPU. Returns hz, or less: with it, the interrupts of all clocks of
 * this process that were taken here, and not given back, take no more of a CPU than the second sysctl allows,
 * but for SAMPLE_RATE_LEAST, which each may have. The kernel does not see to that for clocks: where an interrupt takes 15 us, as on some virtual
 * machines, one of 100,000 Hz leaves the programs there, this one among them, nothing at all. What one takes
 * is measured unless they are few enough in any case. *ret_percent: of a CPU, what all would take with hz.
 * The caller gives back what was returned.
 */
#define SAMPLE_RATE_LEAST 99U
uint32_t sample_rate__take(uint32_t hz, double *ret_percent);
void sample_rate__give(uint32_t hz);

/* What that decides: of clocks that have taken_hz already, a sample of any takes ns, and all may take so
 * many percent of a CPU, 1..99. */
uint32_t sample_rate_left(uint32_t hz, uint64_t taken_hz, uint64_t ns, uint64_t percent);

#endif

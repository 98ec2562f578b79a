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

/* What a sample by a clock takes of a CPU, its interrupt and that of a hypervisor included: measured, in some
 * ms, but for the stack. ns; 0: it cannot be measured. */
uint64_t sample_rate__cost_ns(void);

/*
 * As sample_rate__allowed, of a clock whose interrupts take the share of each CPU that the second sysctl allows. The kernel
 * does not see to that for clocks: an interrupt takes 15 us on some virtual machines, and one of 100,000 Hz
 * leaves their programs, bpfprof among them, nothing at all. What one takes is measured, in some ms, unless hz
 * are few enough in any case. Returns hz, or less, and in *ret_percent what hz would take of each CPU.
 */
uint32_t sample_rate__affordable(uint32_t hz, double *ret_percent);

#endif

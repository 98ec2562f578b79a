// SPDX-License-Identifier: BSD-2-Clause
/* Measures the kernel's walk by frame pointers on a process: fpwalk PID SECONDS HZ -> "frames runs
 * ns". */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fpwalk.skel.h"

int main(int argc, char **argv)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.freq = 1,
					.exclude_idle = 1 };
	struct bpf_prog_info info = { 0 };
	unsigned int sz = sizeof(info);
	struct fpwalk *skel = fpwalk__open();
	int stats;

	if (argc < 4 || !skel)
		return 2;
	attr.sample_freq = strtoull(argv[3], NULL, 10);
	skel->rodata->target = atoi(argv[1]);
	if (fpwalk__load(skel))
		return 1;
	stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++) {
		int fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, 0);

		if (fd >= 0)
			bpf_program__attach_perf_event(skel->progs.fpwalk, fd);
	}
	sleep(atoi(argv[2]));
	if (bpf_obj_get_info_by_fd(bpf_program__fd(skel->progs.fpwalk), &info, &sz))
		return 1;
	printf("%llu %llu %llu\n", (unsigned long long)skel->bss->frames,
	       (unsigned long long)skel->bss->runs, (unsigned long long)info.run_time_ns);
	close(stats);
	fpwalk__destroy(skel);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What this kernel can do and what we may do there: probed by doing it, never by comparing
 * versions. */
#ifndef KERNEL_FEATURES_H
#define KERNEL_FEATURES_H

#include <stdbool.h>

enum feature {
	FEATURE_PID_NAMESPACE,
	FEATURE_BTF,
	FEATURE_CAP_BPF,
	FEATURE_CAP_PERFMON,
	FEATURE_CAP_SYS_PTRACE,
	FEATURE_CAP_DAC_READ_SEARCH,
	FEATURE_CAP_CHECKPOINT_RESTORE,
	FEATURE_CAP_SYSLOG,
	FEATURE_MEMLOCK,
	FEATURE_LOCKDOWN,
	FEATURE_PARANOID,
	FEATURE_BPF,
	FEATURE_RINGBUF,
	FEATURE_MMAPABLE,
	FEATURE_ITERATOR,
	FEATURE_LOOP,
	FEATURE_PERF_EVENT,
	FEATURE_CYCLES,
	FEATURE_SIDE_BAND,
	FEATURE_BUILD_ID,
	FEATURE_KALLSYMS,
	FEATURE_MAP_FILES,
	FEATURE_UPROBES,
	FEATURE_TRACEFS,
	FEATURE_LINKS,
	FEATURE_TASK_STORAGE,
	FEATURE_TRACEPOINTS,
	FEATURE_RESUME,
	FEATURE_FDS,
	FEATURE_FUTEX, /* waits for futexes can be watched by themselves */
	NR_FEATURES,
};

struct feature_result {
	const char *name;
	bool ok;
	bool needed;	  /* nothing can be recorded without it */
	const char *text; /* what it is for if ok; what is missing and what to do if not */
};

struct feature_result features_probe(enum feature f);

/* Can programs keep state in task storage, also those that user code calls? */
bool features_task_storage(void);

/* Does the kernel run programs on request (5.14, 79a7f8bdb159), such as the one that asks for names of its
 * functions? They may call all that this takes. */
bool features_ksyms(void);

/* Can programs ask for the control group of the current task? */
bool features_cgroup_id(void);

/* kernel.perf_event_paranoid; 2, Linux's own default, where it cannot be read. */
int features_paranoid_level(void);

/*
 * Does this level let samples be taken, with CAP_PERFMON and, where admin says so, CAP_SYS_ADMIN?
 * Levels above 2 are not Linux's own: there the patches of distributions take CAP_SYS_ADMIN alone,
 * and a kernel without them does not mind. What to say about it in *ret_text.
 */
bool features_paranoid(int level, bool admin, const char **ret_text);

/* What keeps us from recording anything: the text of the first feature that is needed and not
 * there; NULL if all are. */
const char *features_missing(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a command may do. A run: once all is attached it keeps these capabilities, as far as it had them:
 *   CAP_BPF, CAP_PERFMON      new code's tables; CPUs that come online; probes of new processes
 *   CAP_SYS_PTRACE            /proc/PID/{maps,mem,root,environ} of processes of others
 *   CAP_DAC_READ_SEARCH       programs that not everybody may read, and files of container runtimes
 *   CAP_CHECKPOINT_RESTORE    /proc/PID/map_files: programs that were deleted or replaced
 *   CAP_SYSLOG                addresses of kernel functions
 *   CAP_KILL                  ends readers, which are nobody's, and the command that it has started
 *   CAP_SETUID, CAP_SETGID    a reader that is started anew becomes nobody
 *   CAP_SYS_ADMIN             only where a probe or a sampler of a new process or CPU takes it
 * and, in force only while it writes its files,
 *   CAP_DAC_OVERRIDE, CAP_CHOWN, CAP_FOWNER    for the user who called sudo, in their folders
 * What serves does not write files; it has, in force only while it begins a recording,
 *   CAP_SYS_ADMIN, CAP_SYS_RESOURCE            programs without CAP_BPF; maps of older kernels
 *   CAP_IPC_LOCK                               rings of several recordings at a time
 */
#ifndef RIGHTS_H
#define RIGHTS_H

#include <stdbool.h>

/* Gives up all other rights for good. perf_probes: later ones will be perf events. 0 or -errno. */
int rights_reduce(bool perf_probes);

/* The same for a command that loads programs again and again. */
int rights_reduce_but_load(bool perf_probes);

/* For commands that only read and write files, which may be anybody's: keeps CAP_DAC_READ_SEARCH and what
 * a run has while it writes. 0 or -errno. */
int rights_for_files(void);

/* Before and after files are written. */
void rights_to_write(bool on);
/* Before and after programs are loaded, and rings are mapped, once rights are reduced. */
void rights_to_load(bool on);

#endif

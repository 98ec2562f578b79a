// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/* Defines every map, the configuration and the licence; nothing else. */
#include "common.bpf.h"

char LICENSE[] SEC("license") = BPFPROF_LICENSE;

const volatile struct bpfprof_config bp_config = {};
volatile struct bpfprof_control bp_control = {};
volatile struct bpfprof_state bp_state = {};

struct bp_chunks_map bp_chunks SEC(".maps");
struct bp_procs_map bp_procs SEC(".maps");
struct bp_ring_map bp_ring SEC(".maps");
struct bp_counts_map bp_counts0 SEC(".maps");
struct bp_counts_map bp_counts1 SEC(".maps");
struct bp_stats_map bp_stats SEC(".maps");
struct bp_scratch_map bp_scratch SEC(".maps");
struct bp_raw_map bp_raw SEC(".maps");
struct bp_filter_map bp_tgids SEC(".maps");
struct bp_filter_map bp_tids SEC(".maps");
struct bp_chosen_map bp_chosen SEC(".maps");
struct bp_cgroup_map bp_cgroup SEC(".maps");
struct bp_cpus_gone_map bp_cpus_gone SEC(".maps");
struct bp_ksyms_map bp_ksyms SEC(".maps");
struct bp_live_map bp_live SEC(".maps");
struct bp_live_map bp_added SEC(".maps");
struct bp_fds_map bp_fds SEC(".maps");
struct bp_heap_tasks_map bp_heap_tasks SEC(".maps");
struct bp_heap_hash_map bp_heap_hash SEC(".maps");
struct bp_waits_map bp_waits SEC(".maps");
struct bp_wait_hash_map bp_wait_hash SEC(".maps");
struct bp_wait_slots_map bp_wait_slots SEC(".maps");
struct bp_wait_owners_map bp_wait_owners SEC(".maps");
struct bp_futexes_map bp_futexes SEC(".maps");
struct bp_sched_cpus_map bp_sched_cpus SEC(".maps");
struct bp_kstacks_map bp_kstacks SEC(".maps");
struct bp_ustacks_map bp_ustacks SEC(".maps");
struct bp_thread_map bp_thread SEC(".maps");
struct bp_threads_due_map bp_threads_due SEC(".maps");

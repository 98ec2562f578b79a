// SPDX-License-Identifier: BSD-2-Clause
/* The BPF programs as libbpf has them, and copies of single ones. */
#include <linux/types.h>

#include "kernel/skeleton.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/util.h"
#include "bpfprof.h"
#include "bpfprof.skel.h"
#include "kernel/kernel_types.h"
#include "kernel/loads.h"
#include "kernel/reduced_types.h"
#include "noloop.skel.h"

/* ---- what libbpf would need all types of the kernel for ---- */

/* Sections of programs, and as what libbpf has them until they are loaded: for programs that are
 * attached by the kernel's types it would read these, though it is told all that it looks for. */
static const struct section {
	const char *name;
	enum bpf_prog_type type, at_first;
	enum bpf_attach_type attach;
} sections[] = {
	{ "tp_btf+", BPF_PROG_TYPE_TRACING, BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_TRACE_RAW_TP },
	{ "fentry+", BPF_PROG_TYPE_TRACING, BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_TRACE_FENTRY },
	{ "fexit+", BPF_PROG_TYPE_TRACING, BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_TRACE_FEXIT },
	{ "iter+", BPF_PROG_TYPE_TRACING, BPF_PROG_TYPE_RAW_TRACEPOINT, BPF_TRACE_ITER },
	{ "perf_event", BPF_PROG_TYPE_PERF_EVENT, BPF_PROG_TYPE_PERF_EVENT, 0 },
	{ "uprobe", BPF_PROG_TYPE_KPROBE, BPF_PROG_TYPE_KPROBE, 0 },
	{ "kprobe", BPF_PROG_TYPE_KPROBE, BPF_PROG_TYPE_KPROBE, 0 },
};

/* Of enum bpfprof_kfunc, from the first one on. */
static const char *const kfuncs[BPFPROF_KFUNC_END - BPFPROF_KFUNC_FIRST] = {
#define KFUNC(name) [BPFPROF_KFUNC_##name - BPFPROF_KFUNC_FIRST] = "bpf_" #name
	KFUNC(rdonly_cast),    KFUNC(task_from_pid),	 KFUNC(task_release),
	KFUNC(local_irq_save), KFUNC(local_irq_restore), KFUNC(iter_num_new),
	KFUNC(iter_num_next),  KFUNC(iter_num_destroy),
#undef KFUNC
};

/* Leads a call to where it is meant to: see enum bpfprof_kfunc. What this kernel has not is not called
 * there, which the verifier finds. */
static void lead_call(const struct kernel_types *kt, struct bpf_insn *insn)
{
	uint32_t number = (uint32_t)insn->imm - BPFPROF_KFUNC_FIRST, id;

	if (insn->code != (BPF_JMP | BPF_CALL) || insn->src_reg || number >= ARRAY_SIZE(kfuncs))
		return;
	id = kernel_types__find(kt, kfuncs[number], BTF_KIND_FUNC);
	if (!id)
		return;
	insn->src_reg = BPF_PSEUDO_KFUNC_CALL;
	insn->imm = (int)id;
}

static int lead_calls(const struct kernel_types *kt, struct bpf_program *prog)
{
	size_t cnt = bpf_program__insn_cnt(prog);
	struct bpf_insn *insns = calloc(cnt, sizeof(*insns));
	int err;

	if (!insns)
		return -ENOMEM;
	memcpy(insns, bpf_program__insns(prog), cnt * sizeof(*insns));
	for (size_t i = 0; i < cnt; i++)
		lead_call(kt, &insns[i]);
	err = bpf_program__set_insns(prog, insns, cnt);
	free(insns);
	return err;
}

static struct loads *loads; /* what skeleton__load loads at the moment */

static int prepare(struct bpf_program *prog, struct bpf_prog_load_opts *opts, long cookie)
{
	const struct section *section = &sections[cookie];
	const struct kernel_types *kt = kernel_types__get();
	const char *name = strchr(bpf_program__section_name(prog), '/');
	int err;

	if (!kt)
		return -errno;
	err = lead_calls(kt, prog);
	if (err)
		return err;
	if (section->type != section->at_first) {
		opts->attach_btf_id =
			name ? kernel_types__target(kt, name + 1, section->attach) : 0;
		if (!opts->attach_btf_id)
			return -ESRCH;
		err = bpf_program__set_type(prog, section->type);
	}
	return err ? err : loads__begin(loads, prog, section->type, opts);
}

static int register_sections(void)
{
	static bool done;
	int ret = 0;

	for (size_t i = 0; !done && ret >= 0 && i < ARRAY_SIZE(sections); i++) {
		LIBBPF_OPTS(libbpf_prog_handler_opts, opts, .cookie = (long)i,
			    .prog_prepare_load_fn = prepare);

		ret = libbpf_register_prog_handler(sections[i].name, sections[i].at_first,
						   sections[i].attach, &opts);
	}
	done = ret >= 0;
	return MIN(ret, 0);
}

/* ---- opening and loading ---- */

#define TYPES_MAX_SZ (4U << 20) /* some 200 KB */

static int types_fd = -1; /* what the programs are fitted to, until they are loaded */

/* A file in memory has to keep to ulimit -f, too. */
static bool may_write(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur >= TYPES_MAX_SZ;
}

/* Has libbpf read them from there; where there can be no such file, it reads all by itself. */
static int open_with(struct bpfprof_bpf *skel)
{
	const struct kernel_types *kt = kernel_types__get();
	LIBBPF_OPTS(bpf_object_open_opts, opts);
	char path[64];
	int err;

	if (!kt)
		return -errno;
	if (types_fd >= 0)
		close(types_fd);
	types_fd = may_write() ? memfd_create("types", MFD_CLOEXEC) : -1;
	if (types_fd < 0)
		return bpf_object__open_skeleton(skel->skeleton, NULL);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", types_fd);
	opts.btf_custom_path = path;
	err = bpf_object__open_skeleton(skel->skeleton, &opts);
	return err ? err : reduced_types__write(kt, bpf_object__btf(skel->obj), types_fd);
}

static void number_types(struct bpfprof_bpf *skel)
{
	struct bpfprof_config *cfg = (struct bpfprof_config *)&skel->rodata->bp_config;
	const struct kernel_types *kt = kernel_types__get();

	cfg->type_regs = kernel_types__find(kt, "pt_regs", BTF_KIND_STRUCT);
	cfg->type_task = kernel_types__find(kt, "task_struct", BTF_KIND_STRUCT);
}

/* See walk in stack.bpf.c. */
struct bpfprof_bpf *skeleton__open(void)
{
	struct bpfprof_bpf *skel = calloc(1, sizeof(*skel));
	int err;

	if (!skel)
		return NULL;
	err = register_sections();
	if (!err)
		err = bpfprof_bpf__create_skeleton(skel);
	if (!err && libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_loop, NULL) != 1)
		skel->skeleton->data = (void *)noloop_bpf__elf_bytes(&skel->skeleton->data_sz);
	if (!err)
		err = open_with(skel);
	if (!err) {
		number_types(skel);
		return skel;
	}
	bpfprof_bpf__destroy(skel);
	errno = -err;
	return NULL;
}

int skeleton__load(struct bpfprof_bpf *skel)
{
	int err, refused;

	loads = loads__new();
	if (!loads)
		return -ENOMEM;
	err = bpfprof_bpf__load(skel);
	refused = loads__finish(loads, !err);
	loads = NULL;
	if (types_fd >= 0)
		close(types_fd);
	types_fd = -1;
	kernel_types__drop();
	return err ? err : refused;
}

/* Takes the maps of another one, but for the configuration. */
static int share_maps(struct bpfprof_bpf *copy, const struct bpfprof_bpf *skel)
{
	struct bpf_map *map;
	int err = 0;

	bpf_object__for_each_map(map, copy->obj)
	{
		int fd = bpf_object__find_map_fd_by_name(skel->obj, bpf_map__name(map));

		if (map == copy->maps.rodata)
			continue;
		/* what the other one had no use for, its programs have none for either */
		err = fd < 0 ? bpf_map__set_autocreate(map, false) : bpf_map__reuse_fd(map, fd);
		if (err)
			break;
	}
	return err;
}

static int load_copy(struct bpfprof_bpf *copy, const struct bpfprof_bpf *skel,
		     const struct bpf_program *prog, uint64_t cookie)
{
	struct bpfprof_config *cfg = (struct bpfprof_config *)&copy->rodata->bp_config;
	struct bpf_program *p, *mine = NULL;
	uint32_t zero = 0;
	int err;

	/* by its descriptor: a forked child has no part in the map's memory (kernel/dontfork.h) */
	if (bpf_map_lookup_elem(bpf_map__fd(skel->maps.rodata), &zero, copy->rodata))
		return -errno;
	cfg->one_cookie = 1;
	cfg->cookie = cookie;
	bpf_object__for_each_program(p, copy->obj)
	{
		bool same = !strcmp(bpf_program__name(p), bpf_program__name(prog));

		bpf_program__set_autoload(p, same);
		if (same)
			mine = p;
	}
	bpf_program__set_expected_attach_type(mine, bpf_program__expected_attach_type(prog));
	err = share_maps(copy, skel);
	if (!err)
		err = skeleton__load(copy);
	if (err)
		return err;
	err = fcntl(bpf_program__fd(mine), F_DUPFD_CLOEXEC, 0);
	return err < 0 ? -errno : err;
}

int skeleton__load_copy(const struct bpfprof_bpf *skel, const struct bpf_program *prog,
			uint64_t cookie)
{
	struct bpfprof_bpf *copy = skeleton__open();
	int ret;

	if (!copy)
		return -errno;
	ret = load_copy(copy, skel, prog, cookie);
	bpfprof_bpf__destroy(copy);
	return ret;
}

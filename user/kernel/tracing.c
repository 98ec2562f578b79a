// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "kernel/tracing.h"

#include <bpf/bpf.h>
#include <unistd.h>

#include "base/util.h"
#include "kernel/kernel_types.h"

static int load(const char *name, enum bpf_attach_type type)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = type);
	const struct kernel_types *kt = kernel_types__get();

	opts.attach_btf_id = kt ? kernel_types__target(kt, name, type) : 0;
	if (!opts.attach_btf_id)
		return -1;
	return bpf_prog_load(BPF_PROG_TYPE_TRACING, NULL, "Dual BSD/GPL", insns, ARRAY_SIZE(insns),
			     &opts);
}

bool tracing_has_function(const char *name)
{
	int prog = load(name, BPF_TRACE_FENTRY), link = -1;

	if (prog >= 0)
		link = bpf_raw_tracepoint_open(NULL, prog);
	if (link >= 0)
		close(link);
	if (prog >= 0)
		close(prog);
	return link >= 0;
}

bool tracing_has_tracepoint(const char *name)
{
	int prog = load(name, BPF_TRACE_RAW_TP);

	if (prog >= 0)
		close(prog);
	return prog >= 0;
}

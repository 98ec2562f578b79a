// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "kernel/tracing.h"

#include <bpf/bpf.h>
#include <unistd.h>

#include "base/util.h"

static int load(int btf_id, enum bpf_attach_type type)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = type);

	if (btf_id <= 0)
		return -1;
	opts.attach_btf_id = (__u32)btf_id;
	return bpf_prog_load(BPF_PROG_TYPE_TRACING, NULL, "Dual BSD/GPL", insns, ARRAY_SIZE(insns),
			     &opts);
}

bool tracing_has_function(int btf_id)
{
	int prog = load(btf_id, BPF_TRACE_FENTRY), link = -1;

	if (prog >= 0)
		link = bpf_raw_tracepoint_open(NULL, prog);
	if (link >= 0)
		close(link);
	if (prog >= 0)
		close(prog);
	return link >= 0;
}

bool tracing_has_tracepoint(int btf_id)
{
	int prog = load(btf_id, BPF_TRACE_RAW_TP);

	if (prog >= 0)
		close(prog);
	return prog >= 0;
}

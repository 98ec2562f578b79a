// SPDX-License-Identifier: BSD-2-Clause
/* Asks the kernel for the names of single addresses, by running ksyms_name on a batch of them. */
#include <linux/types.h>

#include "kernel/ksyms.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bpfprof.h"
#include "bpfprof.skel.h"
#include "kernel/dontfork.h"
#include "kernel/session.h"

struct ksyms {
	int prog_fd;
	struct bpfprof_ksym *batch; /* BPFPROF_KSYM_BATCH, shared with the program */
};

#define BATCH_SZ (BPFPROF_KSYM_BATCH * sizeof(struct bpfprof_ksym))

struct ksyms *ksyms__new(struct session *s)
{
	struct bpfprof_bpf *skel = session__skel(s);
	struct ksyms *k;
	void *mem;
	int err;

	if (!bpf_program__autoload(skel->progs.ksyms_name)) {
		errno = ENOTSUP;
		return NULL;
	}
	k = malloc(sizeof(*k));
	if (!k)
		return NULL;
	mem = mmap(NULL, BATCH_SZ, PROT_READ | PROT_WRITE, MAP_SHARED,
		   bpf_map__fd(skel->maps.bp_ksyms), 0);
	if (mem == MAP_FAILED) {
		free(k);
		return NULL;
	}
	k->prog_fd = bpf_program__fd(skel->progs.ksyms_name);
	k->batch = mem;
	err = dontfork();
	if (!err)
		return k;
	ksyms__free(k);
	errno = -err;
	return NULL;
}

void ksyms__free(struct ksyms *k)
{
	if (!k)
		return;
	munmap(k->batch, BATCH_SZ);
	free(k);
}

/* "symbol+0xoffset/0xsize [module]", or the number of an address that has none. */
static const char *symbol_of(char text[static sizeof(((struct bpfprof_ksym *)0)->text)],
			     uint64_t *ret_offset)
{
	char *plus;

	text[sizeof(((struct bpfprof_ksym *)0)->text) - 1] = '\0';
	plus = strchr(text, '+');
	if (!plus || plus == text)
		return NULL;
	*plus = '\0';
	*ret_offset = strtoull(plus + 1, NULL, 16);
	return text;
}

int ksyms__name(struct ksyms *k, const uint64_t *addrs, size_t cnt, const char **ret_names,
		uint64_t *ret_offsets)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);
	int err;

	if (cnt > BPFPROF_KSYM_BATCH)
		return -E2BIG;
	for (size_t i = 0; i < BPFPROF_KSYM_BATCH; i++) {
		k->batch[i].addr = i < cnt ? addrs[i] : 0;
		k->batch[i].text[0] = '\0';
	}
	err = bpf_prog_test_run_opts(k->prog_fd, &opts);
	if (err)
		return err;
	for (size_t i = 0; i < cnt; i++)
		ret_names[i] = symbol_of(k->batch[i].text, &ret_offsets[i]);
	return 0;
}

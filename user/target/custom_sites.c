/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/custom_sites.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "target/elf_file.h"
#include "target/probe_point.h"
#include "target/usdt.h"

#define PROVIDER_ADD "bpfprof_add"
#define PROVIDER_REMOVE "bpfprof_remove"

bool custom_name_ok(const char *name)
{
	size_t len = strspn(name,
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			    "0123456789._-/:");

	return len && len < CUSTOM_NAME_SZ && !name[len];
}

struct search {
	const struct elf_file *elf;
	struct probe_decoder *decoder; /* NULL: not needed yet */
	struct custom_sites *ret;
	size_t cap;
};

/* What the note says, as far as it can be probed. 0; -EINVAL: it cannot; -ENOMEM. */
static int make_site(struct search *s, const struct usdt_note *n, struct custom_site *ret)
{
	struct probe_point nop;

	*ret = (struct custom_site){ .removes = !strcmp(n->provider, PROVIDER_REMOVE) };
	if (!custom_name_ok(n->name) || usdt_parse_args(n->args, 1, &ret->value) ||
	    !elf_file__offset(s->elf, n->vaddr, true, &ret->offset) ||
	    (n->semaphore && !elf_file__offset(s->elf, n->semaphore, false, &ret->ref_ctr)))
		return -EINVAL;
	memcpy(ret->name, n->name, strlen(n->name));
	s->decoder = s->decoder ?: probe_decoder__new(s->elf);
	if (!s->decoder)
		return -errno;
	return probe_decoder__nop(s->decoder, n->vaddr, &nop) ? -EINVAL : 0;
}

static int visit(void *ctx, const struct usdt_note *n)
{
	struct custom_site site;
	struct search *s = ctx;
	int err;

	/* of an inline function that the linker has left out */
	if ((strcmp(n->provider, PROVIDER_ADD) && strcmp(n->provider, PROVIDER_REMOVE)) ||
	    !n->vaddr)
		return 0;
	err = s->ret->cnt < CUSTOM_SITES_MAX ? make_site(s, n, &site) : -EINVAL;
	if (err == -EINVAL) {
		s->ret->refused++;
		return 0;
	}
	if (err || util_reserve(&s->ret->sites, &s->cap, s->ret->cnt + 1, sizeof(site)))
		return -ENOMEM;
	s->ret->sites[s->ret->cnt++] = site;
	return 0;
}

static int compare(const void *a, const void *b)
{
	const struct custom_site *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->removes != y->removes)
		return x->removes < y->removes ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* What a file says twice is done once. */
static void drop_repeated(struct custom_sites *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->cnt; i++)
		if (!kept || compare(&s->sites[kept - 1], &s->sites[i]))
			s->sites[kept++] = s->sites[i];
	s->cnt = kept;
}

int custom_sites_find(const struct elf_file *elf, struct custom_sites *ret)
{
	struct search s = { .elf = elf, .ret = ret };
	int err;

	*ret = (struct custom_sites){ 0 };
	err = usdt_visit(elf, visit, &s);
	probe_decoder__free(s.decoder);
	if (err) {
		custom_sites__done(ret);
		return err;
	}
	if (ret->cnt)
		qsort(ret->sites, ret->cnt, sizeof(*ret->sites), compare);
	drop_repeated(ret);
	return 0;
}

void custom_sites__done(struct custom_sites *s)
{
	free(s->sites);
	*s = (struct custom_sites){ 0 };
}

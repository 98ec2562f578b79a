// SPDX-License-Identifier: BSD-2-Clause
#include "view/text.h"

#include <errno.h>
#include <regex.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "profile/frames.h"
#include "profile/profile.h"
#include "profile/text.h"
#include "view/tree.h"
#include "view/view.h"

/* By name: does it match? For the caller to free. NULL: no memory. */
static bool *match_names(const struct frames *fr, const char *focus)
{
	uint32_t cnt = strtab__cnt(fr->names);
	bool *ret = calloc(cnt, sizeof(*ret));
	regex_t re;

	if (!ret || regcomp(&re, focus, REG_EXTENDED | REG_NOSUB)) {
		free(ret);
		return NULL;
	}
	for (uint32_t i = 0; i < cnt; i++)
		ret[i] = !regexec(&re, strtab__get(fr->names, i), 0, NULL, 0);
	regfree(&re);
	return ret;
}

static bool has_match(const struct frames *fr, const struct profile_sample *s, const bool *matches)
{
	for (uint32_t i = 0; i < s->loc_cnt; i++) {
		uint32_t loc = fr->profile->loc_ids[s->loc + i];

		for (uint32_t k = 0; k < frames__cnt(fr, loc); k++)
			if (matches[frames__name(fr, loc, k)])
				return true;
	}
	return false;
}

bool *view_leave_out(const struct frames *fr, const char *focus)
{
	const struct profile *p = fr->profile;
	bool *matches = match_names(fr, focus), *ret = calloc(p->sample_cnt + 1, sizeof(*ret));

	for (size_t i = 0; matches && ret && i < p->sample_cnt; i++)
		ret[i] = !has_match(fr, &p->samples[i], matches);
	if (!matches) {
		free(ret);
		ret = NULL;
	}
	free(matches);
	return ret;
}

static int write_tree(const struct frames *fr, size_t value, const bool *left_out,
		      const struct view_options *o, FILE *f)
{
	struct tree_options t = {
		.value = value,
		.left_out = left_out,
		.min_share = o->min_share,
		.limit = o->limit,
	};
	int err = text_write_head(fr->profile, value, f);

	return err ? err : tree_write(fr, &t, f);
}

int view_text_write(const struct view *v, FILE *f)
{
	const struct view_options *o = v->opts;
	const struct profile *p = v->profile;
	size_t value = v->value;
	struct text_table t = { .value = value, .top = o->limit };
	bool *left_out = NULL;
	struct frames fr;
	int err = frames__make(p, false, &fr);

	if (err)
		return err;
	if (o->focus) {
		left_out = view_leave_out(&fr, o->focus);
		err = left_out ? 0 : -ENOMEM;
	}
	t.left_out = left_out;
	if (!err)
		err = o->tree ? write_tree(&fr, value, left_out, o, f) : text_write_table(p, &t, f);
	free(left_out);
	frames__done(&fr);
	return err;
}

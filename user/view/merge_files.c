// SPDX-License-Identifier: BSD-2-Clause
#include "view/merge_files.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/output.h"
#include "base/util.h"
#include "profile/pprof.h"
#include "profile/pprof_read.h"
#include "profile/profile.h"
#include "profile/units.h"
#include "view/sum_files.h"
#include "view/write_file.h"

static int write_pprof(void *profile, FILE *f)
{
	return pprof_write_extra(profile, NULL, 0, PPROF_READ_MAX, f);
}

/* "out.pb.gz: 3 profiles, 1234 stacks, samples 594, cpu 6.00s" */
static void summarize(const struct profile *p, size_t files, const char *path)
{
	char text[512], value[UNITS_SZ];
	size_t len = 0;

	for (size_t v = 0; v < p->value_cnt && len < sizeof(text); v++) {
		const struct profile_value_type *t = &p->value_types[v];
		int64_t total = profile__total(p, v);

		units_text(value, total, t->unit, units_pick(t->unit, (double)total));
		len += (size_t)snprintf(text + len, sizeof(text) - len, ", %s %s", t->type, value);
	}
	log_info("%s: %zu profile%s, %zu stacks%s", strcmp(path, "-") ? path : "standard output",
		 files, files == 1 ? "" : "s", p->sample_cnt, text);
}

int merge_files(char *const *files, const char *output)
{
	struct profile *p;
	size_t cnt = 0;
	int err = write_file_check(output, true);

	if (!err)
		err = sum_files(files, &p);
	if (err)
		return err;
	while (files[cnt])
		cnt++;
	err = write_file(output, write_pprof, p);
	if (!err)
		summarize(p, cnt, output);
	else if (err == -EMSGSIZE)
		log_error("cannot write '%s': the sum has more than %u MB (add up fewer files)",
			  output, PPROF_READ_MAX >> 20);
	profile__free(p);
	return err;
}

// SPDX-License-Identifier: BSD-2-Clause
/* Prints what this kernel and these rights allow. */
#include <linux/types.h>

#include "check.h"

#include <errno.h>

#include "base/util.h"
#include "kernel/features.h"

int check_print(FILE *f)
{
	int ret = 0;

	for (int i = 0; i < NR_FEATURES; i++) {
		struct feature_result r = features_probe(i);

		fprintf(f, "%-22s %-4s %s\n", r.name, r.ok ? "yes" : "no", r.text);
		if (!r.ok && r.needed)
			ret = -EPERM;
	}
	return ret;
}

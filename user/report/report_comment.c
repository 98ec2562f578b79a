// SPDX-License-Identifier: BSD-2-Clause
/* The comments of a profile: how it was made, what was lost and what is not whole. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "kinds.h"
#include "profile/facts.h"
#include "profile/profile.h"
#include "report/report_parts.h"

int report_comment(const struct report *r, enum bpfprof_kind kind, struct profile *p)
{
	const struct collect_account *a = &r->accounts[kind];
	struct run_facts facts;
	struct utsname uts;
	char line[512], how[128] = "";
	int err;

	uname(&uts);
	if (report_kinds[kind].how)
		report_kinds[kind].how(r, kind, how, sizeof(how));
	snprintf(line, sizeof(line), "bpfprof %s on Linux %s, %s of %s%s, %d CPUs", BPFPROF_VERSION,
		 uts.release, kinds[kind].name, r->target, how, r->cpus);
	err = profile__add_comment(p, line);
	snprintf(line, sizeof(line),
		 "samples: %" PRIu64 " seen, %" PRIu64 " recorded, %" PRIu64 " lost", a->seen,
		 a->recorded, report_lost(a));
	err = err ?: profile__add_comment(p, line);
	err = err ?: report_say_lost(a, p);
	snprintf(line, sizeof(line), "stacks: %" PRIu64 " whole (%.2f %%), %" PRIu64 " cut short",
		 a->stacks[BPFPROF_STACK_complete], report_whole_percent(a),
		 a->recorded - a->stacks[BPFPROF_STACK_complete]);
	err = err ?: profile__add_comment(p, line);
	err = err ?: report_say_cut(a, p);
	err = err ?: report_say_notes(r, kind, p);
	if (err || !r->facts)
		return err;
	facts = *r->facts;
	facts.seen = a->seen;
	facts.lost = report_lost(a);
	return facts_write(p, &facts);
}

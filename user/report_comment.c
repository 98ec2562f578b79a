// SPDX-License-Identifier: BSD-2-Clause
/* The comments of a profile: how it was made, what was lost and what is not whole. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "kinds.h"
#include "options.h"
#include "profile/profile.h"
#include "report_parts.h"

static const char *event_name(const struct options *o)
{
	return o->event == OPTIONS_CYCLES ? "cycles" : "cpu-clock";
}

/* How this kind was sampled: ", " and a few words, or nothing if there is nothing to be said. */
static void how_text(const struct report *r, enum bpfprof_kind kind, char *line, size_t line_sz)
{
	uint64_t min_wait = options_min_wait_ns(r->opts, kind);
	char text[32];

	*line = '\0';
	if (kind == BPFPROF_HEAP)
		snprintf(line, line_sz, ", rate %" PRIu64 " bytes", r->opts->heap_rate);
	else if (kinds[kind].timed)
		snprintf(line, line_sz, ", event %s, %u Hz", event_name(r->opts), r->frequency);
	else if (kinds[kind].waits && min_wait)
		snprintf(line, line_sz, ", waits of %s and more",
			 report_time_text(min_wait, text, sizeof(text)));
	else if (kinds[kind].waits)
		snprintf(line, line_sz, ", waits of any length");
}

int report_comment(const struct report *r, enum bpfprof_kind kind, struct profile *p)
{
	const struct collect_account *a = &r->accounts[kind];
	struct utsname uts;
	char line[512], how[128];
	int err;

	uname(&uts);
	how_text(r, kind, how, sizeof(how));
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
	return err ?: report_say_notes(r, kind, p);
}

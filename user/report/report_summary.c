// SPDX-License-Identifier: BSD-2-Clause
/* What people see at the end of a run. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "report/formats.h"
#include "kinds.h"
#include "options.h"
#include "profile/profile.h"
#include "profile/text.h"
#include "report/report_parts.h"

#define STRICT_CUT 100 /* one stack of so many may be cut short with --strict */
#define OWN_TEXT                                                      \
	"  %s, each at its innermost function that is no library's, " \
	"runtime's or allocator's, if it has one:\n"

int report_strict(const struct report *r, char *text, size_t text_sz)
{
	FILE *f = fmemopen(text, text_sz - 1, "w");
	const struct collect_account *any = report_any_account(r);
	const char *sep = "";

	if (!f)
		return -errno;
	/* what is too long for it is cut, without the end of a string */
	memset(text, 0, text_sz);
	if (r->opts->kinds[BPFPROF_FDS] && !r->kinds[BPFPROF_FDS]) {
		fprintf(f, "fds: what is open could not be read");
		sep = "; ";
	}
	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		const struct collect_account *a = &r->accounts[i];
		uint64_t cut = a->recorded - a->stacks[BPFPROF_STACK_complete];

		if (!r->kinds[i])
			continue;
		for (int j = 0; j < BPFPROF_NR_LOST; j++) {
			if (!a->lost[j])
				continue;
			fprintf(f, "%s%s: %" PRIu64 " of %" PRIu64 " samples lost (%s)", sep,
				kinds[i].name, a->lost[j], a->seen, report_lost_text[j]);
			sep = "; ";
		}
		if (cut > a->recorded / STRICT_CUT) {
			fprintf(f, "%s%s: %" PRIu64 " of %" PRIu64 " stacks cut short", sep,
				kinds[i].name, cut, a->recorded);
			sep = "; ";
		}
	}
	if (r->kinds[BPFPROF_HEAP] && r->stats.heap.untracked) {
		fprintf(f, "%sheap: the frees of %" PRIu64 " samples were not followed", sep,
			r->stats.heap.untracked);
		sep = "; ";
	}
	if (r->kinds[BPFPROF_HEAP] && r->stats.heap.unseen) {
		fprintf(f, "%sheap: %" PRIu64 " libraries were not seen", sep,
			r->stats.heap.unseen);
		sep = "; ";
	}
	if (r->kinds[BPFPROF_HEAP] && r->stats.heap.late) {
		fprintf(f, "%sheap: %zu processes were probed late", sep, r->stats.heap.late);
		sep = "; ";
	}
	if (r->kinds[BPFPROF_HEAP] && r->stats.heap.unreached) {
		fprintf(f, "%sheap: %zu processes could not be probed", sep,
			r->stats.heap.unreached);
		sep = "; ";
	}
	if (r->kinds[BPFPROF_CUSTOM] && r->accounts[BPFPROF_CUSTOM].untracked) {
		fprintf(f, "%scustom: %" PRIu64 " values were not followed", sep,
			r->accounts[BPFPROF_CUSTOM].untracked);
		sep = "; ";
	}
	if (r->kinds[BPFPROF_FDS] && r->accounts[BPFPROF_FDS].untracked) {
		fprintf(f, "%sfds: %" PRIu64 " descriptors were not followed", sep,
			r->accounts[BPFPROF_FDS].untracked);
		sep = "; ";
	}
	if (any->events_lost) {
		fprintf(f, "%sprocess events lost %" PRIu64 " times", sep, any->events_lost);
		sep = "; ";
	}
	if (any->not_followed) {
		fprintf(f, "%s%" PRIu64 " child processes were not followed", sep,
			any->not_followed);
		sep = "; ";
	}
	fclose(f);
	return *sep ? -ENODATA : 0;
}

void report_quantity(const struct profile *p, size_t value, char *buf, size_t buf_sz)
{
	const char *unit = p->value_types[value].unit;
	int64_t total = profile__total(p, value);
	int scale = 0;
	double v = total;

	if (!strcmp(unit, "count")) {
		snprintf(buf, buf_sz, "%" PRId64, total);
		return;
	}
	if (!strcmp(unit, "nanoseconds")) {
		/* CPU time comes in steps of 10 ms, waits may be much shorter together */
		if (total > 0 && v < 0.1 * NSEC_PER_SEC)
			report_time_text(total, buf, buf_sz);
		else
			snprintf(buf, buf_sz, "%.2f s", v / NSEC_PER_SEC);
		return;
	}
	for (; v >= 1024 && scale < 4; scale++)
		v /= 1024;
	snprintf(buf, buf_sz, scale ? "%.2f %s" : "%.0f %s", v,
		 (const char *[]){ "B", "KiB", "MiB", "GiB", "TiB" }[scale]);
}

/* What it means that there is no sample of a kind. */
static const char *why_nothing(const struct report *r, enum bpfprof_kind kind)
{
	const struct heap_report *h = &r->stats.heap;

	if (kind == BPFPROF_HEAP && h->late)
		return "no allocation was seen while processes were probed";
	if (kind == BPFPROF_HEAP && h->unreached)
		return "no allocation was seen: the heap of a process could not be probed";
	if (kind == BPFPROF_HEAP && h->unprobed)
		return "no allocation was seen: the heap of a process was not recorded";
	if (kind == BPFPROF_HEAP && h->listens)
		return "the program samples its allocations by itself, and has told of none";
	return kinds[kind].nothing;
}

void report_summary(const struct report *r, enum bpfprof_kind kind, const struct profile *p,
		    const char *path)
{
	const struct collect_account *a = &r->accounts[kind];
	char shown[1024], quantity[64];

	if (log_get_level() < LOG_INFO)
		return;
	util_printable(shown, sizeof(shown), strcmp(path, "-") ? path : "standard output");
	fprintf(stderr, "%s: %" PRIu64 " samples, ", shown, a->recorded);
	for (size_t v = 0; v < p->value_cnt; v++) {
		if (!kinds[kind].quantities[v])
			continue;
		report_quantity(p, v, quantity, sizeof(quantity));
		fprintf(stderr, "%s %s, ", quantity, kinds[kind].quantities[v]);
	}
	fprintf(stderr, "%.2f %% of stacks whole, %" PRIu64 " lost\n", report_whole_percent(a),
		report_lost(a));
	(void)report_say_lost(a, NULL);
	(void)report_say_cut(a, NULL);
	(void)report_say_notes(r, kind, NULL);
	if (!a->recorded) {
		fprintf(stderr, "  %s\n", why_nothing(r, kind));
		return;
	}
	if (r->is_window)
		return;
	fprintf(stderr, "\n");
	if (kinds[kind].at_own)
		fprintf(stderr, OWN_TEXT, kinds[kind].at_own);
	(void)text_write_top(p, stderr, 10, kinds[kind].at_own);
	if (r->opts->format->reader && strcmp(path, "-"))
		fprintf(stderr, "\nLook further with: %s %s\n", r->opts->format->reader, shown);
}

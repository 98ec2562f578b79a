/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps what probes cost the profiled programs within a share of their CPU time, by deciding when
 * they are attached, and says what the parts that were seen stand for. Pure: the figures come from
 * the caller.
 *
 * The share is a credit that CPU time fills and hits use up, with room for short bursts. Once it is
 * used up, probes are attached in slices, which cost a part of the share only, with what it takes
 * to attach and detach them: of a fixed length, at distances drawn at random around the mean that
 * the cost of many slices allows, so that no rhythm of the program can meet only the one or the
 * other. The distances do not depend on what the slices beside them have seen, since a busy one
 * would then stand for more than a quiet one.
 *
 * What a slice has seen stands for itself and for half of what the programs did before it and after
 * it without probes. That is measured in the programs' own CPU time, not on the clock: a probed
 * program is slower, and does less in the same time. How much of the time is its own depends on
 * what hits cost, which is learnt from the slices. What the first ones have stood for before it was
 * known is set right at the end of their window, all in all.
 */
#ifndef BUDGET_H
#define BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define BUDGET_SLICE_NS 20000000ULL
#define BUDGET_MIN_GAP_NS 60000000ULL /* detaching takes some 40 ms */
#define BUDGET_MAX_GAP_NS 3000000000ULL
#define BUDGET_CREDIT_NS 10000000.0 /* at first, and at most: a burst of some 12,000 hits */
/* What slices cost, which leave out what is in use and need no more: this part of the share, or of
 * the CPU time, if that is more and fits into the share. */
#define BUDGET_SLICED 0.15
#define BUDGET_SLICED_CPU 0.0075
#define BUDGET_SLICED_MAX 0.75	    /* of the share */
#define BUDGET_MIN_OWN_NS 1000000.0 /* CPU time of a part that can stand for others */
#define BUDGET_REVISED 64 /* slices, the first ones, that are looked at again at the end */

enum budget_state {
	BUDGET_FULL, /* attached since the start */
	BUDGET_ON,   /* in a slice */
	BUDGET_OFF,  /* between two */
};

/* What there has been in some time: the programs' CPU time; what of it hits have cost, by what they
 * cost in another program; what recording has; and what hits have cost programs that are not
 * profiled, which is to fit into the same share, all in ns. And the calls that were seen. */
struct budget_time {
	double cpu, hits, record, others, calls;
};

/* At one moment: the clock; the CPU time that attaching and detaching have taken so far, which is
 * not the programs'; what there has been so far; and how many times as much as in the other program
 * hits cost in these. In ns, monotonic. */
struct budget_figures {
	uint64_t now_ns, edge_ns;
	struct budget_time so_far;
	double factor;
};

/* What was observed, the programs' own CPU time without probes that it stood for as well, and the
 * weight that it had. */
struct budget_observation {
	struct budget_time observed;
	double unobserved_ns, weight;
};

/* A moment of the run: what had been given a weight by then. All zero: its beginning. */
struct budget_mark {
	uint32_t observation_cnt;
	double calls; /* by these weights */
};

struct budget {
	double share; /* of CPU time, 0..1; 1: no limit */
	enum budget_state state;
	uint64_t next_ns; /* when budget__check has something to decide; UINT64_MAX: never */
	uint64_t on_ns;	  /* how long probes were attached, up to the last change */
	struct budget_figures last; /* at the last look */
	uint64_t since_ns;	    /* begin of the state */
	double credit;		    /* ns of cost that may still be caused */
	uint32_t slices;	    /* so far */
	double edges;		    /* cost of the current gap, of attaching and detaching; ns */
	double cost, rate; /* of a slice, ns; own CPU time per time: means over many slices */
	double mean_gap;   /* ns, by all slices but the last one */
	struct budget_time pending; /* observed, and has no weight yet */
	/* of the gaps before it, or their halves, that it will stand for as well */
	double pending_unobserved_ns;
	double gap;		     /* of the current gap */
	struct budget_time attached; /* of all slices */
	struct budget_observation first[BUDGET_REVISED];
	struct budget_mark all; /* of what has been given a weight */
	uint64_t random;
};

/* The share of CPU time that slices may cost. */
double budget__sliced(const struct budget *b);
/* What hits and recording took of the CPU time while probes were attached, 0..1, if hits cost so
 * many times as much as in the other program. */
double budget__hit_share(const struct budget *b, double factor);

/* Probes are attached now. seed: of the random distances, not 0. */
void budget__start(struct budget *b, double share, uint64_t seed, const struct budget_figures *f);

/* Probes are attached again, after a pause: the same, with what had been observed before it. */
void budget__resume(struct budget *b, const struct budget_figures *f);

/* What to do now: stay, or go to another state. OFF: detach. ON: attach, then budget__attached. */
enum budget_state budget__check(struct budget *b, const struct budget_figures *f);

/*
 * The slice begins now: attaching took its time. Returns what the programs' time that was seen
 * before stands for, as a multiple of it; 0: not yet, it was too little.
 */
double budget__attached(struct budget *b, const struct budget_figures *f);

/* The run ends; returns the same for what was seen at last. */
double budget__stop(struct budget *b, const struct budget_figures *f);

/*
 * A part of the run ends, the next one begins: the same for what was seen in it. What nothing was
 * seen of yet is left to the next part.
 */
double budget__part(struct budget *b, const struct budget_figures *f);

/* Then: how many times as much as by the weights that were given between two moments there was, by what is
 * known of the factor now. */
double budget__revision(const struct budget *b, const struct budget_mark *from,
			const struct budget_mark *to, double factor);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Who called whom, from the root of the stacks down. */
#ifndef VIEW_TREE_H
#define VIEW_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct frames;

struct tree_options {
	size_t value;	      /* index of value_types */
	const bool *left_out; /* which samples count to the total alone; NULL: none */
	double min_share;     /* of the total, 0 to 1: branches below are left out */
	size_t limit;	      /* lines at most, 0: all */
	size_t max_nodes;     /* 0: TREE_MAX_NODES */
};

/* Functions in their places, each of which takes some 100 bytes: a recursion of 100 million calls takes 100 KB in a
 * made file. */
#define TREE_MAX_NODES (1U << 24)
/* Bytes of names that are printed: each function in its place has it again. */
#define TREE_MAX_NAMES (256U << 20)

/* Branches within branches that are drawn: what is deeper is left out. */
#define TREE_MAX_FORKS 64

/*
 * A line for each function in its place, larger branches first, then by name:
 *
 *     cum   cum%   flat  flat%  name
 *
 * A function's only branch stands below it, without going in; several are marked by lines. The end
 * says how many were left out. Names are those of fr, whose profile it is. 0;
 * -E2BIG: there is too much of it; or another -errno.
 */
int tree_write(const struct frames *fr, const struct tree_options *o, FILE *f);

#endif

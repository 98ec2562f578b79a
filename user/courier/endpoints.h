/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is below /debug/pprof/, one row each. A new one is a row here, and, if it is no profile of a
 * kind, what makes it in serve/.
 */
#ifndef COURIER_ENDPOINTS_H
#define COURIER_ENDPOINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What makes it. */
enum endpoint_what {
	ENDPOINT_INDEX,	  /* how much there is of each */
	ENDPOINT_CMDLINE, /* the command line of the process */
	ENDPOINT_CPU, /* a profile of the seconds asked for, 30 by default, without text forms */
	ENDPOINT_PROFILE, /* of a kind: in a text form, or over the seconds asked for */
	ENDPOINT_SYMBOL,  /* functions at addresses */
};

struct endpoint {
	const char *name; /* as it stands in the path; "": the index; "NAME/": see named */
	enum endpoint_what what;
	const char *kind;	  /* of what is recorded (kinds.h), or NULL */
	const char *default_type; /* the value that readers show first; NULL: as the kind has it */
	bool named;   /* its path goes on: with the name of what the process defines itself */
	bool at_once; /* of one moment; over seconds it is the change between two */
	bool full;    /* debug=2 is another form than debug=1 */
	const char *description; /* a sentence for the index; NULL: it is not shown there */
};

#define ENDPOINTS_MAX 16

extern const struct endpoint endpoints[];
extern const size_t endpoint_cnt; /* ENDPOINTS_MAX at most */

/* The endpoint of this path below /debug/pprof/, or NULL. */
const struct endpoint *endpoint_find(const char *path);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process says of the service that it belongs to, by the attributes that OpenTelemetry's
 * semantic conventions have for it (docs/registry/attributes/service.md and deployment.md). Whoever
 * starts a process chooses the texts: they are cut and cleaned, and nothing else of what they stood
 * in is kept.
 */
#ifndef TARGET_SAID_H
#define TARGET_SAID_H

#include <stdbool.h>
#include <stddef.h>

#define SAID_TEXT_SZ 257 /* with the NUL */

enum said_fact {
	SAID_SERVICE,	  /* service.name */
	SAID_NAMESPACE,	  /* service.namespace */
	SAID_VERSION,	  /* service.version */
	SAID_ENVIRONMENT, /* deployment.environment.name; before 1.27 deployment.environment */
	SAID_FACTS,
};

/* Valid UTF-8 without control characters; "": not said. Behind the NUL all bytes are 0. */
struct said {
	char text[SAID_FACTS][SAID_TEXT_SZ];
};

/* Which fact an attribute of sz bytes is; SAID_FACTS: none of them. */
enum said_fact said_fact_of(const char *attribute, size_t sz);

/* The label that samples get for it. */
const char *said_label(enum said_fact fact);

/*
 * Takes the first text that there is for a fact: without the blanks around it, with U+FFFD for what
 * is no UTF-8 or could act on a terminal, and cut at a character. "unknown_service" and what begins
 * with "unknown_service:" is what an SDK says that was told no name: it is none.
 */
void said__put(struct said *s, enum said_fact fact, const char *text, size_t sz);

/* Is it as it would be after said__put? For what another process has made. */
bool said__is_clean(const struct said *s);

#endif

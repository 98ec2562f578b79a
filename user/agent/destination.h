/* SPDX-License-Identifier: BSD-2-Clause */
/* A store that the agent delivers to, as its configuration names it. */
#ifndef AGENT_DESTINATION_H
#define AGENT_DESTINATION_H

#include <stddef.h>
#include <stdint.h>

#define DESTINATION_MAX_URL 1000

enum destination_file {
	DESTINATION_TOKEN,
	DESTINATION_PASSWORD,
	DESTINATION_CA,
	DESTINATION_CERT,
	DESTINATION_KEY,
	DESTINATION_NR_FILES,
};

/* Texts are its own; NULL: not given. */
struct destination {
	char *name, *url, *kind, *user, *tenant;
	char *files[DESTINATION_NR_FILES]; /* paths */
	uint64_t max_age_ns;		   /* older profiles are not sent; 0: the kind's */
};

/* What a file is called in the configuration: "token-file". */
const char *destination_file_key(enum destination_file file);

/*
 * Is it one, with files that can be read? Fills in what is not given and follows from the rest. 0;
 * -EINVAL with one sentence in text, without newline; -ENOMEM.
 */
int destination__complete(struct destination *d, char *text, size_t text_sz);
void destination__done(struct destination *d);

/* Opens one of its files. A descriptor; -ENOENT also if there is none, -EINVAL: it is no file. */
int destination__open_file(const struct destination *d, enum destination_file file);

#endif

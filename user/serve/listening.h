/* SPDX-License-Identifier: BSD-2-Clause */
/* Where is served, and for whom. */
#ifndef SERVE_LISTENING_H
#define SERVE_LISTENING_H

#include <stdbool.h>

struct options;

struct listening {
	int fd; /* -1: it does not */
	bool loopback;
	char address[64]; /* for people, with the port that it has */
	char *token;	  /* that who asks has to have; NULL: none */
};

/* 0; -errno, said: what was given cannot be used. *ret is the caller's to close, either way. */
int listening_open(const struct options *opts, struct listening *ret);
void listening_close(struct listening *l);

#endif

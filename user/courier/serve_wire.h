/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the collector and the server of /debug/pprof/ say to each other: messages of a socket of the
 * kind SOCK_SEQPACKET, of which each is a struct serve_wire, cut behind its text.
 *
 *	collector                                server
 *	LISTEN, with a socket             ──>
 *	                                  <──    ASK 7: heap, of process 1234
 *	                                  <──    ASK 8: profile, of 30 s
 *	ANSWER 7: 200, with a memfd       ──>
 *	                                  <──    GONE 8: who asked is away
 *
 * The server has read all that came over the network; what it asks for are numbers. One that has died is
 * replaced, and what it had asked for is forgotten.
 */
#ifndef COURIER_SERVE_WIRE_H
#define COURIER_SERVE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "courier/endpoints.h"

#define SERVE_MAX_TEXT 65536
#define SERVE_MAX_ADDRESSES (SERVE_MAX_TEXT / 8)
#define SERVE_MAX_ASKED 64	/* answers that are waited for at a time */
#define SERVE_SECONDS 5		/* where they are not said, of what is not recorded all the time */
#define SERVE_MAX_SECONDS 3600U /* of a profile */
#define SERVE_MAX_HZ 10000U
#define SERVE_MAX_TOKEN 1024U
#define SERVE_NAME_SZ 64 /* of a custom profile's name, with its NUL */

enum serve_what {
	/* to the server */
	/* a descriptor: the socket that listens; pid: the process served, 0: any; value: enum
	 * serve_flags; text: the token, none: it takes none */
	SERVE_LISTEN,
	/* number; value: the HTTP status; a descriptor: a memfd with all of the body, or text: the
	 * body. Of the index counts, and text: an array of struct serve_custom */
	SERVE_ANSWER,
	/* to the collector */
	/* number, endpoint, and what is asked for; text: of ENDPOINT_SYMBOL the addresses, 64-bit
	 * numbers; of one that is named, the name */
	SERVE_ASK,
	SERVE_GONE, /* number: it is not to be answered any more */
};

enum serve_flags {
	SERVE_ANY_HOST = 1 << 0, /* whatever the Host header says */
};

struct serve_wire {
	uint32_t what;
	uint32_t endpoint; /* index */
	uint32_t pid;
	uint32_t hz;	  /* 0: as it is by default */
	uint32_t seconds; /* 0: not said */
	uint32_t debug;	  /* 0, 1, 2 */
	uint64_t number, value;
	uint64_t counts[ENDPOINTS_MAX];
	char text[SERVE_MAX_TEXT] __attribute__((aligned(8)));
};
#define SERVE_HEAD_SZ offsetof(struct serve_wire, text)

/* A custom profile that the process defines. */
struct serve_custom {
	uint64_t held; /* values, as far as they are recorded */
	char name[SERVE_NAME_SZ];
};
#define SERVE_MAX_CUSTOM (SERVE_MAX_TEXT / sizeof(struct serve_custom))

#endif

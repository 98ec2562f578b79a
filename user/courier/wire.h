/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What collector and courier say to each other: messages of a socket of the kind SOCK_SEQPACKET, of
 * which each is a struct wire, cut behind its text.
 *
 *	collector                                courier
 *	LISTEN, with a socket             ──>
 *	STATUS bpfprof_windows_total 7 …  ──>
 *	                                  <──    HEARD
 *	DESTINATION 0 {kind=parca url=…}  ──>
 *	NEWS: so many bytes have come in  ──>
 *	                                  <──    NEXT: a record for destination 0, slot 3
 *	RECORD 17, with its file and keys ──>
 *	                                  <──    ENDED 17: delivered
 *	                                  <──    NEXT …
 *	NOTHING for slot 3                ──>
 *
 * The courier holds no state that is not here as well: one that has died is replaced, and what it
 * had under way is handed out again.
 */
#ifndef COURIER_WIRE_H
#define COURIER_WIRE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WIRE_PROGRAM "bpfprof-courier"
#define WIRE_MAX_DESTINATIONS 16
#define WIRE_MAX_TEXT \
	98304 /* more than the metrics of all destinations and targets with the longest names */

enum wire_what {
	/* to the courier */
	/* text: labels (spool/labels.h): kind, url, user, tenant, node; none: it is no more */
	WIRE_DESTINATION,
	WIRE_NEWS,   /* value: bytes */
	WIRE_RECORD, /* number; descriptors: the record, then the files, in the order of their bits */
	WIRE_NOTHING, /* value: it may be asked again at once */
	WIRE_LISTEN,  /* a descriptor: the socket where the agent is asked how it is */
	WIRE_STATUS,  /* text: metrics; all is attached. Where nobody may ask there is no text */
	/* to the collector */
	WIRE_NEXT,  /* number: of a record that was handed out, 0: of another one */
	WIRE_ENDED, /* an attempt at a RECORD: number, value: enum wire_outcome, reason, bytes */
	WIRE_SAID,  /* text, for people; value: it is an error */
	WIRE_HEARD, /* of a STATUS: it is alive */
};

/* What became of a record. */
enum wire_outcome {
	WIRE_DELIVERED,
	WIRE_REFUSED,	      /* by the store */
	WIRE_FAILED,	      /* of the store's trouble with it */
	WIRE_UNANSWERED,      /* twice, or more: it may be there, as often */
	WIRE_UNREADABLE,      /* the record is no profile, or cannot be opened */
	WIRE_MAYBE_DUPLICATE, /* delivered, after an attempt without an answer: it may be there twice */
	WIRE_PARTIAL, /* delivered, and the store has said that it rejects some of it, or all */
	WIRE_NR_OUTCOMES,
	WIRE_KEPT = WIRE_NR_OUTCOMES, /* none yet: there will be another attempt */
};

/* Why an attempt has failed (courier/retry.c): for counters, and for people. */
#define WIRE_REASONS(X)                           \
	X(not_begun, "not begun")                 \
	X(no_connection, "no connection")         \
	X(no_answer, "no answer")                 \
	X(redirected, "redirected")               \
	X(not_authorized, "not authorized")       \
	X(forbidden, "forbidden")                 \
	X(not_found, "not found")                 \
	X(proxy, "not authorized by the proxy")   \
	X(timed_out, "timed out")                 \
	X(too_large, "too large")                 \
	X(limit, "limit")                         \
	X(too_early, "too early")                 \
	X(too_many_requests, "too many requests") \
	X(closed, "closed")                       \
	X(refused, "refused")                     \
	X(server_error, "server error")           \
	X(not_implemented, "not implemented")     \
	X(unavailable, "unavailable")             \
	X(rejected, "rejected")                   \
	X(no_http, "no HTTP")
#define WIRE_REASON_ID(name, text) WIRE_REASON_##name,
enum wire_reason {
	WIRE_REASONS(WIRE_REASON_ID) WIRE_NR_REASONS,
	WIRE_NO_REASON = WIRE_NR_REASONS, /* it has not failed */
};

/* Files of a destination, which may be replaced at any time: bits. */
enum wire_file {
	WIRE_TOKEN = 1 << 0,	/* Authorization: Bearer */
	WIRE_PASSWORD = 1 << 1, /* of the user, basic */
	WIRE_CA = 1 << 2,	/* whom to trust; without it whom this system trusts */
	WIRE_CERT = 1 << 3,	/* who we are, with its key */
	WIRE_KEY = 1 << 4,
};
#define WIRE_NR_FILES 5

struct wire {
	uint32_t what, destination, slot;
	/* of the destination: each WIRE_DESTINATION has another one, and what is meant for the one
	 * before it means nothing any more */
	uint32_t generation;
	uint32_t files;	  /* bits of those that are there */
	uint32_t missing; /* bits of those that should be, and cannot be read now */
	uint32_t reason;  /* enum wire_reason */
	uint64_t number, value;
	uint64_t bytes; /* of a request's body, that were sent */
	char text[WIRE_MAX_TEXT];
};
#define WIRE_HEAD_SZ offsetof(struct wire, text)

/* One without text. What else is in the buffer stays there: to clear 96 KiB would be most of what a message
 * costs. */
static inline void wire_begin(struct wire *w, enum wire_what what)
{
	memset(w, 0, WIRE_HEAD_SZ);
	w->what = what;
}

#endif

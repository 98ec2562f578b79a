/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What collector and fetcher say to each other: messages of a socket of the kind SOCK_SEQPACKET, of
 * which each is a struct fetch_wire, cut behind its text.
 *
 *	collector                                 fetcher
 *	SERVERS http://a http://b, 10 s    ──>
 *	FILE 1, an id, with an empty file  ──>
 *	FILE 2 …, FETCH_SLOTS at a time    ──>
 *	                                   <──    SERVER http://a: Connection refused
 *	                                   <──    ENDED 1: fetched
 *	FILE 3 …                           ──>
 *
 * The fetcher writes what a server has for the id into the file. What that is, it does not look at.
 */
#ifndef COURIER_FETCH_WIRE_H
#define COURIER_FETCH_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define FETCH_SLOTS 4	   /* files under way */
#define FETCH_MAX_URL 1024 /* bytes of a server's URL */
#define FETCH_MAX_SERVERS 16
#define FETCH_MAX_TEXT (FETCH_MAX_SERVERS * (FETCH_MAX_URL + 1))
#define FETCH_MAX_FILE (512ULL << 20) /* bytes of a file; helper/sandbox.c limits it to them, too */

enum fetch_what {
	/* to the fetcher */
	FETCH_SERVERS, /* text: their URLs, http or https, separated by blanks; value: seconds in which
			  a server has to give something */
	FETCH_FILE,    /* number; text: a build id in lower-case hex; a descriptor: where it goes */
	/* to the collector */
	FETCH_ENDED,  /* number; value: enum fetch_outcome; text: for people, why it failed */
	FETCH_SERVER, /* text, for people: which server is not asked any more, and why */
};

enum fetch_outcome {
	FETCH_FETCHED,
	FETCH_NOT_FOUND, /* no server has it */
	FETCH_FAILED,
	FETCH_NR_OUTCOMES,
};

struct fetch_wire {
	uint32_t what, value;
	uint64_t number;
	char text[FETCH_MAX_TEXT];
};
#define FETCH_HEAD_SZ offsetof(struct fetch_wire, text)

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How far a destination has got with the records of a spool: all below `next` are settled, which is
 * delivered or given up, and some of the CURSOR_SPAN behind it, since several are under way at once.
 * It is kept in a file of the spool, .NAME.cursor, a line of a fixed length that one write replaces:
 *
 *	NUMBER BITS\n          16 digits; 64 hexadecimal digits, whose lowest bit is the record NUMBER
 *
 * So it outlives this process, however that ends; it is not synced to the disk.
 */
#ifndef SPOOL_CURSOR_H
#define SPOOL_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#define CURSOR_SPAN 256
#define CURSOR_NAME_SZ 48

struct spool;

struct cursor {
	int fd;
	uint64_t next;
	uint64_t settled[CURSOR_SPAN / 64]; /* of next and those behind it */
};

/* A name of 1 to CURSOR_NAME_SZ - 1 letters, digits, '.', '_', '-', no '.' first. */
bool cursor_is_name(const char *name);

/*
 * Goes on where it was; a new one, or one whose file is damaged (*ret_damaged), begins with the next
 * record that there will be. 0 or -errno.
 */
int cursor__open(struct cursor *c, const struct spool *s, const char *name, bool *ret_damaged);
void cursor__close(struct cursor *c);

/* May a record be taken up: is it not settled, and not too far ahead? */
bool cursor__may_take(const struct cursor *c, uint64_t number);

/* Settles one that may be taken. 0; -errno: it is, but that could not be written. */
int cursor__settle(struct cursor *c, uint64_t number);

/* Settles all below: they are not there any more. Returns how many of them were not settled. */
uint64_t cursor__skip(struct cursor *c, uint64_t number);

#endif

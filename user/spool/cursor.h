/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How far a destination has got with the records of a spool: all below `next` are settled, which is
 * delivered or given up, but for those that are open: taken up, and not settled yet. However long
 * one of these stays open, others go on. It is kept in a file of the spool, .NAME.cursor, of a fixed
 * length that one write replaces:
 *
 *	NEXT OPEN OPEN …\n     16 digits each; blanks in the place of those that are not needed
 *
 * So it outlives this process, however that ends; it is not synced to the disk. It is written when
 * a record is settled: what was taken up since then is not known to be, and is taken up again.
 */
#ifndef SPOOL_CURSOR_H
#define SPOOL_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CURSOR_MAX_OPEN 64
#define CURSOR_NAME_SZ 48

struct spool;

struct cursor {
	int fd;
	uint64_t next;
	uint64_t open[CURSOR_MAX_OPEN]; /* in no order */
	size_t open_cnt;
};

/* A name of 1 to CURSOR_NAME_SZ - 1 letters, digits, '.', '_', '-', no '.' first. */
bool cursor_is_name(const char *name);

/*
 * Goes on where it was; a new one, or one whose file is damaged (*ret_damaged), begins with the next
 * record that there will be. The oldest records make room for the file. 0 or -errno.
 */
int cursor__open(struct cursor *c, struct spool *s, const char *name, bool *ret_damaged);
void cursor__close(struct cursor *c);

/* Takes up a record, not below next. Those before it that were not taken up are none any more. There
 * has to be room: open_cnt. */
void cursor__take(struct cursor *c, uint64_t number);

bool cursor__is_open(const struct cursor *c, uint64_t number);

/* Settles one that is open. 0; -errno: it is, but that could not be written. */
int cursor__settle(struct cursor *c, uint64_t number);

#endif

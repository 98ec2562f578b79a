/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads protobuf's encoding field by field, where it stands: a large message need not be in memory a
 * second time. Whatever the bytes are, nothing is read outside of them.
 */
#ifndef PROFILE_PROTO_READ_H
#define PROFILE_PROTO_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is left of a message, of a string, or of packed numbers. */
struct proto {
	const uint8_t *at, *end;
};

enum proto_kind {
	PROTO_NUMBER = 0,
	PROTO_FIXED64 = 1,
	PROTO_BYTES = 2, /* a message, a string, packed numbers */
	PROTO_FIXED32 = 5,
};

struct proto_field {
	uint32_t number; /* above 0 */
	enum proto_kind kind;
	uint64_t value;	    /* of PROTO_NUMBER */
	struct proto bytes; /* of PROTO_BYTES */
};

static inline size_t proto_left(const struct proto *p)
{
	return (size_t)(p->end - p->at);
}

/* Takes a field off the front. 1; 0: there is none left; -EBADMSG. */
int proto_next(struct proto *p, struct proto_field *ret);

/* Takes a number of several bytes off the front of what is not empty. 1; -EBADMSG. */
int proto_long_number(struct proto *p, uint64_t *ret);

/* Takes a number off the front of packed ones. As proto_next(). */
static inline int proto_number(struct proto *p, uint64_t *ret)
{
	const uint8_t *at = p->at;

	if (at == p->end)
		return 0;
	if (!(*at & 0x80)) {
		*ret = *at;
		p->at++;
		return 1;
	}
	/* most indices have two bytes or three */
	if (p->end - at < 3 || at[1] & at[2] & 0x80)
		return proto_long_number(p, ret);
	*ret = (at[0] & 0x7fU) | (at[1] & 0x7fU) << 7;
	p->at += 2;
	if (at[1] & 0x80) {
		*ret |= (uint32_t)at[2] << 14;
		p->at++;
	}
	return 1;
}

/*
 * The numbers of a message: values[n] becomes that of field n, below cnt, and stays as it is if the field is
 * not there. The fields whose bits are set in `others` are left out. 0, -EBADMSG: one is no number.
 */
int proto_numbers(struct proto p, uint64_t *values, uint32_t cnt, uint32_t others);

#endif

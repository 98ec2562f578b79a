/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/proto_read.h"

#include <errno.h>

#define VARINT_MAX 10 /* bytes: seven bits each */
#define KIND_BITS 3
#define FIELD_MAX ((1U << 29) - 1) /* encoding.md of protobuf */

int proto_long_number(struct proto *p, uint64_t *ret)
{
	const uint8_t *at = p->at;
	uint64_t value = 0;

	for (unsigned int i = 0; at < p->end && i < VARINT_MAX; i++) {
		value |= (uint64_t)(*at & 0x7f) << 7 * i;
		if (*at++ & 0x80)
			continue;
		p->at = at;
		*ret = value;
		return 1;
	}
	return -EBADMSG;
}

static bool skip(struct proto *p, uint64_t sz)
{
	if (sz > proto_left(p))
		return false;
	p->at += sz;
	return true;
}

int proto_next(struct proto *p, struct proto_field *ret)
{
	uint64_t tag, sz;
	int more = proto_number(p, &tag);

	if (more <= 0)
		return more;
	if (!(tag >> KIND_BITS) || tag >> KIND_BITS > FIELD_MAX)
		return -EBADMSG;
	*ret = (struct proto_field){ .number = (uint32_t)(tag >> KIND_BITS),
				     .kind = tag & ((1 << KIND_BITS) - 1) };
	switch (ret->kind) {
	case PROTO_NUMBER:
		return proto_number(p, &ret->value) > 0 ? 1 : -EBADMSG;
	case PROTO_FIXED64:
		return skip(p, 8) ? 1 : -EBADMSG;
	case PROTO_FIXED32:
		return skip(p, 4) ? 1 : -EBADMSG;
	case PROTO_BYTES:
		if (proto_number(p, &sz) <= 0)
			return -EBADMSG;
		ret->bytes.at = p->at;
		if (!skip(p, sz))
			return -EBADMSG;
		ret->bytes.end = p->at;
		return 1;
	default: /* groups are none of proto3 */
		return -EBADMSG;
	}
}

int proto_numbers(struct proto p, uint64_t *values, uint32_t cnt, uint32_t others)
{
	struct proto_field f;
	int more;

	while ((more = proto_next(&p, &f)) > 0) {
		if (f.number >= cnt || others >> f.number & 1)
			continue;
		if (f.kind != PROTO_NUMBER)
			return -EBADMSG;
		values[f.number] = f.value;
	}
	return more;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes JSON (RFC 8259) without white space. Every value has a key if it stands in an object, and
 * NULL for it in an array or outermost: what is begun, in which order, and that it is ended is the
 * caller's. Errors of the stream are, too: ferror(3).
 *
 *	struct json j = { .f = f };
 *
 *	json__begin_object(&j, NULL);
 *	json__u64(&j, "seen", 7);
 *	json__begin_array(&j, "names");
 *	json__string(&j, NULL, "a");
 *	json__end_array(&j);
 *	json__end_object(&j);		-> {"seen":7,"names":["a"]}
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *f;
	/* It stands in a script element of HTML, which "</script" or "<!--" in a string would end or
	 * prolong: '<', '>', '&', U+2028 and U+2029 are written as \u escapes. */
	bool in_html;
	bool comma; /* private: the next value is not the first one of its object or array */
};

void json__begin_object(struct json *j, const char *key);
void json__end_object(struct json *j);
void json__begin_array(struct json *j, const char *key);
void json__end_array(struct json *j);

/* What is not UTF-8 in s, or in a key, becomes U+FFFD, one for each byte. */
void json__string(struct json *j, const char *key, const char *s);
/* Of more than 53 bits, too, which readers that only know doubles round. */
void json__u64(struct json *j, const char *key, uint64_t v);
/* Written so that it is read back as the same number; null if it is none, or infinite. */
void json__double(struct json *j, const char *key, double v);
void json__bool(struct json *j, const char *key, bool v);

#endif

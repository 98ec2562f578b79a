/* SPDX-License-Identifier: BSD-2-Clause */
/* What people read in a stack: the names of its frames, inlined ones included, harmless for
 * terminals and line-based formats. */
#ifndef PROFILE_FRAMES_H
#define PROFILE_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

struct profile;
struct strtab;

struct frames {
	const struct profile *profile;
	struct strtab *names; /* equal names are equal frames */
	uint32_t *function;   /* name of function i; 0: it has none */
	/* Of location i where a frame of it has no name: "object+0xoffset", the place in the object's file,
	 * else "0xaddress". */
	uint32_t *location;
	bool no_semicolon;
	uint32_t *
		known; /* private: of the profile's string i its id in names, UINT32_MAX: not yet */
};

/* A ';' becomes ':' if no_semicolon. The profile must not change as long as *ret lives. 0 or
 * -ENOMEM. */
int frames__make(const struct profile *p, bool no_semicolon, struct frames *ret);
void frames__done(struct frames *fr);

/* The name made harmless, as an id of fr->names; UINT32_MAX with errno ENOMEM. */
uint32_t frames__clean(struct frames *fr, const char *name);
/* The same of a string of the profile, which is read once, however often it is asked for. */
uint32_t frames__string(struct frames *fr, uint32_t string);

/* Frames of a location: at least one. */
uint32_t frames__cnt(const struct frames *fr, uint32_t location);
/* Name of the i-th, innermost first. */
uint32_t frames__name(const struct frames *fr, uint32_t location, uint32_t i);

#endif

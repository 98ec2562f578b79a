/* SPDX-License-Identifier: BSD-2-Clause */
/* What Go's runtime leaves out of stacks, and how its own profiles write names. To be called once
 * names are set, and before profile__finish(). */
#ifndef PROFILE_GO_FRAMES_H
#define PROFILE_GO_FRAMES_H

struct profile;

/*
 * Takes frames of wrappers out of all stacks, unless they called one of the functions that begin a
 * panic, as runtime.Callers does (runtime/traceback.go, elideWrapperCalling). A stack of nothing
 * else stays as it is.
 */
void go_frames__elide(struct profile *p);

/*
 * As runtime/pprof writes them (proto.go): without runtime.goexit, which every goroutine's stack
 * begins with, and with the type arguments of generic functions, for which tracebacks have three
 * dots. A stack of nothing else stays as it is.
 */
void go_frames__like_pprof(struct profile *p);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* C++ (Itanium ABI) and Rust (legacy and v0) names for people, by libiberty. */
#ifndef TARGET_DEMANGLE_H
#define TARGET_DEMANGLE_H

#define DEMANGLE_MAX 4096 /* longer mangled names are left as they are */

/* A demangled copy for the caller to free, or NULL if name is not mangled, too long or nested too
 * deep. Rust hashes are dropped. */
char *demangle(const char *name);

#endif

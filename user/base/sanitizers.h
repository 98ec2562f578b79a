/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The run-time libraries of sanitizers that bring an allocator along, and refuse to run, or crash,
 * behind a library that stands before it: AddressSanitizer says so itself, LeakSanitizer and
 * ThreadSanitizer are called before they are ready. UndefinedBehaviorSanitizer has none.
 */
#ifndef BASE_SANITIZERS_H
#define BASE_SANITIZERS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Is one of them meant? name: a path or a base name; of it so many bytes. */
static inline bool sanitizers_has(const char *name, size_t len)
{
	static const char *const libraries[] = {
		"libasan.so",	    "libtsan.so",	  "liblsan.so",	      "libhwasan.so",
		"libclang_rt.asan", "libclang_rt.hwasan", "libclang_rt.tsan", "libclang_rt.lsan",
	};
	size_t base = len;

	while (base && name[base - 1] != '/')
		base--;
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		size_t n = strlen(libraries[i]);

		if (len - base >= n && !memcmp(name + base, libraries[i], n))
			return true;
	}
	return false;
}

/* Is one in a list as LD_PRELOAD is, separated by blanks and colons? */
static inline bool sanitizers_in(const char *list)
{
	while (*list) {
		size_t len = strcspn(list, " :");

		if (sanitizers_has(list, len))
			return true;
		list += len;
		list += strspn(list, " :");
	}
	return false;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the program's messages for people. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/util.h"

#define LOG_MAX 6144 /* bytes of a message: a path of PATH_MAX and what is said about it */

static enum log_level log_level = LOG_INFO;

void log_set_level(enum log_level level)
{
	log_level = level;
}

enum log_level log_get_level(void)
{
	return log_level;
}

__attribute__((format(printf, 2, 0))) static void log_print(enum log_level level, const char *fmt,
							    va_list ap)
{
	char text[LOG_MAX], clean[LOG_MAX];
	int saved = errno;

	if (level > log_level)
		return;
	if (vsnprintf(text, sizeof(text), fmt, ap) >= 0)
		fprintf(stderr, "bpfprof: %s\n", util_printable(clean, sizeof(clean), text));
	errno = saved;
}

void log_error(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_print(LOG_ERROR, fmt, ap);
	va_end(ap);
}

void log_info(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_print(LOG_INFO, fmt, ap);
	va_end(ap);
}

void log_debug(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_print(LOG_DEBUG, fmt, ap);
	va_end(ap);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the program's messages, for people or as logfmt. */
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"

#define LOG_MAX 6144 /* bytes of a message: a path of PATH_MAX and what is said about it */
#define LOGFMT_MAX (2 * LOG_MAX + 128) /* every byte with a backslash, and what stands before */

static const struct {
	const char *name;
	int priority; /* syslog(3) */
} levels[] = {
	[LOG_ERROR] = { "error", 3 },
	[LOG_INFO] = { "info", 6 },
	[LOG_DEBUG] = { "debug", 7 },
};

static enum log_level log_level = LOG_INFO;
static bool logfmt, to_journal;

void log_set_level(enum log_level level)
{
	log_level = level;
}

enum log_level log_get_level(void)
{
	return log_level;
}

/* Is standard error what journald reads? systemd.exec(5), $JOURNAL_STREAM. */
static bool is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	struct stat st;
	char own[64];

	if (!stream || fstat(STDERR_FILENO, &st))
		return false;
	snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	return !strcmp(stream, own);
}

void log_use_logfmt(void)
{
	logfmt = true;
	to_journal = is_journal();
}

/* The time, or what tells journald, which knows the time, how urgent it is: sd-daemon(3). */
static size_t print_begin(char *line, size_t sz, enum log_level level)
{
	uint64_t now = util_realtime_ns();
	time_t seconds = (time_t)(now / NSEC_PER_SEC);
	struct tm utc;

	if (to_journal)
		return (size_t)snprintf(line, sz, "<%d>", levels[level].priority);
	if (!gmtime_r(&seconds, &utc))
		return 0;
	return (size_t)snprintf(line, sz, "time=%04d-%02d-%02dT%02d:%02d:%02d.%03" PRIu64 "Z ",
				utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour,
				utc.tm_min, utc.tm_sec, now % NSEC_PER_SEC / 1000000);
}

static void print_logfmt(enum log_level level, const char *clean)
{
	char line[LOGFMT_MAX];
	size_t n = print_begin(line, sizeof(line), level);

	n += (size_t)snprintf(line + n, sizeof(line) - n, "level=%s msg=\"", levels[level].name);
	for (; *clean; clean++) {
		if (*clean == '"' || *clean == '\\')
			line[n++] = '\\';
		line[n++] = *clean;
	}
	memcpy(line + n, "\"\n", 3);
	/* in one write: others may have the same file */
	fputs(line, stderr);
}

__attribute__((format(printf, 2, 0))) static void log_print(enum log_level level, const char *fmt,
							    va_list ap)
{
	char text[LOG_MAX], clean[LOG_MAX];
	int saved = errno;

	if (level > log_level)
		return;
	if (vsnprintf(text, sizeof(text), fmt, ap) >= 0) {
		util_printable(clean, sizeof(clean), text);
		if (logfmt)
			print_logfmt(level, clean);
		else
			fprintf(stderr, "bpfprof: %s\n", clean);
	}
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

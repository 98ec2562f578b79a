/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages for people, on standard error, each one line that begins with "bpfprof: ". The level is
 * the only state. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

enum log_level {
	LOG_ERROR, /* the run, or what the user named, failed */
	LOG_INFO,  /* what the user should know; not with -q */
	LOG_DEBUG, /* -v */
};

void log_set_level(enum log_level level);
enum log_level log_get_level(void);

/* Prints "bpfprof: …\n". Control bytes in the expanded text are made harmless. Keeps errno. */
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif

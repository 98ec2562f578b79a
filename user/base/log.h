/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages, on standard error, each one line: for people, who know it by its beginning "bpfprof: ",
 * or as logfmt, for what collects the logs of services. The level and the form are the only state.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

enum log_level {
	LOG_ERROR, /* the run, or what the user named, failed */
	LOG_INFO,  /* what the user should know; not with -q */
	LOG_DEBUG, /* -v */
};

void log_set_level(enum log_level level);
enum log_level log_get_level(void);

/*
 * From now on messages are `time=2026-11-26T15:04:05.123Z level=error msg="…"`: UTC, and a backslash
 * before each quotation mark and backslash of the message. journald, if standard error is its own,
 * has `<3>level=error msg="…"`: it knows the time, and takes the priority in front away.
 */
void log_use_logfmt(void);

/* Prints "bpfprof: …\n", or as above. Control bytes in the expanded text are made harmless. Keeps
 * errno. */
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif

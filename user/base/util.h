/* SPDX-License-Identifier: BSD-2-Clause */
/* Small things that every room uses: growing arrays, parsing numbers, reading small files. Nothing
 * here prints. */
#ifndef BASE_UTIL_H
#define BASE_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define NSEC_PER_SEC UINT64_C(1000000000)

/* a + b, held at the end of the range that it would leave. */
static inline int64_t util_add_saturated(int64_t a, int64_t b)
{
	int64_t sum;

	return !__builtin_add_overflow(a, b, &sum) ? sum : b < 0 ? INT64_MIN : INT64_MAX;
}

/* What it is without its sign. */
static inline uint64_t util_magnitude(int64_t a)
{
	return a < 0 ? -(uint64_t)a : (uint64_t)a;
}

/* -a, held at the end of the range that it would leave. */
static inline int64_t util_negate_saturated(int64_t a)
{
	return a == INT64_MIN ? INT64_MAX : -a;
}

/*
 * Makes room for at least `need` elements of elem_sz bytes in *array, whose capacity is *cap; grows
 * by half or more. Returns 0, or -ENOMEM (also on overflow) with *array and *cap as they were. New
 * elements are not initialised.
 */
int util_reserve(void *array, size_t *cap, size_t need, size_t elem_sz);

/* Adds the counters of a struct to those of another one: sz bytes, all of them 64-bit numbers. */
void util_add_counters(void *sum, const void *more, size_t sz);

/* Makes room for element idx of an array that is kept by number. New elements are zeroed. 0 or
 * -ENOMEM as above. */
int util_reserve_zeroed(void *array, size_t *cap, size_t idx, size_t elem_sz);

/*
 * Reads a whole small file (such as one of /proc or /sys), at most `max` bytes, and appends a NUL
 * that is not counted. Returns 0 and a buffer for the caller to free, or -errno; -EFBIG if there is
 * more.
 */
int util_read_file(const char *path, size_t max, char **ret_buf, size_t *ret_sz);

/* The same from an open descriptor's current position. */
int util_read_fd(int fd, size_t max, char **ret_buf, size_t *ret_sz);

/* Says in text what is wrong, and returns err: for functions whose caller tells people. */
int util_fail(int err, char *text, size_t text_sz, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* The path of a file that is installed with this program: beside it, or in ../lib/bpfprof/ from
 * there. False: there is none that can be read. */
bool util_find_part(const char *name, char *path, size_t path_sz);

/* The path of a program, which execvp(3) would look for in PATH unless there is a '/' in its name. False:
 * it is not there. */
bool util_find_program(const char *name, char *path, size_t path_sz);

/* Decimal number in [min, max], nothing before or behind it. Returns 0 or -EINVAL, -ERANGE. */
int util_parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret);

/* "12", "0.5%": a number of percent in [0, max]. Returns 0 or -EINVAL. */
int util_parse_percent(const char *s, double max, double *ret);

/* "30", "30s", "500ms", "1.5s", "10us", "5m", "1h" -> nanoseconds, above 0. Returns 0 or -EINVAL,
 * -ERANGE (2^62 ns at most). */
int util_parse_duration(const char *s, uint64_t *ret_ns);

/* Reads exactly sz bytes at off, restarting after signals. Returns 0, -errno, or -ENODATA at the
 * end of the file. */
int util_pread_full(int fd, void *buf, size_t sz, uint64_t off);

/* pidfd_open(2) without flags, which glibc has from 2.36 on. A descriptor, or -1 with errno. */
int util_pidfd_open(pid_t pid);

/* As many descriptors as we may have. A command that we start has the limit that the user gave it. */
void util_raise_fd_limit(void);

/* Clocks, in nanoseconds: the former two as the kernel has them, whatever time namespace we are in.
 */
uint64_t util_monotonic_ns(void);
uint64_t util_boottime_ns(void);
uint64_t util_realtime_ns(void);
/* How far CLOCK_REALTIME is ahead of the first one. Changes when the clock is set, and with a suspend. */
int64_t util_realtime_shift_ns(void);

/* What our time namespace (time_namespaces(7)) adds to the times since boot that /proc tells. */
int64_t util_boottime_shift_ns(void);

/*
 * The largest resident set of a process in bytes, 0 if it cannot be told. VmHWM
 * (proc_pid_status(5)) is that of its program alone; getrusage(2) hands on what the process had
 * before it became that.
 */
uint64_t util_peak_rss(pid_t pid);

/* Well-mixed 64-bit hash of bytes, for tables in memory. */
uint64_t util_hash(const void *data, size_t sz, uint64_t seed);

/*
 * Length in bytes, 1 to 4, of the valid UTF-8 character at s, which is not at its NUL; 0 if there
 * is none. Overlong forms, surrogates and what lies above U+10FFFF are not valid (RFC 3629). Reads
 * no further than the NUL.
 */
size_t util_utf8(const char *s, uint32_t *ret_codepoint);

/*
 * Copies `in` to `out` (capacity out_sz, at least 1, always terminated) with everything that could
 * act on a terminal or break a line-based format made harmless: control bytes and invalid UTF-8
 * become U+FFFD. Returns out.
 */
char *util_printable(char *out, size_t out_sz, const char *in);

/* The value of a hexadecimal digit, or -1. */
static inline int util_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif

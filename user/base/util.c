/* SPDX-License-Identifier: BSD-2-Clause */
/* Growing arrays, parsing of numbers, small files, clocks, a hash and harmless text, as util.h
 * describes them. */
#include "base/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/large_pages.h"
#include "base/proc_status.h"

#define CLOCK_READS 3

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

int util_reserve(void *array, size_t *cap, size_t need, size_t elem_sz)
{
	size_t want, bytes;
	void *old, *grown;

	if (need <= *cap)
		return 0;
	if (__builtin_add_overflow(*cap, *cap / 2 + 8, &want) || want < need)
		want = need;
	if (__builtin_mul_overflow(want, elem_sz, &bytes))
		return -ENOMEM;
	/* the caller's pointer has a type of its own: copying its bytes does not break aliasing */
	memcpy(&old, array, sizeof(old));
	grown = realloc(old, bytes);
	if (!grown)
		return -ENOMEM;
	large_pages__use(grown, bytes);
	memcpy(array, &grown, sizeof(grown));
	*cap = want;
	return 0;
}

void util_add_counters(void *sum, const void *more, size_t sz)
{
	uint64_t a, b;

	for (size_t i = 0; i < sz; i += sizeof(a)) {
		memcpy(&a, (char *)sum + i, sizeof(a));
		memcpy(&b, (const char *)more + i, sizeof(b));
		a += b;
		memcpy((char *)sum + i, &a, sizeof(a));
	}
}

int util_reserve_zeroed(void *array, size_t *cap, size_t idx, size_t elem_sz)
{
	size_t old = *cap;
	char *elems;
	int err;

	if (idx < old)
		return 0;
	err = idx == SIZE_MAX ? -ENOMEM : util_reserve(array, cap, idx + 1, elem_sz);
	if (err)
		return err;
	memcpy(&elems, array, sizeof(elems));
	memset(elems + old * elem_sz, 0, (*cap - old) * elem_sz);
	return 0;
}

int util_read_fd(int fd, size_t max, char **ret_buf, size_t *ret_sz)
{
	size_t cap = 0, sz = 0;
	char *buf = NULL;
	ssize_t n;
	int err;

	if (max > SIZE_MAX / 2)
		return -EINVAL;
	for (;;) {
		/* one byte for the NUL, one more to see whether the file goes on past max */
		err = util_reserve(&buf, &cap, MIN(sz + 4096, max + 2), 1);
		if (err)
			goto out;
		n = read(fd, buf + sz, MIN(cap - 1, max + 1) - sz);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			err = -errno;
			goto out;
		}
		if (!n)
			break;
		sz += (size_t)n;
		if (sz > max) {
			err = -EFBIG;
			goto out;
		}
	}
	buf[sz] = '\0';
	*ret_buf = buf;
	*ret_sz = sz;
	return 0;
out:
	free(buf);
	return err;
}

int util_read_file(const char *path, size_t max, char **ret_buf, size_t *ret_sz)
{
	int fd, err;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = util_read_fd(fd, max, ret_buf, ret_sz);
	close(fd);
	return err;
}

/* Reads decimal digits, at least one, and moves *s behind them. Saturates: false in *ret_fits. */
static bool parse_digits(const char **s, uint64_t *ret, bool *ret_fits)
{
	const char *p = *s;
	uint64_t v = 0;

	*ret_fits = true;
	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v)) {
			*ret_fits = false;
			v = UINT64_MAX / 10;
		}
	}
	if (p == *s)
		return false;
	*s = p;
	*ret = v;
	return true;
}

int util_fail(int err, char *text, size_t text_sz, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, text_sz, fmt, ap);
	va_end(ap);
	return err;
}

int util_pidfd_open(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

void util_raise_fd_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) || l.rlim_cur >= l.rlim_max)
		return;
	l.rlim_cur = l.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &l);
}

bool util_find_part(const char *name, char *path, size_t path_sz)
{
	static const char *const places[] = { "", "../lib/bpfprof/" };
	char exe[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;

	exe[n < 0 ? 0 : n] = '\0';
	slash = strrchr(exe, '/');
	if (!slash)
		return false;
	slash[1] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if ((size_t)snprintf(path, path_sz, "%s%s%s", exe, places[i], name) < path_sz &&
		    !access(path, R_OK))
			return true;
	return false;
}

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

bool util_find_program(const char *name, char *path, size_t path_sz)
{
	const char *dirs = getenv("PATH") ?: "/bin:/usr/bin";

	if (strchr(name, '/'))
		return (size_t)snprintf(path, path_sz, "%s", name) < path_sz;
	for (;; dirs++) {
		size_t len = strcspn(dirs, ":");

		if ((size_t)snprintf(path, path_sz, "%.*s%s%s", (int)len, dirs, len ? "/" : "",
				     name) < path_sz &&
		    is_program(path))
			return true;
		dirs += len;
		if (!*dirs)
			return false;
	}
}

int util_parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret)
{
	uint64_t v;
	bool fits;

	if (!parse_digits(&s, &v, &fits) || *s)
		return -EINVAL;
	if (!fits || v < min || v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

int util_parse_percent(const char *s, double max, double *ret)
{
	char *end;
	double percent = strtod(s, &end);

	if (end == s || (*end && strcmp(end, "%") != 0) || !(percent >= 0 && percent <= max))
		return -EINVAL;
	*ret = percent;
	return 0;
}

int util_parse_duration(const char *s, uint64_t *ret_ns)
{
	static const struct {
		const char *suffix;
		uint64_t ns;
	} units[] = {
		{ "", NSEC_PER_SEC },
		{ "s", NSEC_PER_SEC },
		{ "ms", NSEC_PER_SEC / 1000 },
		{ "us", NSEC_PER_SEC / 1000000 },
		{ "ns", 1 },
		{ "m", 60 * NSEC_PER_SEC },
		{ "h", 3600 * NSEC_PER_SEC },
	};
	unsigned __int128 ns;
	uint64_t whole, part = 0, scale = 1;
	const char *dot;
	bool fits, part_fits;
	size_t i;

	if (!parse_digits(&s, &whole, &fits))
		return -EINVAL;
	if (*s == '.') {
		dot = ++s;
		/* 18 digits: what a power of ten in 64 bits can divide */
		if (!parse_digits(&s, &part, &part_fits) || s - dot > 18)
			return -EINVAL;
		for (; dot < s; dot++)
			scale *= 10;
	}
	for (i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcmp(s, units[i].suffix))
			break;
	if (i == ARRAY_SIZE(units))
		return -EINVAL;
	ns = (unsigned __int128)whole * units[i].ns + (unsigned __int128)part * units[i].ns / scale;
	if (!fits || !ns || ns > (uint64_t)1 << 62)
		return -ERANGE;
	*ret_ns = (uint64_t)ns;
	return 0;
}

int util_pread_full(int fd, void *buf, size_t sz, uint64_t off)
{
	uint64_t end;
	ssize_t n;

	if (__builtin_add_overflow(off, sz, &end) || end > INT64_MAX)
		return -EINVAL;
	while (sz) {
		n = pread(fd, buf, sz, (off_t)off);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return -ENODATA;
		buf = (char *)buf + n;
		sz -= (size_t)n;
		off += (uint64_t)n;
	}
	return 0;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* Of a clock in /proc/self/timens_offsets; there it is that of the children, which is ours if the
 * namespaces are the same. */
static int64_t read_shift_ns(const char *name)
{
	char ours[64] = "", theirs[64] = "", *buf, *s;
	int64_t shift = 0;
	size_t sz;

	if (readlink("/proc/self/ns/time", ours, sizeof(ours) - 1) < 0 ||
	    readlink("/proc/self/ns/time_for_children", theirs, sizeof(theirs) - 1) < 0 ||
	    strcmp(ours, theirs) || util_read_file("/proc/self/timens_offsets", 4096, &buf, &sz))
		return 0;
	s = strstr(buf, name);
	if (s) {
		shift = strtoll(s + strlen(name), &s, 10) * (int64_t)NSEC_PER_SEC;
		shift += strtoll(s, NULL, 10);
	}
	free(buf);
	return shift;
}

uint64_t util_peak_rss(pid_t pid)
{
	uint64_t kib;
	char *text;

	if (proc_status_read(PROC_STATUS_DIR, (uint32_t)pid, &text))
		return 0;
	kib = proc_status_number(text, "VmHWM");
	free(text);
	return kib << 10;
}

static struct {
	bool known;
	int64_t monotonic_ns, boottime_ns;
} shifts;

static void read_shifts(void)
{
	if (shifts.known)
		return;
	shifts.monotonic_ns = read_shift_ns("monotonic");
	shifts.boottime_ns = read_shift_ns("boottime");
	shifts.known = true;
}

uint64_t util_monotonic_ns(void)
{
	read_shifts();
	return clock_ns(CLOCK_MONOTONIC) - shifts.monotonic_ns;
}

int64_t util_boottime_shift_ns(void)
{
	read_shifts();
	return shifts.boottime_ns;
}

uint64_t util_boottime_ns(void)
{
	return clock_ns(CLOCK_BOOTTIME) - util_boottime_shift_ns();
}

uint64_t util_realtime_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

int64_t util_realtime_shift_ns(void)
{
	uint64_t best = UINT64_MAX;
	int64_t ret = 0;

	/* by the readings that were not interrupted in between */
	for (int i = 0; i < CLOCK_READS; i++) {
		uint64_t before = util_monotonic_ns(), wall = util_realtime_ns();
		uint64_t took = util_monotonic_ns() - before;

		if (took >= best)
			continue;
		best = took;
		ret = (int64_t)(wall - before - took / 2);
	}
	return ret;
}

static uint64_t fold(uint64_t a, uint64_t b)
{
	unsigned __int128 m = (unsigned __int128)a * b;

	return (uint64_t)m ^ (uint64_t)(m >> 64);
}

/*
 * Folded 128-bit products, 16 bytes a round. Both factors depend on the state: with a secret seed
 * nobody can choose input that makes one of them 0 and so everything before it irrelevant.
 */
uint64_t util_hash(const void *data, size_t sz, uint64_t seed)
{
	const uint64_t k0 = 0x9e3779b97f4a7c15ULL, k1 = 0xd1b54a32d192ed03ULL;
	uint64_t h = fold(seed ^ k0, (uint64_t)sz + k1) + seed;
	const unsigned char *p = data;
	uint64_t word[2];

	for (; sz >= sizeof(word); p += sizeof(word), sz -= sizeof(word)) {
		memcpy(word, p, sizeof(word));
		h = fold(word[0] ^ h ^ k0, word[1] ^ (h * k1)) + h;
	}
	if (sz) {
		word[0] = word[1] = 0;
		memcpy(word, p, sz);
		h = fold(word[0] ^ h ^ k0, word[1] ^ (h * k1)) + h;
	}
	return fold(h ^ k1, k0);
}

size_t util_utf8(const char *s, uint32_t *ret_codepoint)
{
	/* smallest code point of each length: below it the form is overlong */
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *p = (const unsigned char *)s;
	size_t len, i;
	uint32_t cp;

	if (p[0] < 0x80) {
		*ret_codepoint = p[0];
		return 1;
	}
	if (p[0] >= 0xc2 && p[0] <= 0xdf)
		len = 2;
	else if ((p[0] & 0xf0) == 0xe0)
		len = 3;
	else if (p[0] >= 0xf0 && p[0] <= 0xf4)
		len = 4;
	else
		return 0;
	cp = p[0] & (0x7fU >> len);
	for (i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		cp = cp << 6 | (p[i] & 0x3f);
	}
	if (cp < least[len] || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
		return 0;
	*ret_codepoint = cp;
	return len;
}

/*
 * C0 and C1 controls act on terminals (C1 as UTF-8 too); U+2028 and U+2029 end lines for some
 * readers; the bidirectional controls make text look like other text (Unicode TR 36, 2.10).
 */
static bool acts(uint32_t cp)
{
	return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0x2028 || cp == 0x2029 ||
	       cp == 0x200e || cp == 0x200f || (cp >= 0x202a && cp <= 0x202e) ||
	       (cp >= 0x2066 && cp <= 0x2069);
}

char *util_printable(char *out, size_t out_sz, const char *in)
{
	size_t at = 0, len, add;
	const char *from;
	uint32_t cp;

	while (*in) {
		len = util_utf8(in, &cp);
		from = in;
		add = len;
		if (!len || acts(cp)) {
			from = REPLACEMENT;
			add = sizeof(REPLACEMENT) - 1;
		}
		if (add >= out_sz - at)
			break;
		memcpy(out + at, from, add);
		at += add;
		in += len ? len : 1;
	}
	out[at] = '\0';
	return out;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds names in the tables of machinery, and writes them as regular expressions. */
#include "profile/machinery_match.h"

#include <string.h>

#include "base/util.h"
#include "profile/machinery_names.h"

/* ---- Comparing ---- */

/* Is it the pattern, of n bytes, in which '*' stands for any bytes? */
static bool glob(const char *pattern, size_t n, const char *s, size_t len)
{
	const char *star = NULL, *pattern_end = pattern + n, *end = s + len, *retry = s;

	while (s < end) {
		if (pattern < pattern_end && *pattern == '*') {
			star = pattern++;
			retry = s;
		} else if (pattern < pattern_end && *pattern == *s) {
			pattern++;
			s++;
		} else if (star) {
			pattern = star + 1;
			s = ++retry;
		} else {
			return false;
		}
	}
	while (pattern < pattern_end && *pattern == '*')
		pattern++;
	return pattern == pattern_end;
}

/* Is it one of the names, between which there is a '|'? */
static bool is_one_of(const char *list, const char *s, size_t len)
{
	const char *end;

	for (;; list = end + 1) {
		end = strchrnul(list, '|');
		/* there are many names, and most differ at once */
		if ((*list == '*' || (len && *list == *s)) && glob(list, end - list, s, len))
			return true;
		if (!*end)
			return false;
	}
}

static bool begins(const char **s, size_t *len, const char *with)
{
	size_t n = strlen(with);

	if (*len < n || memcmp(*s, with, n))
		return false;
	*s += n;
	*len -= n;
	return true;
}

static bool ends(const char *s, size_t *len, const char *with)
{
	size_t n = strlen(with);

	if (*len < n || memcmp(s + *len - n, with, n))
		return false;
	*len -= n;
	return true;
}

#define LIBC_BEFORE "_*(GI_+)?(libc_|new_)?"
#define LIBC_BEHIND "(64)?(_nocancel)?(\\..*)?"

/* The same as the two expressions say. */
static bool is_decorated(const struct machinery_set *set, const char *s, size_t len)
{
	const char *dot = memchr(s, '.', len);

	while (begins(&s, &len, "_"))
		;
	if (begins(&s, &len, "GI_"))
		while (begins(&s, &len, "_"))
			;
	if (!begins(&s, &len, "libc_"))
		(void)begins(&s, &len, "new_");
	if (dot >= s)
		len = dot - s;
	(void)ends(s, &len, "_nocancel");
	return is_one_of(set->list, s, len) ||
	       (ends(s, &len, "64") && is_one_of(set->list, s, len));
}

/* What GCC and Clang put behind the dot of a clone. */
static bool is_clone(const char *s, size_t len)
{
	static const char words[] =
		"part*|constprop*|isra*|cold*|lto_priv*|llvm*|localalias*|str*|"
		"clone*|resolver*|ifunc*";

	return !len || (*s >= '0' && *s <= '9') || is_one_of(words, s, len);
}

/* A function of Go is package.name, and the package a path. Returns the length of that, or 0. */
static size_t go_package(const char *s, size_t len)
{
	size_t end = 0, i;

	/* what a method or a type's parameters hold is another path */
	for (i = 0; i < len && s[i] != '(' && s[i] != '['; i++)
		if (s[i] == ' ' || s[i] == ':')
			return 0;
	len = i;
	for (i = 0; i < len; i++)
		if (s[i] == '/')
			end = i;
	while (end < len && s[end] != '.')
		end++;
	if (end == len || (i = end + 1, i < len && is_clone(s + i, len - i)))
		return 0;
	return end;
}

/* Is the package below one of these roots? "go.uber.org/zap" is not below "go". */
static bool in_packages(const char *list, const char *s, size_t len)
{
	size_t package = go_package(s, len);
	const char *slash = memchr(s, '/', package);

	return package && is_one_of(list, s, slash ? (size_t)(slash - s) : package);
}

/* What rustc makes: v0, or the legacy form, whose last part is a hash ("17h" and 16 digits). */
static bool is_rust(const char *system_name)
{
	size_t len = strlen(system_name);

	return !strncmp(system_name, "_R", 2) || (!strncmp(system_name, "_ZN", 3) && len > 20 &&
						  !strncmp(system_name + len - 20, "17h", 3));
}

/* Are its names compared as C libraries decorate them? */
static bool is_c(enum machinery_form form)
{
	return form == DECORATED || form == LIBC;
}

static bool is_mangled(const char *system_name)
{
	return !strncmp(system_name, "_Z", 2) || !strncmp(system_name, "_R", 2);
}

/* s, len: f's name, simplified */
static bool has(const struct machinery_set *set, const struct machinery_function *f, const char *s,
		size_t len)
{
	switch (set->form) {
	case DECORATED:
	case LIBC:
		return !is_mangled(f->system_name) && is_decorated(set, s, len);
	case MANGLED:
		return is_one_of(set->list, f->system_name, strlen(f->system_name));
	case FILENAME:
		return is_one_of(set->list, f->filename, strlen(f->filename));
	case RUST:
		return is_rust(f->system_name) && is_one_of(set->list, s, len);
	case GO:
		return go_package(f->name, strlen(f->name)) && is_one_of(set->list, s, len);
	case GO_PACKAGE:
		return in_packages(set->list, f->name, strlen(f->name));
	case ANYWHERE:
	case IN_RUNTIME:
	case IN_ANONYMOUS:
		break;
	}
	return is_one_of(set->list, s, len);
}

uint64_t machinery_sets_of(const struct machinery_function *f)
{
	const char *s;
	size_t len = machinery_simplified(f->name, &s);
	uint64_t ret = 0;

	for (size_t i = 0; i < machinery_set_cnt; i++)
		if (has(&machinery_sets[i], f, s, len))
			ret |= UINT64_C(1) << i;
	return ret;
}

static bool counts(const struct machinery_set *set, const struct machinery_place *place)
{
	switch (set->form) {
	case LIBC:
		return place->object != MACHINERY_OWN || !place->libc_elsewhere;
	case IN_RUNTIME:
		return place->object == MACHINERY_RUNTIME;
	case IN_ANONYMOUS:
		return place->anonymous;
	default:
		return true;
	}
}

enum machinery_rank machinery_rank(uint64_t in, const struct machinery_place *place)
{
	for (size_t i = 0; i < machinery_set_cnt; i++)
		if (in >> i & 1 && counts(&machinery_sets[i], place))
			return MAX(machinery_sets[i].rank, place->object);
	return place->object;
}

/* ---- Objects ---- */

static const char *base_name(const char *filename)
{
	const char *slash = strrchr(filename, '/');

	return slash ? slash + 1 : filename;
}

static bool is_library(const char *base)
{
	const char *so = strstr(base, ".so");

	return so && (!so[3] || so[3] == '.');
}

static bool is_interpreter(const char *base)
{
	size_t len = strlen(base);

	while (len && strchr("0123456789.-", base[len - 1]))
		len--;
	return is_one_of(machinery_interpreters, base, len);
}

/* Right in one of the folders that distributions put libraries into, or in one for the architecture
 * there: Debian's are named x86_64-linux-gnu. What is deeper is a program's. */
static bool is_in_system_folder(const char *filename)
{
	const char *slash = strrchr(filename, '/'), *up;
	size_t len = slash ? (size_t)(slash - filename) : 0;

	if (is_one_of(machinery_system_folders, filename, len))
		return true;
	up = memrchr(filename, '/', len);
	return up && memmem(up, slash - up, "-linux-", strlen("-linux-")) &&
	       is_one_of(machinery_system_folders, filename, up - filename);
}

static bool is_libc(const char *base)
{
	return is_one_of(machinery_libc_objects, base, strlen(base)) || !strcmp(base, "[vdso]");
}

enum machinery_rank machinery_object(const char *filename, bool *ret_libc)
{
	const char *base = base_name(filename);
	size_t len = strlen(base);

	*ret_libc = is_libc(base);
	if (*ret_libc || is_one_of(machinery_allocator_objects, base, len))
		return MACHINERY_SYSTEM;
	if (is_one_of(machinery_runtime_objects, base, len))
		return MACHINERY_RUNTIME;
	if (is_library(base))
		return is_in_system_folder(filename) ? MACHINERY_RUNTIME : MACHINERY_OWN;
	return is_interpreter(base) ? MACHINERY_RUNTIME : MACHINERY_OWN;
}

/* ---- What a reader is told to hide ---- */

/* The stripped code of objects is named by them. */
static bool is_nameless_of(const char *objects, const char *s, size_t len)
{
	const char *plus = memmem(s, len, "+0x", 3);

	return plus && is_one_of(objects, s, plus - s);
}

static bool is_kept(const char *s, size_t len)
{
	return is_one_of(machinery_go_keeps, s, len);
}

bool machinery_drops(unsigned int what, const char *s, size_t len)
{
	if (is_kept(s, len))
		return false;
	if (what & (MACHINERY_DROP_WAITS | MACHINERY_DROP_ALLOCS) &&
	    is_nameless_of(machinery_libc_objects, s, len))
		return true;
	if (what & MACHINERY_DROP_ALLOCS && is_nameless_of(machinery_allocator_objects, s, len))
		return true;
	for (size_t i = 0; i < machinery_set_cnt; i++) {
		const struct machinery_set *set = &machinery_sets[i];

		if (set->drop & what &&
		    (is_c(set->form) ? is_decorated(set, s, len) : is_one_of(set->list, s, len)))
			return true;
	}
	return false;
}

void machinery_quote(const char *s, size_t len, FILE *f)
{
	for (size_t i = 0; i < len; i++) {
		if (s[i] && strchr("\\.+*?()|[]{}^$", s[i]))
			fputc('\\', f);
		fputc(s[i], f);
	}
}

/* Writes a list as alternatives, with `behind` behind each of its names. */
static void write_list(const char *list, const char *behind, FILE *f)
{
	for (;; list++) {
		size_t n = strcspn(list, "*|");

		machinery_quote(list, n, f);
		list += n;
		if (*list == '*') {
			fputs(".*", f);
			continue;
		}
		fputs(behind, f);
		if (!*list)
			return;
		fputc('|', f);
	}
}

void machinery_write_drops(unsigned int what, FILE *f)
{
	const char *sep = "";

	for (size_t i = 0; i < machinery_set_cnt; i++) {
		const struct machinery_set *set = &machinery_sets[i];

		if (!(set->drop & what))
			continue;
		fputs(sep, f);
		sep = "|";
		fputs(is_c(set->form) ? LIBC_BEFORE "(" : "", f);
		write_list(set->list, "", f);
		fputs(is_c(set->form) ? ")" LIBC_BEHIND : "", f);
	}
	if (what & (MACHINERY_DROP_WAITS | MACHINERY_DROP_ALLOCS)) {
		fputs(sep, f);
		write_list(machinery_libc_objects, "\\+0x.*", f);
	}
	if (what & MACHINERY_DROP_ALLOCS) {
		fputs("|", f);
		write_list(machinery_allocator_objects, "\\+0x.*", f);
	}
}

void machinery_write_keeps(unsigned int what, FILE *f)
{
	if (what & MACHINERY_DROP_WAITS)
		write_list(machinery_go_keeps, "", f);
}

size_t machinery_simplified(const char *name, const char **ret_begin)
{
	static const char anonymous[] = "(anonymous namespace)", call[] = "operator()";
	const char *s = name + (*name == '.'), *at = s;

	*ret_begin = s;
	while ((at = strchr(at, '('))) {
		size_t before = strlen("operator");

		if (!strncmp(at, anonymous, strlen(anonymous)))
			at += strlen(anonymous);
		else if ((size_t)(at - s) >= before && !strncmp(at - before, call, strlen(call)))
			at += strlen("()");
		else
			return at - s;
	}
	return strlen(s);
}

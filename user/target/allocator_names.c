/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names of allocators' functions, as tables. A function is listed only where its arguments are
 * those of its operation; a wrong signature would count wrong sizes, which is worse than a function
 * left out. mimalloc's mi_heap_* take the heap first and are left out for that reason.
 */
#include "target/allocator_names.h"

#include <linux/types.h>
#include <stddef.h>
#include <string.h>

#include "base/util.h"
#include "bpfprof.h"
#include "target/allocators.h"

struct entry {
	const char *name;
	uint8_t op; /* enum bpfprof_alloc_op */
};

/* C11 7.22.3, C23 7.24.3, malloc(3), posix_memalign(3), jemalloc(3) */
static const struct entry c_family[] = {
	{ "malloc", BPFPROF_ALLOC_MALLOC },
	{ "free", BPFPROF_ALLOC_FREE },
	{ "calloc", BPFPROF_ALLOC_CALLOC },
	{ "realloc", BPFPROF_ALLOC_REALLOC },
	{ "reallocarray", BPFPROF_ALLOC_REALLOCARRAY },
	{ "posix_memalign", BPFPROF_ALLOC_POSIX_MEMALIGN },
	{ "aligned_alloc", BPFPROF_ALLOC_ALIGNED },
	{ "memalign", BPFPROF_ALLOC_ALIGNED },
	{ "valloc", BPFPROF_ALLOC_MALLOC },
	{ "pvalloc", BPFPROF_ALLOC_MALLOC },
	{ "cfree", BPFPROF_ALLOC_FREE },
	{ "free_sized", BPFPROF_ALLOC_FREE },
	{ "free_aligned_sized", BPFPROF_ALLOC_FREE },
	{ "mallocx", BPFPROF_ALLOC_MALLOC },
	{ "rallocx", BPFPROF_ALLOC_REALLOC },
	{ "xallocx", BPFPROF_ALLOC_XALLOCX },
	{ "dallocx", BPFPROF_ALLOC_FREE },
	{ "sdallocx", BPFPROF_ALLOC_FREE },
};

/* gperftools/tcmalloc.h, besides the C family */
static const struct entry tc_family[] = {
	{ "malloc_skip_new_handler", BPFPROF_ALLOC_MALLOC },
	{ "new", BPFPROF_ALLOC_MALLOC },
	{ "new_nothrow", BPFPROF_ALLOC_MALLOC },
	{ "new_aligned", BPFPROF_ALLOC_MALLOC },
	{ "new_aligned_nothrow", BPFPROF_ALLOC_MALLOC },
	{ "newarray", BPFPROF_ALLOC_MALLOC },
	{ "newarray_nothrow", BPFPROF_ALLOC_MALLOC },
	{ "newarray_aligned", BPFPROF_ALLOC_MALLOC },
	{ "newarray_aligned_nothrow", BPFPROF_ALLOC_MALLOC },
	{ "delete", BPFPROF_ALLOC_FREE },
	{ "delete_nothrow", BPFPROF_ALLOC_FREE },
	{ "delete_sized", BPFPROF_ALLOC_FREE },
	{ "delete_aligned", BPFPROF_ALLOC_FREE },
	{ "delete_sized_aligned", BPFPROF_ALLOC_FREE },
	{ "delete_aligned_nothrow", BPFPROF_ALLOC_FREE },
	{ "deletearray", BPFPROF_ALLOC_FREE },
	{ "deletearray_nothrow", BPFPROF_ALLOC_FREE },
	{ "deletearray_sized", BPFPROF_ALLOC_FREE },
	{ "deletearray_aligned", BPFPROF_ALLOC_FREE },
	{ "deletearray_sized_aligned", BPFPROF_ALLOC_FREE },
	{ "deletearray_aligned_nothrow", BPFPROF_ALLOC_FREE },
};

/* mimalloc.h, besides the C family */
static const struct entry mi_family[] = {
	{ "zalloc", BPFPROF_ALLOC_MALLOC },
	{ "malloc_small", BPFPROF_ALLOC_MALLOC },
	{ "zalloc_small", BPFPROF_ALLOC_MALLOC },
	{ "malloc_aligned", BPFPROF_ALLOC_MALLOC },
	{ "malloc_aligned_at", BPFPROF_ALLOC_MALLOC },
	{ "zalloc_aligned", BPFPROF_ALLOC_MALLOC },
	{ "zalloc_aligned_at", BPFPROF_ALLOC_MALLOC },
	{ "new", BPFPROF_ALLOC_MALLOC },
	{ "new_nothrow", BPFPROF_ALLOC_MALLOC },
	{ "new_aligned", BPFPROF_ALLOC_MALLOC },
	{ "new_aligned_nothrow", BPFPROF_ALLOC_MALLOC },
	{ "mallocn", BPFPROF_ALLOC_CALLOC },
	{ "calloc_aligned", BPFPROF_ALLOC_CALLOC },
	{ "calloc_aligned_at", BPFPROF_ALLOC_CALLOC },
	{ "new_n", BPFPROF_ALLOC_CALLOC },
	{ "reallocf", BPFPROF_ALLOC_REALLOC },
	{ "rezalloc", BPFPROF_ALLOC_REALLOC },
	{ "realloc_aligned", BPFPROF_ALLOC_REALLOC },
	{ "realloc_aligned_at", BPFPROF_ALLOC_REALLOC },
	{ "rezalloc_aligned", BPFPROF_ALLOC_REALLOC },
	{ "rezalloc_aligned_at", BPFPROF_ALLOC_REALLOC },
	{ "new_realloc", BPFPROF_ALLOC_REALLOC },
	{ "reallocn", BPFPROF_ALLOC_REALLOCARRAY },
	{ "recalloc", BPFPROF_ALLOC_REALLOCARRAY },
	{ "recalloc_aligned", BPFPROF_ALLOC_REALLOCARRAY },
	{ "recalloc_aligned_at", BPFPROF_ALLOC_REALLOCARRAY },
	{ "aligned_recalloc", BPFPROF_ALLOC_REALLOCARRAY },
	{ "aligned_offset_recalloc", BPFPROF_ALLOC_REALLOCARRAY },
	{ "new_reallocn", BPFPROF_ALLOC_REALLOCARRAY },
	{ "free_size", BPFPROF_ALLOC_FREE },
	{ "free_size_aligned", BPFPROF_ALLOC_FREE },
	{ "free_aligned", BPFPROF_ALLOC_FREE },
};

enum rank {
	RANK_INTERNAL, /* __libc_malloc */
	RANK_PREFIXED,
	RANK_CXX,
	RANK_PLAIN,
};

/* What allocators' builds put before the names of the C family, and what they have besides. */
static const struct family {
	const char *prefix;
	uint8_t rank;
	const struct entry *more;
	size_t more_cnt;
} families[] = {
	{ "", RANK_PLAIN, NULL, 0 },
	{ "__libc_", RANK_INTERNAL, NULL, 0 },
	{ "je_", RANK_PREFIXED, NULL, 0 },
	{ "_rjem_", RANK_PREFIXED, NULL, 0 }, /* Rust's tikv-jemallocator */
	{ "tc_", RANK_PREFIXED, tc_family, ARRAY_SIZE(tc_family) },
	{ "mi_", RANK_PREFIXED, mi_family, ARRAY_SIZE(mi_family) },
};

/*
 * Itanium C++ ABI 5.1.4.1, 5.1.5: new (nw), new[] (na) of an unsigned long, delete (dl), delete[]
 * (da) of a void pointer, and what their further parameters add. __hot_cold_t is Clang's.
 */
static const char *const new_tails[] = {
	"",
	"RKSt9nothrow_t",
	"St11align_val_t",
	"St11align_val_tRKSt9nothrow_t",
	"12__hot_cold_t",
	"RKSt9nothrow_t12__hot_cold_t",
	"St11align_val_t12__hot_cold_t",
	"St11align_val_tRKSt9nothrow_t12__hot_cold_t",
};
static const char *const delete_tails[] = {
	"",
	"m",
	"RKSt9nothrow_t",
	"St11align_val_t",
	"mSt11align_val_t",
	"St11align_val_tRKSt9nothrow_t",
};

/* Where an allocation has failed or a check has: no way to more memory is of interest from there.
 */
static const char *const ends[] = {
	"abort",
	"exit",
	"_exit",
	"__assert_fail",
	"__chk_fail",
	"__cxa_rethrow",
	"__cxa_throw",
	"__cxa_throw_bad_array_new_length",
	"__fortify_fail",
	"__stack_chk_fail",
	"_Unwind_Resume",
	"_ZSt15get_new_handlerv",
	"_ZSt15set_new_handlerPFvvE",
	"_ZSt17__throw_bad_allocv",
	"_ZSt20__throw_system_errori",
	"_ZSt28__throw_bad_array_new_lengthv",
	"_ZSt9terminatev",
};

/* These allocate as well, by entries that are known. */
static const char *const shims[] = {
	"__rust_alloc", "__rust_alloc_zeroed", "__rust_realloc", "__rust_dealloc",
	"__rdl_alloc",	"__rdl_alloc_zeroed",  "__rdl_realloc",	 "__rdl_dealloc",
	"__rg_alloc",	"__rg_alloc_zeroed",   "__rg_realloc",	 "__rg_dealloc",
};

/* Is it s, of len bytes, none of them NUL? Mostly they differ soon, and there are many symbols. */
static bool equals(const char *name, const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (name[i] != s[i])
			return false;
	}
	return !name[len];
}

static bool is_one_of(const char *const *names, size_t cnt, const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < cnt; i++) {
		if (equals(names[i], s, len))
			return true;
	}
	return false;
}

static const struct entry *find_entry(const struct entry *entries, size_t cnt, const char *s,
				      size_t len)
{
	size_t i;

	for (i = 0; i < cnt; i++) {
		if (equals(entries[i].name, s, len))
			return &entries[i];
	}
	return NULL;
}

/* operator new and its like, unless they say that they do not */
static bool may_throw(const char *name)
{
	return !strncmp(name, "new", 3) && !strstr(name, "nothrow");
}

static bool find_c(const char *s, size_t len, struct allocator_name *ret)
{
	const struct entry *found;
	const struct family *f;
	size_t prefix;

	for (f = families; f < families + ARRAY_SIZE(families); f++) {
		prefix = strlen(f->prefix);
		if (len <= prefix || (prefix && s[0] != f->prefix[0]) ||
		    memcmp(s, f->prefix, prefix))
			continue;
		found = find_entry(c_family, ARRAY_SIZE(c_family), s + prefix, len - prefix);
		if (!found)
			found = find_entry(f->more, f->more_cnt, s + prefix, len - prefix);
		if (found) {
			*ret = (struct allocator_name){ ALLOCATOR_ENTRY, found->op, f->rank,
							f->more && may_throw(found->name) };
			return true;
		}
	}
	return false;
}

static bool find_cxx(const char *s, size_t len, struct allocator_name *ret)
{
	bool is_new = len >= 5 && (!memcmp(s, "_Znwm", 5) || !memcmp(s, "_Znam", 5));
	bool is_delete = len >= 6 && (!memcmp(s, "_ZdlPv", 6) || !memcmp(s, "_ZdaPv", 6));

	if (!(is_new && is_one_of(new_tails, ARRAY_SIZE(new_tails), s + 5, len - 5)) &&
	    !(is_delete && is_one_of(delete_tails, ARRAY_SIZE(delete_tails), s + 6, len - 6)))
		return false;
	*ret = (struct allocator_name){ ALLOCATOR_ENTRY,
					is_new ? BPFPROF_ALLOC_MALLOC : BPFPROF_ALLOC_FREE,
					RANK_CXX, is_new && !memmem(s, len, "nothrow", 7) };
	return true;
}

/* What most C++ names are told by, without a look at all of them: those above begin otherwise. */
static bool is_other_cxx(const char *name)
{
	return name[0] == '_' && name[1] == 'Z' && name[2] != 'n' && name[2] != 'd' &&
	       name[2] != 'S';
}

bool allocator_name__find(const char *name, struct allocator_name *ret)
{
	size_t len;
	const char *version;

	if (is_other_cxx(name))
		return false;
	len = strnlen(name, ALLOCATOR_NAME_MAX + 32);
	version = memchr(name, '@', len);
	if (version)
		len = version - name;
	if (!len || len > ALLOCATOR_NAME_MAX)
		return false;
	if (name[0] == '_' && name[1] == 'Z' ? find_cxx(name, len, ret) : find_c(name, len, ret))
		return true;
	*ret = (struct allocator_name){ .role = ALLOCATOR_END };
	return is_one_of(ends, ARRAY_SIZE(ends), name, len);
}

bool allocator_name__is_prefixed(const char *name)
{
	struct allocator_name found;

	return allocator_name__find(name, &found) && found.role == ALLOCATOR_ENTRY &&
	       found.rank == RANK_PREFIXED;
}

bool allocators_is_name(const char *system_name)
{
	char name[ALLOCATOR_NAME_MAX + 1];
	struct allocator_name found;
	size_t len;

	/* glibc's own, include/libc-symbols.h: __GI___libc_malloc */
	if (!strncmp(system_name, "__GI_", strlen("__GI_")))
		system_name += strlen("__GI_");
	/* GCC's and Clang's clones and parts: malloc.part.0 */
	len = strcspn(system_name, ".@");
	if (!len || len >= sizeof(name))
		return false;
	memcpy(name, system_name, len);
	name[len] = '\0';
	if (allocator_name__find(name, &found))
		return found.role == ALLOCATOR_ENTRY;
	return !strncmp(name, "mi_heap_", strlen("mi_heap_")) ||
	       is_one_of(shims, ARRAY_SIZE(shims), name, len);
}

const char *allocators_names(void)
{
	return "malloc, free, calloc, realloc, reallocarray, posix_memalign, aligned_alloc, "
	       "memalign, valloc, pvalloc, cfree, free_sized, free_aligned_sized, mallocx, "
	       "rallocx, xallocx, dallocx, sdallocx, also with the prefixes __libc_, je_, _rjem_, "
	       "tc_, mi_; the other tc_ and mi_ functions; C++ operators new and delete; USDT "
	       "probes otel_memory:alloc and otel_memory:free";
}

// SPDX-License-Identifier: BSD-2-Clause
/* serve/kernel_addresses: what of the kernel's addresses is left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "profile/profile.h"
#include "serve/kernel_addresses.h"

#define START 0xffff800000000000ULL

static uint32_t add_mapping(struct profile *p, const char *name, uint64_t start)
{
	const struct profile_mapping m = { .start = start,
					   .limit = start + (1ULL << 46),
					   .filename = profile__string(p, name) };

	return profile__add_mapping(p, &m);
}

/* Some bytes into a function; has_symbol: its name is one, and no address. */
static uint32_t add(struct profile *p, uint32_t mapping, uint64_t address, const char *name,
		    bool has_symbol, uint32_t from_entry)
{
	const struct profile_function f = { .name = profile__string(p, name),
					    .system_name =
						    has_symbol ? profile__string(p, name) : 0 };
	const struct profile_line line = { .function = profile__add_function(p, &f) };
	uint32_t ret = profile__add_location(p, mapping, address);

	assert_int_equal(profile__set_lines(p, ret, &line, 1), 0);
	p->locations[ret].from_entry = from_entry + 1;
	return ret;
}

static const char *name_of(const struct profile *p, uint32_t location)
{
	return strtab__get(p->strings,
			   p->functions[p->lines[p->locations[location].line].function].name);
}

/* By where the kernel is: the same profile but for that. */
static struct profile *make(uint64_t base)
{
	const struct profile_value_type type = { "samples", "count" };
	struct profile *p = profile__new(&type, 1, type, 1);
	uint32_t program, kernel, vsyscall;

	assert_non_null(p);
	program = add_mapping(p, "/bin/a", 0x400000);
	kernel = add_mapping(p, "[kernel.kallsyms]", START);
	vsyscall = add_mapping(p, "[vsyscall]", 0xffffffffff600000);
	add(p, program, 0x400123, "main", true, 0x23);
	add(p, kernel, base + 0x1010, "schedule", true, 0x10);
	add(p, kernel, base + 0x1018, "schedule", true, 0x18);
	add(p, kernel, base + 0x2010, "do_futex", true, 0x10);
	add(p, kernel, base + 0x3000,
	    base == 0xffffffff81000000 ? "[kernel.kallsyms]+0xffffffff81003000" :
					 "[kernel.kallsyms]+0xffffffffa3403000",
	    false, 0);
	add(p, vsyscall, 0xffffffffff600001, "time", true, 1);
	assert_int_equal(kernel_addresses_hide(p), 0);
	return p;
}

static void test_hidden(void **state)
{
	struct profile *a = make(0xffffffff81000000), *b = make(0xffffffffa3400000);

	(void)state;
	for (uint32_t i = 0; i < a->location_cnt; i++)
		assert_int_equal(a->locations[i].address, b->locations[i].address);
	for (uint32_t i = 1; i < 5; i++)
		assert_in_range(a->locations[i].address, START, START + (1ULL << 46) - 1);
	assert_int_equal(a->locations[2].address - a->locations[1].address, 8);
	assert_int_not_equal(a->locations[3].address, a->locations[1].address);
	assert_string_equal(name_of(a, 1), "schedule");
	assert_string_equal(name_of(a, 4), "[kernel.kallsyms]");
	/* what is no secret stays */
	assert_int_equal(a->locations[0].address, 0x400123);
	assert_int_equal(a->locations[5].address, 0xffffffffff600001);
	profile__free(a);
	profile__free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hidden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

// SPDX-License-Identifier: BSD-2-Clause
// A program with a known heap, in C++: every form of operator new and delete, and those that throw.
//   new      each form, freed by each form
//   throw    sizes that cannot be, and new handlers that throw or jump: caught, and counted on
#include <csetjmp>
#include <new>

#include "alloc.h"

#define EACH 20
#define KEEPS 6

static volatile size_t far_too_much = SIZE_MAX / 2 - 4096;
static const std::align_val_t wide{ 64 };

#define GIVE(name, expression)                          \
	static NOIPA void name(void *p, size_t n) \
	{                                             \
		(void)n;                              \
		expression;                           \
		NO_TAIL_CALL();                       \
	}

LEAF(leaf_new, p = ::operator new(n))
LEAF(leaf_new_array, p = ::operator new[](n))
LEAF(leaf_new_nothrow, p = ::operator new(n, std::nothrow))
LEAF(leaf_new_array_nothrow, p = ::operator new[](n, std::nothrow))
LEAF(leaf_new_aligned, p = ::operator new(n, wide))
LEAF(leaf_new_array_aligned, p = ::operator new[](n, wide))
LEAF(leaf_new_aligned_nothrow, p = ::operator new(n, wide, std::nothrow))
LEAF(leaf_new_array_aligned_nothrow, p = ::operator new[](n, wide, std::nothrow))

GIVE(give, ::operator delete(p))
GIVE(give_array, ::operator delete[](p))
GIVE(give_sized, ::operator delete(p, n))
GIVE(give_array_sized, ::operator delete[](p, n))
GIVE(give_nothrow, ::operator delete(p, std::nothrow))
GIVE(give_array_nothrow, ::operator delete[](p, std::nothrow))
GIVE(give_aligned, ::operator delete(p, wide))
GIVE(give_array_aligned, ::operator delete[](p, wide))
GIVE(give_sized_aligned, ::operator delete(p, n, wide))
GIVE(give_array_sized_aligned, ::operator delete[](p, n, wide))
GIVE(give_aligned_nothrow, ::operator delete(p, wide, std::nothrow))
GIVE(give_array_aligned_nothrow, ::operator delete[](p, wide, std::nothrow))

static const struct {
	void *(*leaf)(size_t n);
	const char *stack;
	size_t size;
	void (*give[3])(void *p, size_t n);
} form[] = {
	{ leaf_new, "main;forms;leaf_new", 24, { give, give_sized, give_nothrow } },
	{ leaf_new_array,
	  "main;forms;leaf_new_array",
	  400,
	  { give_array, give_array_sized, give_array_nothrow } },
	{ leaf_new_nothrow, "main;forms;leaf_new_nothrow", 40, { give, give_sized, give_nothrow } },
	{ leaf_new_array_nothrow,
	  "main;forms;leaf_new_array_nothrow",
	  4000,
	  { give_array, give_array_sized, give_array_nothrow } },
	{ leaf_new_aligned,
	  "main;forms;leaf_new_aligned",
	  64,
	  { give_aligned, give_sized_aligned, give_aligned_nothrow } },
	{ leaf_new_array_aligned,
	  "main;forms;leaf_new_array_aligned",
	  640,
	  { give_array_aligned, give_array_sized_aligned, give_array_aligned_nothrow } },
	{ leaf_new_aligned_nothrow,
	  "main;forms;leaf_new_aligned_nothrow",
	  128,
	  { give_aligned, give_sized_aligned, give_aligned_nothrow } },
	{ leaf_new_array_aligned_nothrow,
	  "main;forms;leaf_new_array_aligned_nothrow",
	  1280,
	  { give_array_aligned, give_array_sized_aligned, give_array_aligned_nothrow } },
};

static NOIPA void forms(void)
{
	for (int i = 0; i < EACH; i++) {
		for (const auto &f : form) {
			void *p = f.leaf(f.size);
			int line = ledger_took(f.stack, f.size);

			if (i >= KEEPS) {
				f.give[i % 3](p, f.size);
				ledger_freed(line);
			}
		}
	}
}

// ---- throw ----

static jmp_buf back;

static void handler_throws()
{
	std::set_new_handler(nullptr);
	throw std::bad_alloc();
}

static void handler_jumps()
{
	std::set_new_handler(nullptr);
	longjmp(back, 1);
}

static NOIPA void after(const char *freed, const char *kept)
{
	give(leaf_new(48), 48);
	ledger_freed(ledger_took(freed, 48));
	leaf_new_array(49);
	ledger_took(kept, 49);
}

#define AFTER(path) after(path ";after;leaf_new", path ";after;leaf_new_array")

// How many of the two that throw were caught.
static NOIPA int fail(void)
{
	int caught = 0;

	try {
		leaf_new(far_too_much);
	} catch (const std::bad_alloc &) {
		caught++;
	}
	AFTER("main;throws;fail");
	std::set_new_handler(handler_throws);
	try {
		leaf_new_array(far_too_much);
	} catch (const std::bad_alloc &) {
		caught++;
	}
	AFTER("main;throws;fail");
	return caught;
}

static NOIPA void throws(void)
{
	static volatile int i;

	for (i = 0; i < EACH; i++) {
		if (fail() != 2 || leaf_new_nothrow(far_too_much))
			_exit(3);
		std::set_new_handler(handler_jumps);
		if (!setjmp(back))
			leaf_new(far_too_much);
		std::set_new_handler(nullptr);
		AFTER("main;throws");
	}
}

static const struct alloc_mode modes[] = {
	{ "new", forms },
	{ "throw", throws },
};

int main(int argc, char **argv)
{
	const char *mode = alloc_begin(argc, argv);

	alloc_run(mode, modes, sizeof(modes) / sizeof(modes[0]));
	return 0;
}

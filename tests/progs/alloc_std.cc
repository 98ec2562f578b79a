// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program of four functions that ask for memory by way of something else: the templates of the
 * standard library (fill_vector, fill_map), a wrapper of malloc of its own (my_malloc_wrapper), and an
 * operator new of its own, which takes from pool_take. Each does so a hundred times at SIGUSR1; then
 * it prints "done".
 */
#include <cstdlib>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "prog.h"

#define TIMES 100

struct alignas(64) wide {
	char bytes[640];
};

static volatile void *kept;

extern "C" NOIPA void *pool_take(size_t n)
{
	void *p = malloc(n + 64);

	NO_TAIL_CALL();
	return p;
}

void *operator new(size_t n, std::align_val_t)
{
	void *p = pool_take(n);

	NO_TAIL_CALL();
	return p;
}

extern "C" NOIPA void *my_malloc_wrapper(size_t n)
{
	void *p = malloc(n);

	NO_TAIL_CALL();
	return p;
}

extern "C" NOIPA void keep_bytes(void)
{
	kept = my_malloc_wrapper(300);
	NO_TAIL_CALL();
}

extern "C" NOIPA void take_wide(void)
{
	kept = new wide;
	NO_TAIL_CALL();
}

extern "C" NOIPA void fill_vector(std::vector<std::string> &v)
{
	v.push_back(std::string(100, 'x'));
	NO_TAIL_CALL();
}

extern "C" NOIPA void fill_map(std::map<int, std::string> &m, int i)
{
	m[i] = "longer than what fits into a string";
	NO_TAIL_CALL();
}

int main(int argc, char **argv)
{
	static std::vector<std::string> v;
	static std::map<int, std::string> m;

	prog_start(argc, argv);
	prog_ready_to_go();
	for (int i = 0; i < TIMES; i++) {
		keep_bytes();
		take_wide();
		fill_vector(v);
		fill_map(m, i);
	}
	if (write(STDOUT_FILENO, "done\n", 5) != 5)
		return 1;
	pause();
	return kept == nullptr;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * C++ names and unwinding by exceptions: main outer::run<int>(int) outer::Shape<char>::spin()
 * const. The time is spent in a catch block, after frames below were unwound by the language's own
 * means.
 */
#include <stdexcept>

#include "prog.h"

namespace outer
{
template <typename T> struct Shape {
	T value;
	NOIPA void spin() const
	{
		while (!prog_stop)
			prog_sink += value;
	}
};

static NOIPA void fail(int n)
{
	if (n)
		throw std::runtime_error("as meant");
}

template <typename T> NOIPA void run(T n)
{
	try {
		fail(n);
	} catch (const std::exception &e) {
		Shape<char> shape = { e.what()[0] };

		prog_ready();
		shape.spin();
		NO_TAIL_CALL();
	}
}
} // namespace outer

int main(int argc, char **argv)
{
	prog_start(argc, argv);
	outer::run<int>(argc);
	return 0;
}

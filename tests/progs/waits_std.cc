/* SPDX-License-Identifier: BSD-2-Clause */
/* A program with known waits (waits.h): in what C++ offers, also without pthreads below. */
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>

#include "waits.h"

static std::mutex mutex;
static std::shared_mutex shared;
static std::condition_variable cond;
static std::mutex cond_mutex;
static bool cond_is;
static std::atomic<int> number;

#define CALL(name, ...)          \
	static NOIPA void name() \
	{                        \
		__VA_ARGS__;     \
		NO_TAIL_CALL();  \
	}

static void take_mutex(int)
{
	mutex.lock();
}
CALL(waiter_std_mutex, mutex.lock())
CALL(holder_std_mutex, mutex.unlock())
CALL(drop_mutex, mutex.unlock())

static void take_shared(int)
{
	shared.lock();
}
CALL(waiter_std_shared, shared.lock_shared())
CALL(holder_std_shared, shared.unlock())
CALL(drop_shared, shared.unlock_shared())

static NOIPA void waiter_std_cond()
{
	std::unique_lock<std::mutex> lock(cond_mutex);

	cond.wait(lock, [] { return cond_is; });
	cond_is = false;
}

static NOIPA void holder_std_cond()
{
	{
		std::lock_guard<std::mutex> lock(cond_mutex);

		cond_is = true;
	}
	cond.notify_one();
	NO_TAIL_CALL();
}

static void make_number(int round)
{
	number = 2 * round;
}
CALL(waiter_std_atomic, number.wait(number & ~1))
CALL(holder_std_atomic, number |= 1; number.notify_all())

static waits_mode mode(const char *name, const char *waiter, const char *holder, int waiters,
		       void (*prepare)(int), void (*wait)(), void (*release)(), void (*after)())
{
	waits_mode m = {};

	m.name = name;
	m.waiter_fn = waiter;
	m.holder_fn = holder;
	m.waiters = waiters;
	m.prepare = prepare;
	m.wait = wait;
	m.release = release;
	m.after = after;
	return m;
}

int main(int argc, char **argv)
{
	const char *list = waits_begin(argc, argv);
	const waits_mode modes[] = {
		mode("std_mutex", "waiter_std_mutex", "holder_std_mutex", 1, take_mutex,
		     waiter_std_mutex, holder_std_mutex, drop_mutex),
		mode("std_shared", "waiter_std_shared", "holder_std_shared", 2, take_shared,
		     waiter_std_shared, holder_std_shared, drop_shared),
		mode("std_cond", "waiter_std_cond", "holder_std_cond", 1, nullptr, waiter_std_cond,
		     holder_std_cond, nullptr),
		mode("std_atomic", "waiter_std_atomic", "holder_std_atomic", 1, make_number,
		     waiter_std_atomic, holder_std_atomic, nullptr),
	};

	waits_run(list, modes, sizeof(modes) / sizeof(modes[0]));
	return 0;
}

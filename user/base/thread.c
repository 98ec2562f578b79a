// SPDX-License-Identifier: BSD-2-Clause
#include "base/thread.h"

#include <signal.h>

/* What the thread inherits is this one's mask. */
static int create(pthread_t *ret, const pthread_attr_t *attr, void *(*run)(void *arg), void *arg)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	err = pthread_sigmask(SIG_SETMASK, &all, &before);
	if (err)
		return err;
	err = pthread_create(ret, attr, run, arg);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

int thread_start(pthread_t *ret, size_t stack_sz, void *(*run)(void *arg), void *arg)
{
	pthread_attr_t attr;
	int err = pthread_attr_init(&attr);

	if (err)
		return -err;
	if (stack_sz)
		err = pthread_attr_setstacksize(&attr, stack_sz);
	if (!err)
		err = create(ret, &attr, run, arg);
	pthread_attr_destroy(&attr);
	return -err;
}

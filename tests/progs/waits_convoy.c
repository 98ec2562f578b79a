// SPDX-License-Identifier: BSD-2-Clause
/*
 * A lock convoy: eight threads need a lock for a moment each, four in convoy_read and four in
 * convoy_count; one, `keeper`, holds it in convoy_hold for two ms at a time. The lock is one for
 * readers and a writer, so that it is always the writer whom the others wait for, and never each
 * other.
 */
#include "waits.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static unsigned long shared_number;

static NOIPA void convoy_hold(void)
{
	uint64_t end;

	pthread_rwlock_wrlock(&lock);
	end = now_ns() + 2000000;
	while (now_ns() < end)
		shared_number++;
	pthread_rwlock_unlock(&lock);
	NO_TAIL_CALL();
}

static NOIPA void convoy_read(void)
{
	pthread_rwlock_rdlock(&lock);
	prog_sink += shared_number;
	pthread_rwlock_unlock(&lock);
	NO_TAIL_CALL();
}

static NOIPA void convoy_count(void)
{
	pthread_rwlock_rdlock(&lock);
	prog_sink += shared_number != 0;
	pthread_rwlock_unlock(&lock);
	NO_TAIL_CALL();
}

static void *keeper(void *arg)
{
	prctl(PR_SET_NAME, "keeper");
	for (;;) {
		convoy_hold();
		pause_us(200);
	}
	return arg;
}

static void *reader(void *arg)
{
	prctl(PR_SET_NAME, "reader");
	for (;;) {
		convoy_read();
		pause_us(100);
	}
	return arg;
}

static void *counter(void *arg)
{
	prctl(PR_SET_NAME, "counter");
	for (;;) {
		convoy_count();
		pause_us(100);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t;
	int i;

	waits_begin(argc, argv);
	waits_thread(&t, keeper, NULL);
	for (i = 0; i < 4; i++) {
		waits_thread(&t, reader, NULL);
		waits_thread(&t, counter, NULL);
	}
	pause_us(50000);
	prog_ready();
	while (!prog_stop)
		pause();
	return 0;
}

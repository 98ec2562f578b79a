/* SPDX-License-Identifier: BSD-2-Clause */
/* Work of many kinds for callcheck-programs: callbacks, formatting, allocation, threads that wait for each other, a signal. Ends when it is killed. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned long sum;

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void on_tick(int sig)
{
	for (int i = 0; i < 20000; i++)
		sum += sig;
}

static unsigned long fibonacci(unsigned n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static void sort_lines(void)
{
	char *lines[400], text[64];
	int i;

	for (i = 0; i < 400; i++) {
		snprintf(text, sizeof(text), "%d %.3f %s", rand(), rand() / 7.0, "line");
		lines[i] = strdup(text);
	}
	qsort(lines, 400, sizeof(*lines), compare);
	pthread_mutex_lock(&lock);
	for (i = 0; i < 400; i++)
		sum += strtoul(lines[i], NULL, 10);
	usleep(200);
	pthread_mutex_unlock(&lock);
	for (i = 0; i < 400; i++)
		free(lines[i]);
}

static void pass_bytes(void)
{
	char data[4096] = {};
	int fds[2];

	if (pipe(fds))
		return;
	if (write(fds[1], data, sizeof(data)) > 0 && read(fds[0], data, sizeof(data)) > 0)
		sum += data[7];
	close(fds[0]);
	close(fds[1]);
}

static void *work(void *arg)
{
	for (;;) {
		sort_lines();
		sum += fibonacci(18);
		pass_bytes();
		usleep(500);
	}
	return arg;
}

int main(void)
{
	struct itimerval every = { { 0, 3000 }, { 0, 3000 } };
	pthread_t t;

	signal(SIGPROF, on_tick);
	setitimer(ITIMER_PROF, &every, NULL);
	for (int i = 0; i < 3; i++)
		if (pthread_create(&t, NULL, work, NULL))
			return 1;
	work(NULL);
}

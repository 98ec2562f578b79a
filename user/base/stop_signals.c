// SPDX-License-Identifier: BSD-2-Clause
#include "base/stop_signals.h"

#include <stddef.h>

void stop_signals(sigset_t *ret)
{
	struct sigaction hangup;

	sigemptyset(ret);
	sigaddset(ret, SIGINT);
	sigaddset(ret, SIGTERM);
	sigaddset(ret, SIGXCPU);
	if (sigaction(SIGHUP, NULL, &hangup) || hangup.sa_handler != SIG_IGN)
		sigaddset(ret, SIGHUP);
}

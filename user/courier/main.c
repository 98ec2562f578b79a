// SPDX-License-Identifier: BSD-2-Clause
/* bpfprof-courier: carries profiles to stores, for bpfprof agent, serves /debug/pprof/, for bpfprof serve,
 * and fetches debug information, for bpfprof record, which start it. */
#include <curl/curl.h>
#include <malloc.h>
#include <stdio.h>

#include "courier/courier.h"
#include "courier/fetcher.h"
#include "courier/server.h"
#include "helper/helper.h"

#define KEPT_FREE (2 << 20) /* bytes */

int main(int argc, char **argv)
{
	int entered;

	/* a thread that looks names up needs no heap of its own */
	(void)mallopt(M_ARENA_MAX, 1);
	/* what a profile takes is taken again for the next: to give it back costs more than to send it */
	(void)mallopt(M_TRIM_THRESHOLD, KEPT_FREE);
	(void)mallopt(M_TOP_PAD, KEPT_FREE / 4);
	entered = helper_enter(SANDBOX_SERVER, argc, argv);
	if (entered)
		return entered > 0 && !server_serve(0) ? 0 : 1;
	/* reads the configuration of its libraries */
	if (curl_global_init(CURL_GLOBAL_ALL))
		return 1;
	entered = helper_enter(SANDBOX_FETCHER, argc, argv);
	if (entered)
		return entered > 0 && !fetcher_serve(0) ? 0 : 1;
	entered = helper_enter(SANDBOX_COURIER, argc, argv);
	if (!entered)
		fprintf(stderr, "%s: is started by bpfprof agent, serve and record\n",
			argc ? argv[0] : "?");
	return entered > 0 && !courier_serve(0) ? 0 : 1;
}

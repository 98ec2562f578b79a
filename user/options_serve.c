// SPDX-License-Identifier: BSD-2-Clause
#include "options_serve.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "courier/serve_wire.h"
#include "kinds.h"
#include "options.h"
#include "options_table.h"

void options_serve_defaults(struct options *o)
{
	o->listen = OPTIONS_SERVE_LISTEN;
}

/* Can the kind be recorded all the time? What is of one moment cannot, and CPU time is recorded for the
 * seconds that are asked for. */
static bool takes_always(int kind)
{
	bool ret = false;

	for (size_t i = 0; kind >= 0 && i < endpoint_cnt; i++)
		ret |= endpoints[i].what == ENDPOINT_PROFILE && !endpoints[i].at_once &&
		       !strcmp(endpoints[i].kind, kinds[kind].name);
	return ret;
}

static int fail_always(const char *arg, size_t sz, char *err, size_t err_sz)
{
	char names[256] = "";

	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		if (takes_always(i))
			snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
				 *names ? ", " : "", kinds[i].name);
	return util_fail(-EINVAL, err, err_sz, "--always: '%.*s' is none of %s",
			 (int)MIN(sz, (size_t)64), arg, names);
}

static int parse_always(struct options *o, const char *arg, char *err, size_t err_sz)
{
	while (true) {
		size_t sz = strcspn(arg, ",");
		int kind = kinds_find(arg, sz);

		if (!takes_always(kind))
			return fail_always(arg, sz, err, err_sz);
		o->kinds[kind] = true;
		if (!arg[sz])
			return 0;
		arg += sz + 1;
	}
}

bool options_serve_takes(int val)
{
	return val == OPT_ALWAYS || val == OPT_ALLOW_REMOTE || val == OPT_TOKEN_FILE;
}

int options_serve_apply(struct options *o, int val, const char *arg, char *err, size_t err_sz)
{
	switch (val) {
	case OPT_ALWAYS:
		return parse_always(o, arg, err, err_sz);
	case OPT_TOKEN_FILE:
		o->token_file = arg;
		return *arg ? 0 :
			      util_fail(-EINVAL, err, err_sz, "--token-file: the path is empty");
	default: /* OPT_ALLOW_REMOTE */
		o->allow_remote = true;
		return 0;
	}
}

int options_serve_check(struct options *o, char *err, size_t err_sz)
{
	bool always = false;

	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		always |= o->kinds[i];
	if (o->pids.cnt && o->all)
		return util_fail(-EINVAL, err, err_sz,
				 "--pid and --all exclude each other: give one of them");
	if (!o->pids.cnt && !o->all)
		return util_fail(-EINVAL, err, err_sz,
				 "nothing to serve: give --pid PID, or --all for whichever process "
				 "a request names");
	if (o->pids.cnt > 1)
		return util_fail(-EINVAL, err, err_sz,
				 "--pid takes one process here: --all serves whichever a request "
				 "names");
	if (always && !o->pids.cnt)
		return util_fail(-EINVAL, err, err_sz, "--always goes with --pid");
	if (o->allow_remote && !o->token_file)
		return util_fail(-EINVAL, err, err_sz,
				 "--allow-remote goes with --token-file FILE: without a token "
				 "everybody may ask");
	if (o->frequency > SERVE_MAX_HZ)
		return util_fail(-EINVAL, err, err_sz, "--frequency is above %u here",
				 SERVE_MAX_HZ);
	if (!(o->wait_budget > 0))
		o->wait_budget = OPTIONS_DEFAULT_WAIT_BUDGET;
	if (!(o->heap_budget > 0))
		o->heap_budget = OPTIONS_NAMED_HEAP_BUDGET;
	/* of one process, as with --pid */
	o->all = false;
	return 0;
}

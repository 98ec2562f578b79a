// SPDX-License-Identifier: BSD-2-Clause
#include "courier/endpoints.h"

#include <string.h>

#include "base/util.h"

const struct endpoint endpoints[] = {
	{ .name = "", .what = ENDPOINT_INDEX },
	{
		.name = "allocs",
		.what = ENDPOINT_PROFILE,
		.kind = "heap",
		.default_type = "alloc_space",
		.description = "What has been allocated, by the stack that allocated it. The same "
			       "samples as heap.",
	},
	{
		.name = "block",
		.what = ENDPOINT_PROFILE,
		.kind = "block",
		.description = "How long threads have slept for locks and other synchronization, "
			       "by the stack of the waiter.",
	},
	{
		.name = "cmdline",
		.what = ENDPOINT_CMDLINE,
		.description = "The command line of the process.",
	},
	{
		.name = "custom/",
		.what = ENDPOINT_PROFILE,
		.kind = "custom",
		.named = true,
		.description = "What the process has added to this profile and not removed "
			       "(bpfprof/profile.h), by the stack that added it.",
	},
	{
		.name = "fds",
		.what = ENDPOINT_PROFILE,
		.kind = "fds",
		.description = "The descriptors that are open, by the stack that opened them.",
	},
	{
		.name = "goroutine",
		.what = ENDPOINT_PROFILE,
		.kind = "threads",
		.at_once = true,
		.full = true,
		.description = "The stacks of all threads of the process at this moment. debug=2 "
			       "writes each thread by itself.",
	},
	{
		.name = "heap",
		.what = ENDPOINT_PROFILE,
		.kind = "heap",
		.description = "What has been allocated, and what of it is still held. gc is taken "
			       "and means nothing: memory that is not freed is held.",
	},
	{
		.name = "mutex",
		.what = ENDPOINT_PROFILE,
		.kind = "mutex",
		.description = "The same delays as block, by the stack of the waker: who held the "
			       "lock.",
	},
	{
		.name = "offcpu",
		.what = ENDPOINT_PROFILE,
		.kind = "offcpu",
		.description = "All time off the CPU, and why.",
	},
	{
		.name = "profile",
		.what = ENDPOINT_CPU,
		.kind = "cpu",
		.description = "Where CPU time is spent, of the seconds that the parameter seconds "
			       "says (30), hz times a second.",
	},
	{
		.name = "symbol",
		.what = ENDPOINT_SYMBOL,
		.description = "The functions at addresses: symbol?0x1234+0x5678, or the same in "
			       "the body of a POST.",
	},
	{
		.name = "threadcreate",
		.what = ENDPOINT_PROFILE,
		.kind = "threadcreate",
		.description = "The stacks that have created threads.",
	},
};

const size_t endpoint_cnt = ARRAY_SIZE(endpoints);

_Static_assert(ARRAY_SIZE(endpoints) <= ENDPOINTS_MAX, "messages have room for all");

const struct endpoint *endpoint_find(const char *path)
{
	for (size_t i = 0; i < endpoint_cnt; i++)
		if (endpoints[i].named ?
			    !strncmp(path, endpoints[i].name, strlen(endpoints[i].name)) :
			    !strcmp(path, endpoints[i].name))
			return &endpoints[i];
	return NULL;
}

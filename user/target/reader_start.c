/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/reader_start.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/own_stack.h"
#include "base/util.h"
#include "helper/helper.h"
#include "target/disassembler.h"
#include "target/reader_worker.h"

static const struct {
	enum sandbox kind;
	void (*serve)(void);
	bool disassembles;
} helpers[] = {
	{ SANDBOX_READER, reader_worker, true },
	{ SANDBOX_OPENER, reader_opener, false },
};

struct arguments {
	int argc;
	char **argv;
};

static void serve(void *arg)
{
	const struct arguments *a = arg;

	for (size_t i = 0; i < ARRAY_SIZE(helpers); i++) {
		int entered;

		/* nothing can be loaded in the sandbox */
		if (helpers[i].disassembles && a->argc &&
		    !strcmp(a->argv[0], sandbox_name(helpers[i].kind)) && disassembler_load())
			_exit(1);
		entered = helper_enter(helpers[i].kind, a->argc, a->argv);
		if (entered < 0)
			_exit(1);
		if (!entered)
			continue;
		helpers[i].serve();
		_exit(0);
	}
}

/*
 * Is this process one of them? A constructor, since every program that starts readers has to take
 * them on: a main that did not ask would start all over, and again for its own readers.
 */
static void __attribute__((constructor)) serve_if_started_for_it(int argc, char **argv)
{
	struct arguments a = { argc, argv };

	/* in the sandbox it would be too late to ask what stack there is */
	own_stack_run(serve, &a);
}

pid_t reader_start(enum sandbox kind, int in, int out)
{
	return helper_start(kind, HELPER_SELF, NULL, in, out);
}

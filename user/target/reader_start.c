/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/reader_start.h"

#include <unistd.h>

#include "base/util.h"
#include "helper/helper.h"
#include "target/reader_worker.h"

static const struct {
	enum sandbox kind;
	void (*serve)(void);
} helpers[] = {
	{ SANDBOX_READER, reader_worker },
	{ SANDBOX_OPENER, reader_opener },
};

/*
 * Is this process one of them? A constructor, since every program that starts readers has to take
 * them on: a main that did not ask would start all over, and again for its own readers.
 */
static void __attribute__((constructor)) serve(int argc, char **argv)
{
	for (size_t i = 0; i < ARRAY_SIZE(helpers); i++) {
		int entered = helper_enter(helpers[i].kind, argc, argv);

		if (entered < 0)
			_exit(1);
		if (!entered)
			continue;
		helpers[i].serve();
		_exit(0);
	}
}

pid_t reader_start(enum sandbox kind, int in, int out)
{
	return helper_start(kind, HELPER_SELF, NULL, in, out);
}

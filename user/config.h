/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent's configuration: an INI file whose keys are its long options, and with a section for
 * each destination, each target and each service.
 *
 *	frequency = 19
 *	[push "parca"]
 *	url = http://127.0.0.1:7070
 *	[target "redis"]
 *	comm = redis-server
 *	profile = heap,block
 *	[service "shop"]
 *	unit = shop-*
 */
#ifndef CONFIG_H
#define CONFIG_H

#include <stddef.h>

#include "agent/destination.h"
#include "agent/process_rule.h"
#include "courier/wire.h"

#define CONFIG_MAX_LINE \
	4096 /* bytes, with comments; where libinih can read no more than 198, 198 */
#define TARGET_PROCESSES_MAX 32 /* of a target: each costs those that share its allocator */

struct option_table;

struct config {
	char *path;
	/* as if they stood on the command line: "--frequency=19", and the lines that they are from */
	char **args;
	unsigned int *lines;
	size_t arg_cnt;
	struct destination push[WIRE_MAX_DESTINATIONS];
	size_t push_cnt;
	struct process_rule targets[PROCESS_RULES_MAX];
	unsigned int target_lines[PROCESS_RULES_MAX]; /* where they begin */
	size_t target_cnt;
	struct process_rule services[PROCESS_RULES_MAX]; /* the first one that matches holds */
	unsigned int service_lines[PROCESS_RULES_MAX];
	size_t service_cnt;
};

/*
 * Keys that no option of the table has are refused; what options say is not looked at here. 0; or
 * -EINVAL, -ENOMEM, or what open(2) has said, with one sentence in err, "FILE:LINE: what", and
 * nothing in *ret to be freed.
 */
int config_read(const char *path, const struct option_table *options, struct config *ret, char *err,
		size_t err_sz);
void config__done(struct config *c);

/* The line that an option's value is from, which is the very text of args; 0: of none. */
unsigned int config__line(const struct config *c, const char *value);

#endif

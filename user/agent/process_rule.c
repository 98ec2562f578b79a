/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/process_rule.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define MAX_NAME 64
#define MAX_PATTERN 1024
#define MAX_STARS 8    /* of a pattern: what a match takes grows with each */
#define COMM_LENGTH 15 /* of a thread's name at most (TASK_COMM_LEN less its end) */

static const char *const keys[PROCESS_NR_KEYS] = {
	[PROCESS_COMM] = "comm",	   [PROCESS_EXE] = "exe", [PROCESS_CGROUP] = "cgroup",
	[PROCESS_CONTAINER] = "container", [PROCESS_POD] = "pod", [PROCESS_NAMESPACE] = "namespace",
	[PROCESS_UNIT] = "unit",
};

const char *process_rule_key(enum process_key key)
{
	return keys[key];
}

static size_t count_stars(const char *pattern)
{
	size_t n = 0;

	for (; *pattern; pattern++)
		n += *pattern == '*';
	return n;
}

static int check_pattern(const char *key, const char *pattern, char *text, size_t text_sz)
{
	if (!*pattern || strlen(pattern) > MAX_PATTERN)
		return util_fail(-EINVAL, text, text_sz,
				 "%s: the pattern is empty, or longer than %d bytes", key,
				 MAX_PATTERN);
	if (count_stars(pattern) > MAX_STARS)
		return util_fail(-EINVAL, text, text_sz, "%s: the pattern has more than %d stars",
				 key, MAX_STARS);
	return 0;
}

int process_rule__check(const struct process_rule *rule, char *text, size_t text_sz)
{
	const char *comm = rule->patterns[PROCESS_COMM];
	bool any = false;
	int err = 0;

	/* it is a label of metrics */
	if (!*rule->name || strlen(rule->name) > MAX_NAME ||
	    strspn(rule->name,
		   "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") <
		    strlen(rule->name))
		return util_fail(-EINVAL, text, text_sz,
				 "a name has 1 to %d letters, digits, '.', '_' and '-'", MAX_NAME);
	for (int i = 0; !err && i < PROCESS_NR_KEYS; i++) {
		any |= rule->patterns[i] != NULL;
		if (rule->patterns[i])
			err = check_pattern(keys[i], rule->patterns[i], text, text_sz);
	}
	if (err)
		return err;
	if (!any)
		return util_fail(-EINVAL, text, text_sz,
				 "it does not say which processes: give a pattern, such as "
				 "comm = nginx");
	if (comm && !strpbrk(comm, "*?[\\") && strlen(comm) > COMM_LENGTH)
		return util_fail(-EINVAL, text, text_sz,
				 "comm: no name is that long: the kernel cuts them to %d bytes",
				 COMM_LENGTH);
	return 0;
}

void process_rule__done(struct process_rule *rule)
{
	free(rule->name);
	for (int i = 0; i < PROCESS_NR_KEYS; i++)
		free(rule->patterns[i]);
	*rule = (struct process_rule){ 0 };
}

static bool matches(const char *pattern, const char *value)
{
	return value && *value && !fnmatch(pattern, value, 0);
}

static bool matches_container(const char *pattern, const struct process_facts *facts)
{
	return matches(pattern, facts->of[PROCESS_CONTAINER]) ||
	       matches(pattern, facts->container_name) ||
	       matches(pattern, facts->container_service);
}

bool process_rule__matches(const struct process_rule *rule, const struct process_facts *facts)
{
	for (int i = 0; i < PROCESS_NR_KEYS; i++) {
		const char *pattern = rule->patterns[i];

		if (pattern && !(i == PROCESS_CONTAINER ? matches_container(pattern, facts) :
							  matches(pattern, facts->of[i])))
			return false;
	}
	return true;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/service.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

#define DIGITS "0123456789"
#define STATIC_UID 32 /* characters; others have 36 */
/* What Kubernetes makes random names and hashes of: no vowels, so that they are no words. */
#define RANDOM "bcdfghjklmnpqrstvwxz2456789"

/* Is what stands behind the last dash of the first len bytes from min to max of these characters?
 * Returns where the dash is, 0: no. */
static size_t last_part(const char *name, size_t len, const char *of, size_t min, size_t max)
{
	size_t dash = len, n;

	while (dash && name[dash - 1] != '-')
		dash--;
	n = len - dash;
	/* there is something before the dash */
	if (dash < 2 || n < min || n > max || strspn(name + dash, of) < n)
		return 0;
	return dash - 1;
}

size_t service_workload(const char *pod)
{
	size_t len = strlen(pod), random = last_part(pod, len, RANDOM, 5, 5), hash;

	if (!random) {
		size_t number = last_part(pod, len, DIGITS, 1, 6);

		return number ? number : len;
	}
	/* of a CronJob: the minute since 1970 */
	hash = last_part(pod, random, DIGITS, 8, 8);
	if (!hash)
		hash = last_part(pod, random, RANDOM, 8, 10);
	return hash ? hash : random;
}

size_t service_static_pod(const char *pod, const char *uid, const char *node)
{
	size_t len = strlen(pod), node_len = strlen(node);

	if (strlen(uid) != STATIC_UID || strchr(uid, '-') || !node_len || len < node_len + 2 ||
	    pod[len - node_len - 1] != '-' || strcasecmp(pod + len - node_len, node))
		return 0;
	return len - node_len - 1;
}

/* The first n bytes, with what would act on a terminal or break a line made harmless. */
static void take(char *ret, const char *text, size_t n)
{
	char cut[SERVICE_NAME_SZ];
	size_t sz = MIN(n, sizeof(cut) - 1), at = 0, len;
	uint32_t cp;

	snprintf(cut, sizeof(cut), "%.*s", (int)sz, text);
	/* not within a character */
	while (cut[at]) {
		len = util_utf8(cut + at, &cp);
		if (!len && at + 4 > sz && n > sz)
			cut[at] = '\0';
		else
			at += len ? len : 1;
	}
	util_printable(ret, SERVICE_NAME_SZ, cut);
}

/* Twelve digits of a container's id, behind the user's manager if it has one's name in front. Those of LXC
 * and systemd-nspawn are names, all of which is shown. */
static size_t shown_id(const char *id)
{
	const char *slash = strrchr(id, '/'), *own = slash ? slash + 1 : id;
	size_t len = strlen(own);

	if (strspn(own, DIGITS "abcdefABCDEF-") == len)
		len = MIN(len, 12);
	return (size_t)(own - id) + len;
}

static bool is_known(const char *text)
{
	return text && *text;
}

void service_name(const struct service_facts *f, char ret[static SERVICE_NAME_SZ])
{
	static const char service[] = ".service";

	if (is_known(f->said)) {
		take(ret, f->said, strlen(f->said));
	} else if (is_known(f->pod)) {
		take(ret, f->pod, service_workload(f->pod));
	} else if (is_known(f->container_service)) {
		take(ret, f->container_service, strlen(f->container_service));
	} else if (is_known(f->container)) {
		take(ret, f->container, strlen(f->container));
	} else if (is_known(f->container_id)) {
		take(ret, f->container_id, shown_id(f->container_id));
	} else if (is_known(f->unit)) {
		size_t len = strlen(f->unit), end = strlen(service);

		if (len > end && !strcmp(f->unit + len - end, service))
			len -= end;
		take(ret, f->unit, len);
	} else {
		take(ret, is_known(f->comm) ? f->comm : "unknown", SERVICE_NAME_SZ);
	}
}

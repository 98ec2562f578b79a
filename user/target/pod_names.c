// SPDX-License-Identifier: BSD-2-Clause
#include "target/pod_names.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_MIN 12 /* of an id that was cut: as short as any tool cuts it */
#define POD_NAME_MAX 253

/* RFC 1123, which the API server holds names to: of them alone is the underscore a mark between two. */
static bool is_name(const char *s, size_t len)
{
	return len && len <= POD_NAME_MAX &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-.") >= len;
}

/* The text up to the next underscore, or all of it up to `end`; moves *at behind it. NULL: no name. */
static char *take_name(const char **at, const char *end)
{
	const char *mark = memchr(*at, '_', (size_t)(end - *at)), *to = mark ? mark : end;
	char *ret = is_name(*at, (size_t)(to - *at)) ? strndup(*at, (size_t)(to - *at)) : NULL;

	*at = mark ? mark + 1 : end;
	return ret;
}

/* A name that was found before stays where there is no better one. */
static void replace(char **old, char *with)
{
	if (!with)
		return;
	free(*old);
	*old = with;
}

/* "<namespace>_<pod>_<uid>" */
static bool take_pod(const char *name, const char *uid, struct pod_names *ret)
{
	const char *last = strrchr(name, '_');

	if (!last || strcmp(last + 1, uid))
		return false;
	replace(&ret->space, take_name(&name, last));
	replace(&ret->pod, take_name(&name, last));
	return true;
}

/* "<pod>_<namespace>_<container>-<id>.log" */
static bool take_container(const char *name, const char *id, struct pod_names *ret)
{
	const char *dash = strrchr(name, '-'), *end = strrchr(name, '.');
	size_t len = dash && end && end > dash ? (size_t)(end - dash - 1) : 0;
	bool cut = strlen(name) == NAME_MAX;

	if (len < ID_MIN || strcmp(end, ".log") || strncmp(dash + 1, id, len) || (id[len] && !cut))
		return false;
	replace(&ret->pod, take_name(&name, dash));
	replace(&ret->space, take_name(&name, dash));
	replace(&ret->container, take_name(&name, dash));
	return true;
}

static void look_in(const char *logs, const char *folder, const char *id,
		    bool (*take)(const char *name, const char *id, struct pod_names *ret),
		    struct pod_names *ret)
{
	char path[512];
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%s", logs, folder);
	dir = *id ? opendir(path) : NULL;
	if (!dir)
		return;
	while ((e = readdir(dir)) && !take(e->d_name, id, ret))
		;
	closedir(dir);
}

void pod_names__find(const char *logs, const char *uid, const char *container,
		     struct pod_names *ret)
{
	look_in(logs, "containers", container, take_container, ret);
	/* whole, also where the other was cut */
	look_in(logs, "pods", uid, take_pod, ret);
}

void pod_names__done(struct pod_names *n)
{
	free(n->space);
	free(n->pod);
	free(n->container);
	free(n->service);
	*n = (struct pod_names){ 0 };
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/memory_max.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"

#define V2_FILE "memory.max"
#define V1_FILE "memory.limit_in_bytes"
#define MAX_FILE (4U << 20) /* bytes of what is read, which may be a line for each process */
#define LEAST (64ULL << 20) /* with less none could work */

/* "max" is no number, and version 1 has a very large one. */
static uint64_t read_limit(const char *folder, const char *name)
{
	char path[PATH_MAX], *text, *end;
	uint64_t ret = UINT64_MAX;
	size_t sz;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (util_read_file(path, MAX_FILE, &text, &sz))
		return ret;
	ret = strtoull(text, &end, 10);
	if (end == text)
		ret = UINT64_MAX;
	free(text);
	return ret;
}

/* Of a group below root, and of all between. */
static uint64_t least(const char *root, const char *path, const char *name)
{
	char folder[PATH_MAX];
	uint64_t ret = UINT64_MAX;

	if ((size_t)snprintf(folder, sizeof(folder), "%s%s", root, path) >= sizeof(folder))
		return ret;
	while (strlen(folder) >= strlen(root)) {
		ret = MIN(ret, read_limit(folder, name));
		*strrchr(folder, '/') = '\0';
	}
	return ret;
}

/* Does a group hold the process? -errno: it is none. */
static int holds(const char *folder, pid_t pid)
{
	char path[PATH_MAX], *text, *save;
	bool found = false;
	size_t sz;
	int err;

	snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
	err = util_read_file(path, MAX_FILE, &text, &sz);
	if (err)
		return err;
	for (char *line = strtok_r(text, "\n", &save); line && !found;
	     line = strtok_r(NULL, "\n", &save))
		found = atoi(line) == pid;
	free(text);
	return found;
}

/* Makes of folder, which has room for PATH_MAX, the one of the group that the process is in. */
static bool find(char *folder, pid_t pid)
{
	size_t len = strlen(folder);
	int held = holds(folder, pid);
	bool found = held > 0;
	DIR *dir = held ? NULL : opendir(folder);
	struct dirent *e;

	while (dir && !found && (e = readdir(dir))) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		if ((size_t)snprintf(folder + len, PATH_MAX - len, "/%s", e->d_name) <
		    PATH_MAX - len)
			found = find(folder, pid);
		if (!found)
			folder[len] = '\0';
	}
	if (dir)
		closedir(dir);
	return found;
}

static uint64_t of_v2(const char *root, const char *path, pid_t pid)
{
	char own[PATH_MAX], file[PATH_MAX];

	snprintf(file, sizeof(file), "%s/" V2_FILE, root);
	/* the first group of a namespace is "/" there, and has that file where the namespace's is mounted */
	if (strcmp(path, "/") || !access(file, F_OK))
		return least(root, path, V2_FILE);
	snprintf(own, sizeof(own), "%s", root);
	return find(own, pid) ? least(root, own + strlen(root), V2_FILE) : UINT64_MAX;
}

/* Is it one of those between commas? */
static bool has_memory(const char *controllers)
{
	size_t len;

	for (;; controllers += len + 1) {
		len = strcspn(controllers, ",");
		if (len == strlen("memory") && !strncmp(controllers, "memory", len))
			return true;
		if (!controllers[len])
			return false;
	}
}

uint64_t memory_max_of(const char *mount, const char *groups, pid_t pid)
{
	char text[PATH_MAX + 256], v1[PATH_MAX], *controllers, *path;
	uint64_t ret = UINT64_MAX;
	size_t len;

	snprintf(v1, sizeof(v1), "%s/memory", mount);
	/* "0::/path" of version 2, "4:cpu,memory:/path" of version 1 */
	for (; *groups; groups += len + (groups[len] == '\n')) {
		len = strcspn(groups, "\n");
		snprintf(text, sizeof(text), "%.*s", (int)MIN(len, sizeof(text)), groups);
		controllers = strchr(text, ':');
		path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		*controllers++ = *path++ = '\0';
		if (!*controllers)
			ret = MIN(ret, of_v2(mount, path, pid));
		else if (has_memory(controllers))
			ret = MIN(ret, least(v1, path, V1_FILE));
	}
	return ret;
}

uint64_t memory_max(void)
{
	static uint64_t known; /* 0: not asked yet */
	uint64_t ret = UINT64_MAX;
	char *groups;
	size_t sz;

	if (known)
		return known;
	if (!util_read_file("/proc/self/cgroup", MAX_FILE, &groups, &sz)) {
		ret = MAX(memory_max_of("/sys/fs/cgroup", groups, getpid()), 1);
		free(groups);
	}
	known = ret;
	return ret;
}

uint64_t memory_max_share(uint64_t max, unsigned int part, uint64_t usual)
{
	return MIN(usual, MAX(max / part, LEAST));
}

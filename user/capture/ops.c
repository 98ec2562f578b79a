// SPDX-License-Identifier: BSD-2-Clause
#include "capture/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "target/objects.h"

/* ---- its name ---- */

/* False if it is empty or too long. */
static bool take(const char *text, size_t sz, char *ret, size_t ret_sz)
{
	if (!sz || sz >= ret_sz)
		return false;
	memcpy(ret, text, sz);
	ret[sz] = '\0';
	return true;
}

static int parse_function(const char *text, struct ops_probe *ret)
{
	const char *colon = text;

	while ((colon = strchr(colon, ':')) && colon[1] == ':')
		colon += 2;
	if (colon && !take(text, (size_t)(colon - text), ret->file, sizeof(ret->file)))
		return -EINVAL;
	text = colon ? colon + 1 : text;
	return take(text, strlen(text), ret->name, sizeof(ret->name)) ? 0 : -EINVAL;
}

static int parse_usdt(const char *text, struct ops_probe *ret)
{
	const char *name = strrchr(text, ':'), *provider = name;

	if (!name)
		return -EINVAL;
	while (provider > text && provider[-1] != ':')
		provider--;
	if (provider > text &&
	    !take(text, (size_t)(provider - text) - 1, ret->file, sizeof(ret->file)))
		return -EINVAL;
	return take(provider, (size_t)(name - provider), ret->provider, sizeof(ret->provider)) &&
			       take(name + 1, strlen(name + 1), ret->name, sizeof(ret->name)) ?
		       0 :
		       -EINVAL;
}

int ops_probe_parse(const char *text, struct ops_probe *ret)
{
	*ret = (struct ops_probe){ 0 };
	if (!strncmp(text, "uprobe:", 7))
		return parse_function(text + 7, ret);
	return strncmp(text, "usdt:", 5) ? -EINVAL : parse_usdt(text + 5, ret);
}

/* ---- its sites ---- */

static int fail_to_find(const struct ops_sites *s, const struct ops_probe *p, int res, char *err,
			size_t err_sz)
{
	const char *path = s->path, *name = p->name;

	if (res == -ENOTUNIQ)
		return util_fail(res, err, err_sz,
				 "'%s' has several functions '%s': give one of them its full name, "
				 "as nm prints it",
				 path, name);
	if (res == -EOVERFLOW)
		return util_fail(res, err, err_sz, "'%s' has '%s:%s' in more than %d places", path,
				 p->provider, name, PROBE_SITES_MAX);
	if (res == -EOPNOTSUPP)
		return util_fail(res, err, err_sz,
				 "'%s' has '%s:%s' where a probe could do harm: name a function",
				 path, p->provider, name);
	if (res != -ENOENT)
		return util_fail(res, err, err_sz, "cannot look for '%s' in '%s': %s", name, path,
				 strerror(-res));
	if (*p->provider)
		return util_fail(res, err, err_sz,
				 "'%s' has no USDT probe '%s:%s': name the file that has it, as in "
				 "usdt:FILE:PROVIDER:NAME",
				 path, p->provider, name);
	return util_fail(res, err, err_sz,
			 "'%s' has no function '%s': name the file that has it, as in "
			 "uprobe:FILE:FUNCTION",
			 path, name);
}

/* Whoever opens it has another working directory. */
static int set_path(struct ops_sites *s, const char *path)
{
	char folder[PATH_MAX] = "";

	if (*path != '/' && !getcwd(folder, sizeof(folder)))
		return -errno;
	while (!strncmp(path, "./", 2))
		path += 2;
	return (size_t)snprintf(s->path, sizeof(s->path), "%s%s%s", folder, *folder ? "/" : "",
				path) < sizeof(s->path) ?
		       0 :
		       -ENAMETOOLONG;
}

/* Gets hold of the file. */
static int open_file(struct ops_sites *s, struct objects *objects, const struct ops_probe *p,
		     const char *argv0, char *err, size_t err_sz)
{
	char found[PATH_MAX];
	const char *path = p->file;

	if (!*path) {
		if (!util_find_program(argv0, found, sizeof(found)))
			return util_fail(-ENOENT, err, err_sz, "cannot find '%s' in PATH", argv0);
		path = found;
	}
	s->fd = set_path(s, path);
	if (!s->fd)
		s->fd = objects__open(objects, s->path);
	if (s->fd < 0)
		return util_fail(s->fd, err, err_sz, "cannot open '%s': %s", path,
				 strerror(-s->fd));
	return 0;
}

static int find(struct ops_sites *s, struct objects *objects, const struct ops_probe *p, char *err,
		size_t err_sz)
{
	int fd = fcntl(s->fd, F_DUPFD_CLOEXEC, 0), res;
	uint32_t object = fd < 0 ? OBJECTS_NONE : objects__add(objects, fd, s->path);

	if (object == OBJECTS_NONE)
		return util_fail(-errno, err, err_sz, "cannot read '%s': %s", s->path,
				 errno == EINVAL ? "it is no regular file" : strerror(errno));
	if (!objects__info(objects, object)->readable)
		return util_fail(-ENOEXEC, err, err_sz,
				 "'%s' is no ELF file of x86-64: name the one that is to be probed",
				 s->path);
	res = objects__sites(objects, object, p->provider, p->name, PROBE_SITES_HIT, &s->sites);
	return res ? fail_to_find(s, p, res, err, err_sz) : 0;
}

int ops_sites__find(struct ops_sites *s, struct objects *objects, const char *probe,
		    const char *argv0, char *err, size_t err_sz)
{
	struct ops_probe p;
	int res = ops_probe_parse(probe, &p);

	*s = (struct ops_sites){ .fd = -1 };
	if (res)
		return util_fail(res, err, err_sz, "'%s' is no probe", probe);
	res = open_file(s, objects, &p, argv0, err, err_sz);
	if (!res)
		res = find(s, objects, &p, err, err_sz);
	if (res)
		ops_sites__done(s);
	return res;
}

void ops_sites__done(struct ops_sites *s)
{
	probe_sites__done(&s->sites);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

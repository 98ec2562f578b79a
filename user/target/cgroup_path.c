// SPDX-License-Identifier: BSD-2-Clause
#include "target/cgroup_path.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/deleted.h"
#include "base/util.h"

struct part {
	const char *s;
	size_t len;
};

/* How far the path has been read. */
struct state {
	struct cgroup_path *ret;
	struct part parent, above; /* the parts before this one */
	struct part manager;	   /* the user's manager that it is below; "": none */
	bool in_kubepods, in_pod;
};

static bool begins(const struct part *p, const char *with)
{
	size_t len = strlen(with);

	return p->len >= len && !memcmp(p->s, with, len);
}

static bool ends(const struct part *p, const char *with)
{
	size_t len = strlen(with);

	return p->len >= len && !memcmp(p->s + p->len - len, with, len);
}

static bool is(const struct part *p, const char *name)
{
	return p->len == strlen(name) && !memcmp(p->s, name, p->len);
}

/* p without what it begins and ends with; false if it does not. */
static bool strip(struct part *p, const char *prefix, const char *suffix)
{
	size_t before = strlen(prefix), behind = strlen(suffix);

	if (p->len < before + behind || !begins(p, prefix) || !ends(p, suffix))
		return false;
	p->s += before;
	p->len -= before + behind;
	return true;
}

static int digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* systemd.unit(5): what a name may not hold is written as \xNN. */
static void set(char *to, size_t sz, const struct part *p)
{
	size_t n = 0;

	if (p->len >= sz)
		return;
	for (size_t i = 0; i < p->len; i++) {
		const char *s = p->s + i;

		if (p->len - i >= 4 && s[0] == '\\' && s[1] == 'x' &&
		    isxdigit((unsigned char)s[2]) && isxdigit((unsigned char)s[3])) {
			to[n++] = (char)(digit(s[2]) * 16 + digit(s[3]));
			i += 3;
		} else {
			to[n++] = *s;
		}
	}
	to[n] = '\0';
}

/* The same of what somebody may call as he likes, also as others' are: with the name of his manager in
 * front, "": it is the system's. */
static void set_below(char *to, size_t sz, const struct part *manager, const struct part *p)
{
	size_t n;

	if (!manager->len) {
		set(to, sz, p);
		return;
	}
	if (manager->len + 1 + p->len >= sz)
		return;
	set(to, sz, manager);
	n = strlen(to);
	to[n] = '/';
	set(to + n + 1, sz - n - 1, p);
}

static bool all(const struct part *p, int (*is_one)(int c), const char *also)
{
	for (size_t i = 0; i < p->len; i++)
		if (!is_one((unsigned char)p->s[i]) && !strchr(also, p->s[i]))
			return false;
	return p->len;
}

/* ---- containers ---- */

#define ID_MIN 12 /* of a hexadecimal id: as short as any tool cuts it */

/* 64 digits as a rule; ECS: 32, a dash, a number; Garden: a UUID. */
static bool is_id(const struct part *p)
{
	return p->len >= ID_MIN && all(p, isxdigit, "-") && p->s[0] != '-';
}

/* Groups of a runtime's own processes, beside its containers. */
static bool is_monitor(const struct part *p)
{
	return begins(p, "crio-conmon-") || begins(p, "libpod-conmon-") || begins(p, "lxc.monitor");
}

static const struct {
	const char *prefix, *suffix;
	bool named; /* the id is a name, of any form */
} forms[] = {
	{ "cri-containerd-", ".scope", false },
	{ "nerdctl-", ".scope", false },
	{ "crio-", ".scope", false },
	{ "crio-", "", false },
	{ "docker-", ".scope", false },
	{ "libpod-payload-", "", false },
	{ "libpod-", ".scope", false },
	{ "libpod-", "", false },
	{ "lxc.payload.", "", true },
	{ "machine-", ".scope", true },
	{ "systemd-nspawn@", ".service", true },
};

/* Folders whose entries are containers, and nothing else. */
static const struct {
	const char *folder;
	bool named;
} folders[] = {
	{ "docker", false },	    { "buildkit", true }, { "lxc", true },
	{ "ecs", false },	    { "garden", false },  { "default", false },
	{ "libpod_parent", false },
};

static bool take_container(struct state *s, const struct part *id, bool named)
{
	if (named ? !id->len : !is_id(id))
		return false;
	s->ret->container[0] = '\0';
	set_below(s->ret->container, sizeof(s->ret->container), &s->manager, id);
	return true;
}

/* ---- pods ---- */

/* "kubepods-burstable-pod<uid with underscores>.slice"; the other driver's: "pod<uid>". */
static bool take_pod(struct state *s, const struct part *part, bool in_kubepods)
{
	struct part p = *part;
	char uid[sizeof(s->ret->pod)];

	/* kubelet is no user's: whatever is called so there is meant to be taken for it */
	if (s->manager.len)
		return false;
	if (strip(&p, "", ".slice")) {
		const char *at;

		/* kind, minikube and their like have names of their own in front */
		at = memmem(p.s, p.len, "kubepods-", strlen("kubepods-"));
		if (!at)
			return false;
		p.len -= at - p.s;
		p.s = at;
		strip(&p, "kubepods-", "");
		strip(&p, "burstable-", "");
		strip(&p, "besteffort-", "");
	} else if (!in_kubepods) {
		return false;
	}
	if (!strip(&p, "pod", "") || (p.len != 36 && p.len != 32) || !all(&p, isxdigit, "-_"))
		return false;
	snprintf(uid, sizeof(uid), "%.*s", (int)p.len, p.s);
	for (char *c = uid; (c = strchr(c, '_'));)
		*c = '-';
	memcpy(s->ret->pod, uid, sizeof(uid));
	return true;
}

/* containerd below systemd, in one part: "kubepods-pod<uid>.slice:cri-containerd:<id>". */
static bool take_joined(struct state *s, const struct part *part)
{
	const char *first = memchr(part->s, ':', part->len), *last;
	struct part pod, id;

	if (!first)
		return false;
	last = memrchr(part->s, ':', part->len);
	pod = (struct part){ part->s, (size_t)(first - part->s) };
	id = (struct part){ last + 1, (size_t)(part->s + part->len - last - 1) };
	if (last == first)
		return false;
	(void)take_pod(s, &pod, false);
	return take_container(s, &id, false);
}

/* ---- all of it ---- */

static bool take_form(struct state *s, const struct part *part)
{
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct part id = *part;

		if (strip(&id, forms[i].prefix, forms[i].suffix) &&
		    take_container(s, &id, forms[i].named))
			return true;
	}
	return take_joined(s, part);
}

/* By the folder that it is in, and the one above that. */
static bool take_entry(struct state *s, const struct part *part)
{
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		if (is(&s->parent, folders[i].folder) && take_container(s, part, folders[i].named))
			return true;
	/* /ecs/<task>/<id>, and in a pod, by kubelet's own driver */
	return (is(&s->above, "ecs") || s->in_pod) && take_container(s, part, false);
}

static void take_unit(struct state *s, const struct part *p)
{
	if (!s->ret->container[0])
		set_below(s->ret->unit, sizeof(s->ret->unit), &s->manager, p);
	if (!s->manager.len && begins(p, "user@") && ends(p, ".service"))
		s->manager = *p;
}

static void take(struct state *s, const struct part *p)
{
	if (take_pod(s, p, s->in_kubepods))
		s->in_pod = true;
	else if (!take_form(s, p) && !take_entry(s, p) &&
		 (ends(p, ".service") || ends(p, ".scope")))
		take_unit(s, p);
}

void cgroup_path__parse(const char *path, struct cgroup_path *ret)
{
	struct part whole = { path, deleted_path_length(path, strlen(path)) };
	struct state s = { .ret = ret, .parent = { "", 0 }, .above = { "", 0 } };

	memset(ret, 0, sizeof(*ret));
	while (whole.len) {
		const char *slash = memchr(whole.s, '/', whole.len);
		struct part p = { whole.s, slash ? (size_t)(slash - whole.s) : whole.len };

		whole.s += p.len + (slash != NULL);
		whole.len -= p.len + (slash != NULL);
		if (!p.len)
			continue;
		/* what runs a container is in none, and in its unit */
		if (is_monitor(&p))
			return;
		take(&s, &p);
		s.in_kubepods |= is(&p, "kubepods");
		s.above = s.parent;
		s.parent = p;
	}
}

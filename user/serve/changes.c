// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "serve/changes.h"

#include <errno.h>
#include <unistd.h>

#include "base/util.h"
#include "profile/profile.h"

int changes__add(struct changes *c, const struct asked *a, struct profile *before)
{
	struct change *change = &c->all[c->cnt];

	if (c->cnt == ARRAY_SIZE(c->all)) {
		profile__free(before);
		return -EBUSY;
	}
	*change = (struct change){ .asked = *a };
	change->pidfd = util_pidfd_open(a->pid);
	if (change->pidfd < 0 && errno != ENOSYS) {
		int err = errno;

		profile__free(before);
		return -err;
	}
	change->asked.before = before;
	change->due_ns = util_monotonic_ns() + a->seconds * NSEC_PER_SEC;
	c->cnt++;
	return 0;
}

bool changes__take(struct changes *c, uint64_t now_ns, struct asked *ret)
{
	for (size_t i = 0; i < c->cnt; i++) {
		if (c->all[i].due_ns > now_ns)
			continue;
		c->all[i].due_ns = UINT64_MAX;
		*ret = c->all[i].asked;
		return true;
	}
	return false;
}

bool changes__ended(const struct changes *c, struct asked *ret)
{
	for (size_t i = 0; i < c->cnt; i++) {
		struct pollfd p = { .fd = c->all[i].pidfd, .events = POLLIN };

		/* what is on its way is answered by the recording */
		if (c->all[i].due_ns == UINT64_MAX || poll(&p, 1, 0) <= 0)
			continue;
		*ret = c->all[i].asked;
		return true;
	}
	return false;
}

size_t changes__fds(const struct changes *c, struct pollfd *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < c->cnt; i++)
		if (c->all[i].due_ns != UINT64_MAX)
			ret[n++] = (struct pollfd){ .fd = c->all[i].pidfd, .events = POLLIN };
	return n;
}

uint64_t changes__next_ns(const struct changes *c)
{
	uint64_t ns = UINT64_MAX;

	for (size_t i = 0; i < c->cnt; i++)
		ns = MIN(ns, c->all[i].due_ns);
	return ns;
}

static void drop(struct changes *c, size_t i)
{
	profile__free(c->all[i].asked.before);
	if (c->all[i].pidfd >= 0)
		close(c->all[i].pidfd);
	c->all[i] = c->all[--c->cnt];
}

void changes__drop(struct changes *c, uint64_t number)
{
	for (size_t i = 0; i < c->cnt; i++) {
		if (c->all[i].asked.number != number)
			continue;
		drop(c, i);
		return;
	}
}

void changes__drop_all(struct changes *c)
{
	while (c->cnt)
		drop(c, c->cnt - 1);
}

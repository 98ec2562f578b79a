// SPDX-License-Identifier: BSD-2-Clause
/* Capabilities by their system calls: libcap has nothing more for what is needed here. */
#include "base/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORDS _LINUX_CAPABILITY_U32S_3

struct sets {
	uint64_t permitted, effective, inheritable;
};

static int get(struct sets *ret)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[WORDS];

	*ret = (struct sets){ 0 };
	if (syscall(SYS_capget, &head, data))
		return -errno;
	ret->permitted = (uint64_t)data[1].permitted << 32 | data[0].permitted;
	ret->effective = (uint64_t)data[1].effective << 32 | data[0].effective;
	ret->inheritable = (uint64_t)data[1].inheritable << 32 | data[0].inheritable;
	return 0;
}

static int set(const struct sets *s)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[WORDS] = {
		{ .permitted = (uint32_t)s->permitted,
		  .effective = (uint32_t)s->effective,
		  .inheritable = (uint32_t)s->inheritable },
		{ .permitted = s->permitted >> 32,
		  .effective = s->effective >> 32,
		  .inheritable = s->inheritable >> 32 },
	};

	return syscall(SYS_capset, &head, data) ? -errno : 0;
}

int caps_get(uint64_t *ret_permitted, uint64_t *ret_effective)
{
	struct sets s;
	int err = get(&s);

	if (err)
		return err;
	*ret_permitted = s.permitted;
	*ret_effective = s.effective;
	return 0;
}

int caps_set(uint64_t permitted, uint64_t effective)
{
	return set(&(struct sets){ .permitted = permitted, .effective = effective });
}

int caps_hand_on(uint64_t mask)
{
	struct sets s;
	int err = get(&s);

	if (err)
		return err;
	s.inheritable = s.effective & mask;
	err = set(&s);
	/* an exec by a user other than root clears what is not ambient */
	for (int cap = 0; !err && s.inheritable >> cap; cap++)
		if (s.inheritable & CAPS_BIT(cap) &&
		    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0))
			err = -errno;
	return err;
}

int caps_handed_on(uint64_t *ret)
{
	struct sets s;
	int err = get(&s);

	if (!err)
		*ret = s.inheritable;
	return err;
}

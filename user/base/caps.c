// SPDX-License-Identifier: BSD-2-Clause
/* Capabilities by their system calls: libcap has nothing more for what is needed here. */
#include "base/caps.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORDS _LINUX_CAPABILITY_U32S_3

int caps_get(uint64_t *ret_permitted, uint64_t *ret_effective)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[WORDS];

	if (syscall(SYS_capget, &head, data))
		return -errno;
	*ret_permitted = (uint64_t)data[1].permitted << 32 | data[0].permitted;
	*ret_effective = (uint64_t)data[1].effective << 32 | data[0].effective;
	return 0;
}

int caps_set(uint64_t permitted, uint64_t effective)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[WORDS] = {
		{ .permitted = (uint32_t)permitted, .effective = (uint32_t)effective },
		{ .permitted = permitted >> 32, .effective = effective >> 32 },
	};

	return syscall(SYS_capset, &head, data) ? -errno : 0;
}

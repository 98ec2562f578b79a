// SPDX-License-Identifier: BSD-2-Clause
/* Which capabilities a command keeps. */
#include "record/rights.h"

#include <linux/capability.h>
#include <stdint.h>

#include "base/caps.h"
#include "kernel/features.h"

#define KEPT                                                                                       \
	(CAPS_BIT(CAP_BPF) | CAPS_BIT(CAP_PERFMON) | CAPS_BIT(CAP_SYS_PTRACE) |                    \
	 CAPS_BIT(CAP_DAC_READ_SEARCH) | CAPS_BIT(CAP_CHECKPOINT_RESTORE) | CAPS_BIT(CAP_SYSLOG) | \
	 CAPS_BIT(CAP_KILL) | CAPS_BIT(CAP_SETUID) | CAPS_BIT(CAP_SETGID))
#define TO_WRITE (CAPS_BIT(CAP_DAC_OVERRIDE) | CAPS_BIT(CAP_CHOWN) | CAPS_BIT(CAP_FOWNER))

int rights_reduce(bool perf_probes)
{
	uint64_t permitted, effective, kept = KEPT;
	int err = caps_get(&permitted, &effective);
	const char *text;

	if (err)
		return err;
	/* perf's uprobes: since the mending of CVE-2025-38466 */
	if (perf_probes || !features_paranoid(features_paranoid_level(), false, &text))
		kept |= CAPS_BIT(CAP_SYS_ADMIN);
	/* not in force before: not now either */
	return caps_set(permitted & (kept | TO_WRITE), effective & kept);
}

int rights_for_files(void)
{
	const uint64_t kept = CAPS_BIT(CAP_DAC_READ_SEARCH) | TO_WRITE;
	uint64_t permitted, effective;
	int err = caps_get(&permitted, &effective);

	return err ? err : caps_set(permitted & kept, effective & kept);
}

void rights_to_write(bool on)
{
	uint64_t permitted, effective;

	if (caps_get(&permitted, &effective))
		return;
	effective = on ? effective | (permitted & TO_WRITE) : effective & ~TO_WRITE;
	/* nothing is added to what is permitted: this cannot fail */
	(void)caps_set(permitted, effective);
}

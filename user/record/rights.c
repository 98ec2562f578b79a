// SPDX-License-Identifier: BSD-2-Clause
/* Which capabilities a command keeps. */
#include "record/rights.h"

#include <linux/capability.h>
#include <stdint.h>

#include "base/caps.h"
#include "kernel/features.h"
#include "target/proc_text.h"

#define KEPT                                                                                       \
	(CAPS_BIT(CAP_BPF) | CAPS_BIT(CAP_PERFMON) | CAPS_BIT(CAP_SYS_PTRACE) |                    \
	 CAPS_BIT(CAP_DAC_READ_SEARCH) | CAPS_BIT(CAP_CHECKPOINT_RESTORE) | CAPS_BIT(CAP_SYSLOG) | \
	 CAPS_BIT(CAP_KILL) | CAPS_BIT(CAP_SETUID) | CAPS_BIT(CAP_SETGID))
/* The first does where there are no CAP_BPF and CAP_PERFMON; maps of kernels before 5.11 are bounded
 * by a limit that takes the second; two recordings lock all that rings of a user may without the last. */
#define TO_LOAD (CAPS_BIT(CAP_SYS_ADMIN) | CAPS_BIT(CAP_SYS_RESOURCE) | CAPS_BIT(CAP_IPC_LOCK))
#define TO_WRITE (CAPS_BIT(CAP_DAC_OVERRIDE) | CAPS_BIT(CAP_CHOWN) | CAPS_BIT(CAP_FOWNER))

static uint64_t always; /* of TO_LOAD, what stays in force */

/* at_times: permitted, but not in force. */
static int reduce(bool perf_probes, uint64_t at_times)
{
	uint64_t permitted, effective, kept = KEPT;
	int err = caps_get(&permitted, &effective);
	const char *text;

	if (err)
		return err;
	/* perf's uprobes: since the mending of CVE-2025-38466 */
	if (perf_probes || !features_paranoid(features_paranoid_level(), false, &text))
		kept |= CAPS_BIT(CAP_SYS_ADMIN);
	always = kept & TO_LOAD;
	/* not in force before: not now either */
	err = caps_set(permitted & (kept | at_times), effective & kept);
	proc_text_restart();
	return err;
}

int rights_reduce(bool perf_probes)
{
	return reduce(perf_probes, TO_WRITE);
}

int rights_reduce_but_load(bool perf_probes)
{
	return reduce(perf_probes, TO_LOAD);
}

int rights_for_files(void)
{
	const uint64_t kept = CAPS_BIT(CAP_DAC_READ_SEARCH) | TO_WRITE;
	uint64_t permitted, effective;
	int err = caps_get(&permitted, &effective);

	return err ? err : caps_set(permitted & kept, effective & kept);
}

static void put_in_force(uint64_t caps, bool on)
{
	uint64_t permitted, effective;

	if (caps_get(&permitted, &effective))
		return;
	effective = on ? effective | (permitted & caps) : effective & ~caps;
	/* nothing is added to what is permitted: this cannot fail */
	(void)caps_set(permitted, effective);
}

void rights_to_write(bool on)
{
	put_in_force(TO_WRITE, on);
}

void rights_to_load(bool on)
{
	put_in_force(TO_LOAD & ~always, on);
}

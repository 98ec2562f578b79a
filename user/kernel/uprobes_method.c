// SPDX-License-Identifier: BSD-2-Clause
/* By which method instructions of user programs can be probed here, and if by none, why. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "kernel/uprobes.h"
#include "kernel/uprobes_parts.h"

#define EVENT_SOURCE "/sys/bus/event_source/devices/uprobe/"

const char *uprobes_method_name(enum uprobe_method m)
{
	static const char *const names[] = {
		[UPROBES_SESSION] = "session", [UPROBES_MULTI] = "multi", [UPROBES_PERF] = "perf",
		[UPROBES_EVENT] = "event",     [UPROBES_NONE] = "none",
	};

	return names[m];
}

bool uprobes_by_events(enum uprobe_method m)
{
	return m == UPROBES_PERF || m == UPROBES_EVENT;
}

int uprobes_attach_type(enum uprobe_method m)
{
	switch (m) {
	case UPROBES_SESSION:
		return UPROBES_ATTACH_SESSION;
	case UPROBES_MULTI:
		return UPROBES_ATTACH_MULTI;
	default:
		return 0;
	}
}

int uprobes_load_empty(enum uprobe_method m)
{
	/* r0 = 1, which of a session says that the return is of no interest; exit */
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts,
		    .expected_attach_type = (enum bpf_attach_type)uprobes_attach_type(m));

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "bpfprof_probe", "GPL", insns, ARRAY_SIZE(insns),
			     &opts);
}

/*
 * Is there such a link, and does its filter by process mean the process? Until 46ba0e49b642 (6.10,
 * 6.9.5, 6.6.34) the program ran only for the one thread that the pid names. That commit also made
 * a negative pid an error of its own, ahead of all others, for this question to be asked. So, of a
 * file that cannot be probed: without a pid, EBADF where there are such links; with pid -1, EINVAL
 * where they filter well. Nothing is attached by any kernel, so none waits 40 ms to detach it.
 */
static bool filters_process(enum uprobe_method m, int prog_fd)
{
	const uint64_t offset = 0;
	struct multi_attr attr = {
		.prog_fd = (uint32_t)prog_fd,
		.attach_type = (uint32_t)uprobes_attach_type(m),
		.path = (uintptr_t) "/",
		.offsets = (uintptr_t)&offset,
		.cnt = 1,
	};

	if (uprobes_create_multi(&attr) != -EBADF)
		return false;
	attr.pid = UINT32_MAX;
	return uprobes_create_multi(&attr) == -EINVAL;
}

/* Reads a number of sysfs, behind a prefix. */
static int read_number(const char *path, const char *prefix, uint64_t max, uint64_t *ret)
{
	size_t sz, len = strlen(prefix);
	char *buf;
	int err;

	err = util_read_file(path, 4096, &buf, &sz);
	if (err)
		return err;
	buf[strcspn(buf, "\n-")] = '\0';
	err = strncmp(buf, prefix, len) ? -EINVAL : util_parse_u64(buf + len, 0, max, ret);
	free(buf);
	return err;
}

int uprobes_event_attr(enum uprobe_side side, struct perf_event_attr *ret, uint64_t *ret_shift)
{
	uint64_t type, bit;
	int err;

	err = read_number(EVENT_SOURCE "type", "", UINT32_MAX, &type);
	if (!err)
		err = read_number(EVENT_SOURCE "format/retprobe", "config:", 63, &bit);
	if (err)
		return err;
	if (read_number(EVENT_SOURCE "format/ref_ctr_offset", "config:", 63, ret_shift))
		*ret_shift = 64;
	*ret = (struct perf_event_attr){
		.size = sizeof(*ret),
		.type = (uint32_t)type,
		.config = side == UPROBES_RETURN ? UINT64_C(1) << bit : 0,
		.disabled = 1,
	};
	return 0;
}

/* Are there perf events at points? 0: yes; -ENODEV: the kernel has none; else what it says. It looks
 * for the file only once all else is found good. */
static int try_event(void)
{
	struct perf_event_attr attr;
	uint64_t shift;
	int fd;

	if (uprobes_event_attr(UPROBES_ENTRY, &attr, &shift))
		return -ENODEV;
	attr.uprobe_path = (uintptr_t) "/proc/self/fd/-1";
	fd = uprobes_open_event(&attr, getpid(), -1);
	if (fd >= 0)
		close(fd);
	return fd == -ENOENT || fd >= 0 ? 0 : fd;
}

static bool have_events(void)
{
	return !try_event();
}

/* Are there links from perf events? A kernel without them calls it no valid type before it looks at
 * the event. */
static bool have_event_links(int prog_fd)
{
	int fd = bpf_link_create(prog_fd, -1, BPF_PERF_EVENT, NULL);

	if (fd >= 0)
		close(fd);
	return fd == -EBADF;
}

bool uprobes_have_links(void)
{
	int fd = uprobes_load_empty(UPROBES_PERF);
	bool ret = fd >= 0 && have_event_links(fd);

	if (fd >= 0)
		close(fd);
	return ret;
}

static bool can(enum uprobe_method m, int prog_fd)
{
	switch (m) {
	case UPROBES_PERF:
		return have_events() && have_event_links(prog_fd) &&
		       libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_get_attach_cookie,
					       NULL) == 1;
	case UPROBES_EVENT:
		return have_events();
	default:
		return filters_process(m, prog_fd);
	}
}

enum uprobe_method uprobes_probe(enum uprobe_method at_best)
{
	for (enum uprobe_method m = at_best; m < UPROBES_NONE; m++) {
		int fd = uprobes_load_empty(m);
		bool good;

		if (fd < 0)
			continue;
		good = can(m, fd);
		close(fd);
		if (good)
			return m;
	}
	return UPROBES_NONE;
}

const char *uprobes_refused_by(int program, int event)
{
	if (program == -EPERM || program == -EACCES)
		return "run as root, or give CAP_BPF and CAP_PERFMON";
	if (program < 0)
		return "the kernel has no BPF programs for them (CONFIG_BPF_EVENTS)";
	if (event == -ENODEV)
		return "the kernel needs CONFIG_UPROBE_EVENTS: there is no " EVENT_SOURCE "type";
	if (event == -EPERM || event == -EACCES)
		return "run as root, or give CAP_SYS_ADMIN, which this kernel wants for uprobes";
	return "the kernel refuses perf events for them";
}

const char *uprobes_refused(void)
{
	int program = uprobes_load_empty(UPROBES_EVENT);

	if (program >= 0)
		close(program);
	return uprobes_refused_by(program, try_event());
}

# SPDX-License-Identifier: BSD-2-Clause
"""What a process and its helpers take, by what /proc says of them."""

import contextlib
import glob
import os
import re
import time


def family(pid):
    """A process, and those that descend from it."""
    found = [pid]
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children") as f:
        for child in f.read().split():
            found += family(int(child))
    return found


def pss_mb(pid):
    with open(f"/proc/{pid}/smaps_rollup") as f:
        return int(re.search(r"^Pss:\s*(\d+)", f.read(), re.M)[1]) / 1024


def own_mb(pid):
    """What a process has for itself: neither files, nor BPF maps that it has mapped."""
    with open(f"/proc/{pid}/status") as f:
        return sum(int(kb) for kb in re.findall(r"^Rss(?:Anon|Shmem):\s*(\d+)", f.read(), re.M)) / 1024


def cpu_ns(pid):
    """CPU time of a process and its helpers, of those that have ended to a tick (proc_pid_stat(5): cutime, cstime)."""
    total = 0
    for p in family(pid):
        # the CPU clock of a process, with threads that have ended: clock_getcpuclockid(3), as glibc makes it
        with contextlib.suppress(OSError):
            total += time.clock_gettime_ns(~p << 3 | 2)
    with open(f"/proc/{pid}/stat") as f:
        ended = f.read().rpartition(")")[2].split()[13:15]
    return total + sum(map(int, ended)) * 10**9 // os.sysconf("SC_CLK_TCK")


def _of_descriptors(pid, kind, what):
    """The sum of what the kernel says of the BPF maps, or programs, that a process has open, each once."""
    found = {}
    for path in glob.glob(f"/proc/{pid}/fdinfo/*"):
        with contextlib.suppress(OSError), open(path) as f:
            said = dict(re.findall(r"(?m)^(\w+):\s*(\d+)", f.read()))
            # a link names its program as well
            if what in said and f"{kind}_id" in said:
                found[said[f"{kind}_id"]] = int(said[what])
    return sum(found.values())


def bpf_maps_mb(pid):
    """What the kernel holds for the BPF maps of a process."""
    return _of_descriptors(pid, "map", "memlock") / (1 << 20)


def bpf_ns(pid):
    """Run time of the BPF programs of a process, while the kernel measures it: bpf(2), BPF_ENABLE_STATS."""
    return _of_descriptors(pid, "prog", "run_time_ns")


def fds(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))

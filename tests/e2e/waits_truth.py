# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of waits and threads share: bpfprof at work with several kinds, its profiles and account, and the comparison
with what programs (tests/progs/waits.h) know of their waits."""

import collections
import contextlib
import gzip
import json
import os
import re
import signal

import heap_truth
import lib
from heap_truth import Target, is_cut, read_pprof
from lib import need

# in units of as many ns the mutex profile counts what is waited for (FUTEX_TIME in bpf/futex.bpf.h)
MUTEX_GRAIN_NS = 64
TYPES = {
    "block": [("contentions", "count"), ("delay", "nanoseconds")],
    "mutex": [("contentions", "count"), ("delay", "nanoseconds")],
    "offcpu": [("events", "count"), ("delay", "nanoseconds")],
    "threadcreate": [("threadcreate", "count")],
    "threads": [("threads", "count")],
}
Side = collections.namedtuple("Side", "count ns samples")


def say(text):
    """A measured number, for who asks for it."""
    if os.environ.get("V"):
        print(f"# {text}", flush=True)


def on_disk(path):
    """Is it in a file system that has to wait for a device? Where /tmp is memory, nothing does."""
    dev = os.stat(path).st_dev
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as f:
        kinds = {line.split(" - ")[1].split()[0] for line in f if line.split()[2] == f"{os.major(dev)}:{os.minor(dev)}"}
    return not kinds & {"tmpfs", "ramfs"}


def name_of(frame):
    """A function's own name: without parameters, namespaces, and what was inlined into what."""
    return re.sub(r"\(.*\)( const)?$", "", frame).rsplit("::", 1)[-1]


def has_frames(sample, frames):
    """Do these follow each other in it, from the root?"""
    names = [name_of(f) for f in sample.frames]
    n = len(frames)
    return any(names[i : i + n] == frames for i in range(len(names) - n + 1))


def times(path):
    """(start, duration) that stand in a profile."""
    with gzip.open(path) as f:
        top = dict(heap_truth.fields(f.read()))
    return top.get(9, 0), top.get(10, 0)


def label_units(path):
    """Of the numeric labels: {key: {units}}."""
    with gzip.open(path) as f:
        top = list(heap_truth.fields(f.read()))
    text = [v.decode() for n, v in top if n == 6]
    units = collections.defaultdict(set)
    for number, sample in top:
        if number == 2:
            for n, label in heap_truth.fields(sample):
                m = dict(heap_truth.fields(label)) if n == 3 else {}
                if m and 2 not in m:
                    units[text[m[1]]].add(text[m.get(4, 0)])
    return units


def check_profile(profile, kind):
    need(profile.types == TYPES[kind], f"{kind}: sample types {profile.types}")
    need(profile.period_type == TYPES[kind][0] and profile.period == 1, f"{kind}: period {profile.period_type} {profile.period}")
    need(all(v >= 0 for s in profile.samples for v in s.values), f"{kind}: negative values")


def check_caches(stats, kind):
    """Of the stacks that were remembered, one in 256 was walked all the same, and was the same."""
    if kind not in ("block", "mutex", "offcpu"):
        return
    kernel, user = (stats["kinds"][kind][name] for name in ("kernel_stacks", "user_stacks"))
    need(not kernel["mismatched"] and not user["mismatched"], f"{kind}: what was remembered is not what a walk finds: {kernel} {user}")
    need(kernel["cached"] <= 256 * kernel["checked"], f"{kind}: not one in 256 was walked: {kernel}")


def check_account(stats, kind, lost=False, whole=0, ran_on=0):
    """lost: there may be more than can be read, and so some may be lost or cut short for want of room. whole: the share of stacks that
    are, at least. ran_on: so many waits that were in progress at the end may have ended before their stacks were read."""
    k = stats["kinds"][kind]
    need(k["seen"] == k["recorded"] + sum(k["lost"].values()), f"{kind}: seen is not recorded and lost: {k}")
    check_caches(stats, kind)
    ends = k["stacks"]
    need(k["recorded"] == ends["complete"] + sum(ends["truncated"].values()), f"{kind}: not every stack has an end: {k}")
    need(lost or sum(k["lost"].values()) <= min(ran_on, k["lost"]["ran_on"]), f"{kind}: lost: {k['lost']}")
    share = whole_share(k, lost)
    need(share >= whole, f"{kind}: {100 * share:.2f} % of {k['recorded']} stacks are whole: {ends['truncated']}")
    return k


def clock_slack(stats):
    """Switches are told by the scheduler's clock of a CPU; how far CLOCK_MONOTONIC is ahead is measured now and then, and may come out
    larger than the last time by 2^-11 of the time between (SCHED_CLOCK_DRIFT in bpf/sched_cpu.bpf.h)."""
    return (stats["duration_ns"] >> 11) * os.cpu_count()


def whole_share(account, lost=False):
    """Of the stacks of a kind; lost: but for those that were cut for want of room."""
    looked_at = account["recorded"] - (account["stacks"]["truncated"]["no_room"] if lost else 0)
    return account["stacks"]["complete"] / looked_at if looked_at else 1


class Recorder:
    """bpfprof at work; finish() gives its profiles, by kind, and its account."""

    def __init__(self, kinds, *options, env=None):
        self.kinds = kinds.split(",")
        self.out, self.stats, self.log = lib.temp(), lib.temp(".json"), lib.temp(".err")
        # every wait; tests of what is recorded by default say so
        whole = ["--wait-budget", "100"] if {"block", "mutex", "offcpu"} & set(self.kinds) else []
        argv = ["-P", kinds, "-o", self.out, "--stats", self.stats, *whole, *map(str, options)]
        with open(self.log, "wb") as log:
            self.p = lib.start_bpfprof(argv, stderr=log, cwd=lib.TMP, env={**os.environ, **(env or {})})

    def err(self):
        with open(self.log, errors="replace") as f:
            return " ".join(f.read().split("\n"))

    def path(self, kind):
        return self.out if len(self.kinds) == 1 else f"{self.out}.{kind}.pb.gz"

    def wait_attached(self):
        lib.wait_attached(self.p, self.err)

    def finish(self, sig=signal.SIGINT, seconds=lib.LONG, status=0):
        if sig:
            with contextlib.suppress(ProcessLookupError):
                self.p.send_signal(sig)
        try:
            got = self.p.wait(seconds)
        except Exception:
            raise AssertionError(f"bpfprof does not end: {self.err()}") from None
        finally:
            lib.stop(self.p)
        need(got == status, f"bpfprof: exit status {got}: {self.err()}")
        with open(self.stats) as f:
            stats = json.load(f)
        profiles = {k: read_pprof(self.path(k)) for k in self.kinds}
        for kind in self.kinds:
            if kind in TYPES:
                check_profile(profiles[kind], kind)
            check_caches(stats, kind)
        return profiles, stats

    def stop(self):
        lib.stop(self.p)


def record(kinds, target, options=(), env=None):
    """Attaches, lets the target go, ends when it has said what it did: profiles, account, truth, the recorder."""
    profiles, stats, said, r = record_all(kinds, [target], options, env)
    return profiles, stats, said[0], r


def record_all(kinds, targets, options=(), env=None, during=None):
    """The same of several targets at once: profiles, account, [truth], the recorder."""
    r = Recorder(kinds, "--pid", ",".join(str(t.pid) for t in targets), *options, env=env)
    try:
        r.wait_attached()
        for t in targets:
            t.go()
        if during:
            during()
        said = [t.truth() for t in targets]
        profiles, stats = r.finish()
        for t in targets:
            need(t.p.poll() is None, f"a target died: {t.p.returncode}")
        return profiles, stats, said, r
    finally:
        r.stop()


@contextlib.contextmanager
def no_cpu_halts():
    """For measurements. A CPU that has halted, above all in a virtual machine, takes tens of microseconds to take notice of a wake. The
    waker knows when that was; where nobody looks at the wake, it is waited until then. Here what nobody else wants of each CPU is used
    up."""
    with contextlib.ExitStack() as stack:
        for cpu in os.sched_getaffinity(0):
            p = lib.start_prog("busy", 600)
            stack.callback(lib.stop, p)
            os.sched_setaffinity(p.pid, {cpu})
            os.sched_setscheduler(p.pid, os.SCHED_IDLE, os.sched_param(0))
        yield


# ---- waits: what a program says against what a profile says ----


# Threads that begin at once wait for each other, which no line of a program stands for: for the dynamic linker's lock if their variables
# have destructors (glibc's stdlib/cxa_thread_atexit_impl.c), in Rust for the list of the threads' guard pages (std's stack_overflow).
OWN_LOCKS = ("__cxa_thread_atexit_impl", "::stack_overflow::")


def of_its_library(sample):
    return any(lock in frame for frame in sample.frames for lock in OWN_LOCKS)


def belongs(sample, line):
    return sample.labels.get("thread") == line["thread"][:15] and has_frames(sample, line["frames"])


def sum_of(samples):
    return Side(sum(s.values[0] for s in samples), sum(s.values[1] for s in samples), samples)


def shown(samples, n=3):
    # from the leaf on, which is what the rest of a long line would hide
    return " | ".join(f"{';'.join(s.frames[::-1])} {s.labels} {s.values}" for s in samples[:n])


def wrong_label(line, samples):
    wanted = line["woken"]
    if wanted.endswith("?"):
        allowed = {None, wanted[:-1]}
    else:
        allowed = {wanted or None}
    return sorted({str(s.labels.get("woken")) for s in samples} - {str(a) for a in allowed})


def compare(profile, lines, side, slack_ns=0):
    """Lines of one side (waiter: block, holder: mutex) with a profile. A line that is `by_thread` tells no stacks. slack_ns: that a
    delay may be out of its bounds, for each wait. Returns, by mode, what is wrong; and for measurements, how far the mean delay is from
    the estimate, beyond 1 % of it, in us."""
    wrong, beyond = collections.defaultdict(list), {}
    lines = [line for line in lines if line["side"] == side]
    left = list(profile.samples)
    slack_ns += MUTEX_GRAIN_NS if side == "holder" else 0
    for line in lines:
        got = sum_of([s for s in left if belongs(s, line)])
        left = [s for s in left if not belongs(s, line)]
        mode, n = line["mode"], line["count"]
        off, slack = got.ns - line["ns"], slack_ns * n
        say(
            f"{side} {mode}: {got.count} of {n}; {off / max(1, n) / 1000:+.1f} us each, {100 * off / max(1, line['ns']):+.2f} %, "
            f"{(got.ns - line['low']) / max(1, n) / 1000:.0f} us above low, {(line['high'] - got.ns) / max(1, n) / 1000:.0f} below high"
        )
        if got.count != n:
            wrong[mode].append(f"{side}s: {got.count} waits, truth {n}: {shown(got.samples)}")
        elif not line["low"] - slack <= got.ns <= line["high"] + slack:
            wrong[mode].append(f"{side}s: {got.ns} ns, truth {line['low']} to {line['high']}")
        elif n:
            beyond[mode] = max(0, abs(off) - 0.01 * line["ns"]) / n / 1000
        if bad := wrong_label(line, got.samples):
            wrong[mode].append(f"{side}s: woken by {bad}, truth {line['woken'] or None}")
        if not line.get("by_thread") and (cut := [s for s in got.samples if is_cut(s)]):
            wrong[mode].append(f"{side}s: stacks that are cut: {shown(cut, 1)}")
    left = [s for s in left if not of_its_library(s)]
    if left:
        wrong["others"].append(f"{side}s: {sum_of(left).count} waits that cannot be: {shown(left)}")
    return wrong, beyond


def by_thread(lines):
    return [{**line, "frames": [], "by_thread": True} for line in lines]


# ---- offcpu: tests/progs/waits_off.c ----

WHY = {  # reasons, and the system call
    "off_sleep": ({"sleep"}, "clock_nanosleep"),
    "off_poll": ({"poll"}, "poll"),
    "off_epoll": ({"poll"}, "epoll_wait"),
    "off_read": ({"io"}, "read"),
    "off_write": ({"sleep"}, "clock_nanosleep"),
    "off_wait4": ({"child"}, "wait4"),
    "off_child": ({"child"}, "vfork"),  # and wait4, for what is left of it
    "off_futex": ({"futex"}, "futex"),
    "off_disk": ({"disk"}, "pread64"),
    "off_sync": ({"disk"}, "fsync"),
    "off_fault": ({"page fault"}, None),
}


def off_of(profile, line):
    """By reason, of one line's thread in its function: counts, ns."""
    counts, sums = collections.Counter(), collections.Counter()
    for s in profile.samples:
        if s.labels.get("thread") == line["thread"] and line["frame"] in s.frames:
            counts[s.labels.get("reason")] += s.values[0]
            sums[s.labels.get("reason")] += s.values[1]
    return counts, sums

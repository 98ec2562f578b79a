# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of the heap profile share: a reader of pprof files that is not ours, programs that know their own heap, and
the comparison of what a profile says with what they know.

A truth and a profile are both brought into one form, {(stack, size, thread): [one number for each of VALUES]}, where a stack is
a tuple of function names from main (or a thread's first function) down to the caller of the allocator.
"""

import collections
import contextlib
import functools
import gzip
import json
import os
import re
import select
import signal
import sys
import time

import lib
from lib import need

sys.path.append(os.path.join(lib.ROOT, "tests/tools"))

from pprof_file import fields, message, numbers

VALUES = ("alloc_objects", "alloc_space", "inuse_objects", "inuse_space")
UNITS = ("count", "bytes", "count", "bytes")

# ---- pprof: profile.proto, read by its wire format ----

Profile = collections.namedtuple("Profile", "types period_type period comments samples begin_ns duration_ns")  # begin_ns: CLOCK_REALTIME
Sample = collections.namedtuple("Sample", "frames values labels")  # frames: names, from the root


def read_pprof(path):
    with open(path, "rb") as f:
        return parse_pprof(f.read())


def parse_pprof(data):
    top = list(fields(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data))
    strings = [v.decode() for n, v in top if n == 6]
    text = lambda n: strings[n]
    value_type = lambda b: (text(message(b).get(1, 0)), text(message(b).get(2, 0)))
    functions = {m[1]: text(m.get(2, 0)) for m in (message(v) for n, v in top if n == 5)}
    mappings = {m[1]: text(m.get(5, 0)) for m in (message(v) for n, v in top if n == 3)}
    locations = {}
    for _, b in (x for x in top if x[0] == 4):
        m = message(b)
        names = [functions[message(v)[1]] for n, v in fields(b) if n == 4]
        unnamed = f"{os.path.basename(mappings.get(m.get(2, 0), ''))}+{m.get(3, 0):#x}"
        locations[m[1]] = names[::-1] or [unnamed]

    @functools.cache
    def label_of(b):
        label = message(b)
        return text(label[1]), text(label[2]) if 2 in label else numbers(label.get(3, 0))[0]

    samples = []
    for _, b in (x for x in top if x[0] == 2):
        frames, values, labels = [], [], {}
        for n, v in fields(b):
            if n == 1:
                frames += numbers(v)
            elif n == 2:
                values += numbers(v)
            elif n == 3:
                key, value = label_of(v)
                labels[key] = value
        samples.append(Sample([f for i in reversed(frames) for f in locations[i]], values, labels))
    one = lambda number, default: next((v for n, v in top if n == number), default)
    return Profile(
        [value_type(v) for n, v in top if n == 1],
        value_type(one(11, b"")),
        one(12, 0),
        [text(i) for n, v in top if n == 13 for i in numbers(v)],
        samples,
        one(9, 0),
        one(10, 0),
    )


def check_header(profile, rate, types=4):
    need(profile.types == list(zip(VALUES, UNITS))[:types], f"sample types {profile.types}")
    need(profile.period_type == ("space", "bytes"), f"period type {profile.period_type}")
    need(profile.period == rate, f"period {profile.period}, not {rate}")


def is_cut(sample):
    return any(f.startswith("[unwind: ") for f in sample.frames)


def total(profile, value):
    return sum(s.values[VALUES.index(value)] for s in profile.samples)


# ---- breakpoints, by comparing a process's code with the files that it comes from ----

_files = {}


def _file_bytes(path, offset, size):
    key = (path, offset, size)
    if key not in _files:
        with open(path, "rb") as f:
            f.seek(offset)
            _files[key] = f.read(size)
    return _files[key]


def code_differences(pid):
    """Addresses at which the code of a process is not that of its files: where breakpoints are."""
    found = set()
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        for line in maps:
            m = re.match(r"(\w+)-(\w+) r-xp (\w+) \S+ \d+ +(/.*)", line)
            if not m or not os.path.exists(m[4]):
                continue
            start, end = int(m[1], 16), int(m[2], 16)
            wanted = _file_bytes(m[4], int(m[3], 16), end - start)
            mem.seek(start)
            got = mem.read(len(wanted))
            if got == wanted:
                continue
            for at in range(0, len(wanted), 4096):
                a, b = got[at : at + 4096], wanted[at : at + 4096]
                if a != b:
                    found |= {start + at + i for i in range(min(len(a), len(b))) if a[i] != b[i]}
    return found


def seconds_until_clean(pids, limit=lib.LONG):
    """How long it takes until the code of all of them is that of their files again."""
    begin = time.monotonic()
    while True:
        now = time.monotonic()
        left = {pid: code_differences(pid) for pid in pids}
        if not any(left.values()):
            return now - begin
        need(now - begin < limit, f"after {limit} s breakpoints are left: {[(p, [hex(a) for a in x]) for p, x in left.items()]}")
        time.sleep(0.02)


# ---- programs that know their heap ----


class Target:
    """A program of tests/progs/alloc*.c, waiting for its start."""

    def __init__(self, prog, mode, *args, env=None, seconds=2 * lib.LONG):
        self.p = lib.start_prog(prog, seconds, mode, *args, env={**os.environ, **(env or {})})
        self.pid = self.p.pid
        self.rest = b""
        self.said = []  # truths that came before they were asked for

    def go(self, pid=None):
        pid = pid or self.pid
        need(os.getsid(pid) == self.pid, f"{pid} is not of the target {self.pid}")
        os.kill(pid, signal.SIGUSR1)

    def line(self, seconds=lib.LONG):
        end = time.monotonic() + seconds
        while b"\n" not in self.rest:
            readable, _, _ = select.select([self.p.stdout], [], [], max(0, end - time.monotonic()))
            need(readable, f"the target printed nothing within {seconds} s")
            got = os.read(self.p.stdout.fileno(), 1 << 20)
            need(got, f"the target ended: {self.p.poll()} {self.rest[:200]!r}")
            self.rest += got
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode()

    def wait_line(self, begin):
        """The next line that begins so."""
        while not (line := self.line()).startswith(begin):
            if line.startswith("{"):
                self.said.append(line)
        return line

    def truth(self):
        """The next one that it, or a program that came out of it, prints."""
        return json.loads(self.said.pop(0) if self.said else self.wait_line("{"))

    def waiting(self):
        """The id of the process, it or a child, that allocates until it is told to go on."""
        return int(self.wait_line("waits ").split()[1])

    def stop(self):
        lib.stop(self.p)


def wait_said(p, err, text):
    """Until a bpfprof has said so, by what err() gives."""

    def has():
        # asked before: what it says last counts
        ended = p.poll() is not None
        found = re.search(text, err())
        need(found or not ended, f"bpfprof ended, {p.returncode}, and has not said {text!r}: {err()[-300:]}")
        return found

    lib.wait_until(has, f"bpfprof says {text!r}")


def known_text(pid):
    """What -v says when no more stacks of a process are copied: until then many samples fill the ring."""
    return f"process {pid}: its stacks need not be copied any more"


def probed_text(pid, name):
    """The same when an allocator is probed; by the file's name, for a copy is known by the path of the first one."""
    return f"process {pid}: '[^']*/{re.escape(name)}' is probed"


class Recorder:
    """bpfprof at work on a target; `options` come behind those that it always gets."""

    def __init__(self, *options, env=None, prefix=None):
        self.out, self.stats = lib.temp(".pb.gz"), lib.temp(".json")
        self.log = lib.temp(".err")
        argv = ["-P", "heap", "-o", self.out, "--stats", self.stats, *map(str, options)]
        with open(self.log, "wb") as log:
            self.p = lib.start_bpfprof(argv, prefix or [], stderr=log, cwd=lib.TMP, env={**os.environ, **(env or {})})

    def err(self):
        with open(self.log, errors="replace") as f:
            return " ".join(f.read().split("\n"))

    def wait_attached(self, pid=None):
        """Until everything is attached. Returns where breakpoints are in the process, if one is named."""
        lib.wait_attached(self.p, self.err)
        return code_differences(pid) if pid else None

    def wait_said(self, text):
        """Until it has said so: what is found in a process later than at the start is said with -v."""
        wait_said(self.p, self.err, text)

    def finish(self, sig=signal.SIGINT):
        """Ends it; returns its profile and account."""
        if sig:
            with contextlib.suppress(ProcessLookupError):
                self.p.send_signal(sig)
        try:
            status = self.p.wait(lib.LONG)
        except Exception:
            raise AssertionError(f"bpfprof does not end: {self.err()}") from None
        finally:
            lib.stop(self.p)
        need(status == 0, f"bpfprof: exit status {status}: {self.err()}")
        return self.results()

    def results(self):
        with open(self.stats) as f:
            stats = json.load(f)
        heap = stats["kinds"]["heap"]
        need(heap["seen"] == heap["recorded"] + sum(heap["lost"].values()), f"seen is not recorded and lost: {heap}")
        ends = heap["stacks"]
        need(heap["recorded"] == ends["complete"] + sum(ends["truncated"].values()), f"not every stack has an end: {heap}")
        return read_pprof(self.out), stats

    def stop(self):
        lib.stop(self.p)


# ---- comparison ----


def known(*truths, processes=(0, 1)):
    """What programs say, in the common form, and the stacks that libc continues."""
    values, deeper = collections.defaultdict(lambda: [0, 0, 0, 0]), set()
    for truth in truths:
        for line in truth["stacks"]:
            if line["process"] not in processes:
                continue
            stack = tuple(line["stack"].split(";"))
            v = values[stack, line["size"], line["thread"]]
            for i, name in enumerate(("allocs", "bytes", "kept", "kept_bytes")):
                v[i] += line[name]
            if line["deeper"]:
                deeper.add(stack)
    return dict(values), deeper


def tagged(profile, tag):
    """What the program with this tag (tests/progs/alloc.h) has allocated."""
    return profile._replace(samples=[s for s in profile.samples if s.labels.get("thread", "").startswith(f"{tag}:")])


def without(truth, leaf):
    return {**truth, "stacks": [line for line in truth["stacks"] if not line["stack"].endswith(";" + leaf)]}


def without_leaf(profile, leaf):
    return profile._replace(samples=[s for s in profile.samples if s.frames[-1:] != [leaf]])


# what stands before main, or before a thread's first function; by offset where libc has no symbols
ROOTS = re.compile(r"_start(_c)?|__libc_start\w*|libc_start_main_stage2|_{0,2}clone3?|start_thread|start|\S+\+0x[0-9a-f]+")


def reduce(profile, stacks, deeper):
    """The profile in the common form, and the samples that none of the stacks matches."""
    values, others = collections.defaultdict(lambda: [0, 0, 0, 0]), []
    by_first = collections.defaultdict(list)
    for stack in stacks:
        by_first[stack[0]].append(stack)
    for s in profile.samples:
        frames = [re.sub(r"\(.*\)$", "", f) for f in s.frames]  # the parameters of C++ functions
        at = next((i for i, f in enumerate(frames) if f in by_first), 0)
        inner = tuple(frames[at:])
        stack = next(
            (x for x in by_first.get(inner[0] if inner else "", ()) if inner == x or x in deeper and inner[: len(x)] == x), None
        )
        if stack is None or not all(ROOTS.fullmatch(f) for f in frames[:at]):
            others.append(s)
            continue
        v = values[stack, s.labels.get("bytes", 0), s.labels.get("thread")]
        for i, n in enumerate(s.values):
            v[i] += n
    return dict(values), others


def shown(key, values):
    stack, size, thread = key
    return f"{';'.join(stack)} {size} B ({thread}) {values}"


def samples_shown(samples):
    return " | ".join(f"{';'.join(s.frames)} {s.labels} {s.values}" for s in samples[:3])


def unrecorded(stats):
    """How many samples were lost, or their stacks cut short, for want of room in the ring: the account says so."""
    heap = stats["kinds"]["heap"]
    other = {k: n for k, n in heap["lost"].items() if n and k != "ring_full"}
    need(not other, f"lost: {other}")
    return heap["lost"]["ring_full"] + heap["stacks"]["truncated"]["no_room"]


def need_whole(profile, stats):
    """Each sample of a profile of rate 1 stands for itself, and its stack is whole, but for want of room and for a few of others."""
    heap = stats["kinds"]["heap"]
    objects = total(profile, "alloc_objects")
    need(objects == heap["recorded"], f"{objects} allocations in the profile, {heap['recorded']} recorded")
    cut = heap["recorded"] - heap["stacks"]["complete"] - heap["stacks"]["truncated"]["no_room"]
    need(cut <= 0.005 * heap["recorded"], f"{cut} of {heap['recorded']} stacks are cut: {heap['stacks']}; "
         f"{samples_shown([s for s in profile.samples if is_cut(s)])}")


def need_exact(profile, stats, truths, processes=(0, 1), strict=False):
    """Every number is right, or too small by what the account says was not recorded. What libc and others allocate on their own is not
    known; with `strict` there is no such thing."""
    wanted, deeper = known(*truths, processes=processes)
    spare = unrecorded(stats)
    got, others = reduce(profile, {k[0] for k in wanted}, deeper)
    none = [0] * 4
    fits = lambda g, w: all(a <= b for a, b in zip(g, w)) if spare else g == w
    differ = [k for k in wanted.keys() | got.keys() if not fits(got.get(k, none), wanted.get(k, none))]
    wrong = [f"is {shown(k, got.get(k))}, truth {wanted.get(k)}" for k in sorted(differ)]
    missing = sum(w[0] for w in wanted.values()) - sum(g[0] for g in got.values())
    leaves = {k[0][-1] for k in wanted}
    # what a program allocates itself is known; a stack that ends in its functions, or beyond them in an allocator's, is wrong
    stray = [s for s in others if not is_cut(s) and (strict or s.frames and s.frames[-1] in leaves)]
    text = [f"{len(wrong)} of {len(wanted)} lines differ: " + " | ".join(wrong[:4])] if wrong else []
    if missing > spare:
        text.append(f"{missing} allocations are missing, {spare} were not recorded")
    if stray:
        text.append(f"{len(stray)} samples have stacks that cannot be: {samples_shown(stray)}")
    need(not text, " ".join(text))

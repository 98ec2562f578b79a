# SPDX-License-Identifier: BSD-2-Clause
"""What the end-to-end tests share: running bpfprof and targets, reading folded profiles, reporting.

A test is a function marked @test("name"). It fails by AssertionError (see `need`) and says by raising Skip that it cannot run.
Each prints one line: `ok - name`, `not ok - name: why`, `skip - name: reason`. A test asserts counts, identities and orders, and
intervals between two clocks that it read itself: nothing that depends on how busy the machine is.

What measures is a function marked @measure("name"), which calls figure(). Only `--figures`, so `make figures`, runs it.

usage: TEST [--figures] [PART OF A NAME...]
"""

import atexit
import collections
import glob
import contextlib
import functools
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BPFPROF = os.path.abspath(os.environ.get("BPFPROF", os.path.join(ROOT, "bpfprof")))
PROGS = os.path.abspath(os.environ.get("PROGS", os.path.join(ROOT, "build/tests/progs")))
TMP = tempfile.mkdtemp(prefix="bpfprof-e2e-")

_tests = []
_measures = []
_missed = []
_running = []


class Skip(Exception):
    pass


def test(name):
    def mark(function):
        _tests.append((name, function))
        return function

    return mark


def measure(name):
    def mark(function):
        _measures.append((name, function))
        return function

    return mark


def need(condition, why):
    if not condition:
        raise AssertionError(why)


def report(kind, name, why=""):
    why = " ".join(str(why).split())[:600]
    # in one piece: tests may run at the same time
    print(f"{kind} - {name}" + (f": {why}" if why else "") + "\n", end="", flush=True)


def peak_rss(stats):
    """Bytes, of bpfprof and of the processes that read files for it."""
    return stats["self"]["peak_rss"] + stats["readers"]["peak_rss"]


def figure(what, value, unit="", at_most=None, at_least=None):
    """Prints a measured number, and whether it reaches its aim; one that does not fails `make figures`."""
    aim, shown = "", f"{value:.4g}" if isinstance(value, float) else str(value)
    if at_most is not None or at_least is not None:
        missed = (at_most is not None and value > at_most) or (at_least is not None and value < at_least)
        bound = f"at most {at_most}" if at_most is not None else f"at least {at_least}"
        aim = f" (aim: {bound}): {'MISSED' if missed else 'reached'}"
        if missed:
            _missed.append(what)
    print(f"figure: {what}: {shown}{' ' + unit if unit else ''}{aim}\n", end="", flush=True)


def run_one(name, function):
    """Returns whether it did not fail."""
    try:
        function()
    except Skip as e:
        report("skip", name, e)
    except AssertionError as e:
        report("not ok", name, e or traceback.format_exc())
        return False
    except Exception as e:  # a broken test is a failed one, the others go on
        report("not ok", name, f"{type(e).__name__}: {e} at {traceback.extract_tb(e.__traceback__)[-1]}")
        return False
    else:
        report("ok", name)
    return True


def main(needs_root=True):
    """Runs the tests, with --figures the measurements, whose names contain an argument; or all. An argument may also be a name with
    the reason of a failure behind it, as it was reported."""
    if needs_root and os.geteuid():
        report("skip", os.path.basename(sys.argv[0]), "needs root")
        sys.exit(0)
    if not os.access(BPFPROF, os.X_OK):
        report("not ok", os.path.basename(sys.argv[0]), f"{BPFPROF} is not built")
        sys.exit(1)
    figures = "--figures" in sys.argv[1:]
    wanted = [a for a in sys.argv[1:] if a != "--figures"]
    cases = _measures if figures else _tests
    results = [run_one(n, f) for n, f in cases if not wanted or any(w in n or w.startswith(n + ":") for w in wanted)]
    sys.exit(0 if all(results) and not _missed else 1)


# Seconds. What takes so long hangs: it would be done in some ms, or in a few seconds, if nobody else were at work.
LONG = 120

# ---- processes ----


def start(argv, **kw):
    """A process in a group of its own, which is killed when the test ends, whatever happens."""
    kw.setdefault("stdout", subprocess.DEVNULL)
    kw.setdefault("stderr", subprocess.DEVNULL)
    kw.setdefault("stdin", subprocess.DEVNULL)
    p = subprocess.Popen(argv, start_new_session=True, **kw)
    _running.append(p)
    return p


@contextlib.contextmanager
def process(p):
    try:
        yield p
    finally:
        stop(p)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(c) for c in f.read().split()]


def helpers(pid, kind):
    """Processes of that kind that a bpfprof has started: "reader". One that ends at this moment is none."""
    found = []
    for child in children(pid):
        with contextlib.suppress(OSError), open(f"/proc/{child}/comm") as f:
            if f.read() == f"bpfprof-{kind}\n":
                found.append(child)
    return found


def descriptors(pid):
    """What its descriptors lead to. One that is closed at this moment is none."""
    found = []
    for n in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/{pid}/fd/{n}"))
    return found


def kill(pid, sig):
    """A signal to a process that a test has looked for: 0, -1 or 1, for one that it did not find, is everybody."""
    need(pid > 1, f"signal {sig} to process {pid}")
    os.kill(pid, sig)


def be_nice():
    """In a child that takes all the CPU time there is: bpfprof comes first, and loses nothing for want of it. A session may be scheduled
    as a group, in which nice counts only among its own: sched(7)."""
    os.nice(19)
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w") as f:
        f.write("19")


def stop(p):
    try:
        os.killpg(p.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    p.wait()
    if p.stdout:
        p.stdout.close()
    if p in _running:
        _running.remove(p)


@atexit.register
def _clean_up():
    for p in list(_running):
        stop(p)
    shutil.rmtree(TMP, ignore_errors=True)


for _sig in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(_sig, lambda *_: sys.exit(1))


def prog_path(name):
    path = os.path.join(PROGS, name)
    if not os.path.exists(path):
        raise Skip(f"{name} was not built (its compiler is missing)")
    return path


def start_prog(name, *args, **kw):
    """A program of tests/progs, once it has said that it is ready."""
    return start_ready([prog_path(name), *map(str, args)], **kw)


# becomes another program when a line comes: a thread calls exec, and not the main one
EXECS_BY_THREAD = """
import os, sys, threading
sys.stdin.readline()
threading.Thread(target=os.execv, args=(sys.argv[1], sys.argv[1:])).start()
threading.Event().wait()
"""


def start_ready(argv, **kw):
    p = start(argv, stdout=subprocess.PIPE, **kw)
    line = p.stdout.readline()
    need(line == b"ready\n", f"{argv} did not get ready: {line!r}")
    return p


def tool(name):
    path = shutil.which(name, path="/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin:" + os.environ.get("PATH", ""))
    if not path:
        raise Skip(f"{name} is not installed")
    return path


def wait_until(condition, what, seconds=LONG, every=0.05):
    """what: a text, or a function that makes one of how it is in the end."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= end:
            need(False, f"{what() if callable(what) else what}: not within {seconds} s")
        time.sleep(every)


def wait_leaderless(pid):
    """Until its main thread has ended, which is after all that it says."""

    def ended():
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "Z"

    wait_until(ended, "the end of the main thread")


def start_bpfprof(args, prefix=(), exe=None, **kw):
    """bpfprof at work; wait_attached() tells when everything is attached. prefix: words that start it; exe: another program."""
    return _with_ready(args, lambda argv, fds: start([*prefix, exe or argv[0], *argv[1:]], pass_fds=fds, **kw))


def _with_ready(args, start_it):
    mine, theirs = os.pipe()
    at = 1 if args and args[0] in ("record", "agent", "serve") else 0
    argv = [BPFPROF, *args[:at], "--ready-fd", theirs, *args[at:]]
    try:
        p = start_it([str(a) for a in argv], [theirs])
    except BaseException:
        os.close(mine)
        raise
    finally:
        os.close(theirs)
    p.ready = os.fdopen(mine, "rb", buffering=0)
    return p


def wait_attached(p, err=lambda: ""):
    """Until a bpfprof has attached what it will. err: gives what it has said so far."""
    # not select: its descriptors are below 1024
    wait = select.poll()
    wait.register(p.ready, select.POLLIN)
    need(wait.poll(LONG * 1000), f"nothing attached within {LONG} s: {err()}")
    said = p.ready.read(16)
    need(said == b"READY\n", f"bpfprof ended without being ready, said {said!r}: {err()}")


@contextlib.contextmanager
def groups(*members):
    """Control groups of ours, by (path, process) below the root of cgroup2. Their folders."""
    root = next((m.split()[1] for m in open("/proc/mounts") if m.split()[2] == "cgroup2"), None)
    if not root:
        raise Skip("no cgroup2 is mounted")
    folders, made = [os.path.join(root, path.lstrip("/")) for path, _ in members], []
    try:
        for folder, (_, p) in zip(folders, members):
            above = [folder]
            while above[-1] != root:
                above.append(os.path.dirname(above[-1]))
            for f in reversed(above):
                if not os.path.isdir(f):
                    os.mkdir(f)
                    made.append(f)
            with open(os.path.join(folder, "cgroup.procs"), "w") as f:
                f.write(str(p.pid))
        yield folders
    finally:
        for _, p in members:
            stop(p)
        for folder in reversed(made):
            wait_until(lambda f=folder: not open(os.path.join(f, "cgroup.procs")).read(), "an empty cgroup")
            os.rmdir(folder)


def cpu_seconds(pid):
    """What a process has had, all its threads together."""
    # the kernel's number for its clock, clock_getcpuclockid(3)
    return time.clock_gettime(~pid << 3 | 2)


def wait_worked(pid, seconds):
    """Until a process has had so much more CPU time."""
    begin = cpu_seconds(pid)
    wait_until(lambda: cpu_seconds(pid) - begin > seconds, f"{seconds} s of CPU time", every=0.01)


def stand_still(pid):
    """Stops a process, but not in the write by which it has said that it is ready: when it goes on, it would be seen there first."""
    for _ in range(200):
        kill(pid, signal.SIGSTOP)
        try:
            with open(f"/proc/{pid}/syscall") as f:
                call = f.read().split()[0]
        except OSError:
            return
        # write and writev, arch/x86/entry/syscalls/syscall_64.tbl
        if call not in ("running", "1", "20"):
            return
        if call != "running":
            kill(pid, signal.SIGCONT)
        time.sleep(0.001)


def halt(*processes):
    """Stops them, until they take turns: what waits for another should not take its time."""
    for p in processes:
        stand_still(p.pid)


def take_turns(seconds, *processes):
    """Each works for so much CPU time, while the others of them are stopped, and is stopped then."""
    for p in processes:
        kill(p.pid, signal.SIGCONT)
        wait_worked(p.pid, seconds)
        kill(p.pid, signal.SIGSTOP)


def worked(pid, seconds):
    """For `until`: a bpfprof is there, and the process has had so much CPU time since. It stands still before, and behind: nothing else
    may wait for it."""
    return all_worked([pid], seconds)


def all_worked(pids, seconds):
    """The same of several processes, each of which stands still when it has had its own."""
    for pid in pids:
        stand_still(pid)

    def until(p):
        wait_attached(p)
        end = {pid: cpu_seconds(pid) + seconds for pid in pids}

        def done():
            for pid in list(end):
                if cpu_seconds(pid) > end[pid]:
                    kill(pid, signal.SIGSTOP)
                    del end[pid]
                else:
                    # another run of the same target may just have stopped it
                    kill(pid, signal.SIGCONT)
            return not end

        wait_until(done, f"{seconds} s of CPU time for each of {pids}", every=0.01)

    return until


def temp(suffix=""):
    fd, path = tempfile.mkstemp(suffix=suffix, dir=TMP)
    os.close(fd)
    os.unlink(path)
    return path


# ---- bpfprof ----


def agent_messages(text):
    """What an agent has said, line by line; all of it is logfmt, but for a last line that is not whole yet."""
    found = []
    for line in text.split("\n")[:-1]:
        m = re.fullmatch(r'time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z level=(?:error|info|debug) msg="((?:[^"\\]|\\["\\])*)"', line)
        need(m, f"no logfmt: {line!r}")
        found.append(re.sub(r"\\(.)", r"\1", m[1]))
    return "\n".join(found)


def _where():
    """What every bpfprof is doing, helpers that have lost their parent too: name, state, parent, CPU time, and where in the
    kernel."""
    texts = []
    for path in glob.glob("/proc/[0-9]*"):
        with contextlib.suppress(OSError):
            if os.readlink(f"{path}/exe") != os.path.realpath(BPFPROF):
                continue
            name, _, rest = open(f"{path}/stat").read().rpartition(")")
            rest = rest.split()
            stack = [line.split()[1].partition("+")[0] for line in open(f"{path}/stack")]
            texts.append(f"{name}) {rest[0]} of {rest[1]}, {rest[11]}+{rest[12]} ticks, in {' < '.join(stack[:8])}")
    return "; ".join(texts) or "none is left"


def bpfprof(*args, timeout=LONG, until=None, input=None, prefix=(), **kw):
    """Runs bpfprof in TMP to its end, or to when until(process) returns; stdout and stderr are text. prefix: words that start it."""
    kw.setdefault("cwd", TMP)
    kw.setdefault("stdin", subprocess.DEVNULL if input is None else subprocess.PIPE)
    kw.setdefault("stdout", subprocess.PIPE)
    kw.setdefault("stderr", subprocess.PIPE)
    popen = lambda argv, fds: subprocess.Popen([*prefix, *argv], pass_fds=fds, text=True, errors="replace", **kw)
    with _with_ready(args, popen) if until else popen([BPFPROF, *map(str, args)], []) as p:
        try:
            if until:
                try:
                    until(p)
                except AssertionError as e:
                    p.kill()
                    raise AssertionError(f"{e}; bpfprof: {p.communicate()[1]}") from None
                p.send_signal(signal.SIGINT)
            out, err = p.communicate(input, timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"bpfprof {' '.join(map(str, args))}: still running after {timeout} s: {_where()}") from None
        finally:
            p.kill()
    return subprocess.CompletedProcess(p.args, p.returncode, out, err)


Run = collections.namedtuple("Run", "stacks stats err status")
Stack = collections.namedtuple("Stack", "name frames count")


def profile(*args, status=0, timeout=LONG, **kw):
    """A folded profile and the account of the run. stacks: Stack(process name, [frames from the root], count)."""
    folded, stats = temp(".folded"), temp(".json")
    before = [a for a in args if a != "--"] if "--" not in args else list(args[: args.index("--")])
    behind = list(args[args.index("--") :]) if "--" in args else []
    r = bpfprof("-P", "cpu", "-f", "folded", "-o", folded, "--stats", stats, *before, *behind, timeout=timeout, **kw)
    need(r.returncode == status, f"bpfprof {' '.join(map(str, args))}: exit status {r.returncode}, not {status}: {r.stderr}")
    return Run(read_folded(folded), json.load(open(stats)), r.stderr, r.returncode)


def read_folded(path):
    stacks = []
    with open(path, encoding="utf-8") as f:
        for line in f.read().split("\n"):
            if not line:
                continue
            stack, _, count = line.rpartition(" ")
            name, *frames = stack.split(";")
            stacks.append(Stack(name, frames, int(count)))
    return stacks


def total(stacks):
    return sum(s.count for s in stacks)


def is_cut(stack):
    return any(f.startswith("[unwind: ") for f in stack.frames)


def whole_share(stacks):
    return 1 - total(s for s in stacks if is_cut(s)) / max(1, total(stacks))


def listing(stacks, n=6):
    """The heaviest of them, for a message."""
    top = sorted(stacks, key=lambda s: -s.count)[:n]
    return " | ".join(f"{s.count}x {s.name};{';'.join(s.frames)}" for s in top)


def reasons():
    """enum bpfprof_stack_result, by name: the sentence in the marker frame."""
    text = open(os.path.join(ROOT, "bpf/bpfprof.h")).read()
    text = text[text.index("#define BPFPROF_STACK_RESULTS") :]
    text = text[: text.index("\n\n")]
    return dict(re.findall(r'X\((\w+),\s*"([^"]*)"\)', text))


def lost_reasons():
    text = open(os.path.join(ROOT, "bpf/bpfprof.h")).read()
    text = text[text.index("#define BPFPROF_LOST_REASONS") :]
    text = text[: text.index("\n\n")]
    return re.findall(r"X\((\w+),", text)


@functools.cache
def our_programs():
    """The names of our BPF programs, as the kernel keeps them."""
    names = set()
    for path in glob.glob(os.path.join(ROOT, "bpf/*.bpf.c")):
        names |= set(re.findall(r'(?m)^SEC\("[^"]*"\)\s*int\s+(?:BPF_\w+\()?(\w+)', open(path).read()))
    need(names and not [n for n in names if n.startswith("BPF_")], f"names of macros: {sorted(names)}")
    return {n[:15] for n in names}


def left_behind():
    """BPF programs of ours that no process holds."""
    names = our_programs()
    left = [p for p in bpf_objects("prog") if p.get("name") in names]
    held = held_programs() if left else set()
    return [p for p in left if p["id"] not in held]


@functools.cache
def bpftool():
    """The one that the build takes."""
    found = subprocess.run([os.path.join(ROOT, "scripts/find-bpftool")], capture_output=True, text=True)
    if found.returncode:
        raise Skip("there is no bpftool that works")
    return found.stdout.strip()


def bpf_objects(what, *which):
    """What bpftool lists: "prog", "link", "map". It fails where one goes while it is asked, as those of others may."""
    for _ in range(100):
        shown = subprocess.run([bpftool(), "-j", what, "show", *which], capture_output=True)
        if not shown.returncode:
            found = json.loads(shown.stdout or b"[]")
            return found if isinstance(found, list) else [found]
    raise AssertionError(f"bpftool {what} show: {shown.returncode}, {shown.stdout[-300:]} {shown.stderr[-300:]}")


def held_programs():
    """Ids of the BPF programs that a living process holds: another bpfprof may be at work on this machine."""
    held = set()
    for path in glob.glob("/proc/[0-9]*/fdinfo/*"):
        with contextlib.suppress(OSError):
            held |= {int(n) for n in re.findall(r"prog_id:\s*(\d+)", open(path).read())}
    return held

# SPDX-License-Identifier: BSD-2-Clause
"""What the profiles of waits and threads cost; part of tests/bench/run, which see.

What a switch costs is measured on tests/bench/switches, in CPU time of those who switch: bare and under a tool in turns, the difference
to the mean of the bare figures just before and after. What programs lose is measured in operations a second while they run under load,
likewise in turns.

Turns of 30 s are what a user sees, but do not tell 3 % from nothing where a machine does 10 % more or less from one to the next: so what
is attached is measured in turns of less than a second as well, by tests/bench/pausable.
"""
import bisect
import contextlib
import glob
import json
import os
import pwd
import random
import re
import resource
import shutil
import socket
import statistics
import subprocess
import threading
import time

from __main__ import BPFPROF, LONG, OUT, PORT, TMP, have, redis_load, row, running

# tracefs need not be mounted; who needs it gets one of its own
PRIVATE_TRACEFS = ["unshare", "--mount", "sh", "-c", '[ -e /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing; exec "$@"',
                   "sh"]
BPFTRACE_OFFCPU = """tracepoint:sched:sched_switch %s { @start[tid] = nsecs; @[kstack, ustack] = count(); }
tracepoint:sched:sched_switch /@start[args->next_pid]/ { @ns = sum(nsecs - @start[args->next_pid]); delete(@start[args->next_pid]); }"""

ROUNDS = 40
EVERY = ("--wait-budget", "100")  # every wait is recorded


def ours(pids, *args):
    return [BPFPROF, "-q", "-o", f"{TMP}/waits", "--pid", pids, *args]


# ---- tools beside ours ----


def offcputime_works():
    """bcc's needs kprobes, and headers of the kernel to compile against."""
    tool = shutil.which("offcputime-bpfcc") or shutil.which("offcputime")
    if not tool:
        return None
    p = subprocess.run([tool, "-p", str(os.getpid()), "1"], capture_output=True, check=False, timeout=60)
    return None if p.returncode or b"Traceback" in p.stderr else tool


def peers():
    """name -> how to follow all switches of processes (a list of ids) with both stacks."""
    tools = {}
    bcc = offcputime_works()
    if bcc:
        tools["bcc's offcputime"] = lambda pids: [bcc, *(["-p", pids] if "," not in pids else []), "600"]
    else:
        tools["offcputime's way"] = lambda pids: [f"{OUT}/tests/bench/offcpu", pids if "," not in pids else "0"]
    if have("bpftrace"):
        tools["bpftrace"] = lambda pids: [*PRIVATE_TRACEFS, "bpftrace", "-e",
                                          BPFTRACE_OFFCPU % ("/" + " || ".join(f"pid == {p}" for p in pids.split(",")) + "/")]
    if have("perf"):
        # for the whole machine: with -p it costs more, for its events are switched as well
        tools["perf"] = lambda pids: [*PRIVATE_TRACEFS, "perf", "record", "-q", "-e", "sched:sched_switch", "-g", "-a", "-o", f"{TMP}/perf.data"]
    return tools


def is_armed(pid):
    """Does a process hold probes: BPF links, or perf events?"""
    with contextlib.suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                if re.search("bpf[-_]link|perf_event", os.readlink(f"/proc/{pid}/fd/{fd}")):
                    return True
    return False


def wait_armed(p):
    end = time.monotonic() + 20
    while p.poll() is None and not is_armed(p.pid):
        if time.monotonic() > end:
            raise RuntimeError(f"{' '.join(p.args)[:200]} does not come to attach anything")
        time.sleep(0.05)
    time.sleep(1.5 if p.args[0] != BPFPROF else 0.7)  # until all are


@contextlib.contextmanager
def attached(args):
    """While a tool is at work; ends it as its user would, and is sure that it was."""
    with subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as p:
        try:
            wait_armed(p)
            if p.poll() is not None:
                raise RuntimeError(f"{' '.join(args)[:200]} exits {p.returncode}: {p.stderr.read()[-300:]!r}")
            yield p
            if p.poll() is not None:
                raise RuntimeError(f"{' '.join(args)[:200]} has ended too early: {p.returncode}")
            p.send_signal(2)
            p.communicate(timeout=120)
        finally:
            p.kill()
    with contextlib.suppress(OSError):
        os.unlink(f"{TMP}/perf.data")


# ---- a switch ----


class Switches:
    """A program that hands over when it is asked to, and says what it took."""

    def __init__(self, mode):
        self.p = subprocess.Popen([f"{OUT}/tests/bench/switches", mode], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pids = self.p.stdout.readline().strip()
        self.count = 1000000 if mode == "lock" else 4000

    def __enter__(self):
        self.ask()
        return self

    def __exit__(self, *_):
        self.p.stdin.close()
        self.p.kill()
        self.p.wait()
        self.p.stdout.close()

    def ask(self):
        """ns; of the lower of many short rounds, since what else runs on the machine only adds."""
        got = []
        for _ in range(ROUNDS):
            self.p.stdin.write(f"{self.count}\n")
            self.p.stdin.flush()
            got.append(float(self.p.stdout.readline().split()[0]))
            time.sleep(0.002)
        return sorted(got)[ROUNDS // 8]


def in_turns(switches, tools, rounds):
    """name -> (ns bare, ns added), medians. tools: name -> command for process ids"""
    bare, added = {n: [] for n in tools}, {n: [] for n in tools}
    before = switches.ask()
    for _ in range(rounds):
        for name, command in tools.items():
            with attached(command(switches.pids)):
                under = switches.ask()
            after = switches.ask()
            bare[name].append((before + after) / 2)
            added[name].append(under - bare[name][-1])
            before = after
    return {n: (statistics.median(bare[n]), statistics.median(added[n])) for n in tools}


def account(pids, *args, seconds=2):
    """What a run says about itself. Apart, since the kernel's counting of what programs take costs something itself."""
    p = subprocess.run(ours(pids, "-d", str(seconds), "--stats", "-", *args), capture_output=True, check=True)
    return json.loads(p.stdout)


def in_bpf(switches, *args):
    """ns of our BPF programs for each hand-over; the kernel's counting of it is in there, some 20 ns for each program's run."""
    stop = threading.Event()
    done = []

    def work():
        while not stop.is_set():
            switches.ask()
            done.append(ROUNDS * switches.count)

    t = threading.Thread(target=work)
    t.start()
    try:
        begin, had = time.monotonic(), len(done)
        stats = account(switches.pids, *args)
        rate = sum(done[had:]) / (time.monotonic() - begin)
    finally:
        stop.set()
        t.join()
    return stats["self"]["bpf_ns"] / max(1, rate * stats["duration_ns"] / 1e9)


def cost_row(what, got, aim_ns=None):
    bare, added = got
    row(what, f"{added:+.0f} ns", f"{bare:.0f} ns bare", f"{(bare + added) / bare:.2f}", f"<= +{aim_ns} ns" if aim_ns else "",
        added <= aim_ns if aim_ns else None)


def against(got, ours_name, others, aim):
    mine = got[ours_name][1]
    for name in others:
        theirs = got[name][1]
        row(f"  against {name}", f"{mine:+.0f} ns", f"{theirs:+.0f} ns", f"{mine / theirs:.3f}", "<= 0.2" if aim else "",
            5 * mine <= theirs if aim else None)


def bench_switch():
    others = peers()
    below = "offcpu, all below --min-wait"
    above = "offcpu, user and kernel stack of each"
    tools = {below: lambda pids: ours(pids, "-P", "offcpu", "--min-wait", "10s"),
             above: lambda pids: ours(pids, "-P", "offcpu", *EVERY),
             "block, where nothing waits for a lock": lambda pids: ours(pids, "-P", "block"),
             "block,mutex, the same": lambda pids: ours(pids, "-P", "block,mutex"),
             "cpu alone": lambda pids: ours(pids, "-P", "cpu"),
             "the default kinds": lambda pids: ours(pids), **others}
    with Switches("pipe") as s:
        got = in_turns(s, tools, 9 if LONG else 5)
        bpf = {name: in_bpf(s, *args) for name, args in ((below, ("-P", "offcpu", "--min-wait", "10s")), (above, ("-P", "offcpu", *EVERY)))}
    cost_row(f"switch: {below}", got[below], 300)
    row("  of that, in BPF programs (with the counting of it)", f"{bpf[below]:.0f} ns", "-", "-", "")
    against(got, below, others, True)
    cost_row(f"switch: {above}", got[above], 3000)
    row("  of that, in BPF programs (with the counting of it)", f"{bpf[above]:.0f} ns", "-", "-", "")
    against(got, above, others, False)
    for name in tools:
        if name not in others and name not in (below, above):
            cost_row(f"switch: {name}", got[name], 300 if name.startswith("block") else None)
    with Switches("pipe") as s, running("sleep", "600") as bystander:
        pid = str(bystander.pid)
        got = in_turns(s, {"offcpu": lambda _: ours(pid, "-P", "offcpu"), "default": lambda _: ours(pid)}, 9 if LONG else 5)
    cost_row("switch of others, while offcpu watches a process", got["offcpu"])
    cost_row("switch of others, while the default kinds do", got["default"])


def bench_futex():
    rounds = 9 if LONG else 5
    for mode, what in (("futex", "hand-over by a futex"), ("cond", "hand-over by mutex and condvar")):
        tools = {"block": lambda pids: ours(pids, "-P", "block", *EVERY), "block,mutex": lambda pids: ours(pids, "-P", "block,mutex", *EVERY),
                 "below": lambda pids: ours(pids, "-P", "block,mutex", "--min-wait", "10s"),
                 "offcpu": lambda pids: ours(pids, "-P", "offcpu", *EVERY), "default": lambda pids: ours(pids)}
        with Switches(mode) as s:
            got = in_turns(s, tools, rounds)
        cost_row(f"{what}: block,mutex, below --min-wait", got["below"], 300)
        cost_row(f"{what}: block", got["block"], 3000)
        cost_row(f"{what}: block,mutex (two stacks)", got["block,mutex"])
        cost_row(f"{what}: offcpu", got["offcpu"], 3000)
        cost_row(f"{what}: the default kinds", got["default"])
    with Switches("lock") as s:
        bare, added = in_turns(s, {"x": lambda pids: ours(pids, "-P", "block,mutex")}, rounds)["x"]
    row("lock and unlock that nobody contends: block,mutex", f"{added:+.2f} ns", f"{bare:.2f} ns bare", f"{(bare + added) / bare:.3f}",
        "<= 1.02 (noise)", added <= 0.02 * bare)


# ---- programs under load ----


class Load:
    """Follows a load that goes on: operations, and CPU time of those who serve it, about each second."""

    def __init__(self, samples):
        """samples: yields (time, operations so far, CPU seconds so far)"""
        self.seen = []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.follow, args=(samples,), daemon=True)
        self.thread.start()

    def follow(self, samples):
        for s in samples:
            self.seen.append(s)
            if self.stop.is_set():
                return

    def between(self, begin, end):
        """Operations a second and CPU seconds an operation, of the whole intervals between two times."""
        inside = [s for s in self.seen if begin <= s[0] <= end]
        if len(inside) < 2:
            raise RuntimeError(f"the load gave {len(inside)} figures within {end - begin:.1f} s")
        (t0, n0, c0), (t1, n1, c1) = inside[0], inside[-1]
        return (n1 - n0) / (t1 - t0), (c1 - c0) / max(1, n1 - n0)

    def under(self, args, seconds):
        """The same while a command runs, from its start to its end, or in steady state where it does not end by itself."""
        begin = time.monotonic()
        if args is None:
            time.sleep(seconds)
        elif args[0] == BPFPROF and "-d" in args:
            p = subprocess.run(args, capture_output=True, check=False)
            if p.returncode:
                raise RuntimeError(f"{' '.join(args)[:200]} exits {p.returncode}: {p.stderr[-300:]!r}")
        else:
            with attached(args):
                begin = time.monotonic()
                time.sleep(seconds)
        return self.between(begin, time.monotonic())


def cpu_seconds(pids):
    """Of processes; by their clocks, see clock_getcpuclockid(3): /proc counts in ticks."""
    total = 0.0
    for pid in pids:
        with contextlib.suppress(OSError):
            total += time.clock_gettime((~pid << 3) | 2)
    return total


def lines_of(stream, pattern, pids=()):
    """Samples from reports of operations a second."""
    done, last = 0.0, time.monotonic()
    for line in stream:
        m = re.search(pattern, line)
        if m:
            now = time.monotonic()
            done += float(m[1]) * (now - last)
            last = now
            yield now, done, cpu_seconds(pids)


def redis_samples(pid):
    with socket.create_connection(("127.0.0.1", PORT)) as s:
        while True:
            s.sendall(b"INFO stats\r\n")
            text = b""
            while b"total_commands_processed" not in text or not text.endswith(b"\r\n"):
                got = s.recv(65536)
                if not got:
                    return
                text += got
            yield time.monotonic(), int(re.search(rb"total_commands_processed:(\d+)", text)[1]), cpu_seconds([pid])
            time.sleep(0.25)


@contextlib.contextmanager
def background(args, **kwargs):
    """A command, ended by its own id; its output is read by whom it is given to."""
    with subprocess.Popen(args, text=True, **kwargs) as p:
        try:
            yield p
        finally:
            p.terminate()
            try:
                p.wait(20)
            except subprocess.TimeoutExpired:
                p.kill()


def losses(load, tools, rounds, seconds):
    """name -> list of (share of throughput lost, share of CPU time per operation added), against the means of what is before and after."""
    got = {n: [] for n in tools}
    before = load.under(None, seconds)
    for i in range(rounds):
        for name in list(tools) if i % 2 else reversed(list(tools)):
            under = load.under(tools[name], seconds)
            after = load.under(None, seconds)
            rate, cpu = (before[0] + after[0]) / 2, (before[1] + after[1]) / 2
            got[name].append((1 - under[0] / rate, under[1] / cpu - 1 if cpu else 0.0, under[0], rate))
            before = after
    return got


def spread(values):
    low, _, high = statistics.quantiles(values, n=4)
    return f"{100 * low:.1f} to {100 * high:.1f} %"


def bench_sysbench():
    if not have("sysbench"):
        row("sysbench threads", "-", "-", "-", "skipped: needs sysbench")
        return
    others = peers()
    args = ["sysbench", "threads", "--threads=8", "--thread-locks=4", "--thread-yields=100", "--time=0", "--events=0", "--report-interval=1", "run"]
    with background(args, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as p:
        load = Load(lines_of(p.stdout, r"eps: ([0-9.]+)", [p.pid]))
        time.sleep(1)
        pids = str(p.pid)
        tools = {"offcpu, below --min-wait": ours(pids, "-P", "offcpu", "--min-wait", "10s"), "offcpu": ours(pids, "-P", "offcpu"),
                 "offcpu, every wait": ours(pids, "-P", "offcpu", *EVERY), "block": ours(pids, "-P", "block"),
                 "block,mutex": ours(pids, "-P", "block,mutex"), "the default kinds": ours(pids)}
        mine = list(tools)
        tools.update((name, command(pids)) for name, command in others.items())
        got = losses(load, tools, 7 if LONG else 3, 3.2)
        load.stop.set()
    # CPU time of an event more, which a busy machine changes less than how many there are in a second
    added = {name: statistics.median(r[1] for r in runs) for name, runs in got.items()}
    for name in mine:
        under, bare = (statistics.median(r[i] for r in got[name]) for i in (2, 3))
        row(f"sysbench threads: {name}", f"{under:.0f} events/s", f"{bare:.0f} events/s bare", f"{1 - statistics.median(r[0] for r in got[name]):.3f}", "")
        row("  CPU time of an event", f"{100 * added[name]:+.1f} %", "-", f"{1 + added[name]:.3f}", "")
        if name.startswith("offcpu"):
            for peer in others:
                aim = "every wait" not in name
                row(f"  added to that, against {peer}", f"{100 * added[name]:+.1f} %", f"{100 * added[peer]:+.1f} %",
                    f"{added[name] / added[peer]:.3f}", "<= 0.2" if aim else "", 5 * added[name] <= added[peer] if aim else None)


def app_rows(what, load, pids):
    """The main command as it is documented, in turns with nothing; and what a run says that it took."""
    main = [BPFPROF, "-q", "-o", f"{TMP}/waits", *pids, "-d", "30"]
    runs = losses(load, {"main": main}, 16 if LONG else 8, 30)["main"]
    lost, cpu = [r[0] for r in runs], [r[1] for r in runs]
    under, bare = (statistics.median(r[i] for r in runs) for i in (2, 3))
    mid = statistics.median(lost)
    row(f"{what}: the main command ({len(runs)} pairs; loss {spread(lost)})", f"{under:.0f}/s", f"{bare:.0f}/s bare", f"{1 - mid:.3f}",
        ">= 0.97", mid <= 0.03)
    row(f"  CPU time of the server per operation ({spread(cpu)})", f"{100 * statistics.median(cpu):+.1f} %", "-", f"{1 + statistics.median(cpu):.3f}", "")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    stats = json.loads(subprocess.run([*main, "--stats", "-"], capture_output=True, check=True).stdout)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    heap = stats["kinds"]["heap"]["heap"]
    took = {"the main command itself with its readers, from start to end": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            "its BPF programs but for the heap's, with the counting of it": (stats["self"]["bpf_ns"] - heap["bpf_ns"]) / 1e9,
            "its probes of the heap": heap["cost_ns"] / 1e9}
    whole = stats["duration_ns"] / 1e9 * os.cpu_count()
    for name, seconds in took.items():
        row(f"  {name}", f"{seconds:.2f} s", "-", f"{seconds / whole:.4f} of all CPUs", "")
    # a machine that others use as well may show this where it does not show what is lost
    together = sum(took.values())
    row("  together", f"{together:.2f} s", "-", f"{together / whole:.4f} of all CPUs", "<= 0.03", together <= 0.03 * whole)
    return took["the main command itself with its readers, from start to end"] / whole


# ---- in quick turns ----

TURN_SECONDS = 0.8


def turn(p, word):
    p.stdin.write(word + "\n")
    p.stdin.flush()
    answer = p.stdout.readline()
    if answer != word + "\n":
        raise RuntimeError(f"{word}: {answer!r}")


def quick_turns(args, server, turns, done=lambda: 0):
    """[(begin, end, CPU seconds of the server, operations)], of time.time(): without what a run with these arguments attaches, and with
    it, in turns; the first and the last without. server: its processes; done: gives the operations so far."""
    seen = []
    command = [f"{OUT}/tests/bench/pausable", "-q", "-o", f"{TMP}/turns", *args, "-d", "3600"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        try:
            wait_armed(p)
            time.sleep(2)  # until the heap's probes have found to their slices
            for i in range(2 * turns + 1):
                turn(p, "on" if i % 2 else "off")
                # lest a rhythm of the server's own is met
                time.sleep(random.uniform(0.1, 0.3))
                begin, cpu, had = time.time(), cpu_seconds(server), done()
                time.sleep(TURN_SECONDS)
                seen.append((begin, time.time(), cpu_seconds(server) - cpu, done() - had))
            p.send_signal(2)
            p.communicate(timeout=120)
        finally:
            p.kill()
    return seen


def against_neighbours(values):
    """The share by which every second value is above those before and after it: median, which a server that stands still for a moment
    does not change, and its standard error."""
    bare = statistics.median(values[::2])
    above = [(values[i] - (values[i - 1] + values[i + 1]) / 2) / bare for i in range(1, len(values), 2)]
    low, mid, high = statistics.quantiles(above, n=4)
    # of a normal distribution
    return mid, 1.253 * (high - low) / 1.349 / len(above) ** 0.5


def logged_times(prefix):
    """When transactions of pgbench -l ended, in order."""
    times = []
    for name in glob.glob(prefix + "*"):
        with open(name) as f:
            # client, transaction, its latency, script, seconds, us
            times += [int(w[4]) + int(w[5]) / 1e6 for w in map(str.split, f) if len(w) >= 6]
    return sorted(times)


def counted(seen, times):
    """The same turns, with the operations that ended in them, by when each has ended, in order."""
    return [(begin, end, cpu, bisect.bisect(times, end) - bisect.bisect(times, begin)) for begin, end, cpu, _ in seen]


def added_by_turns(seen):
    """What the turns with something attached have more than those without: (operations a second, CPU time of an operation), each as
    (share, its standard error)."""
    return (against_neighbours([n / (end - begin) for begin, end, _, n in seen]),
            against_neighbours([cpu / max(1, n) for _, _, cpu, n in seen]))


def quick_rows(seen, itself):
    """itself: share of all CPUs that the command takes from start to end, beside what is attached."""
    (more, more_error), (cpu, cpu_error) = added_by_turns(seen)
    row(f"  {len(seen) // 2} turns with and without what is attached", f"{100 * -more:.1f} +- {100 * more_error:.1f} % lost", "-", f"{1 + more:.3f}", "")
    row("    CPU time of the server per operation", f"{100 * cpu:+.1f} +- {100 * cpu_error:.1f} %", "-", f"{1 + cpu:.3f}", "")
    row("    with what the command itself takes", f"{100 * (itself - more):.1f} % lost", "-", f"{1 + more - itself:.3f}", ">= 0.97",
        itself - more <= 0.03)


def bench_redis_waits():
    if not have("redis-server", "redis-benchmark"):
        row("redis under the default kinds", "-", "-", "-", "skipped: needs redis")
        return
    with redis_load() as pid:
        load = Load(redis_samples(pid))
        itself = app_rows("redis", load, ["--pid", str(pid)])
        load.stop.set()
        samples = redis_samples(pid)
        seen = quick_turns(["--pid", str(pid)], [pid], 250 if LONG else 120, lambda: next(samples)[1])
        quick_rows(seen, itself)


@contextlib.contextmanager
def postgres():
    """An own cluster, by a user who may not be root; yields how to call pgbench, as whom, and the postmaster's id."""
    bins = max(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda p: int(re.search(r"/(\d+)/", p)[1]),
               default=os.path.dirname(shutil.which("postgres") or ""))
    user = next((u for u in ("postgres", "nobody") if u in (p.pw_name for p in pwd.getpwall())), None)
    if not user or not bins or not os.path.exists(f"{bins}/initdb"):
        yield None
        return
    folder = f"{TMP}/postgres"
    os.chmod(TMP, 0o755)
    os.mkdir(folder)
    shutil.chown(folder, user)

    who = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": [], "cwd": folder}
    subprocess.run([f"{bins}/initdb", "-D", f"{folder}/data", "-A", "trust"], check=True, capture_output=True, **who)
    with background([f"{bins}/postgres", "-D", f"{folder}/data", "-k", folder, "-c", "listen_addresses="], stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL, **who) as server:
        end = time.monotonic() + 30
        while subprocess.run([f"{bins}/pg_isready", "-q", "-h", folder], check=False, **who).returncode:
            if time.monotonic() > end:
                raise RuntimeError("PostgreSQL does not start")
            time.sleep(0.1)
        db = ["-h", folder, "-U", user, "postgres"]
        subprocess.run([f"{bins}/pgbench", "-i", "-q", "-s", "10", *db], check=True, capture_output=True, **who)
        yield (lambda *args: [f"{bins}/pgbench", *args, *db]), who, server.pid


def family(pid):
    """A process and its children."""
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [pid, *map(int, f.read().split())]


# a quick program: the times of some transactions are enough
PGBENCH = {"pgbench -S": ["-S", "--sampling-rate=0.1"], "pgbench -N": ["-N"]}


@contextlib.contextmanager
def pgbench_load(cluster, what):
    """Yields where its reports come, the server's processes, and what gives the times at which transactions have ended."""
    pgbench, who, postmaster = cluster
    logs = f"{who['cwd']}/{what[-1]}"
    args = ["-n", "-c", "4", "-j", "2", "-M", "prepared", "-T", "100000", "-P", "1", "-l", f"--log-prefix={logs}", *PGBENCH[what]]
    with background(pgbench(*args), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, **who) as p:
        time.sleep(3)
        yield p.stderr, family(postmaster), lambda: logged_times(logs)
    for name in glob.glob(logs + "*"):
        os.unlink(name)


def bench_postgres_waits():
    with postgres() as cluster:
        if not cluster:
            row("PostgreSQL under the default kinds", "-", "-", "-", "skipped: needs postgresql")
            return
        named = ["--pid", str(cluster[2]), "--follow"]
        for what in PGBENCH:
            with pgbench_load(cluster, what) as (reports, server, times):
                load = Load(lines_of(reports, r"progress: .*?([0-9.]+) tps", server))
                time.sleep(1)
                itself = app_rows(what, load, named)
                seen = quick_turns(named, server, 250 if LONG else 120)
                load.stop.set()
                quick_rows(counted(seen, times()), itself)


# ---- what the heap's probes are said to cost ----


def bench_heap_account():
    """Attached all the time, beside servers of several processes: said, against what their CPU time tells."""
    with postgres() as cluster:
        if not cluster:
            row("the heap's probes, as said, beside PostgreSQL", "-", "-", "-", "skipped: needs postgresql")
            return
        args = ["-P", "heap", "--heap-budget", "100", "--pid", str(cluster[2]), "--follow"]
        for what in PGBENCH:
            with pgbench_load(cluster, what) as (reports, server, times):
                Load(lines_of(reports, r"progress: .*?([0-9.]+) tps"))
                seen = quick_turns(args, server, 250 if LONG else 60)
                command = [BPFPROF, "-q", "-o", f"{TMP}/heap", *args, "-d", "10", "--stats", "-"]
                heap = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["kinds"]["heap"]["heap"]
                (more, more_error), (cpu, cpu_error) = added_by_turns(counted(seen, times()))
            total = heap["target_cpu_ns"]
            said, added = heap["cost_ns"] / total, cpu / (1 + cpu)
            row(f"{what}: the heap's probes, of the server's CPU time, as said", f"{100 * said:.1f} %",
                f"{100 * added:.1f} +- {100 * cpu_error / (1 + cpu)**2:.1f} % measured", f"{said / added:.2f}", "0.75 to 1.5", 0.75 <= said / added <= 1.5)
            row("  a hit", f"{said * total / heap['hits']:.0f} ns", f"{added * total / heap['hits']:.0f} ns", "", "")
            row("  operations", f"{100 * -more:.1f} +- {100 * more_error:.1f} % lost", "-", f"{1 + more:.3f}", "")


# ---- a snapshot ----


def bench_threads():
    count = 1000
    with subprocess.Popen([f"{OUT}/tests/bench/switches", "parked", str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as p:
        try:
            pid = p.stdout.readline().strip()
            time.sleep(0.5)
            took, wall = [], []
            for _ in range(5):
                begin = time.monotonic()
                kind = json.loads(subprocess.run(ours(pid, "-P", "threads", "--stats", "-"), capture_output=True, check=True).stdout)["kinds"]["threads"]
                wall.append((time.monotonic() - begin) * 1e3)
                took.append(kind["snapshot_ns"] / 1e6)
            ms, all_ms = statistics.median(took), statistics.median(wall)
            row(f"threads: snapshot of {count + 1} threads ({kind['recorded']} recorded)", f"{ms:.0f} ms", "-", "-", "<= 100 ms", ms <= 100)
            for name, args in (("gdb", ["gdb", "-batch", "-p", pid, "-ex", "thread apply all bt"]), ("eu-stack", ["eu-stack", "-p", pid])):
                if not have(name):
                    continue
                begin = time.monotonic()
                subprocess.run(args, capture_output=True, check=False)
                theirs = (time.monotonic() - begin) * 1e3
                row(f"  the whole command, against {name}, which stops the program", f"{all_ms:.0f} ms", f"{theirs:.0f} ms", f"{all_ms / theirs:.3f}", "")
        finally:
            p.kill()


GROUPS = {"waits_switch": bench_switch, "waits_futex": bench_futex, "waits_sysbench": bench_sysbench, "waits_redis": bench_redis_waits,
          "waits_postgres": bench_postgres_waits,
          "heap_account": bench_heap_account, "threads_snapshot": bench_threads}

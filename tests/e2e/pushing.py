# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of pushing share: an agent with a configuration, and what should have arrived."""

import collections
import contextlib
import glob
import os
import re
import signal
import urllib.request

import lib
import stores
from lib import need

NAME = re.compile(r"(\d{16})\.\d{8}T\d{6}Z\.(.+)\.(\w+)\.pb\.gz")


class Agent:
    """bpfprof agent with a configuration, and windows of a second."""

    def __init__(self, config, kinds="cpu", folder=None, hz=29, options=(), prefix=(), env=None):
        self.folder, self.config = folder or lib.temp(), lib.temp(".ini")
        self.kinds, self.hz, self.options, self.prefix, self.env = kinds, hz, options, prefix, env
        self.log = lib.temp(".err")
        self.seen = None  # numbers of records, when wait_delivered has found all of them arrived
        self.write(config)
        self.start()

    def write(self, config):
        with open(self.config, "w") as f:
            f.write(f"profile = {self.kinds}\nfrequency = {self.hz}\nwindow = 1s\nspool = {self.folder}\nlisten = none\n{config}\n")

    def start(self):
        with open(self.log, "ab") as log:
            self.p = lib.start_bpfprof(["agent", "--config", self.config, *self.options], prefix=self.prefix, stderr=log, cwd=lib.TMP, env=self.env)
        lib.wait_attached(self.p, self.err)

    def err(self):
        with open(self.log, errors="replace") as f:
            return lib.agent_messages(f.read())

    def wait_said(self, what):
        lib.wait_until(lambda: what in self.err() or self.p.poll() is not None, f"{what!r}")
        need(what in self.err(), f"{what!r} is not said: {self.err()}")

    def numbers(self):
        return sorted(int(NAME.fullmatch(f)[1]) for f in os.listdir(self.folder) if NAME.fullmatch(f))

    def record(self, number):
        return glob.glob(os.path.join(self.folder, f"{number:016}.*"))[0]

    def wait_records(self, cnt):
        have = len(self.numbers())
        lib.wait_until(lambda: self.p.poll() is not None or len(self.numbers()) >= have + cnt, f"{cnt} records")
        need(self.p.poll() is None, f"the agent has ended: {self.err()}")

    def wait_delivered(self, *all_stores, missing=0):
        """Until each has all but those, and the last window's, of which not all may be written yet."""

        def are_there():
            self.seen = self.numbers()
            return all(len({r.body for r in s.stored}) >= len(self.seen) - missing for s in all_stores)

        lib.wait_until(lambda: self.p.poll() is not None or are_there(), "all to arrive")
        need(self.p.poll() is None, f"the agent has ended: {self.err()}")

    def owed(self):
        """Numbers of the records that have to be there in the end. What came behind the last look may not, if the stores were not quick
        enough for an agent that ends, which says so."""
        late = self.seen is not None and "not all profiles are delivered" in self.err()
        return self.seen if late else self.numbers()

    def courier(self):
        return next(iter(lib.helpers(self.p.pid, "courier")), None)

    def end(self, sig=signal.SIGTERM):
        self.p.send_signal(sig)
        status = self.p.wait(lib.LONG)
        need(status == (0 if sig == signal.SIGTERM else -sig), f"exit status {status}: {self.err()}")


def metrics(port):
    """{name with its labels: value}, as the agent that listens there says it; none until it does."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=lib.LONG) as r:
            lines = r.read().decode().splitlines()
    except OSError:
        return {}
    return {name: float(value) for name, value in (x.rsplit(" ", 1) for x in lines if not x.startswith("#"))}


def push(name, store, *lines, path=""):
    return "\n".join([f'[push "{name}"]', f"url = {store.url(path)}", *lines, ""])


def as_records(agent):
    """{number: what a store without labels of samples should have of it}."""
    found = {}
    for n in agent.numbers():
        with open(agent.record(n), "rb") as f:
            found[n] = stores.of_pprof({}, f.read())
    return found


def key(taken):
    """What makes two profiles the same."""
    return taken.begin_ns, taken.duration_ns, tuple(sorted((f, tuple(v)) for f, v in taken.stacks.items()))


def compared(agent, taken, select=lambda record: record):
    """What has to be there and is not, and what is there too often or is no record."""
    records = {n: key(select(r)) for n, r in as_records(agent).items()}
    got = collections.Counter(map(key, taken))
    need(records, "no records")
    return collections.Counter(records[n] for n in agent.owed()) - got, got - collections.Counter(records.values())


def need_each_once(agent, taken, what, select=lambda record: record):
    missing, more = compared(agent, taken, select)
    need(not missing and not more, f"{what}: {missing.total()} have not arrived, {more.total()} more than once")


def only(value):
    """A record with one of its values."""
    return lambda r: r._replace(stacks={f: [v[value]] for f, v in r.stacks.items() if v[value]})


@contextlib.contextmanager
def services(cnt):
    """Programs of as many services: a window has a profile of each."""
    with contextlib.ExitStack() as stack:
        for i in range(cnt):
            stack.enter_context(lib.process(lib.start_prog("busy", 120, "rests", env={**os.environ, "OTEL_SERVICE_NAME": f"service-{i}"})))
        yield


@contextlib.contextmanager
def ended(agent):
    try:
        yield agent
    except BaseException:
        agent.p.kill()
        raise
    agent.end()

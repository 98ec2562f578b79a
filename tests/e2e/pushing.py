# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of pushing share: an agent with a configuration, and what should have arrived."""

import collections
import contextlib
import glob
import os
import re
import signal

import lib
import stores
from lib import need

NAME = re.compile(r"(\d{16})\.\d{8}T\d{6}Z\.(.+)\.(\w+)\.pb\.gz")


class Agent:
    """bpfprof agent with a configuration, and windows of a second."""

    def __init__(self, config, kinds="cpu", folder=None, hz=29, options=(), prefix=()):
        self.folder, self.config = folder or lib.temp(), lib.temp(".ini")
        self.kinds, self.hz, self.options, self.prefix = kinds, hz, options, prefix
        self.log = lib.temp(".err")
        self.write(config)
        self.start()

    def write(self, config):
        with open(self.config, "w") as f:
            f.write(f"profile = {self.kinds}\nfrequency = {self.hz}\nwindow = 1s\nspool = {self.folder}\nlisten = none\n{config}\n")

    def start(self):
        with open(self.log, "ab") as log:
            self.p = lib.start_bpfprof(["agent", "--config", self.config, *self.options], prefix=self.prefix, stderr=log, cwd=lib.TMP)
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
        there = lambda s: len({r.body for r in s.stored}) >= len(self.numbers()) - missing
        lib.wait_until(lambda: self.p.poll() is not None or all(map(there, all_stores)), "all to arrive")
        need(self.p.poll() is None, f"the agent has ended: {self.err()}")

    def courier(self):
        for pid in lib.children(self.p.pid):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/comm") as f:
                if f.read() == "bpfprof-courier\n":
                    return pid
        return None

    def end(self, sig=signal.SIGTERM):
        self.p.send_signal(sig)
        status = self.p.wait(lib.LONG)
        need(status == (0 if sig == signal.SIGTERM else -sig), f"exit status {status}: {self.err()}")


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


def need_each_once(agent, taken, what, select=lambda record: record, sure=None):
    """sure: numbers of the records that have to be there, where the agent may not have had the time for the last ones; else all."""
    records = {n: key(select(r)) for n, r in as_records(agent).items()}
    want = collections.Counter(records[n] for n in (records if sure is None else sure))
    got = collections.Counter(key(t) for t in taken)
    missing, more = want - got, got - collections.Counter(records.values())
    need(want, "no records")
    need(not missing and not more, f"{what}: of {want.total()} records {missing.total()} have not arrived, {more.total()} more than once")


def only(value):
    """A record with one of its values."""
    return lambda r: r._replace(stacks={f: [v[value]] for f, v in r.stacks.items() if v[value]})


@contextlib.contextmanager
def ended(agent):
    try:
        yield agent
    except BaseException:
        agent.p.kill()
        raise
    agent.end()

# SPDX-License-Identifier: BSD-2-Clause
"""What fds says, against a program that knows what it has left open, and where (tests/progs/fds.c)."""

import collections

import heap_truth
from lib import need

MAIN = ["main", "do_all"]
NOT_SEEN = "receive_many"  # recvmmsg, where openings are seen as system calls return


def opened(samples, functions):
    """{function: descriptors}; a stack is checked from the outermost function on."""
    found = collections.Counter()
    for s in samples:
        name = next((f for f in reversed(s.frames) if f in functions), None)
        need(name and len(s.values) == 1 and s.values[0] > 0, f"{s}")
        outer = s.frames[: s.frames.index(name)]
        outer = [f for f in outer if not heap_truth.ROOTS.fullmatch(f)]
        need(outer == ([] if name == "in_thread" else MAIN), f"{name}: {s.frames}")
        found[name] += s.values[0]
    return found


def check(samples, account, said, there, functions):
    """said: {function: descriptors}; there: in /proc/PID/fd; functions: openings are seen in functions of the kernel."""
    wanted = dict(said)
    unknown = 0 if functions else wanted.pop(NOT_SEEN, 0)
    found = opened(samples, wanted)
    need(found == wanted, f"{dict(found)}, truth {said}")
    need(account["open_unknown"] == unknown and account["untracked"] == 0, f"{account}")
    need(sum(found.values()) + account["open_before"] + unknown == there, f"{there} in /proc, {account}")
    need(account["open_before"] >= 5, f"{account}")

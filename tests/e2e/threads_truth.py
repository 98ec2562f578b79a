# SPDX-License-Identifier: BSD-2-Clause
"""What threadcreate and threads say, against programs that know their threads (tests/progs/spawn.c, parked.c)."""

import collections
import re

import heap_truth
import waits_truth as truth
from lib import need

# ---- spawn: who created how many ----

PLACES = {
    "create_red": ["main", "spawn_all", "create_red"],
    "create_green": ["maker_thread", "create_green"],
    "create_blue": ["main", "spawn_all", "deeper", "deeper", "create_blue"],
    "create_maker": ["main", "create_maker"],
    "create_child": ["main", "family", "create_child"],
}


def created(profile):
    """Threads by the function that created them; each stack is checked from its root on."""
    found = collections.Counter()
    for s in profile.samples:
        place = next((n for n in PLACES if n in s.frames), None)
        need(place and truth.has_frames(s, PLACES[place]), f"a stack that cannot be: {truth.shown([s])}")
        before = s.frames[: s.frames.index(PLACES[place][0])]
        need(all(heap_truth.ROOTS.fullmatch(f) for f in before), f"roots {before}")
        need(len(s.frames) > len(before) + len(PLACES[place]), f"nothing below {place}: {s.frames}")
        if place == "create_green":
            need(s.labels.get("thread") == "maker", f"labels {s.labels}")
        found[place] += s.values[0]
    return dict(found)


def alive(profile):
    """How many threads there were at the start, as the comments say."""
    numbers = [int(m[1]) for c in profile.comments if "alive" in c and (m := re.search(r"(\d+)", c))]
    need(len(numbers) == 1, f"comments {profile.comments}")
    return numbers[0]


# ---- parked: where each one is ----

IN = {
    "park_read": "read",
    "park_event": "read",
    "park_poll": "poll",
    "park_epoll": "epoll_wait",
    "park_select": "pselect6",
    "park_accept": "accept",
    "park_sleep": "clock_nanosleep",
    "park_pause": "pause",
    "park_sigwait": "rt_sigtimedwait",
}


def check_parked(profile, said, before_ns, after_ns, slack_ns=0):
    """Every thread once, where it says that it is. It was asleep before ready_ns, and went to sleep after parked_ns; bpfprof has begun to
    run after before_ns, and ended before after_ns. slack_ns: for a kernel whose clocks are coarse."""
    by_tid = collections.defaultdict(list)
    for s in profile.samples:
        need(s.values == [1], f"values {s.values}")
        by_tid[s.labels.get("tid")].append(s)
    wrong = []
    for t in said["threads"]:
        mine = by_tid.get(t["tid"], [])
        if len(mine) != 1:
            wrong.append(f"{t['name']}: {len(mine)} samples")
            continue
        s, place = mine[0], t["frames"][-1]
        if not truth.has_frames(s, t["frames"]) or truth.is_cut(s):
            wrong.append(f"{t['name']}: is {truth.shown(mine)}, truth {t['frames']}")
            continue
        roots = s.frames[: s.frames.index("park_thread")]
        if not all(heap_truth.ROOTS.fullmatch(f) for f in roots):
            wrong.append(f"{t['name']}: roots {roots}")
        labels = {"thread": t["name"], "state": "sleeping", "in": IN.get(place, "futex")}
        differ = {k: s.labels.get(k) for k in labels if s.labels.get(k) != labels[k]}
        if differ:
            wrong.append(f"{t['name']} in {place}: labels {differ}, truth {labels}")
        since, longest, shortest = s.labels.get("since", 0), after_ns - t["parked_ns"], before_ns - said["ready_ns"]
        if not shortest - slack_ns <= since <= longest + slack_ns:
            wrong.append(f"{t['name']}: since {since} ns, truth {shortest} to {longest}")
    need(not wrong, f"{len(wrong)} of {len(said['threads'])}: " + " | ".join(wrong[:4]))
    return by_tid


def check_runners(by_tid, said, lost=0):
    """The two that are on a CPU now and then. lost: so many threads may have been on one at each look."""
    met = [tid for tid in (said["spinner"], said["clock"]) if by_tid.get(tid)]
    need(len(met) + lost >= 2, f"only {met} of spinner and clock, {lost} threads are lost")
    for tid, frames in ((said["spinner"], ["spinner_thread", "spin"]), (said["clock"], ["clock_thread"])):
        mine = by_tid.get(tid, [])
        if tid in met:
            need(len(mine) == 1 and truth.has_frames(mine[0], frames), f"thread {tid}: {truth.shown(mine)}, truth {frames}")
    for spinner in by_tid.get(said["spinner"], []):
        need(spinner.labels.get("state") in ("running", "runnable"), f"spinner: {spinner.labels}")

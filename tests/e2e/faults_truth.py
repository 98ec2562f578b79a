# SPDX-License-Identifier: BSD-2-Clause
"""What faults says, against a program that counts its page faults (tests/progs/touch.c)."""

import waits_truth as truth
from lib import need

PLACES = {
    "touch_fresh": ["main", "touch_all", "touch_fresh"],
    "touch_file": ["main", "touch_all", "touch_file"],
    "touch_again": ["main", "touch_all", "touch_again"],
    "kernel_fills": ["main", "touch_all", "kernel_fills"],
    "child_touches": ["main", "family", "child_touches"],
}


def touched(samples):
    """Faults by place and sort; a stack of a place is checked from main on."""
    found = {name: {"minor": 0, "major": 0} for name in PLACES}
    for s in samples:
        need(s.labels.get("fault") in ("minor", "major") and len(s.values) == 1, f"{s}")
        place = next((n for n in PLACES if n in s.frames), None)
        if place:
            need(truth.has_frames(s, PLACES[place]), f"a stack that cannot be: {truth.shown([s])}")
            need((s.frames[-1] == place) == (place != "kernel_fills"), f"{place}: the leaf is {s.frames[-1]}")
            found[place][s.labels["fault"]] += s.values[0]
    return found

# SPDX-License-Identifier: BSD-2-Clause
"""Writes profiles, as other programs do, of runs that are drawn by a seed: stacks with their costs, samples that are drawn of them,
noise that the runs and the functions have, and changes that are planted."""

import gzip
import random


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while True:
        out.append(n & 0x7F | (0x80 if n > 0x7F else 0))
        n >>= 7
        if not n:
            return bytes(out)


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


class Strings:
    def __init__(self):
        self.ids = {"": 0}

    def __call__(self, s):
        return self.ids.setdefault(s, len(self.ids))


def profile(types, rows, period=None, comments=(), time_ns=0, files=None, mapping="/usr/bin/app", linked=()):
    """Bytes, not compressed. types: [(type, unit)], rows: [(stack of names, leaf first, values)], period: (type, unit, period). linked: the
    functions that have a system_name. A name "" is a location without a line."""
    strings, functions, out = Strings(), {}, b""
    files = files or {}
    for t, u in types:
        out += field(1, field(1, strings(t)) + field(2, strings(u)))
    for stack, values in rows:
        ids = [functions.setdefault(name, len(functions) + 1) for name in stack]
        out += field(2, field(1, b"".join(map(varint, ids))) + field(2, b"".join(map(varint, values))))
    out += field(3, field(1, 1) + field(2, 0x1000) + field(3, 0x9000) + field(5, strings(mapping)))
    for name, i in functions.items():
        line = field(4, field(1, i) + field(2, 1)) if name else b""
        out += field(4, field(1, i) + field(2, 1) + field(3, 0x1000 + i) + line)
        system_name = field(3, strings(name)) if name in linked else b""
        out += field(5, field(1, i) + field(2, strings(name)) + system_name + field(4, strings(files.get(name, "src/app.c"))))
    out += field(9, time_ns) if time_ns else b""
    if period:
        out += field(11, field(1, strings(period[0])) + field(2, strings(period[1]))) + field(12, period[2])
    out += b"".join(field(13, strings(c)) for c in comments)
    return out + b"".join(field(6, s.encode("utf-8", "surrogateescape")) for s in strings.ids)


def write(path, data):
    with gzip.GzipFile(path, "wb", mtime=0) as f:
        f.write(data)


def shares(functions=40, planted=0.2):
    """{stack: share}: one function of the planted share, the others fall off; each below one of four callers."""
    rest = [1 / (i + 3) for i in range(functions - 1)]
    costs = {("work", "caller0", "main"): planted}
    for i, r in enumerate(rest):
        costs[(f"f{i}", f"caller{i % 4}", "main")] = (1 - planted) * r / sum(rest)
    return costs


def draw(costs, samples, rng, common=0.02, own=0.01):
    """{stack: samples} and the exact cost of the run, in the shares' unit."""
    noise = rng.gauss(0, common)
    own_of = {}
    true = {}
    for stack, cost in sorted(costs.items()):
        own_of.setdefault(stack[0], rng.gauss(0, own))
        true[stack] = cost * 2.718281828459045 ** (noise + own_of[stack[0]])
    total = sum(true.values())
    counts = {}
    for stack in rng.choices(list(true), weights=list(true.values()), k=samples):
        counts[stack] = counts.get(stack, 0) + 1
    return counts, total


CPU = [("samples", "count"), ("cpu", "nanoseconds")]
PERIOD = 1003009


def cpu_set(folder, base, new, runs=10, samples=20000, seed=1, blocks=True, exact=True, times=None, files=None, drawn_by=None, **noise):
    """Writes runs of both sides into folder/base and folder/new. base, new: {stack: share}. times: of a run, by side and number.
    drawn_by: the seed that its files name, by side."""
    rng = random.Random(seed)
    for k in range(runs):
        order = ["base", "new"]
        rng.shuffle(order)
        for slot, side in enumerate(order):
            counts, total = draw(base if side == "base" else new, samples, rng, **noise)
            rows = [(stack, [n, n * PERIOD]) for stack, n in sorted(counts.items())]
            comments = []
            if blocks:
                # two runs of each side to a block
                comments += [f"bpfprof.block={k // 2}", f"bpfprof.slot={2 * (k % 2) + slot}"]
            if drawn_by:
                comments.append(f"bpfprof.seed={drawn_by[side]}")
            if exact:
                comments += [f"bpfprof.cpu_ns={int(total * 20e9)}"]
            data = profile(CPU, rows, ("cpu", "nanoseconds", PERIOD), comments, times(side, k) if times else 0, files)
            write(f"{folder}/{side}/{k:02}.pb.gz", data)

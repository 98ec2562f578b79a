# SPDX-License-Identifier: BSD-2-Clause
"""Writes profiles of a given size, as a busy node's are: many functions, deep stacks, labels of processes and threads. Runs of a
program have most of their stacks in common, in other numbers.

usage: pprof_large.py FOLDER MEGABYTES RUNS     writes FOLDER/base and FOLDER/new
"""

import gzip
import os
import random
import sys

from pprof_sets import Strings, field, varint

LOCATIONS = 3  # of a function
CALLEES = 5  # of a location, from which its functions call
PERIOD = 1003009
TYPES = [("samples", "count"), ("cpu", "nanoseconds")]


class Program:
    """What its profiles draw from. Stacks are built from those before, as a tree's are: near main they are the same."""

    def __init__(self, functions, stacks, seed=1):
        self.rng = rng = random.Random(seed)
        self.strings = Strings()
        names = [f"namespace_{i % 97}::class_{i % 1009}::method_{i}(std::vector<int> const&, unsigned long)" for i in range(functions)]
        files = [f"/home/builder/source/component_{i % 97}/class_{i % 1009}.cc" for i in range(functions)]
        self.tables = b"".join(field(1, field(1, self.strings(t)) + field(2, self.strings(u))) for t, u in TYPES)
        self.tables += field(3, field(1, 1) + field(2, 0x400000) + field(3, 0x40000000) + field(5, self.strings("/usr/bin/program")))
        for i, (name, path) in enumerate(zip(names, files)):
            self.tables += field(5, field(1, i + 1) + field(2, self.strings(name)) + field(3, self.strings(name)) + field(4, self.strings(path)))
        for i in range(LOCATIONS * functions):
            line = field(4, field(1, i % functions + 1) + field(2, rng.randrange(1, 3000)))
            self.tables += field(4, field(1, i + 1) + field(2, 1) + field(3, 0x400000 + 64 * i) + line)
        self.tables += field(11, field(1, self.strings("cpu")) + field(2, self.strings("nanoseconds"))) + field(12, PERIOD)
        keys = [self.strings(k) for k in ("pid", "comm", "thread")]
        comms, threads = ([self.strings(f"{k}-{i}") for i in range(n)] for k, n in (("comm", 300), ("thread", 2000)))
        self.samples = []
        locations = LOCATIONS * functions
        # earlier functions are called from more places
        callees = [[int(locations * rng.random() ** 2) for _ in range(CALLEES)] for _ in range(locations)]
        for _ in range(stacks):
            at, stack = rng.randrange(8), []
            for _ in range(rng.randrange(10, 70)):
                stack.append(varint(at + 1))
                at = callees[at][int(CALLEES * rng.random() ** 2)]
            stack = b"".join(reversed(stack))
            process = rng.randrange(300)
            labels = field(3, field(1, keys[0]) + field(3, 1000 + process))
            labels += field(3, field(1, keys[1]) + field(2, comms[process])) + field(3, field(1, keys[2]) + field(2, rng.choice(threads)))
            self.samples.append(field(1, stack) + labels)

    def run(self, size, comments=(), seed=1):
        """A profile of about so many bytes, not compressed."""
        rng, strings = random.Random(seed), Strings()
        strings.ids = dict(self.strings.ids)
        out = [self.tables] + [field(13, strings(c)) for c in comments]
        out += [field(6, s.encode()) for s in strings.ids]
        have = sum(map(len, out))
        for sample in rng.sample(self.samples, len(self.samples)):
            n = int(rng.paretovariate(1.1))
            out.append(field(2, sample + field(2, varint(n) + varint(n * PERIOD))))
            have += len(out[-1])
            if have >= size:
                return b"".join(out)
        raise ValueError(f"the program has {have} bytes of stacks only")


def write(path, data):
    with gzip.GzipFile(path, "wb", compresslevel=1, mtime=0) as f:
        f.write(data)


def main(folder, megabytes, runs):
    program = Program(400 * megabytes + 2000, 11000 * megabytes + 5000)
    for i, side in enumerate(("base", "new")):
        os.makedirs(f"{folder}/{side}")
        for k in range(runs):
            comments = [f"bpfprof.block={k // 2}", f"bpfprof.cpu_ns={10**10 + k}"]
            write(f"{folder}/{side}/{k}.pb.gz", program.run(megabytes << 20, comments, seed=2 * k + i))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))

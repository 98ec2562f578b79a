#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes tests/unit/judge_tables.h, which the judge's numbers are compared with: special functions by mpmath with 50 digits, and sets of
runs with the adjusted p-values of a step-down maxT test that lists all arrangements and knows nothing of our code.

usage: python3 tests/tools/judge_tables.py | clang-format-14 --assume-filename=tests/unit/judge_tables.h > tests/unit/judge_tables.h
(mpmath is needed: python3 -m venv V && V/bin/pip install mpmath)
"""
import itertools
import math
import random

import mpmath as mp

mp.mp.dps = 50
LEAST = mp.mpf("1e-250")  # what is less may be no double


def beta(a, b, x):
    """I_x(a, b) by the series of DLMF 8.17.8, all of whose terms are positive."""
    if x > (a + 1) / (a + b + 2):
        return 1 - beta(b, a, 1 - x)
    term = total = mp.mpf(1)
    n = 0
    while term > total * mp.eps:
        term *= (a + b + n) / (a + 1 + n) * x
        total += term
        n += 1
    return total * mp.exp(a * mp.log(x) + b * mp.log1p(-x) - mp.log(a) + mp.loggamma(a + b) - mp.loggamma(a) - mp.loggamma(b))


def upper_t(t, df):
    if df == mp.inf:
        return mp.erfc(t / mp.sqrt(2)) / 2
    x = df / (df + t * t)
    tail = mp.mpf(1) / 2 if t == 0 else beta(df / 2, mp.mpf(1) / 2, x) / 2
    return tail if t >= 0 else 1 - tail


def c(x):
    return "INFINITY" if x == mp.inf else mp.nstr(x, 20, min_fixed=0, max_fixed=0)


def table(name, comment, columns, rows):
    print(f"\n/* {comment} */\nstatic const struct {{ double {', '.join(columns)}; }} {name}[] = {{")
    for row in rows:
        print("{ " + ", ".join(c(mp.mpf(x)) for x in row) + " },")
    print("};")


def special():
    xs = [mp.mpf(s) for s in "1e-3 0.1 0.5 1 1.25 1.5 2 3.75 5 8.5 9.5 11.99 12 19 100 1e4 1e8".split()]
    table("digammas", "psi(x), psi'(x)", ["x", "psi", "psi1"], [(x, mp.digamma(x), mp.psi(1, x)) for x in xs])
    rows = []
    for a, b in itertools.product(["0.5", "1", "2.5", "9", "45", "500", "20000"], repeat=2):
        a, b = mp.mpf(a), mp.mpf(b)
        for at in ("0.5", "0.9", "1", "1.05", "1.5"):
            x = mp.mpf(float(a / (a + b) * mp.mpf(at)))
            if x < 1:
                v = beta(a, b, x)
                if v > LEAST:
                    rows.append((a, b, x, v))
    table("betas", "I_x(a, b)", ["a", "b", "x", "value"], rows)
    rows = []
    for df in ("0.5", "1", "2", "3.3", "9", "18", "37.5", "200", "1e5", "inf"):
        for t in ("-3", "-0.25", "0", "1e-3", "0.5", "1.7", "2.5", "6", "20"):
            rows.append((mp.mpf(t), mp.mpf(df), upper_t(mp.mpf(float(t)), mp.mpf(df))))
    table("tails", "P(T > t)", ["t", "df", "p"], rows)
    rows = []
    for n, p in ((1, "0.5"), (10, "0.5"), (30, "0.1"), (1000, "0.5"), (100000, "0.5"), (100000, "0.001")):
        pf = float(p)
        for at in ("0.5", "1", "1.1", "1.4"):
            k = int(n * pf * float(at)) + 1
            if k <= n:
                v = beta(mp.mpf(k), mp.mpf(n - k + 1), mp.mpf(pf))
                if v > LEAST:
                    rows.append((k, n, pf, v))
    table("binomials", "P(X >= k)", ["k", "n", "prob", "p"], rows)


def maxt(values, blocks):
    """values: of each hypothesis those of all runs; blocks: of each its labels. One-sided towards larger: (statistics, p)."""
    bounds = [0, *itertools.accumulate(map(len, blocks))]
    ranges = [range(a, b) for a, b in zip(bounds, bounds[1:])]
    centred = []
    for v in values:
        w = []
        for r in ranges:
            mean = math.fsum(v[i] for i in r) / len(r)
            w += [v[i] - mean for i in r]
        centred.append(w)
    observed = frozenset(i for r, b in zip(ranges, blocks) for i, new in zip(r, b) if new)
    weight = math.fsum(sum(b) * (len(b) - sum(b)) / len(b) for b in blocks)
    n, scale = bounds[-1], []
    for w in centred:
        scale.append(math.sqrt(math.fsum(x * x for x in w) / (n - len(blocks))))
    stat = lambda news: [math.fsum(w[i] for i in news) / weight / s for w, s in zip(centred, scale)]
    seen = stat(observed)
    order = sorted(range(len(values)), key=lambda h: (seen[h], h))
    hits, total = [0] * len(values), 0
    for parts in itertools.product(*(itertools.combinations(r, sum(b)) for r, b in zip(ranges, blocks))):
        total += 1
        got = stat([i for p in parts for i in p])
        for at, h in enumerate(order):
            if max(got[g] for g in order[: at + 1]) >= seen[h] - 1e-10 * max(1, abs(seen[h])):
                hits[h] += 1
    p, last = [0.0] * len(values), 0
    for h in reversed(order):
        last = max(last, hits[h])
        p[h] = last / total
    return seen, p


DESIGNS = [
    [[0, 0, 0, 1, 1, 1]],
    [[0, 1, 1, 0], [1, 1, 0, 0]],
    [[0, 0, 0, 0, 1, 1, 1, 1]],
    [[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 0]],
    [[0, 1], [1, 0], [1, 0], [0, 1], [0, 1], [1, 0]],
    [[0, 0, 1, 1, 1], [1, 0, 0]],
    [[0, 1, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [1, 0]],
    [[0, 1, 0, 1], [0, 0, 1, 1], [1, 1, 0, 0], [1, 0, 0, 1], [0, 1, 1, 0]],
    [[0, 0, 0, 0, 0, 1, 1, 1, 1, 1]],
]


def sets():
    rng = random.Random(25)
    print("\n/* Sets of runs: `runs` labels and blocks, then `runs` values of each hypothesis, its statistic and its p. */")
    print("#define SETS 54\n#define SET_RUNS 20\n#define SET_HYPOTHESES 6")
    print("static const struct set { int runs, blocks, hypotheses, starts[7]; unsigned char news[SET_RUNS];")
    print("double values[SET_HYPOTHESES][SET_RUNS], statistic[SET_HYPOTHESES], p[SET_HYPOTHESES]; } sets[SETS] = {")
    for i in range(54):
        blocks = DESIGNS[i % len(DESIGNS)]
        labels = [x for b in blocks for x in b]
        cnt = 1 + i % 6 if len(labels) < 20 else 4
        common = [rng.gauss(0, 1) for _ in labels]
        values = []
        for h in range(cnt):
            if h == 2 and i % 4 == 0:
                values.append(list(values[1]))  # a tie
            else:
                shift = rng.choice((0, 0, 1.5, -1))
                values.append([round(0.6 * g + rng.gauss(0, 1) + shift * x, 3) for g, x in zip(common, labels)])
        seen, p = maxt(values, blocks)
        starts = [0, *itertools.accumulate(map(len, blocks))]
        nums = lambda v: "{ " + ", ".join(map(repr, v)) + " }"
        print(f"{{ {len(labels)}, {len(blocks)}, {cnt}, {nums(starts)}, {nums(labels)},")
        print("{ " + ", ".join(nums(v) for v in values) + f" }}, {nums(seen)}, {nums(p)} }},")
    print("};")


def main():
    print("/* SPDX-License-Identifier: BSD-2-Clause */")
    print("/* Made by tests/tools/judge_tables.py, which says how. */")
    print("#ifndef JUDGE_TABLES_H\n#define JUDGE_TABLES_H\n\n#include <math.h>")
    special()
    sets()
    print("\n#endif")


main()

# SPDX-License-Identifier: BSD-2-Clause
"""What has to be sampled with BPFPROF_SAMPLE_SEED: the generator and the decisions of bpf/sample.h once more, and the order in which
tests/progs/alloc.c allocates."""

MASK = (1 << 64) - 1


def environment(seed):
    return {"BPFPROF_SAMPLE_SEED": str(seed)}


def random(seed, n):
    """The n-th random number of a thread: the upper half of splitmix64's."""
    z = (seed + (n + 1) * 0x9E3779B97F4A7C15) & MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
    return (z ^ z >> 31) >> 32


# ---- allocations ----


def _log2(v):
    """In 2^-24: what is left after each squaring has 31 bits of fraction."""
    top = v.bit_length() - 1
    log, y = top, v << 31 >> top
    for _ in range(24):
        y = y * y >> 31
        log = log << 1 | y >> 32
        y >>= y >> 32
    return log


def distance(number, rate):
    t = ((32 << 24) - _log2(number + 1)) * rate
    ln2 = 2977044472  # in 2^-32
    t = (t >> 32) * ln2 + ((t & 0xFFFFFFFF) * ln2 >> 32)
    return max(1, (t + (1 << 24) - 1) >> 24)


def sampled(sizes, rate, seed):
    """Of allocations of these sizes, one after another in a thread: is each of them sampled?"""
    draws, left, found = 0, 0, []
    for size in sizes:
        size = max(1, size)
        if not left:
            left, draws = distance(random(seed, draws), rate), draws + 1
        found.append(size >= left)
        if size < left:
            left -= size
        else:
            left, draws = distance(random(seed, draws), rate), draws + 1
    return found


OLD = [50 + i for i in range(60)]  # what the program has allocated before it begins
CHAINS = (  # functions below schedule, and of four allocations those that are kept
    ("a_leaf", 1),
    ("b_1;b_leaf", 2),
    ("c_2;c_1;c_leaf", 3),
    ("d_3;d_2;d_1;d_leaf", 0),
    ("e_4;e_3;e_2;e_1;e_leaf", 4),
    ("f_5;f_4;f_3;f_2;f_1;f_leaf", 1),
)
SIZES = ((16, 20000), (64, 20000), (100, 10000), (1000, 4000), (5000, 1000), (70000, 100), (1 << 20, 8))


def _order(scale, seed):
    """The shuffled schedule: each number stands for a chain and a size."""
    order = [k for k in range(len(CHAINS) * len(SIZES)) for _ in range(max(4, SIZES[k % len(SIZES)][1] * scale // 100))]
    state = 88172645463325252 + seed
    for i in range(len(order), 1, -1):
        state ^= state >> 12
        state ^= state << 25 & MASK
        state ^= state >> 27
        j = (state * 2685821657736338717 & MASK) % i
        order[j], order[i - 1] = order[i - 1], order[j]
    return order


def schedule(rate, seed, scale, before=(), order_seed=1):
    """{(stack, size): (samples, those of them that are not freed)} of mode `schedule`, in a thread that has allocated `before`."""
    order = _order(scale, order_seed)
    sizes = [SIZES[k % len(SIZES)][0] for k in order]
    decided = sampled([*before, *sizes], rate, seed)[len(before) :]
    done, found = {}, {}
    for k, size, yes in zip(order, sizes, decided):
        chain, keeps = CHAINS[k // len(SIZES)]
        held = done.get(k, 0) % 4 < keeps
        done[k] = done.get(k, 0) + 1
        if yes:
            key = (("main", "schedule", *chain.split(";")), size)
            samples, kept = found.get(key, (0, 0))
            found[key] = (samples + 1, kept + held)
    return found


# ---- waits ----


def threshold_ns(rate, seed, n):
    """A wait that is the n-th of a thread to be shorter than the rate is recorded if it is longer than this."""
    return random(seed, n) * rate >> 32

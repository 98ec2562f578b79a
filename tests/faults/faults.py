# SPDX-License-Identifier: BSD-2-Clause
"""What the tests of faults share: all that tests/e2e/lib.py has, and programs that are built here."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import lib

HERE = os.path.dirname(os.path.abspath(__file__))


def build(source, *flags):
    """A program, or with -shared a library, of this folder. Returns its path."""
    out = os.path.join(lib.TMP, source.removesuffix(".c"))
    if not os.path.exists(out):
        argv = ["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-fno-builtin", "-fomit-frame-pointer", "-Wall", "-Wextra"]
        argv += ["-I" + os.path.join(lib.ROOT, "tests/progs"), "-o", out, os.path.join(HERE, source), "-pthread"]
        subprocess.run([*argv, *flags], check=True)
    return out


def account(stats, kind):
    """Of a kind, after a look at the identity."""
    k = stats["kinds"][kind]
    lib.need(k["seen"] == k["recorded"] + sum(k["lost"].values()), f"{kind}: seen is not recorded + lost: {k}")
    ends = k["stacks"]["complete"] + sum(k["stacks"]["truncated"].values())
    lib.need(k["recorded"] == ends, f"{kind}: {ends} stacks of {k['recorded']} samples: {k}")
    return k

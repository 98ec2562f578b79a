# SPDX-License-Identifier: BSD-2-Clause
"""Packages of what is built, and of what might come after it."""

import functools
import os
import subprocess

import lib
from lib import need

NEXT_VERSION = "0.99.0"
# dpkg-deb packs nothing, which would take most of the time: the files are the same
UNPACKED = {"DPKG_DEB_COMPRESSOR_TYPE": "none"}


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


def output(*argv, **kw):
    r = subprocess.run([*map(str, argv)], capture_output=True, text=True, **kw)
    need(r.returncode == 0, f"{argv[0]}: exit status {r.returncode}: {r.stderr}{r.stdout}")
    return r.stdout


def version():
    return output(lib.BPFPROF, "--version").split()[1]


@functools.cache
def package(kind):
    """A package of what is built."""
    path = lib.temp(f".{kind}")
    # as a user calls it, not as a part of the make that runs this
    env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE") and k != "MFLAGS"} | UNPACKED
    out = os.path.dirname(os.path.realpath(lib.BPFPROF))
    argv = ["make", "-s", "-C", lib.ROOT, "-o", "all", f"OUT={out}", f"VERSION={version()}", f"PACKAGE_{kind}={path}", kind]
    output(*argv, env=env)
    return path


def next_package():
    """Debian's, as if it were of another version."""
    folder, path = lib.temp(), lib.temp(".deb")
    output("dpkg-deb", "-R", package("deb"), folder)
    control = read(folder, "DEBIAN/control")
    need(f"\nVersion: {version()}\n" in control, control)
    with open(f"{folder}/DEBIAN/control", "w") as f:
        f.write(control.replace(f"\nVersion: {version()}\n", f"\nVersion: {NEXT_VERSION}\n"))
    output("dpkg-deb", "--root-owner-group", "--build", folder, path, env={**os.environ, **UNPACKED})
    return path

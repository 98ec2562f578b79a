# SPDX-License-Identifier: BSD-2-Clause
"""A program that maps files as code and spins in them: each argument is HOW:PATH.

run: map it and call its function at 4096; below: the same, below what was mapped before; map: map it only; many: map it 100,000
times, or as often as is allowed; memfd: map a copy in a memfd and call it; zero: map /dev/zero; long: call a copy whose path has
nearly 9 KB in /proc/PID/maps; load: dlopen each file of the folder in turn, when there is a line, or the end, of standard input, and
call its `spin`.
"""

import ctypes
import mmap
import os
import sys

AT, ROUNDS = 4096, 2000000
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


def map_code(fd, size, hint=None):
    at = libc.mmap(hint, size, mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE, fd, 0)
    if at == ctypes.c_void_p(-1).value:
        sys.exit(f"mmap: {os.strerror(ctypes.get_errno())}")
    os.close(fd)
    return at


def function(at):
    return ctypes.CFUNCTYPE(None, ctypes.c_ulong)(at + AT)


def copy_to(fd, path):
    os.write(fd, open(path, "rb").read())
    return fd


def long_path(path):
    """40 folders of 200 bytes, and a name of newlines, which maps shows as four bytes each."""
    here = os.getcwd()
    os.chdir(os.path.dirname(path))
    for _ in range(40):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    name = "\n" * 200
    os.close(copy_to(os.open(name, os.O_CREAT | os.O_WRONLY, 0o755), path))
    fd = os.open(name, os.O_RDONLY)
    os.chdir(here)
    return fd


calls, folder, at = [], None, None
for arg in sys.argv[1:]:
    how, path = arg.split(":", 1)
    if how == "load":
        folder = path
        continue
    if how == "zero":
        fd, size = os.open("/dev/zero", os.O_RDONLY), 4096
    elif how == "memfd":
        fd = copy_to(os.memfd_create("/usr/bin/sshd\n\x1b[31m"), path)
        size = os.fstat(fd).st_size
    else:
        fd = long_path(path) if how == "long" else os.open(path, os.O_RDONLY)
        size = os.fstat(fd).st_size
    if how == "many":
        # room for what a program maps by itself
        allowed = int(open("/proc/sys/vm/max_map_count").read()) - 2000
        for _ in range(min(100000, allowed)):
            map_code(os.dup(fd), size)
    at = map_code(fd, size, at - (size + 4095) // 4096 * 4096 if how == "below" else None)
    if how in ("run", "below", "memfd", "long"):
        calls.append(function(at))
print("ready", flush=True)
if folder:
    for name in sorted(os.listdir(folder)):
        sys.stdin.readline()
        calls.append(ctypes.CFUNCTYPE(None, ctypes.c_ulong)(("spin", ctypes.CDLL(os.path.join(folder, name)))))
        calls[-1](10 * ROUNDS)
while True:
    for call in calls or [lambda n: sum(range(n // 100))]:
        call(ROUNDS)

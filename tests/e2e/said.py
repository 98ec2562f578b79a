# SPDX-License-Identifier: BSD-2-Clause
"""A program that computes, and does what each line of its standard input says, which it then prints:

NAME: it publishes a process context (OTEP 4719) with this name of its service; NAME FILE: with the file, mapped, in the place of what it
says.
"""

import ctypes
import mmap
import os
import select
import struct
import sys

PAGE, DONTFORK = 4096, 10
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
kept = []


def map_file(path):
    fd = os.open(path, os.O_RDONLY)
    at = libc.mmap(None, PAGE, mmap.PROT_READ, mmap.MAP_PRIVATE, fd, 0)
    if at == ctypes.c_void_p(-1).value:
        sys.exit(f"mmap: {os.strerror(ctypes.get_errno())}")
    os.close(fd)
    return at


def field(number, value):
    varint = lambda n: bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])
    return varint(number << 3 | 2) + varint(len(value)) + value


def publish(name, path=None):
    message = field(1, field(1, field(1, b"service.name") + field(2, field(1, name.encode()))))
    payload = ctypes.create_string_buffer(message, len(message))
    fd = os.memfd_create("OTEL_CTX")
    os.ftruncate(fd, 32)
    header = mmap.mmap(fd, 32, mmap.MAP_PRIVATE)
    os.close(fd)
    header.madvise(DONTFORK)
    at = map_file(path) if path else ctypes.addressof(payload)
    header[:] = struct.pack("<8sIIQQ", b"OTEL_CTX", 2, len(message), 1, at)
    kept.extend((payload, header))


print("ready", flush=True)
while True:
    sum(range(100000))
    # a fifth of the time
    if select.select([sys.stdin], [], [], 0.008)[0]:
        line = sys.stdin.readline()
        if not line:
            break
        publish(*line.split())
        print(line, end="", flush=True)

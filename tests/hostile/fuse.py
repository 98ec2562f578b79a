# SPDX-License-Identifier: BSD-2-Clause
"""A FUSE file system with one file, spoken by hand (linux/fuse.h), whose server stops answering when it is told to."""

import ctypes
import os
import stat
import struct
import threading

LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, FLUSH, INIT = 1, 2, 3, 14, 15, 18, 25, 26
INTERRUPT, BATCH_FORGET = 36, 42
FILE = 2  # its node
NOBODY = 65534  # whose it is
ENOENT, EIO, ENOSYS = 2, 5, 38
MNT_FORCE, MNT_DETACH = 1, 2
libc = ctypes.CDLL(None, use_errno=True)


class Fuse:
    """Mounted at a folder while it lives. silent: the requests (LOOKUP, OPEN, READ, FLUSH) that are never answered, but for the first
    few of them (spare); met: those that came. failing: so many reads are answered by EIO. seconds: how long the kernel need not ask for a
    name again. After a while whoever still waits is let go, and the test fails."""

    PATIENCE = 120

    def __init__(self, folder, name, data, seconds=3600):
        self.seconds = seconds
        self.folder, self.name, self.data = folder, name.encode(), data
        self.silent, self.met, self.spare, self.failing = set(), set(), 0, 0
        self.fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self.fd},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        if libc.mount(b"bpfprof-test", folder.encode(), b"fuse", 0, options):
            raise OSError(ctypes.get_errno(), "mount")
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()
        self.end = threading.Timer(self.PATIENCE, self.unmount)
        self.end.daemon = True
        self.end.start()

    def close(self):
        self.end.cancel()
        self.unmount()
        self.silent = set()
        self.thread.join(10)
        os.close(self.fd)

    def unmount(self):
        """Ends the connection, which wakes all who wait for it."""
        libc.umount2(self.folder.encode(), MNT_DETACH | MNT_FORCE)

    def serve(self):
        while True:
            try:
                request = os.read(self.fd, 1 << 20)
            except OSError:
                return
            _, op, unique, node = struct.unpack_from("<IIQQ", request)
            self.met.add(op)
            if op in self.silent:
                self.spare -= 1
            if op in (FORGET, INTERRUPT, BATCH_FORGET) or (op in self.silent and self.spare < 0):
                continue
            error, reply = self.answer(op, node, request[40:])
            try:
                os.write(self.fd, struct.pack("<IiQ", 16 + len(reply), -error, unique) + reply)
            except OSError:
                pass  # who asked is gone

    def attributes(self, node):
        mode, size = (stat.S_IFREG | 0o755, len(self.data)) if node == FILE else (stat.S_IFDIR | 0o755, 0)
        return struct.pack("<6Q10I", node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, NOBODY, NOBODY, 0, 4096, 0)

    def answer(self, op, node, body):
        if op == INIT:
            return 0, struct.pack("<4I2H2I2HI7I", 7, 31, 65536, 0, 12, 9, 65536, 1, 16, 0, 0, *[0] * 7)
        if op == LOOKUP:
            if body.rstrip(b"\0") != self.name:
                return ENOENT, b""
            return 0, struct.pack("<4Q2I", FILE, 1, self.seconds, 3600, 0, 0) + self.attributes(FILE)
        if op == GETATTR:
            return 0, struct.pack("<Q2I", 3600, 0, 0) + self.attributes(node)
        if op == OPEN:
            return 0, struct.pack("<Q2I", 1, 0, 0)
        if op == READ and self.failing:
            self.failing -= 1
            return EIO, b""
        if op == READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            return 0, self.data[offset : offset + size]
        if op in (FLUSH, RELEASE):
            return 0, b""
        return ENOSYS, b""

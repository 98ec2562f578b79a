# SPDX-License-Identifier: BSD-2-Clause
"""A writer of profile.proto by its wire format, that is not ours: profiles as any producer may write them."""

import gzip
import zlib


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, n):
    return varint(field << 3) + varint(n) if n else b""


def message(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


class Maker:
    """A profile of functions by name, each with a location of its own. Its fields may be changed before data() is called."""

    def __init__(self, types, period_type=("cpu", "nanoseconds"), period=0, time=0, duration=0, default="", comments=()):
        self.types, self.period_type, self.period = types, period_type, period
        self.time, self.duration, self.default, self.comments = time, duration, default, comments
        self.samples = []

    def add(self, stack, values, labels=()):
        """stack: names, the leaf first; labels: (key, text or number)."""
        self.samples.append((stack.split(), values, labels))
        return self

    def data(self, packed=True):
        strings, names = {"": 0}, {}
        string = lambda s: strings.setdefault(s, len(strings))
        # the same in every profile
        address = lambda name: 0x400000 + (zlib.crc32(name.encode("utf-8", "surrogateescape")) & 0xFFFFF)
        value_type = lambda t: number(1, string(t[0])) + number(2, string(t[1]))
        out = bytearray(b"".join(message(1, value_type(t)) for t in self.types))
        for stack, values, labels in self.samples:
            ids = [names.setdefault(n, len(names) + 1) for n in stack]
            if packed:
                s = message(1, b"".join(map(varint, ids))) + message(2, b"".join(map(varint, values)))
            else:
                s = b"".join(varint(1 << 3) + varint(i) for i in ids) + b"".join(varint(2 << 3) + varint(v) for v in values)
            for key, value in labels:
                content = number(2, string(value)) if isinstance(value, str) else number(3, value) + number(4, string("unit"))
                s += message(3, number(1, string(key)) + content)
            out += message(2, s)
        out += message(3, number(1, 1) + number(2, 0x400000) + number(3, 0x500000) + number(5, string("/bin/made")))
        for name, i in names.items():
            out += message(4, number(1, i) + number(2, 1) + number(3, address(name)) + message(4, number(1, i) + number(2, 7)))
            out += message(5, number(1, i) + number(2, string(name)) + number(3, string(name)) + number(4, string("made.c")))
        out += number(9, self.time) + number(10, self.duration) + message(11, value_type(self.period_type)) + number(12, self.period)
        out += b"".join(number(13, string(c)) for c in self.comments) + number(14, string(self.default))
        return bytes(out) + b"".join(message(6, s.encode("utf-8", "surrogateescape")) for s in strings)

    def write(self, path, zipped=True, **kw):
        data = self.data(**kw)
        with open(path, "wb") as f:
            f.write(gzip.compress(data, mtime=0) if zipped else data)
        return path

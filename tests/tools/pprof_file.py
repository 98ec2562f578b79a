# SPDX-License-Identifier: BSD-2-Clause
"""A reader of profile.proto by its wire format, that is not ours: with mappings, addresses and system names."""

import collections
import gzip

Mapping = collections.namedtuple("Mapping", "start limit offset path build_id")
Line = collections.namedtuple("Line", "name system_name")
Location = collections.namedtuple("Location", "mapping address lines")  # mapping: a Mapping or None; lines: the innermost first
Sample = collections.namedtuple("Sample", "locations values")  # leaf first
Profile = collections.namedtuple("Profile", "types period samples comments")


def varint(b, at):
    n = shift = 0
    while True:
        byte = b[at]
        at += 1
        n |= (byte & 0x7F) << shift
        if byte < 0x80:
            return n, at
        shift += 7


def fields(b):
    """[(number, value)]: an integer, or the bytes of a string or message."""
    found, at, end = [], 0, len(b)
    while at < end:
        tag, at = b[at], at + 1
        if tag > 0x7F:
            tag, at = varint(b, at - 1)
        kind = tag & 7
        if kind in (0, 2):
            # nearly all are of one byte
            value, at = b[at], at + 1
            if value > 0x7F:
                value, at = varint(b, at - 1)
            if kind == 2:
                value, at = b[at : at + value], at + value
        elif kind == 1:
            value, at = int.from_bytes(b[at : at + 8], "little"), at + 8
        else:
            raise AssertionError(f"pprof: wire type {kind}")
        found.append((tag >> 3, value))
    return found


def numbers(value):
    """Of a repeated number, packed or not; signed."""
    if isinstance(value, int):
        found = [value]
    else:
        found, n, shift = [], 0, 0
        for byte in value:
            n |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                found.append(n)
                n = shift = 0
    return [n - (1 << 64) if n >> 63 else n for n in found]


def message(b):
    """{number: the last value}, of a message without repeated fields."""
    return dict(fields(b))


def read(path):
    with gzip.open(path) as f:
        top = list(fields(f.read()))
    strings = [v.decode() for n, v in top if n == 6]
    of = lambda number: (v for n, v in top if n == number)
    mappings = {}
    for m in map(message, of(3)):
        mappings[m[1]] = Mapping(m.get(2, 0), m.get(3, 0), m.get(4, 0), strings[m.get(5, 0)], strings[m.get(6, 0)])
    functions = {m[1]: Line(strings[m.get(2, 0)], strings[m.get(3, 0)]) for m in map(message, of(5))}
    locations = {}
    for b in of(4):
        m = message(b)
        lines = tuple(functions[message(v)[1]] for n, v in fields(b) if n == 4)
        locations[m[1]] = Location(mappings.get(m.get(2, 0)), m.get(3, 0), lines)
    samples = []
    for b in of(2):
        ids, values = [], []
        for n, v in fields(b):
            if n == 1:
                ids += numbers(v)
            elif n == 2:
                values += numbers(v)
        samples.append(Sample([locations[i] for i in ids], values))
    types = [strings[message(v).get(1, 0)] for v in of(1)]
    comments = [strings[i] for v in of(13) for i in numbers(v)]
    return Profile(types, next(of(12), 0), samples, comments)

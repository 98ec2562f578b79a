# SPDX-License-Identifier: BSD-2-Clause
"""The checkers' own reading of Go's table of functions, .gopclntab: golang.org/s/go12symtab, src/runtime/symtab.go, and
src/internal/abi/symtab.go of Go 1.18 to 1.26."""

import bisect
import re
import struct

_MAGIC = {0xFFFFFFF0: 36, 0xFFFFFFF1: 40}  # of Go 1.18, and 1.20: where a function's record has its funcID
_SECTIONS = (".gopclntab", ".data.rel.ro.gopclntab")
# of a call's target that pushes the interrupted instruction's address as if it were a return address
INTERRUPTS = {"runtime.asyncPreempt", "runtime.sigpanic", "runtime.sigpanic0", "runtime.debugCallV2", "runtime.asyncPreempt.abi0"}


class Functions:
    def __init__(self, table, text, func_id):
        self.table = table
        self._func_id = func_id  # offset of the record's funcID
        # pcHeader: nfunc, nfiles, textStart, then offsets of the parts
        self.count, _, _, self.funcnames, _, _, _, self.pcln = struct.unpack_from("<8Q", table, 8)
        self.entries = [text + pc for pc in struct.unpack_from("<" + "II" * self.count + "I", table, self.pcln)[::2]]
        self.low, self.high = self.entries[0], self.entries[-1]
        # what the runtime leaves out of tracebacks bears this id, whose number differs between releases
        self._elided = next((self._id(i) for i in range(self.count) if self._name(i) == "runtime.deferreturn"), None)

    def _index(self, vaddr):
        return bisect.bisect_right(self.entries, vaddr) - 1

    def range(self, vaddr):
        i = self._index(vaddr)
        return self.entries[i], self.entries[i + 1]

    def _func(self, i):
        return self.pcln + struct.unpack_from("<I", self.table, self.pcln + 8 * i + 4)[0]

    def _id(self, i):
        return self.table[self._func(i) + self._func_id]

    def is_elided(self, vaddr):
        """Does Go leave the function out of stacks? Wrappers that the compiler makes, and deferreturn."""
        return self._id(self._index(vaddr)) == self._elided

    def _name(self, i):
        return self._name_at(struct.unpack_from("<i", self.table, self._func(i) + 4)[0])

    def name(self, vaddr):
        return self._name(self._index(vaddr))

    def _name_at(self, offset):
        at = self.funcnames + offset
        return self.table[at : self.table.index(b"\0", at)].decode("utf-8", "backslashreplace")

    def names(self, vaddr):
        """The spellings of one name: with and without the ABI's suffix, and type arguments as runtime.FuncForPC writes them."""
        name = self.name(vaddr)
        bare = name[: -len(".abi0")] if name.endswith(".abi0") else name
        return {name, bare, bare + ".abi0", shortened(name), shortened(bare)}


def shortened(name):
    """main.f[go.shape.int] as main.f[...]"""
    return re.sub(r"\[.*\]", "[...]", name)


def _text_start(image, table):
    """Address that the table counts from. In the header up to Go 1.25; later it is a word of moduledata, section .go.module."""
    start = struct.unpack_from("<Q", table, 24)[0]
    if start:
        return start
    module = image.main.section(".go.module")
    if module:
        at = module.addr + 22 * 8
        addend = next((a for o, (_, _, a) in _relative(image, at)), None)
        return addend or struct.unpack_from("<Q", image.read(at, 8))[0]
    return None


def _relative(image, at):
    for section in image.main.sections:
        if section.type == 4 and section.flags & 2:
            for offset, info, addend in struct.iter_unpack("<QQq", image.main.bytes_of(section)):
                if offset == at and info & 0xFFFFFFFF == 8:
                    yield offset, (8, "", addend)


def find(image):
    """The functions of an image's Go code; None if there is none, or a table that this does not know."""
    section = next(filter(None, map(image.main.section, _SECTIONS)), None)
    if not section:
        return None
    table = image.main.bytes_of(section)
    magic = struct.unpack_from("<I", table)[0]
    if magic not in _MAGIC:
        return None
    text = _text_start(image, table)
    return Functions(table, text, _MAGIC[magic]) if text is not None else None

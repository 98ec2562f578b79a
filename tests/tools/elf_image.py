# SPDX-License-Identifier: BSD-2-Clause
"""What the checkers read of ELF files, with nothing but Python's own library: segments, symbols, ranges of functions, stubs
of the procedure
linkage table. gABI; psABI for x86-64; LSB 5.0, 10.6 (.eh_frame, .eh_frame_hdr).

Addresses are those of the file.
"""

import bisect
import collections
import lzma
import os
import struct

import go_image
import x86

Segment = collections.namedtuple("Segment", "vaddr offset filesz memsz flags")
Section = collections.namedtuple("Section", "name type flags addr offset size link info entsize")
Symbol = collections.namedtuple("Symbol", "start end name sized")  # end of one without size: that of its section

_STT_NOTYPE, _STT_FUNC, _STT_IFUNC = 0, 2, 10
_SHN_LORESERVE = 0xFF00
_SHT_NOBITS, _SHF_EXECINSTR, _PF_X = 8, 4, 1
_R_64, _R_GLOB_DAT, _R_JUMP_SLOT, _R_RELATIVE, _R_IRELATIVE = 1, 6, 7, 8, 37
_DEBUG = "/usr/lib/debug"


class Ranges:
    """Ranges of addresses that may overlap, and what belongs to each."""

    def __init__(self, ranges):
        self.all = sorted((r for r in ranges if r[1] > r[0]), key=lambda r: (r[0], r[1]))
        self.starts = [r[0] for r in self.all]
        self._reach, reach = [], 0
        for r in self.all:
            reach = max(reach, r[1])
            self._reach.append(reach)

    def around(self, addr):
        """Those that hold an address, the one that begins last first."""
        found, i = [], bisect.bisect_right(self.starts, addr) - 1
        while i >= 0 and self._reach[i] > addr:
            if self.all[i][1] > addr:
                found.append(self.all[i])
            i -= 1
        return found

    def starts_between(self, low, high):
        """Does one begin in (low, high]?"""
        i = bisect.bisect_right(self.starts, low)
        return i < len(self.starts) and self.starts[i] <= high


def _c_string(data, at):
    return data[at : data.index(b"\0", at)].decode("utf-8", "backslashreplace")


class Tables:
    """The sections of one file: the object itself, its debug file, or .gnu_debugdata."""

    def __init__(self, data):
        self.data = data
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("no ELF file of 64 bits")
        self.type, machine = struct.unpack_from("<HH", data, 16)
        if machine != 62:
            raise ValueError("not of x86-64")
        phoff, shoff = struct.unpack_from("<QQ", data, 32)
        phentsize, phnum, shentsize, shnum, shstrndx = struct.unpack_from("<HHHHH", data, 54)
        self.segments, self.dynamic, self.notes = [], None, []
        for i in range(phnum):
            kind, flags, offset, vaddr, _, filesz, memsz, _ = struct.unpack_from("<IIQQQQQQ", data, phoff + i * phentsize)
            segment = Segment(vaddr, offset, filesz, memsz, flags)
            if kind == 1:
                self.segments.append(segment)
            elif kind == 4:
                self.notes.append(segment)
        self.sections = []
        if shoff and shoff + shnum * shentsize <= len(data):
            raw = [struct.unpack_from("<IIQQQQIIQQ", data, shoff + i * shentsize) for i in range(shnum)]
            names = raw[shstrndx][4] if shstrndx < shnum else 0
            for name, kind, flags, addr, offset, size, link, info, _, entsize in raw:
                self.sections.append(Section(_c_string(data, names + name), kind, flags, addr, offset, size, link, info, entsize))

    def section(self, name):
        return next((s for s in self.sections if s.name == name and s.type != _SHT_NOBITS), None)

    def bytes_of(self, section):
        return bytes(self.data[section.offset : section.offset + section.size])

    def build_id(self):
        for n in self.notes:
            at, end = n.offset, n.offset + n.filesz
            while at + 12 <= end:
                namesz, descsz, kind = struct.unpack_from("<III", self.data, at)
                name = at + 12
                desc = name + (namesz + 3 & ~3)
                if kind == 3 and self.data[name : name + 4] == b"GNU\0":
                    return bytes(self.data[desc : desc + descsz]).hex()
                at = desc + (descsz + 3 & ~3)
        return ""

    def symbols(self, table):
        """Of code, as (Symbol, its index, value and type)."""
        section = self.section(table)
        if not section or section.link >= len(self.sections):
            return
        names = self.bytes_of(self.sections[section.link])
        for i, (name, info, _, shndx, value, size) in enumerate(struct.iter_unpack("<IBBHQQ", self.bytes_of(section))):
            kind = info & 15
            if kind not in (_STT_NOTYPE, _STT_FUNC, _STT_IFUNC) or not name or not value or not 0 < shndx < _SHN_LORESERVE:
                continue
            home = self.sections[shndx] if shndx < len(self.sections) else None
            if not home or not home.flags & _SHF_EXECINSTR:
                continue
            end = value + size if size else home.addr + home.size
            yield Symbol(value, end, _c_string(names, name).split("@")[0] or "@", bool(size)), kind

    def dynamic_names(self):
        """Names of .dynsym by index."""
        section = self.section(".dynsym")
        if not section or section.link >= len(self.sections):
            return []
        names = self.bytes_of(self.sections[section.link])
        return [_c_string(names, s[0]).split("@")[0] for s in struct.iter_unpack("<IBBHQQ", self.bytes_of(section))]


class _Frames:
    """Ranges of FDEs."""

    def __init__(self, tables):
        self.t = tables
        self.cies = {}

    def _read(self, encoding, at, vaddr):
        """(value, index behind it), of a pointer with DW_EH_PE encoding. at: its index, vaddr: its address."""
        form, size, signed = encoding & 15, 8, encoding & 8
        if form in (1, 9):
            value = shift = 0
            while True:
                byte = self.t.data[at]
                value |= (byte & 0x7F) << shift
                at += 1
                shift += 7
                if byte < 0x80:
                    break
            return value, at
        size = {0: 8, 2: 2, 3: 4, 4: 8, 10: 2, 11: 4, 12: 8}[form]
        value = int.from_bytes(self.t.data[at : at + size], "little", signed=bool(signed))
        if encoding & 0x70 == 0x10:
            value += vaddr
        return value & (1 << 64) - 1, at + size

    def _cie_encoding(self, at):
        if at not in self.cies:
            d, i, encoding = self.t.data, at + 8, 0
            i += 1
            augmentation = _c_string(d, i)
            i += len(augmentation) + 1
            for _ in range(2):  # the alignment factors
                while d[i] & 0x80:
                    i += 1
                i += 1
            _, i = self._read(1, i, 0)  # the return address column
            if augmentation[:1] == "z":
                _, i = self._read(1, i, 0)
                for c in augmentation[1:]:
                    if c == "R":
                        encoding = d[i]
                    if c in "LR":
                        i += 1
                    elif c == "P":
                        _, i = self._read(d[i] & ~0x70, i + 1, 0)
            self.cies[at] = encoding
        return self.cies[at]

    def all(self):
        section = self.t.section(".eh_frame")
        if not section:
            return
        at, end = section.offset, section.offset + section.size
        while at + 8 <= end:
            length, pointer = struct.unpack_from("<II", self.t.data, at)
            if not length or length == 0xFFFFFFFF:
                return
            if pointer:
                encoding = self._cie_encoding(at + 4 - pointer)
                start, i = self._read(encoding, at + 8, section.addr + at + 8 - section.offset)
                size, _ = self._read(encoding & 15, i, 0)
                yield start, start + size
            at += 4 + length


class Image:
    """An object: what is mapped, and what its file, its debug file and .gnu_debugdata know of it."""

    def __init__(self, data, path=""):
        self.path = path
        self.main = Tables(data)
        self.build_id = self.main.build_id()
        self.debug_path = self._debug_path()
        self.others = self._other_tables()
        self.go = go_image.find(self)
        self._sweeps = {}
        self._calls = {}
        self._read_symbols()
        self.fdes = Ranges(_Frames(self.main).all())
        self._read_stubs()
        if self.go:
            self._leave_go_to_go()

    def _debug_path(self):
        path = f"{_DEBUG}/.build-id/{self.build_id[:2]}/{self.build_id[2:]}.debug"
        return path if len(self.build_id) > 2 and os.path.exists(path) else ""

    def _other_tables(self):
        found = []
        if self.debug_path:
            with open(self.debug_path, "rb") as f:
                found.append(Tables(f.read()))
        mini = self.main.section(".gnu_debugdata")
        if mini:
            found.append(Tables(lzma.decompress(self.main.bytes_of(mini))))
        return found

    def _read_symbols(self):
        sized, labels, self.ifuncs, self.exports = [], [], set(), collections.defaultdict(set)
        for tables in [self.main, *self.others]:
            for table in (".symtab", ".dynsym"):
                for symbol, kind in tables.symbols(table):
                    (sized if symbol.sized else labels).append(symbol)
                    if kind == _STT_IFUNC:
                        self.ifuncs.add(symbol.start)
                    if table == ".dynsym":
                        self.exports[symbol.name].add(symbol.start)
        self.symbols = Ranges(set(sized))
        self.labels = Ranges(set(labels))

    def _leave_go_to_go(self):
        """Labels such as runtime.etext stand for no function of Go."""
        low, high = self.go.low, self.go.high
        self.labels = Ranges(s for s in self.labels.all if not low <= s.start <= high)

    # ---- code ----

    def read(self, vaddr, size):
        """Bytes of the file, at most so many; fewer at the end of a segment."""
        for s in self.main.segments:
            if s.vaddr <= vaddr < s.vaddr + s.filesz:
                at = vaddr - s.vaddr + s.offset
                return bytes(self.main.data[at : min(at + size, s.offset + s.filesz)])
        return b""

    def bias(self, start, offset):
        """What to add to addresses of the file where a mapping of its offset begins at `start`; None if nothing of it is
        mapped there."""
        for s in self.main.segments:
            if s.flags & _PF_X and s.offset & ~4095 <= offset < s.offset + s.filesz:
                return start - offset + s.offset - s.vaddr
        return None

    def is_mapped(self, vaddr):
        return any(s.vaddr <= vaddr < s.vaddr + s.memsz for s in self.main.segments)

    def is_code(self, vaddr):
        return any(s.flags & _PF_X and s.vaddr <= vaddr < s.vaddr + s.filesz for s in self.main.segments)

    def functions(self, vaddr):
        """Known ranges, as (start, end), that hold an address: of sized symbols, FDEs, Go's table, a stub of the PLT. The
        innermost first."""
        stub = self.stub_range(vaddr)
        if stub:
            return [stub]
        if self.go and self.go.low <= vaddr < self.go.high:
            return [self.go.range(vaddr)]
        found = {(s.start, s.end) for s in self.symbols.around(vaddr)} | {f[:2] for f in self.fdes.around(vaddr)}
        return sorted(found, key=lambda r: r[1] - r[0])

    def sweep(self, start, end):
        """The instructions of a range, of 1 MiB at most; indices are addresses less start."""
        if (start, end) not in self._sweeps:
            code = self.read(start, min(end - start, 1 << 20))
            self._sweeps[start, end] = x86.Sweep(code, 0, len(code))
        return self._sweeps[start, end]

    def called(self, section):
        """Where direct calls in a section lead."""
        if section.name not in self._calls:
            sweep = self.sweep(section.addr, section.addr + section.size)
            self._calls[section.name] = sorted({section.addr + at for _, what, at in sweep.ends.values() if what == x86.CALL})
        return self._calls[section.name]

    def section_at(self, vaddr):
        return next((s for s in self.main.sections if s.addr and s.addr <= vaddr < s.addr + s.size and s.flags & 2), None)

    # ---- procedure linkage table ----

    def _read_stubs(self):
        self.plt = [s for s in self.main.sections if s.name.startswith((".plt", ".iplt")) and s.flags & _SHF_EXECINSTR]
        self.slots = {}  # address: (relocation type, symbol's name, addend)
        names = self.main.dynamic_names()
        for section in self.main.sections:
            if section.type != 4 or not section.flags & 2:  # SHT_RELA, SHF_ALLOC
                continue
            for offset, info, addend in struct.iter_unpack("<QQq", self.main.bytes_of(section)):
                kind, sym = info & 0xFFFFFFFF, info >> 32
                if kind in (_R_64, _R_GLOB_DAT, _R_JUMP_SLOT, _R_RELATIVE, _R_IRELATIVE):
                    self.slots[offset] = kind, names[sym] if sym < len(names) else "", addend

    def stub_range(self, vaddr):
        for s in self.plt:
            if s.addr <= vaddr < s.addr + s.size:
                start = s.addr + (vaddr - s.addr) // 16 * 16
                # without endbr64 and lazy binding, 8 bytes are enough
                if s.entsize == 8 or x86.decode(self.read(start + 8, 8), 0)[1] == x86.JUMP_SLOT:
                    start += vaddr - start & 8
                    return start, start + 8
                return start, start + 16
        return None

    def stub_name(self, vaddr):
        """Of the symbol whose address a stub jumps to; "" if it is no such stub."""
        stub = self.stub_range(vaddr)
        if not stub:
            return ""
        for _, what, at in self.sweep(*stub).ends.values():
            if what == x86.JUMP_SLOT:
                return self.slots.get(stub[0] + at, (0, "", 0))[1]
        return ""

    def slot_symbol(self, vaddr):
        """(name, target by addend or None, is it settled by a resolver at run time?) of a slot that the dynamic linker fills."""
        kind, name, addend = self.slots.get(vaddr, (0, "", 0))
        return name, addend if kind == _R_RELATIVE else None, kind == _R_IRELATIVE

    # ---- names ----

    def names(self, vaddr):
        """Names of all sized symbols, and of Go's function, around an address; a stub's."""
        found = {s.name for s in self.symbols.around(vaddr)}
        if self.go and self.go.low <= vaddr < self.go.high:
            found |= self.go.names(vaddr)
        stub = self.stub_name(vaddr)
        if stub:
            found.add(stub + "@plt")
        return found

    def label(self, vaddr, name):
        """Where the last symbol of this name, without a size, is before an address, and what it has to do with it:
        "proved", "unproved", "wrong".
        None if there is none."""
        i = bisect.bisect_right(self.labels.starts, vaddr) - 1
        start = next((self.labels.starts[k] for k in range(i, -1, -1) if self.labels.all[k].name == name), None)
        return None if start is None else (start, self._judge_label(start, vaddr))

    def _judge_label(self, start, vaddr):
        home = self.section_at(start)
        if not home or home is not self.section_at(vaddr):
            return "wrong"
        if start == vaddr or any(f[0] <= start for f in self.fdes.around(vaddr)):
            return "proved"
        if self.fdes.around(vaddr) or self.fdes.starts_between(start, vaddr) or self.symbols.starts_between(start, vaddr):
            return "wrong"
        if self.labels.starts_between(start, vaddr) and self._other_function(start, vaddr):
            return "wrong"
        called = self.called(home)
        i = bisect.bisect_right(called, start)
        if i < len(called) and called[i] <= vaddr:
            return "wrong"
        return "unproved"

    def _other_function(self, start, vaddr):
        """A label between that is not the linker's mark of a section's end."""
        return any(start < s.start <= vaddr and not s.name.startswith(("_etext", "__etext", "etext")) for s in self.labels.all)


_opened = {}


def open_image(path):
    """Of a file there is one, however often it is asked for."""
    with open(path, "rb") as f:
        stat = os.fstat(f.fileno())
        key = stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns
        if key not in _opened:
            _opened[key] = Image(f.read(), path)
    return _opened[key]

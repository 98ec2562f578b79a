# SPDX-License-Identifier: BSD-2-Clause
"""Makes small ELF files, honest or with lies in any field. They hold, at offset and address 4096, a loop that mapped.c can call."""

import struct
import zlib

CODE_AT = 4096
# dec %rdi; jnz; ret
CODE = bytes.fromhex("48ffcf75fbc3")
CODE_SZ = len(CODE)
TEXT_SZ = 4096
SECTIONS_AT = CODE_AT + TEXT_SZ

PROGBITS, SYMTAB, STRTAB, NOTE, NOBITS, DYNSYM, GNU_HASH = 1, 2, 3, 7, 8, 11, 0x6FFFFFF6
ALLOC, EXEC, COMPRESSED = 2, 4, 0x800
LOAD, PT_NOTE, GNU_EH_FRAME = 1, 4, 0x6474E550


class Section:
    def __init__(self, name, data, kind=PROGBITS, flags=0, link=None, **fields):
        """link: the name of another one. fields: offset, size, addr and so on, where they are not to be what they are."""
        self.name, self.data, self.kind, self.flags, self.link, self.fields = name, data, kind, flags, link, fields


def make(sections=(), segments=(), headers=True, load=None, **header):
    """The bytes of a file. segments: (type, section, fields), beside the one that loads all of it; load: fields of that one. headers:
    are there section headers? header: fields of the ELF header."""
    sections = [Section(".text", CODE, flags=ALLOC | EXEC, offset=CODE_AT, addr=CODE_AT), *sections]
    at, places = SECTIONS_AT, {}
    body = b""
    for s in sections[1:]:
        places[s.name] = at
        body += s.data + bytes(-len(s.data) % 16)
        at = SECTIONS_AT + len(body)
    places[".text"] = CODE_AT
    names = b"\0" + b"".join(s.name.encode() + b"\0" for s in sections) + b".shstrtab\0"
    sections.append(Section(".shstrtab", names, STRTAB))
    places[".shstrtab"] = at
    body += names + bytes(-len(names) % 16)
    shoff = SECTIONS_AT + len(body)
    numbers = {s.name: i + 1 for i, s in enumerate(sections)}
    table = bytes(64)
    for s in sections:
        f = dict(
            name=names.index(b"\0" + s.name.encode() + b"\0") + 1,
            kind=s.kind,
            flags=s.flags,
            addr=places[s.name],
            offset=places[s.name],
            size=len(s.data),
            link=numbers.get(s.link, 0),
            info=0,
            align=1,
            entsize={SYMTAB: 24, DYNSYM: 24}.get(s.kind, 0),
        )
        f.update(s.fields)
        table += struct.pack("<IIQQQQIIQQ", *f.values())
    end = shoff + (len(table) if headers else 0)
    programs = b""
    for kind, name, fields in [(LOAD, None, load or {}), *segments]:
        place = places[name] if name else 0
        sz = next((len(s.data) for s in sections if s.name == name), end)
        f = dict(kind=kind, flags=5, offset=place, vaddr=place, paddr=0, filesz=sz, memsz=None, align=4096)
        f.update(fields)
        f["memsz"] = f["filesz"] if f["memsz"] is None else f["memsz"]
        programs += struct.pack("<IIQQQQQQ", *f.values())
    h = dict(type=3, machine=62, version=1, entry=0, phoff=64, shoff=shoff if headers else 0, flags=0, ehsize=64, phentsize=56)
    h.update(phnum=len(programs) // 56, shentsize=64, shnum=len(sections) + 1 if headers else 0, shstrndx=len(sections) if headers else 0)
    h.update(header)
    data = b"\x7fELF\2\1\1".ljust(16, b"\0") + struct.pack("<HHIQQQIHHHHHH", *h.values()) + programs
    return (data.ljust(CODE_AT, b"\0") + CODE).ljust(SECTIONS_AT, b"\x90") + body + (table if headers else b"")


def symbols(name, value=CODE_AT, size=CODE_SZ, cnt=1):
    """.symtab and .strtab with a function."""
    strings = b"\0" + name + b"\0"
    return [
        Section(".strtab", strings, STRTAB),
        Section(".symtab", bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 1, value, size) * cnt, SYMTAB, link=".strtab"),
    ]


def entry(body):
    """An entry of call frame information: its length, then the rest."""
    body += bytes(-len(body) % 4)
    return struct.pack("<I", len(body)) + body


# version 1, "zR", factors 1 and -8, return address 16, pcrel sdata4; CFA rsp + 8, return address at cfa - 8
CIE = entry(struct.pack("<I", 0) + b"\1zR\0\1\x78\x10\1\x1b" + b"\x0c\7\x08\x90\1")


def fde(at, back, start=CODE_AT, size=TEXT_SZ, instructions=b""):
    """An FDE at address `at`, its CIE `back` bytes before its CIE pointer."""
    return entry(struct.pack("<IiIB", back, start - (at + 8), size, 0) + instructions)


def eh_frame(instructions=b"", cie=CIE, **kw):
    """For the first of the sections."""
    return cie + fde(SECTIONS_AT + len(cie), len(cie) + 4, instructions=instructions, **kw) + bytes(4)


def header_of(eh_frame_sz, encodings=b"\x1b\x03\x3b", cnt=1, pointer=None):
    """.eh_frame_hdr behind an .eh_frame that is the first section."""
    at = SECTIONS_AT + ((eh_frame_sz + 15) & ~15)
    pointer = SECTIONS_AT - (at + 4) if pointer is None else pointer
    return b"\1" + encodings + struct.pack("<iI", pointer, cnt) + struct.pack("<ii", CODE_AT - at, SECTIONS_AT + len(CIE) - at)


def note(name, kind, desc, namesz=None, descsz=None):
    pad = lambda b: b + bytes(-len(b) % 4)
    return struct.pack("<III", len(name) if namesz is None else namesz, len(desc) if descsz is None else descsz, kind) + pad(name) + pad(desc)


def zstd_zeros(size):
    """So many, in a frame of zstd (RFC 8878): blocks of a repeated byte, 128 KiB each."""
    most, blocks = 128 << 10, b""
    for at in range(0, size, most):
        n, last = min(most, size - at), at + most >= size
        blocks += struct.pack("<I", n << 3 | 1 << 1 | last)[:3] + b"\0"
    return struct.pack("<IBI", 0xFD2FB528, 0xA0, size) + blocks


def zstd(size, claim):
    """A section of zeros, compressed."""
    return struct.pack("<IIQQ", 2, 0, claim, 1) + zstd_zeros(size)


def compressed(data, kind=1, claim=None):
    return struct.pack("<IIQQ", kind, 0, len(data) if claim is None else claim, 1) + zlib.compress(data, 9)


def zeros(mib):
    """So many MiB of them, compressed: one, again and again."""
    c = zlib.compressobj(9)
    one = c.compress(bytes(1 << 20)) + c.flush(zlib.Z_FULL_FLUSH)
    again = c.compress(bytes(1 << 20)) + c.flush(zlib.Z_FULL_FLUSH)
    end = b"\x03\x00"  # an empty last block
    return struct.pack("<IIQQ", 1, 0, mib << 20, 1) + one + again * (mib - 1) + end + struct.pack(">HH", (mib << 20) % 65521, 1)


# ---- DWARF 4 ----

CU, SUBPROGRAM, BLOCK = 0x11, 0x2E, 0x0B
ADDR, DATA4, STRING, REF4, SEC_OFFSET, FLAG_PRESENT = 0x01, 0x06, 0x08, 0x13, 0x17, 0x19
SIBLING, NAME, STMT_LIST, LOW_PC, HIGH_PC, ORIGIN, SPECIFICATION, RANGES = 0x01, 0x03, 0x10, 0x11, 0x12, 0x31, 0x47, 0x55


def abbrev(number, tag, children, *attributes):
    return bytes([number, tag, children]) + b"".join(bytes(a) for a in attributes) + b"\0\0"


def unit(dies):
    body = struct.pack("<HIB", 4, 0, 8) + dies
    return struct.pack("<I", len(body)) + body

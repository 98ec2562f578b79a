# SPDX-License-Identifier: BSD-2-Clause
"""Makes what the fuzzers begin with, from the test programs and from what the readers are known to look for."""

import json
import os
import struct
import zlib

TEXT = 65536  # image.h: IMAGE_TEXT_SZ
HEAD = 64 + 3 * 56  # image.c: HEAD_SZ


class Elf:
    """The sections of a file that is as it should be."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        shoff, shentsize, shnum, shstrndx = struct.unpack_from("<Q10xHHH", self.data, 40)
        headers = [struct.unpack_from("<IIQQQQ", self.data, shoff + i * shentsize) for i in range(shnum)]
        names = headers[shstrndx][4] if shnum else 0
        self.sections = {}
        for name, kind, _, addr, offset, size in headers:
            end = self.data.index(b"\0", names + name)
            self.sections[self.data[names + name : end].decode()] = (addr, b"" if kind == 8 else self.data[offset : offset + size])

    def bytes(self, name):
        return self.sections.get(name, (0, b""))[1]

    def addr(self, name):
        return self.sections.get(name, (0, b""))[0]


def piece(data):
    """image.h: bytes__next."""
    data = data[:65535]
    return struct.pack("<H", len(data)) + data


def elf(progs):
    for name in ("alloc_none", "libtiny.so", "liballoc_own.so", "chain-stripped", "chain-nosections", "chain-debugframe", "plt-ibt", "bits32"):
        path = os.path.join(progs, name)
        if os.path.exists(path):
            with open(path, "rb") as f:
                yield f.read()


def unwind_info(progs):
    for name in ("chain", "chain-debugframe", "plt-lazy", "plt-ibt", "signals", "registers", "names"):
        path = os.path.join(progs, name)
        if not os.path.exists(path):
            continue
        e = Elf(path)
        eh, debug, header = e.bytes(".eh_frame"), e.bytes(".debug_frame"), e.bytes(".eh_frame_hdr")
        yield b"\0" + piece(eh) + debug
        at = (TEXT + len(eh) + 15) & ~15
        yield b"\1" + piece(eh) + header[:4] + struct.pack("<i", TEXT - at - 4) + header[8:]
        packed = [struct.pack("<IIQQ", 1, 0, len(s), 8) + zlib.compress(s) for s in (eh, debug)]
        yield b"\2" + piece(packed[0]) + packed[1]
    yield from (b"\3" + i for i in instructions())


def flow(progs):
    for name in ("chain", "chain-musl-static", "alloc-static", "plt-ibt"):
        path = os.path.join(progs, name)
        if os.path.exists(path):
            code = Elf(path).bytes(".text")
            yield from (code[at : at + 4096] for at in range(0, min(len(code), 65536), 4096))


def instructions():
    """DWARF 5, 6.4.2 and 2.5."""
    expressions = [
        bytes([0x77, 8, 0x80, 0, 0x3F, 0x1A, 0x3B, 0x2A, 0x33, 0x24, 0x22]),  # what binutils write for .plt
        bytes([0x76, 0x78, 0x06]),  # rbp - 8, deref
        bytes([0x77, 0x10, 0x06, 0x23, 8]),  # rsp + 16, deref, plus 8
        bytes([0x77, 0x90, 1]),
        bytes([0x31] * 60 + [0x22] * 59),
        bytes([0x30, 0x2F, 0xFC, 0xFF]),  # a jump back to itself
    ]
    for e in expressions:
        yield bytes([0x41, 0x0F, len(e)]) + e + bytes([0x41, 0x0B, 0x41])
        yield bytes([0x41, 0x10, 0x10, len(e)]) + e + bytes([0x41, 0x16, 6, len(e)]) + e
    # advance, push rbp, its frame, remember and restore, rbx, everything of each size
    yield bytes([0x41, 0x0E, 16, 0x86, 2, 0x43, 0x0D, 6, 0x0A, 0x83, 3, 0x50, 0x0C, 7, 8, 0x0B, 0x02, 200, 0xC6, 0x03, 0, 1, 0x04, 0, 0, 1, 0])
    yield bytes([0x05, 6, 2, 0x06, 6, 0x07, 16, 0x08, 3, 0x09, 16, 2, 0x11, 6, 0x7E, 0x12, 7, 0x7F, 0x13, 0x7E, 0x14, 3, 1, 0x15, 3, 1])
    yield bytes([0x01]) + struct.pack("<Q", 0x200) + bytes([0x2E, 16, 0x2F, 6, 1, 0x2D, 0x1D]) + struct.pack("<Q", 8)
    yield bytes([0x41, 0x0A]) * 20 + bytes([0x0B]) * 21


def symbols(progs):
    for name in ("libtiny.so", "liballoc_own.so", "plt-lazy", "plt-ibt", "alloc_none"):
        e = Elf(os.path.join(progs, name))
        code = bytes(max(0, e.addr(".text") - HEAD)) + e.bytes(".text")
        parts = (".strtab", ".symtab", ".dynstr", ".dynsym", ".rela.plt", ".plt")
        yield b"".join(piece(e.bytes(p)) for p in parts) + code[: TEXT - HEAD]


def labels(progs):
    pad = bytes(0x100 - HEAD)  # fuzz_labels.c: CODE
    entry = lambda body: struct.pack("<I", len(body)) + body
    cie = lambda letters: entry(struct.pack("<IB", 0, 1) + letters + bytes([1, 0x78, 16, 1, 0]))
    # absolute addresses, of one that begins at a label and one that begins a byte before
    fdes = lambda at: b"".join(entry(struct.pack("<IQQB", at + 4 + 25 * i, start, 64, 0)) for i, start in enumerate((0x200, 0x2FF)))
    # push, jump, loop, call, test of its result, system call, indirect jump
    code = bytes.fromhex("53 74 02 5b c3 ff c9 75 fc e8 10 00 00 00 85 c0 0f 05 48 89 c7 5b ff e0")
    for letters in (b"zR\0", b"zRS\0"):
        head = cie(letters)
        yield piece(head + fdes(len(head))) + piece(b"") + pad + code * 80
    for name in ("chain", "libtiny.so", "liballoc_own.so"):
        e = Elf(os.path.join(progs, name))
        yield piece(e.bytes(".eh_frame")) + piece(e.bytes(".debug_frame")) + pad + e.bytes(".text")[:8192]


def note(name, kind, desc):
    pad = lambda b: b + bytes(-len(b) % 4)
    return struct.pack("<III", len(name), len(desc), kind) + pad(name) + pad(desc)


def site(name, args):
    return note(b"stapsdt\0", 3, struct.pack("<QQQ", 0x1000, 0x2000, 0x3000) + b"otel_memory\0" + name + b"\0" + args + b"\0")


def notes(progs):
    build_id = note(b"GNU\0", 3, bytes(range(20)))
    sites = site(b"alloc", b"8@%rax 8@%rdx -4@$5") + site(b"free", b"8@-16(%rbp)") + site(b"alloc", b"4@%eax 8@8(%rsp) 8@$-1")
    link = b"file.debug\0\0" + struct.pack("<I", 0x12345678)
    yield piece(build_id) + piece(sites) + piece(link) + b".\0"
    yield piece(note(b"GNU\0", 5, bytes(16)) + build_id) + piece(b"") + piece(b"../x\0\0\0\0\1\2\3\4")


def dwarf(progs):
    for name in ("inlined", "busy", "parked"):
        with open(os.path.join(progs, name), "rb") as f:
            yield f.read()


def answers(progs):
    """reader_wire.h: the request; 0; what it asks for; READER_DONE."""
    text = lambda s, sz: s.ljust(sz, b"\0")
    done = struct.pack("<I", 0x444F4E45)
    ids = text(b"\1" * 20, 64) + text(b"\2" * 20, 64)
    segment = struct.pack("<5Q", 4096, 0, 8192, 8192, 1)
    describe = struct.pack("<6I", 2, 1, 1, 20, 20, 7) + ids + text(b"ld.so", 32) + text(b"libasan.so.8", 32) + text(b"x.debug", 256) + text(b"/y", 1024) + segment * 2
    blob = struct.pack("<IIIII12x", 1, 2, 36, 38, 48) + struct.pack("<HH", 0, 2) + b"\0\x10" + struct.pack("<HH", 0, 1)
    blob = blob.ljust(48, b"\0") + struct.pack("<BBBBiihh", 1, 0, 0, 0, 8, 0, 0, 0) * 2
    table = struct.pack("<5Q", 2, 4, 4, 100, 0) + b"".join(struct.pack("<QII", at, 256, len(blob)) + blob for at in (4096, 8192))
    point = lambda at: struct.pack("<QQQQIII", at, 0, 1, at, 0, 4, 1) + text(b"malloc", 64) + text(b"push r12", 40) + bytes(4)
    first, frames = [0] * 8 + [1] * 4 + [2] * 5, [1, 1, 3, 7, 7, 3, 3, 0, 1, 2]
    names = struct.pack("<QQ17I10I", 2, 8, *first, *frames) + b"\0a\0bcde\0"
    perf_map = struct.pack("<QQ", 3, 4096) + names
    points = struct.pack("<Q", 2) + point(16) + point(32)
    said = (text(b"shop", 257) * 4, text(b"", 257) * 4)
    sites = struct.pack("<5Q", 2, 16, 64, 32, 0)
    custom = struct.pack("<QQ", 1, 2) + struct.pack("<QQQI", 64, 0, 0, 1) + text(b"conn", 64) + bytes(4)
    container = b"".join(text(s, 254) for s in (b"shop-web-1", b"web", b"", b"web-0", b"shop", b"nginx"))
    pieces = struct.pack("<I", 3) + b"abc" + struct.pack("<I", 0) * 15
    bodies = (describe, describe, bytes(4096), b"\1\2\3\4", table, b"\1\0\0\0", points, names, names, names, perf_map, *said, sites, custom, container, pieces)
    for op, body in enumerate(bodies):
        yield bytes([op]) + bytes(4) + body + done
    yield bytes([0]) + struct.pack("<i", -8) + done


def proc(progs):
    with open("/proc/self/maps", "rb") as f:
        yield f.read()
    with open("/proc/self/stat", "rb") as f:
        yield f.read()
    yield (
        b"55d0c8a00000-55d0c8a01000 r-xp 00001000 08:01 1234 /tmp/a\\012b (deleted)\n"
        b"7ffc1000-7ffc2000 r-xp 00000000 00:00 0 [vdso]\n7f00-7f01 rwxp 0 00:00 0\nffffffffff600000-ffffffffff601000 --xp 0 00:00 0 [vsyscall]\n"
    )
    yield b"1 (a) b) R 2) S 0 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 777 1000 10 18446744073709551615\n"


def kallsyms(progs):
    yield (
        b"0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\nffffffff81000000 T _text\nffffffff81000100 t __vfs_read\n"
        b"ffffffff81000100 W vfs_read\nffffffff81000300 T _etext\nffffffffc0003000 t b\t[mod_b]\nffffffffc0001000 t a\t[mod_a]\n"
        b"ffffffffc0009010 t bpf_prog_6deef7357e7b4530_x\t[bpf]"
    )
    yield b"1 t a\n10 T b\t[c]\n"


def perf_map(progs):
    """fuzz_perf_map.c: the distance of addresses, where they begin, the file."""
    head = lambda step, at: struct.pack("<BQ", step, at)
    yield head(15, 0x1000) + b"1000 40 one\n1040 80 two\n0x1020 0x40 JS:*over /a b.js:1:2\n1000 400 all\n1080 10 ne"
    yield head(63, 0x7F0000000000) + b"7f0000000000 1000 _ZN3foo3barEi\n7f0000000100 1 \n\nffffffffffffffff 2 top\n7F0000000200 fffffffffffffff x\n"
    yield head(0, (1 << 64) - 4) + b"fffffffffffffff0 f end\n0 ffffffffffffffff everything\n"
    yield head(7, 0x1000) + b"1000 100 " + b"x" * 17000 + b"\n1000 20 short\n"


def names(progs):
    for prog in ("names", "rusty", "waits_std"):
        path = os.path.join(progs, prog)
        if os.path.exists(path):
            found = [s for s in Elf(path).bytes(".strtab").split(b"\0") if s.startswith((b"_Z", b"_R"))]
            yield from sorted(found, key=len)[:: max(1, len(found) // 60)]
    yield from (b"malloc@@GLIBC_2.2.5", b"je_aligned_alloc", b"_ZdlPvSt11align_val_t", b"8@%rax -4@$5 8@-16(%rbp)", b"_RNvCs1234_7mycrate3foo")


def unwinder(progs):
    """struct head of fuzz_unwinder.c: key, proc, raw; then the table: a list of one mapping, its part; then a stack."""
    key = struct.pack("<IIQ", 1, 2, 3)
    code, stack_at = 0x400000, 0x7FFC00000000
    rows = [(0, 1), (16, 2), (32, 3), (64, 4)]
    # struct bpfprof_rule: cfa, fp, ra, reg, cfa_off, fp_off, aux, bx_off
    rules = [(0, 0, 0, 0, 0, 0, 0, 0), (1, 0, 0, 0, 8, 0, 0, 0), (2, 1, 0, 0, 16, -16, 0, -24), (3, 0, 1, 3, 8, 0, -8, 0), (4, 0, 0, 0, 8, 0, 8, 0)]
    at = 16 + 16 + 16  # behind the key, one start and one mapping
    off = at + 32 + 4
    rule = (off + len(rows) + 1) & ~1
    packed = (rule + 2 * len(rows) + 15) & ~15
    table = key + struct.pack("<Q8x", code) + struct.pack("<IIII", 4096, 0, 0, at)
    table += struct.pack("<IIIII12x", 1, len(rows), off, rule, packed) + struct.pack("<HH", 0, len(rows))
    table = (table + bytes(o for o, _ in rows)).ljust(rule, b"\0") + struct.pack("<4H", *(r for _, r in rows))
    table = table.ljust(packed, b"\0") + b"".join(struct.pack("<BBBBiihh", *r) for r in rules)
    for start in (0, 20, 40, 70, 5000):
        regs = [0] * 17
        regs[6], regs[7], regs[16] = stack_at + 512, stack_at + 128, code + start
        raw = struct.pack("<17QQIHHQ", *regs, stack_at, 0, start == 20, 0, 0) + bytes(64)
        head = key + struct.pack("<IIHHI", 0, 0, 1, 0, 0) + raw
        words = [code + 16 * (i % 6) + 1 if i % 3 else stack_at + 8 * i + 64 for i in range(256)]
        yield head + piece(table) + struct.pack("<256Q", *words)


def field(number, value):
    """A field of protobuf: a number, or bytes."""
    varint = lambda n: bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])
    return varint(number << 3) + varint(value) if isinstance(value, int) else varint(number << 3 | 2) + varint(len(value)) + value


def profile(_):
    """profile.proto: two stacks with labels, in one mapping; plain, gzip'd, and with something in gzip's header."""
    names = [b"", b"samples", b"count", b"cpu", b"nanoseconds", b"main", b"work", b"/bin/app", b"pid", b"thread", b"said"]
    line = lambda function: field(4, field(1, function) + field(2, 7))
    plain = b"".join(
        [field(1, field(1, 1) + field(2, 2)), field(1, field(1, 3) + field(2, 4))]
        + [field(2, field(1, bytes(ids)) + field(2, bytes([3, 30])) + field(3, field(1, 8) + field(3, 42)) + field(3, field(1, 9) + field(2, 5))) for ids in ((1, 2), (2,))]
        + [field(3, field(1, 1) + field(2, 4096) + field(3, 8192) + field(5, 7) + field(7, 1))]
        + [field(4, field(1, i) + field(2, 1) + field(3, 4096 + i) + line(i)) for i in (1, 2)]
        + [field(5, field(1, i) + field(2, 4 + i) + field(3, 4 + i)) for i in (1, 2)]
        + [field(6, n) for n in names]
        + [field(9, 10**18), field(10, 10**9), field(11, field(1, 3) + field(2, 4)), field(12, 100), field(13, bytes([10])), field(14, 1)]
    )
    yield plain
    packed = zlib.compressobj(1, zlib.DEFLATED, 31)
    packed = packed.compress(plain) + packed.flush()
    yield packed
    extra = b"bp" + struct.pack("<H", 8) + b"kind\0cpu"
    yield packed[:3] + b"\4" + packed[4:10] + struct.pack("<H", len(extra)) + extra + packed[10:]
    yield from legacy()


def legacy():
    """The formats before profile.proto: CPU time of all words, memory, contention, counts, threads, and names."""
    maps = b"00400000-00402000 r-xp 00001000 fe:01 12 /bin/app\n00500000-00600000 /lib/libc.so.6 (@1000) abc0\n"
    words = (0, 3, 0, 10000, 0, 5, 3, 0x400100, 0x400201, 0x500201, 1, 1, 0x500100, 0, 1, 0)
    for kind in "<Q", "<I", ">Q", ">I":
        yield b"".join(struct.pack(kind, w) for w in words) + maps
    for kind in b"heap_v2/524288", b"heap/1024", b"heapprofile", b"growth":
        yield b"heap profile: 3: 96 [5: 160] @ " + kind + b"\n1: 32 [3: 96] @ 0x400101 0x500101\n2: 64 [2: 64] @\n# x\nMAPPED_LIBRARIES:\n" + maps
    yield b"--- contentionz 1 ---\ncycles/second = 2000000000\nsampling period = 10\nms since reset = 5\n100 2 @ 0x400101\n--- Memory map: ---\n" + maps
    yield b"threadcreate profile: total 3\n2 @ 0x400101 0x500101\n1 @\n--- Memory map: ---\n" + maps
    yield b"--- threadz 1 ---\n--- Thread 7f (name: a/1) stack: ---\n  @ 0x400101 0x500101\n--- Thread 80 (name: b/2) stack: ---\nsame as previous thread\n" + maps
    yield b"--- symbol\nbinary=/bin/app\n0x400100 leaf<0000000000400100>\n0x400201 caller--callee\n---\n--- profile\n" + b"".join(struct.pack("<Q", w) for w in words[:-3])


def said(_):
    """What fuzz_said.c takes: the first byte tells a process context, an environment, and the files of container runtimes apart."""
    attribute = lambda key, value: field(1, field(1, key) + field(2, value))
    text = lambda s: field(1, s)
    known = [attribute(b"service.name", text(b"shop")), attribute(b"service.version", text(b"1.2")), attribute(b"deployment.environment.name", text(b"prod"))]
    others = [attribute(b"n", field(3, 7)), attribute(b"list", field(5, field(1, text(b"x")))), field(2, 3)]
    for attributes in (known, others + known, [attribute(b"service.name", text(b"unknown_service:sh"))], [attribute(b"service.name", text(b"\xff\x1b" * 200))]):
        yield b"\0" + field(1, b"".join(attributes)) + field(2, b"".join(attributes))
    for variables in (
        [b"PATH=/bin", b"OTEL_SERVICE_NAME=shop", b"OTEL_RESOURCE_ATTRIBUTES=service.version=1,service.name= a%20%C3%A4 ,k=v", b"DD_SERVICE=x"],
        [b"OTEL_RESOURCE_ATTRIBUTES=service.name=a,deployment.environment=b,service.namespace=%2C%3D"],
        [b"DD_SERVICE=" + b"\xc3\xa4" * 200],
    ):
        yield b"\1" + b"".join(v + b"\0" for v in variables)
    cid, labels = "0123456789ab", {"com.docker.compose.service": "web", "io.kubernetes.pod.name": "web-0", "io.kubernetes.cri.sandbox-name": "web-0", "nerdctl/name": "web"}
    oci = {"ociVersion": "1.1.0", "annotations": labels, "n": [1e300, -1, True, None]}
    for i, file in enumerate(({"ID": cid, "Name": "/shop-web-1", "Config": {"Labels": labels}}, oci, oci, [{"id": cid, "names": ["web", "\u00e4\u0000"]}, {}])):
        yield bytes([2 + i]) + json.dumps(file).encode()

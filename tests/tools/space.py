# SPDX-License-Identifier: BSD-2-Clause
"""The addresses of a profiled process: which code is where, as far as files and the process itself still tell."""

import bisect
import collections
import os
import re

import elf_image
import x86

# image: elf_image.Image, or None where the code is the process's own; why: why neither can be read
Area = collections.namedtuple("Area", "start end image bias pid why name")
_WORD = 8
FLOW_MAX = 20000  # bytes


class Memory:
    """Of a process: by its own file, or what was read of it before."""

    def __init__(self, pid):
        self.pid = pid
        self.file = open(f"/proc/{pid}/mem", "rb", buffering=0)

    def read(self, addr, size):
        try:
            return os.pread(self.file.fileno(), size, addr)
        except (OSError, OverflowError):
            return b""


def maps(pid):
    """(start, end, flags, offset, path) of what is executable."""
    found = []
    with open(f"/proc/{pid}/maps", "rb") as f:
        for line in f.read().decode("utf-8", "surrogateescape").split("\n"):
            m = re.match(r"([0-9a-f]+)-([0-9a-f]+) (..x.) ([0-9a-f]+) \S+ (\d+) *(.*)", line)
            if m:
                found.append((int(m[1], 16), int(m[2], 16), m[3], int(m[4], 16), m[6]))
    return found


def generated_code(pid):
    """{address: bytes} of what is executable and no file's: for a comparison later on."""
    memory, found = Memory(pid), {}
    for start, end, _, _, path in maps(pid):
        if not path.startswith("/") or path.startswith(("/memfd:", "/dev/zero")):
            for at in range(start, end, 1 << 20):
                found[at] = memory.read(at, min(end - at, 1 << 20))
    return found


class Space:
    def __init__(self, mappings, pids=(), before=None):
        """before: what generated_code() gave when recording began, or None."""
        self.before = before or {}
        self._before_at = sorted(self.before)
        self._images, self._exits = {}, {}
        self.memories = {pid: Memory(pid) for pid in pids}
        areas = {}
        for m in mappings:
            areas.setdefault((m.start, m.limit), self._area(m, pids))
        for pid in pids:
            for start, end, _, offset, path in maps(pid):
                if not any(s < end and start < e for s, e in areas):
                    areas[start, end] = self._mapped(start, end, offset, path, "", pid)
        self.areas = sorted((a for a in areas.values()), key=lambda a: a.start)
        self._starts = [a.start for a in self.areas]

    # ---- which code is where ----

    def _area(self, m, pids):
        for pid in pids:
            for start, end, _, offset, path in maps(pid):
                if start < m.limit and m.start < end:
                    return self._mapped(m.start, m.limit, m.offset, m.path, m.build_id, pid)
        return self._mapped(m.start, m.limit, m.offset, m.path, m.build_id, None)

    def _mapped(self, start, end, offset, path, build_id, pid):
        area = lambda image=None, bias=0, why="": Area(start, end, image, bias, pid, why, path)
        if path == "[vdso]":
            image = self._vdso(start, end, pid)
            return area(image, start - image.main.segments[0].vaddr if image else 0, "" if image else "the process is gone")
        if not path.startswith("/") or path.startswith(("//anon", "/memfd:", "/dev/zero", "/SYSV")):
            return area(why="" if pid else "the process is gone")
        try:
            image = self._image(start, end, path, pid)
        except (OSError, ValueError) as e:
            return area(why="" if pid else f"{path}: {e}")
        if build_id and image.build_id and build_id != image.build_id:
            return area(why="the file is of another build")
        bias = image.bias(start, offset)
        if bias is None:
            return area(why="" if pid else "no code of the file")
        if pid and self._is_other(image, bias, start, end, pid):
            return area(why="is another in memory")
        return area(image, bias)

    def _is_other(self, image, bias, start, end, pid):
        """Is in memory what the file has there? By samples."""
        for at in range(start, end, max((end - start) // 64 & ~4095, 4096)):
            here = image.read(at - bias, 64)
            if self.memories[pid].read(at, len(here)) != here:
                return True
        return False

    def _vdso(self, start, end, pid):
        data = self.memories[pid].read(start, end - start) if pid else b""
        try:
            return elf_image.Image(data, "[vdso]")
        except ValueError:
            return None

    def _image(self, start, end, path, pid):
        links = [f"/proc/{pid}/map_files/{start:x}-{end:x}", f"/proc/{pid}/root{path}"] if pid else []
        for name in [*links, path]:
            try:
                stat = os.stat(name)
                break
            except OSError:
                continue
        else:
            raise FileNotFoundError("no such file")
        key = stat.st_dev, stat.st_ino
        if key not in self._images:
            self._images[key] = elf_image.open_image(name)
            self._images[key].path = path
        return self._images[key]

    def find(self, addr):
        i = bisect.bisect_right(self._starts, addr) - 1
        return self.areas[i] if i >= 0 and addr < self.areas[i].end else None

    def code(self, addr, size):
        """Bytes from an address on, at most so many; none if they cannot be read."""
        area = self.find(addr)
        if not area or area.why:
            return b""
        size = min(size, area.end - addr)
        return area.image.read(addr - area.bias, size) if area.image else self.memories[area.pid].read(addr, size)

    def code_before(self, end, size):
        """So many bytes that end at an address, or as many as there are."""
        area = self.find(end - 1)
        size = min(size, end - area.start) if area else 0
        return self.code(end - size, size) if size else b""

    def is_generated(self, addr):
        area = self.find(addr)
        return area is not None and area.image is None

    def has_changed(self, end, size):
        """Is generated code another now than when recording began, or is that not known?"""
        i = bisect.bisect_right(self._before_at, end - size) - 1
        if i < 0:
            return True
        at = end - size - self._before_at[i]
        return self.before[self._before_at[i]][at : at + size] != self.code(end - size, size)

    # ---- functions ----

    def functions(self, addr):
        """Known ranges that hold an address, the innermost first."""
        area = self.find(addr)
        if not area or not area.image:
            return []
        return [(s + area.bias, e + area.bias) for s, e in area.image.functions(addr - area.bias)]

    def go_name(self, addr):
        area = self.find(addr)
        go = area.image.go if area and area.image else None
        return go.name(addr - area.bias) if go and go.low <= addr - area.bias < go.high else ""

    def is_elided(self, addr):
        """Does Go leave the function out of stacks?"""
        area = self.find(addr)
        go = area.image.go if area and area.image else None
        return bool(go) and go.low <= addr - area.bias < go.high and go.is_elided(addr - area.bias)

    def calls(self, addr):
        """(length, what, at) of the calls of a function of Go's, as Checker.call_at() has them."""
        found = []
        for start, end in self.functions(addr)[:1]:
            area = self.find(start)
            for behind, (begin, what, at) in area.image.sweep(start - area.bias, end - area.bias).ends.items():
                if what in x86.CALLS:
                    found.append((behind - begin, what, start + at))
        return found

    def symbols(self, addr):
        """For people."""
        area = self.find(addr)
        if not area or not area.image:
            return f"{os.path.basename(area.name) if area else '?'}"
        names = area.image.names(addr - area.bias)
        return min(names, key=lambda n: (len(n), n)) if names else f"{os.path.basename(area.name)}+{addr - area.bias:#x}"

    # ---- where a call leads ----

    def slot(self, addr):
        """(targets, whether these are all) of a word through which code calls or jumps: what stands there, and what stood
        there when the object was
        loaded, which the dynamic linker replaces at the first call (lazy binding)."""
        home = next((a for a in self.areas if a.image and a.image.is_mapped(addr - a.bias)), None)
        if not home:
            return set(), False
        targets, vaddr = set(), addr - home.bias
        at_first = int.from_bytes(home.image.read(vaddr, _WORD), "little")
        if at_first and home.image.is_code(at_first):
            targets.add(at_first + home.bias)
        if home.pid:
            now = int.from_bytes(self.memories[home.pid].read(addr, _WORD), "little")
            if self.find(now):
                return targets | {now}, True
        name, relative, resolved = home.image.slot_symbol(vaddr)
        if relative is not None:
            return targets | {relative + home.bias}, True
        found = {(a.image, a.bias, v) for a in self.areas if a.image and name for v in a.image.exports.get(name, ())}
        resolved |= any(v in image.ifuncs for image, _, v in found)
        return targets | {v + bias for _, bias, v in found}, bool(found) and not resolved

    def exits(self, addr):
        """Where a jump may lead that follows what was entered at an address: (addresses covered, targets, whether these are
        all)."""
        known = self.functions(addr)
        key = known[0] if known else addr
        if key not in self._exits:
            self._exits[key] = self._range_exits(*key) if known else self.flow(addr)
        return self._exits[key]

    def _range_exits(self, start, end):
        area = self.find(start) or self.find(end - 1)
        sweep = area.image.sweep(start - area.bias, end - area.bias)
        targets, all_known = set(), True
        for what, at in sweep.leave:
            if what == x86.JUMP:
                targets.add(start + at)
            elif what == x86.JUMP_SLOT:
                found, certain = self.slot(start + at)
                targets |= found
                all_known &= certain
            else:
                all_known = False
        if sweep.falls_off:
            targets.add(end)
        return range(start, end), targets, all_known

    def flow(self, addr):
        """The same where nothing tells where a function ends: its instructions are followed one by one. Calls return."""
        seen, targets, todo, all_known = set(), set(), [addr], True
        while todo:
            at = todo.pop()
            while at not in seen:
                if len(seen) > FLOW_MAX:
                    return seen, targets, False
                n, what, to = x86.decode(self.code(at, 16), 0)
                if what == x86.BAD:
                    all_known &= bool(self.code(at, 1))
                    break
                seen.update(range(at, at + n))
                if what in (x86.JUMP, x86.BRANCH):
                    if self.functions(at + to):
                        targets.add(at + to)
                    else:
                        todo.append(at + to)
                elif what == x86.JUMP_SLOT:
                    found, certain = self.slot(at + to)
                    targets |= found
                    all_known &= certain
                elif what in (x86.JUMP_VALUE, x86.JUMP_TABLE):
                    all_known = False
                if what in (x86.JUMP, x86.JUMP_SLOT, x86.JUMP_VALUE, x86.JUMP_TABLE, x86.END):
                    break
                at += n
        return seen, targets, all_known


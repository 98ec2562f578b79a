# SPDX-License-Identifier: BSD-2-Clause
"""Do the names that a profile gives to addresses belong to them? Symbol tables, Go's table and perf maps are read here;
DWARF by the readers of LLVM
and of binutils, whichever are there."""

import bisect
import os
import re
import shutil
import subprocess

RIGHT = "right"
NO_NAME = "by offset"
UNPROVED = "symbol without a size, not disproved"
UNCHECKED = "nothing to check it with"
WRONG = "wrong"


CLONE = re.compile(r"(\.(isra|part|constprop|cold|lto_priv|llvm|localalias|clone)(\.[0-9a-f]+)*|\.\d+)+$")


def _plain(name):
    """Without what GCC and LLVM say of clones and of parts split off. Go's names have dots of their own."""
    return CLONE.sub("", name)


def _as_gccgo(name):
    """As gccgo's symbols spell it: _ is __, and in a package's path . is _0 and / is _1 (go-encode-id.cc). Its DWARF has the name itself."""
    folders, slash, rest = name.replace("_", "__").rpartition("/")
    # closures of a package's variables begin with a dot
    return folders.replace(".", "_0").replace("/", "_1") + ("_1" if slash else "") + rest.replace("..go..", "._0go..")


class PerfMap:
    """tools/perf/Documentation/jit-interface.txt: any entry counts, since code moves."""

    def __init__(self, path):
        self.entries = []
        with open(path, encoding="utf-8", errors="replace") as f:
            for line in f:
                m = re.match(r"(?:0x)?([0-9a-f]+) (?:0x)?([0-9a-f]+) (.*)", line)
                if m:
                    self.entries.append((int(m[1], 16), int(m[1], 16) + int(m[2], 16), m[3]))
        self.entries.sort()
        self._starts = [e[0] for e in self.entries]
        self._longest = max((e - s for s, e, _ in self.entries), default=0)

    def names(self, addr):
        i = bisect.bisect_right(self._starts, addr) - 1
        found = set()
        while i >= 0 and self._starts[i] > addr - self._longest:
            if self.entries[i][1] > addr:
                found.add(self.entries[i][2].strip())
            i -= 1
        return found


def _dwarf_readers():
    """argv of each reader; an object's name follows."""
    llvm = next((p for v in ("", *(f"-{n}" for n in range(22, 12, -1))) for p in [shutil.which(f"llvm-symbolizer{v}")] if p), None)
    readers = [[llvm, "--no-demangle", "--inlines", "--output-style=GNU", "--addresses", "--obj"]] if llvm else []
    gnu = shutil.which("addr2line")
    return readers + ([[gnu, "-a", "-f", "-i", "-e"]] if gnu else [])


def dwarf_names(path, vaddrs):
    """For each reader that is there, {address: [names, the innermost first]}."""
    answers = []
    for argv in _dwarf_readers():
        text = "\n".join(f"{v:#x}" for v in vaddrs) + "\n"
        argv = [*argv[:-1], argv[-1] + "=" + path] if argv[-1].startswith("--") else [*argv, path]
        out = subprocess.run(argv, input=text, capture_output=True, text=True, errors="replace", check=False).stdout.rstrip("\n")
        found, names, begin = {}, None, 0
        for i, line in enumerate(out.split("\n")):
            if re.fullmatch(r"0x[0-9a-f]+", line):
                begin, names = i, found.setdefault(int(line, 16), [])
            elif names is not None and (i - begin) % 2:
                names.append(line)
        answers.append(found)
    return answers


class Names:
    def __init__(self, space, perf_map=None):
        self.space, self.perf_map = space, perf_map
        self.open = {}  # file: {address: [Location]}, to be asked for in DWARF
        self.verdicts = {}

    def add(self, location):
        """A Location of user space."""
        if location not in self.verdicts:
            self.verdicts[location] = self._judge(location)

    def _judge(self, loc):
        if not loc.lines:
            return NO_NAME
        physical = loc.lines[-1]
        area = self.space.find(loc.address)
        if not physical.system_name:
            return NO_NAME if re.fullmatch(r".*\+0x[0-9a-f]+|0x[0-9a-f]+", physical.name) else WRONG
        if not area or area.why:
            return UNCHECKED
        if not area.image:
            if not self.perf_map:
                return UNCHECKED
            names = self.perf_map.names(loc.address)
            return RIGHT if physical.name in names or physical.system_name in names else WRONG
        return self._judge_image(loc, area)

    def _judge_image(self, loc, area):
        vaddr, name = loc.address - area.bias, loc.lines[-1].system_name
        names = area.image.names(vaddr)
        # of a wrapper that Go leaves out, what is inlined in it is left
        elided = self.space.is_elided(loc.address) and name not in names
        right = name in names or bool({_plain(name), _as_gccgo(name)} & set(map(_plain, names)))
        if right and len(loc.lines) == 1:
            return RIGHT
        label = None if right or elided else area.image.label(vaddr, name)
        if label:
            start, verdict = label
            # what runs on from there to the address proves it
            if verdict == "unproved" and loc.address in self.space.flow(start + area.bias)[0]:
                verdict = "proved"
            return {"proved": RIGHT, "unproved": UNPROVED, "wrong": WRONG}[verdict]
        path = area.image.debug_path or self._path(area)
        self.open.setdefault(path, {}).setdefault(vaddr, []).append((loc, right, elided))
        return UNCHECKED if right or elided else WRONG

    def _path(self, area):
        links = [f"/proc/{area.pid}/root{area.name}", f"/proc/{area.pid}/map_files/{area.start:x}-{area.end:x}"] if area.pid else []
        return next((p for p in [*links, area.name] if os.path.exists(p)), area.name)

    def ask_dwarf(self):
        """What symbols leave open: inlined functions, and names that only DWARF has."""
        for path, places in self.open.items():
            answers = dwarf_names(path, sorted(places))
            for vaddr, waiting in places.items():
                chains = [a.get(vaddr, []) for a in answers]
                chains = [c for c in chains if c and c != ["??"]]
                for loc, right, elided in waiting:
                    inner = [c[:-1] for c in chains] if elided else chains
                    self.verdicts[loc] = self._by_dwarf(loc, right or elided, inner) if answers else UNCHECKED
        self.open = {}

    def _by_dwarf(self, loc, right, chains):
        if not chains:
            return UNCHECKED if right else WRONG
        wanted = [line.system_name for line in loc.lines]
        for chain in chains:
            same = [_plain(b) in (_plain(a), _as_gccgo(a)) for a, b in zip(wanted, chain)]
            if len(wanted) == len(chain) and all(same[:-1]) and (right or same[-1]):
                return RIGHT
        return WRONG

    def describe(self, loc):
        area = self.space.find(loc.address)
        text = f"{' < '.join(l.name for l in loc.lines)} ({loc.address:#x}) is {self.space.symbols(loc.address)}"
        if area and area.image:
            text += f", {os.path.basename(area.name)}+{loc.address - area.bias:#x}"
            known = self.space.functions(loc.address)
            text += f", of {known[0][0] - area.bias:#x} to {known[0][1] - area.bias:#x}" if known else ", of no known range"
        return text

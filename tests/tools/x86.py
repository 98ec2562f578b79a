# SPDX-License-Identifier: BSD-2-Clause
"""Lengths of x86-64 instructions, and where those lead that change the flow of control. Intel SDM, volume 2: 2.1 to 2.7
(encoding), appendix A
(opcode maps).

It is the checkers' own reading of code: nothing of bpfprof and none of its libraries is in it.
"""

# What an instruction does to the flow of control.
(
    OTHER,  # goes on to the next one
    CALL,  # to `at`
    CALL_SLOT,  # to what stands at the address `at`: call *disp(%rip)
    CALL_VALUE,  # to a register's or another memory operand's value
    JUMP,  # to `at`
    BRANCH,  # to `at`, or on
    JUMP_SLOT,  # as CALL_SLOT
    JUMP_TABLE,  # of a switch
    JUMP_VALUE,  # as CALL_VALUE
    END,  # returns, traps, or ends padding
    BAD,  # is none
) = range(11)
CALLS = (CALL, CALL_SLOT, CALL_VALUE)

# Of an opcode: bit 3 says that a ModRM byte follows, the others what immediate.
_MODRM = 8
_I8, _I16, _I24, _IZ, _IV, _MOFFS, _NONE = 1, 2, 3, 4, 5, 6, 7  # IZ: 2 bytes with 66, else 4; IV: 8 with REX.W


def _one_byte():
    t = bytearray([_NONE]) * 256  # _NONE: no such instruction
    for op in range(0x00, 0x40):
        t[op] = (_MODRM, _MODRM, _MODRM, _MODRM, _I8, _IZ, _NONE, _NONE)[op & 7]

    def fill(ops, what):
        for op in ops:
            t[op] = what

    fill([*range(0x50, 0x60), *range(0x6C, 0x70), *range(0x90, 0x9A), *range(0x9B, 0xA0), *range(0xA4, 0xA8), *range(0xAA, 0xB0)], 0)
    fill([0xC3, 0xC9, 0xCB, 0xCC, 0xCF, 0xD7, 0xEC, 0xED, 0xEE, 0xEF, 0xF1, 0xF4, 0xF5, *range(0xF8, 0xFE)], 0)
    fill([0x63, *range(0x84, 0x90), *range(0xD0, 0xD4), *range(0xD8, 0xE0), 0xF6, 0xF7, 0xFE, 0xFF], _MODRM)
    fill([0x6B, 0x80, 0x83, 0xC0, 0xC1, 0xC6], _MODRM | _I8)
    fill([0x69, 0x81, 0xC7], _MODRM | _IZ)
    fill([0x6A, *range(0x70, 0x80), 0xA8, *range(0xB0, 0xB8), 0xCD, *range(0xE0, 0xE8), 0xEB], _I8)
    fill([0x68, 0xA9, 0xE8, 0xE9], _IZ)
    fill(range(0xB8, 0xC0), _IV)
    fill(range(0xA0, 0xA4), _MOFFS)
    fill([0xC2, 0xCA], _I16)
    fill([0xC8], _I24)
    return bytes(t)


def _two_bytes():
    t = bytearray([_MODRM]) * 256
    for op in [*range(0x05, 0x0A), 0x0B, 0x0E, *range(0x30, 0x38), 0x77, 0xA0, 0xA1, 0xA2, 0xA8, 0xA9, 0xAA, *range(0xC8, 0xD0)]:
        t[op] = 0
    for op in range(0x80, 0x90):
        t[op] = _IZ
    for op in [0x0F, *range(0x70, 0x74), 0xA4, 0xAC, 0xBA, 0xC2, 0xC4, 0xC5, 0xC6]:
        t[op] = _MODRM | _I8
    for op in [0x04, 0x0A, 0x0C, 0x24, 0x25, 0x26, 0x27, 0x36, 0x39, 0x3B, 0x3C, 0x3D, 0x3E, 0x3F]:
        t[op] = _NONE
    return bytes(t)


_ONE, _TWO = _one_byte(), _two_bytes()
_VEX_I8 = frozenset([*range(0x70, 0x74), 0xC2, 0xC4, 0xC5, 0xC6])
_PREFIXES = frozenset([0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3])
_BAD = (1, BAD, 0)


def _int(code, i, n):
    return int.from_bytes(code[i : i + n], "little", signed=True)


def _operand(code, i):
    """The index behind a ModRM byte at i and what belongs to it."""
    modrm = code[i]
    i += 1
    mod = modrm >> 6
    if mod == 3:
        return i
    if modrm & 7 == 4:
        base = code[i] & 7
        i += 1
        if mod == 0 and base == 5:
            return i + 4
    elif mod == 0 and modrm & 7 == 5:
        return i + 4
    return i + (0, 1, 4)[mod]


def _vex(code, i):
    """The index behind an instruction with a VEX or EVEX prefix at i."""
    if code[i] == 0xC5:
        space, i = 1, i + 2
    elif code[i] == 0xC4:
        space, i = code[i + 1] & 31, i + 3
    else:
        space, i = code[i + 1] & 7, i + 4
    op = code[i]
    i += 1
    if space == 1 and op == 0x77:  # vzeroupper
        return i
    return _operand(code, i) + (space == 3 or (space == 1 and op in _VEX_I8))


def _indirect(code, start, i, end, call):
    """What ff /2 (call) or ff /4 with its ModRM byte at i does."""
    modrm = code[i]
    if modrm >> 6 == 0 and modrm & 7 == 5:
        return end - start, CALL_SLOT if call else JUMP_SLOT, end + _int(code, i + 1, 4)
    if call:
        return end - start, CALL_VALUE, 0
    # 3e, which is notrack here, stands where a compiler knows all targets: CET, switch statements
    return end - start, JUMP_TABLE if 0x3E in code[start : i - 1] else JUMP_VALUE, 0


def _one(code, start, i, op, short, wide, addr32):
    what = _ONE[op]
    if what == _NONE:
        return _BAD
    modrm_at = i
    if what & _MODRM:
        i = _operand(code, i)
        if op in (0xF6, 0xF7) and not code[modrm_at] & 0x30:
            what |= _I8 if op == 0xF6 else _IZ
    imm = what & 7
    if imm == _IZ:
        i += 2 if short and op not in (0xE8, 0xE9) else 4
    elif imm == _IV:
        i += 8 if wide else 2 if short else 4
    elif imm == _MOFFS:
        i += 4 if addr32 else 8
    else:
        i += imm
    n = i - start
    if op == 0xE8:
        return n, CALL, i + _int(code, i - 4, 4)
    if op == 0xE9:
        return n, JUMP, i + _int(code, i - 4, 4)
    if op == 0xEB:
        return n, JUMP, i + _int(code, i - 1, 1)
    if 0x70 <= op < 0x80 or 0xE0 <= op < 0xE4:
        return n, BRANCH, i + _int(code, i - 1, 1)
    if op in (0xC2, 0xC3, 0xCA, 0xCB, 0xCC, 0xCF, 0xF4):
        return n, END, 0
    if op == 0xFF:
        reg = code[modrm_at] >> 3 & 7
        if reg in (2, 4):
            return _indirect(code, start, modrm_at, i, reg == 2)
        if reg in (3, 5):
            return n, CALL_VALUE if reg == 3 else JUMP_VALUE, 0
    return n, OTHER, 0


def _two(code, start, i, short):
    op = code[i]
    i += 1
    if op in (0x38, 0x3A):
        i = _operand(code, i + 1) + (op == 0x3A)
        return i - start, OTHER, 0
    what = _TWO[op]
    if what == _NONE:
        return _BAD
    if what & _MODRM:
        i = _operand(code, i)
    i += (what & 7) if what & 7 != _IZ else 4
    if 0x80 <= op < 0x90:
        return i - start, BRANCH, i + _int(code, i - 4, 4)
    return i - start, END if op in (0x0B, 0xB9, 0xFF) else OTHER, 0


def decode(code, start):
    """(length, what, at) of the instruction at an index of bytes; `at` is an index as well, and may lie outside. BAD, also
    if it is cut off."""
    try:
        i = start
        short = wide = addr32 = False
        op = code[i]
        while op in _PREFIXES:
            short |= op == 0x66
            addr32 |= op == 0x67
            i += 1
            op = code[i]
        if op & 0xF0 == 0x40:
            wide = op & 8 != 0
            i += 1
            op = code[i]
        if op == 0x0F:
            found = _two(code, start, i + 1, short)
        elif op in (0xC4, 0xC5, 0x62):
            found = _vex(code, i) - start, OTHER, 0
        else:
            found = _one(code, start, i + 1, op, short, wide, addr32)
    except IndexError:
        return _BAD
    return found if start + found[0] <= len(code) and found[0] <= 15 else _BAD


def _loads_offset(code, i, n):
    """movslq (base,index,4), or from such a table in other words: what a switch in position-independent code begins with."""
    i += code[i] & 0xF0 == 0x40
    return n >= 3 and code[i] == 0x63 and code[i + 1] >> 6 != 3 and code[i + 1] & 7 == 4 and code[i + 2] >> 6 == 2


def _is_nop(code, i, n):
    body = code[i : i + n].lstrip(b"\x66\x2e\x3e\x36\x26")
    return body[:1] == b"\x90" or body[:2] == b"\x0f\x1f" or not body


SWITCH_REACH = 8  # instructions between the load from a table and the jump


class Sweep:
    """One pass over the instructions in code[start:end]."""

    def __init__(self, code, start, end):
        self.ends = {}  # index behind an instruction: (its index, what, at)
        self.leave = []  # (what, at) of jumps out of the range, and of those that lead where is not known
        self.bad = 0
        last, load, count, i = END, -SWITCH_REACH, 0, start
        while i < end:
            n, what, at = decode(code, i)
            self.ends[i + n] = (i, what, at)
            if what == OTHER:
                if _loads_offset(code, i, n):
                    load = count
                if last not in (OTHER, BRANCH, *CALLS) and _is_nop(code, i, n):
                    what = last  # padding
            elif what == BAD:
                self.bad += 1
            elif what in (JUMP, BRANCH):
                if not start <= at < end:
                    self.leave.append((JUMP, at))
            elif what == JUMP_VALUE:
                if count - load > SWITCH_REACH:
                    self.leave.append((what, at))
            elif what == JUMP_SLOT:
                self.leave.append((what, at))
            last = what
            count += 1
            i += n
        self.falls_off = i == end and last in (OTHER, BRANCH)  # the last instruction goes on to `end`


def call_before(code, end):
    """(length, what, at) of a call that may end at this index, by its bytes alone; None if there is none. Where several
    readings are possible, the
    one with a direct call."""
    for n in (5, 6, 7, 2, 3, 4, 8):
        if end >= n:
            found = decode(code, end - n)
            if found[0] == n and found[1] in CALLS:
                return found
    return None

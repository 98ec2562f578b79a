# SPDX-License-Identifier: BSD-2-Clause
"""May a frame's function have been called from where its caller's frame says? The rules are in callcheck's head."""

import go_image
import x86

DIRECT = "direct call"
TAIL = "direct call, tail jumps"
INDIRECT = "indirect call"
SIGNAL = "signal delivery"
INTERRUPTED = "interrupted there"
PLANTED = "return address put there by hand"
SWITCH = "Go's stack grows"
WRAPPED = "through a wrapper that Go leaves out"
PROBED = "a jump that a probe emulates"
GOOD = (DIRECT, TAIL, INDIRECT, SIGNAL, INTERRUPTED, PLANTED, SWITCH, WRAPPED, PROBED)
POSSIBLE = "possible by an indirect tail jump"
UNREADABLE = "code cannot be read"
CHANGED = "generated code, another now"
NO_CALL = "no call before the return address"
OTHER_TARGET = "the call leads elsewhere"
IMPOSSIBLE = (NO_CALL, OTHER_TARGET)

# mov $__NR_rt_sigreturn, %rax (or %eax); syscall: what a signal handler returns to
_RESTORERS = (b"\x48\xc7\xc0\x0f\0\0\0\x0f\x05", b"\xb8\x0f\0\0\0\x0f\x05")
# HotSpot's interpreter calls by a jump, and pushes the address of a return entry, which begins by taking rsp back from the frame:
# mov -16(%rbp), %rsp; movq $0, -16(%rbp)
_INTERPRETER_ENTRY = b"\x48\x8b\x65\xf0\x48\xc7\x45\xf0\0\0\0\0"
# Its deoptimization handlers, to which it changes return addresses, begin by taking their own address: mov $here, %r10
_LOAD_R10 = b"\x49\xba"
_CALL_MAX = 8
DEPTH = 8  # tail jumps in a row, at most


class Checker:
    def __init__(self, space):
        self.space = space
        self._calls, self._reached, self._checked = {}, {}, {}

    def check(self, callee, caller, innermost, outermost):
        """One of the verdicts above, of two addresses in profiles. innermost, outermost: no further frame is before the
        callee, behind the caller."""
        key = callee, caller, innermost, outermost
        if key not in self._checked:
            self._checked[key] = self._check(*key)
        return self._checked[key]

    def _check(self, callee, caller, innermost, outermost):
        space = self.space
        if not space.code(caller, 1):
            return UNREADABLE
        if space.code(caller, 9).startswith(_RESTORERS):
            return SIGNAL
        if self._is_restorer(callee) or space.go_name(callee) in go_image.INTERRUPTS:
            return INTERRUPTED
        found = self.call_at(caller)
        if space.is_generated(caller) and (not found or found[1] == x86.CALL) and space.has_changed(caller + 1, _CALL_MAX):
            return CHANGED if not found else self._reaches(found, callee) or CHANGED
        if not found:
            return PLANTED if self._is_planted(caller + 1, outermost) else NO_CALL
        return self._reaches(found, callee) or (innermost and self._is_probed(found, callee)) or OTHER_TARGET

    def _is_restorer(self, addr):
        return any(self.space.code(addr - n, len(r)) == r for r in _RESTORERS for n in range(len(r)))

    def call_at(self, caller):
        """(length, what, at) of the call that ends behind an address; None if there is none. By the instructions from the
        function's beginning on,
        where that is known and they lead there; else by the bytes before."""
        if caller not in self._calls:
            self._calls[caller] = self._find_call(caller)
        return self._calls[caller]

    def _find_call(self, caller):
        for start, end in self.space.functions(caller):
            area = self.space.find(start)
            if not area or not area.image:
                continue
            found = area.image.sweep(start - area.bias, end - area.bias).ends.get(caller + 1 - start)
            if found:
                begin, what, at = found
                return (caller + 1 - start - begin, what, start + at) if what in x86.CALLS else None
        code = self.space.code_before(caller + 1, _CALL_MAX)
        found = x86.call_before(code, len(code))
        return found and (found[0], found[1], caller + 1 - len(code) + found[2])

    def _is_planted(self, ra, outermost):
        """A return address that no call has left there: of a stack made by hand, which ends with it (makecontext); of Go's
        goexit, behind whose
        first byte goroutines begin; HotSpot's."""
        if self.space.go_name(ra).startswith("runtime.goexit"):
            return True
        if outermost and any(start == ra for start, _ in self.space.functions(ra)):
            return True
        if not self.space.is_generated(ra):
            return False
        code = self.space.code(ra, 64)
        return _INTERPRETER_ENTRY in code or code[:10] == _LOAD_R10 + ra.to_bytes(8, "little")

    def _is_probed(self, call, callee):
        """PROBED if the kernel was emulating a jump with a uprobe: for a moment the pc is behind it (branch_emulate_op in
        arch/x86/kernel/uprobes.c)."""
        for start, end in self.space.functions(callee - 1):
            area = self.space.find(start)
            if area.image.sweep(start - area.bias, end - area.bias).ends.get(callee - start, (0, 0, 0))[1] == x86.JUMP:
                return PROBED if self._reaches(call, callee - 1) else None
        return None

    # ---- where the call leads ----

    def _reaches(self, call, callee):
        """GOOD or POSSIBLE, or None."""
        _, what, at = call
        if what == x86.CALL_VALUE:
            return INDIRECT
        targets, certain = ({at}, True) if what == x86.CALL else self.space.slot(at)
        best = None if certain else INDIRECT
        for target in targets:
            found = self.reaches(target, callee)
            if found in (DIRECT, TAIL, SWITCH, WRAPPED):
                return found
            best = best or found
        return best

    def reaches(self, target, callee):
        """Does what begins at `target` lead to `callee` without a call, but those of wrappers that Go leaves out? DIRECT,
        TAIL, SWITCH, WRAPPED, POSSIBLE or None."""
        ranges = self.space.functions(callee)
        key = target, ranges[0] if ranges else callee
        if key not in self._reached:
            self._reached[key] = None  # for wrappers that call one another in a circle
            self._reached[key] = self._search(target, ranges, callee)
        return self._reached[key]

    def _search(self, target, ranges, callee):
        grows = self.space.go_name(callee).startswith("runtime.newstack")
        todo, seen, all_known = [target], set(), True
        for depth in range(DEPTH):
            following = []
            for at in todo:
                if any(s <= at < e for s, e in ranges):
                    return TAIL if depth else DIRECT
                if grows and self.space.go_name(at).startswith("runtime.morestack"):
                    return SWITCH
                if self.space.is_elided(at) and any(self._reaches(call, callee) for call in self.space.calls(at)):
                    return WRAPPED
                covered, targets, known = self.space.exits(at)
                if not ranges and callee in covered:
                    return TAIL if depth else DIRECT
                all_known &= known
                following += [t for t in targets if t not in seen]
                seen.update(targets)
            todo = following
        return None if all_known and not todo else POSSIBLE


def describe(space, checker, callee, caller):
    """Why a pair cannot be, for people."""
    ra = caller + 1
    before, behind = space.code_before(ra, 8), space.code(ra, 8)
    call = checker.call_at(caller)
    text = f"{space.symbols(callee)} ({callee:#x}) <- {space.symbols(caller)} ({ra:#x}): {before.hex(' ')} | {behind.hex(' ')}"
    if not call:
        return text
    targets = {call[2]} if call[1] == x86.CALL else space.slot(call[2])[0]
    return text + ", calls " + ", ".join(f"{space.symbols(t)} ({t:#x})" for t in sorted(targets))

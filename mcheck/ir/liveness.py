"""Liveness analysis of registers: the usual backward data flow."""

from __future__ import annotations

from dataclasses import fields

from mcheck.ir.expr import Binary, Const, Name, Reg, Special, Unary
from mcheck.ir.ops import Await, Branch, Exit, Guard, Op
from mcheck.ir.program import Thread

DEFINING = frozenset({"dst", "dsts"})
LEAVES = frozenset((Const, Name, Special, type(None), str, int, bool))
"""Types of values without registers."""


def _registers(value: object, found: set[str]) -> None:
    if value.__class__ in LEAVES:
        return
    match value:
        case Reg(name):
            found.add(name)
        case Unary(_, a):
            _registers(a, found)
        case Binary(_, a, b):
            _registers(a, found)
            _registers(b, found)
        case Guard(reg, _):
            found.add(reg.name)
        case tuple():
            for item in value:
                _registers(item, found)
        case Op():
            found |= defined_and_used(value)[1]


OPERANDS: dict[type[Op], tuple[str, ...]] = {}


def _operands(kind: type[Op]) -> tuple[str, ...]:
    """The fields of an operation that may contain registers; cached."""
    found = OPERANDS.get(kind)
    if found is None:
        named = (f.name for f in fields(kind))
        found = OPERANDS[kind] = tuple(name for name in named if name not in ("span", "text", "section"))
    return found


def defined_and_used(op: Op) -> tuple[set[str], set[str]]:
    """The registers defined and the registers used by an operation; a guarded definition does not kill."""
    defined: set[str] = set()
    used: set[str] = set()
    for name in _operands(type(op)):
        value = getattr(op, name)
        if value.__class__ in LEAVES:
            continue
        is_definition = name in DEFINING or (name == "state" and isinstance(value, Reg) and hasattr(op, "drop"))
        if is_definition:
            _registers(value, defined)
        else:
            _registers(value, used)
    if isinstance(op, Await):
        defined |= defined_and_used(op.inner)[0]
    if op.guard is not None:
        defined.clear()
    return defined, used


def live_registers_at(thread: Thread, points: set[int], at_end: set[str]) -> dict[int, tuple[str, ...]]:
    """The registers live on entry to each of ``points`` (indices into the code), given those live at the end."""
    if not points:
        return {}
    code = thread.code
    summary = [defined_and_used(op) for op in code]
    live: list[set[str]] = [set() for _ in range(len(code) + 1)]
    live[len(code)] = set(at_end)
    changed = True
    while changed:
        changed = False
        for i in range(len(code) - 1, -1, -1):
            op = code[i]
            out: set[str] = set()
            if isinstance(op, Exit):
                out |= at_end
                if op.guard is not None:
                    out |= live[i + 1]
            elif isinstance(op, Branch):
                out |= live[thread.labels[op.target]]
                if op.condition is not None or op.guard is not None:
                    out |= live[i + 1]
            else:
                out = live[i + 1]
            new = (out - summary[i][0]) | summary[i][1]
            if new != live[i]:
                live[i] = new
                changed = True
    return {p: tuple(sorted(live[p])) for p in points}


def is_any_live(thread: Thread, point: int, names: set[str], at_end: set[str]) -> bool:
    """Whether any of some registers is live on entry to one point; a forward search, which is short if each is written
    again soon.
    """
    return any(_used_from(thread, point, name, at_end) for name in names)


def _used_from(thread: Thread, point: int, name: str, at_end: set[str]) -> bool:
    code, seen, todo = thread.code, set[int](), [point]
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        if at >= len(code):
            if name in at_end:
                return True
            continue
        op = code[at]
        defined, used = defined_and_used(op)
        if name in used or (isinstance(op, Exit) and name in at_end):
            return True
        if name in defined or (isinstance(op, Exit) and op.guard is None):
            continue
        if isinstance(op, Branch):
            todo.append(thread.labels[op.target])
        if not isinstance(op, Branch) or op.condition is not None or op.guard is not None:
            todo.append(at + 1)
    return False


def loop_heads(thread: Thread) -> set[int]:
    """The targets of backward branches."""
    return {
        thread.labels[op.target]
        for i, op in enumerate(thread.code)
        if isinstance(op, Branch) and thread.labels[op.target] <= i
    }

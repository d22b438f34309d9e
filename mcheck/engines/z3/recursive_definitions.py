"""Shapes of recursive definitions: transitive closures, and definitions that are computed row by row."""

from __future__ import annotations

from mcheck.cat.algebra.tape import Tape


def doubling(tape: Tape, variable: int, body: int) -> tuple[int, int] | None:
    """(a, b) if the definition is ``x = a | x; b; x`` (b is -1 for ``x = a | x; x``); ``None`` for any other shape."""
    start, end, _ = tape.groups[tape.group_of[variable]][-1]
    if sum(1 for _, _, kind in tape.groups[tape.group_of[variable]] if kind == 0) != 1:
        return None
    inside = _dependent(tape, variable, start, end)
    code = tape.code[body]
    if code.op != "or":
        return None
    for a, step in ((code.a, code.b), (code.b, code.a)):
        if a in inside or tape.code[step].op != "seq":
            continue
        first, second = tape.code[step].a, tape.code[step].b
        if first == variable and second == variable:
            return a, -1
        if first == variable and tape.code[second].op == "seq" and tape.code[second].b == variable:
            middle = tape.code[second].a
        elif second == variable and tape.code[first].op == "seq" and tape.code[first].a == variable:
            middle = tape.code[first].b
        else:
            continue
        if middle not in inside:
            return a, middle
    return None


def rowwise(tape: Tape, variable: int) -> bool:
    """Whether the successors of an event in a recursive relation depend on those of no other event."""
    start, end, _ = tape.groups[tape.group_of[variable]][-1]
    inside = {k for k in range(start, end) if tape.group_of[k] == tape.group_of[variable]}
    for k in inside:
        i = tape.code[k]
        growing = {x for x in (i.a, i.b) if x in inside}
        if growing and not (i.op in ("or", "and", "opt") or (i.op in ("sub", "seq") and i.b not in inside)):
            return False
    return True


def _dependent(tape: Tape, variable: int, start: int, end: int) -> set[int]:
    found = {variable}
    for k in range(start, end):
        if tape.code[k].a in found or tape.code[k].b in found:
            found.add(k)
    return found

"""Edits of a program: statements inserted or replaced in all threads and iterations, as an edit of the source would."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import accumulate

from mcheck.base.errors import Span
from mcheck.base.records import dataclass, replace
from mcheck.ir.ops import AssumedValue, Await, Op
from mcheck.ir.program import Program


@dataclass(frozen=True, slots=True)
class Insertion:
    """Insertion of ``op`` right before the statement at ``span``, or right ``after`` it, with its guard."""

    op: Op
    after: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Replacement:
    """Replacement of the statement at ``span`` by the result of ``change``."""

    change: Callable[[Op], Op]
    span: Span


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Replacement of the code of every thread by the result of ``change``, which replaces operations one by one."""

    change: Callable[[tuple[Op, ...]], tuple[Op, ...]]


Amendment = Insertion | Replacement | Rewriting


def apply_amendments(program: Program, amendments: Sequence[Amendment]) -> Program:
    """The program with all of these edits; parametric loops keep the iterations of this instance."""
    if not amendments:
        return program
    edited = _edit_operations(program, [a for a in amendments if not isinstance(a, Rewriting)])
    rewritings = [a for a in amendments if isinstance(a, Rewriting)]
    made: dict[tuple[int, tuple[tuple[str, int], ...]], tuple[tuple[Op, ...], dict[str, int]]] = {}
    threads = []
    for thread in program.threads:
        key = id(thread.code), tuple(thread.labels.items())
        if key not in made:
            new, labels = _edit_code(thread.code, thread.labels, edited)
            made[key] = reduce(lambda code, each: each.change(code), rewritings, new), labels
        code, labels = made[key]
        threads.append(replace(thread, code=code, labels=labels, iterations=None, rounds={}))
    return replace(
        program, threads=tuple(threads), parameter=None, instance=None, rounds=None, early_rounds=None, family=None,
        shortened=None,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Edited:
    """What stands in place of an operation; the operation itself, edited or not, comes after ``before``."""

    before: tuple[Op, ...]
    op: Op
    after: tuple[Op, ...]


def _edit_operations(program: Program, amendments: Sequence[Insertion | Replacement]) -> dict[int, _Edited]:
    """The edited operations by their identity: threads that share an operation share the edited one."""
    at: dict[Span, list[Insertion | Replacement]] = {}
    for amendment in amendments:
        at.setdefault(amendment.span, []).append(amendment)
    lines = {(span.path, span.line) for span in at}
    edited = {}
    for op in program.operations:
        span = op.span
        # An assumption has the place of what it follows.
        if span is None or (span.path, span.line) not in lines or span not in at or isinstance(op, AssumedValue):
            continue
        edited[id(op)] = _edit(op, at[span])
    return edited


def _edit(op: Op, amendments: Sequence[Insertion | Replacement]) -> _Edited:
    changed = op
    for change in (a.change for a in amendments if isinstance(a, Replacement)):
        changed = replace(changed, inner=change(changed.inner)) if isinstance(changed, Await) else change(changed)
    beside = [(a.after, replace(a.op, guard=op.guard)) for a in amendments if isinstance(a, Insertion)]
    return _Edited(
        tuple(new for after, new in beside if not after), changed, tuple(new for after, new in beside if after)
    )


def _edit_code(
    code: tuple[Op, ...], labels: dict[str, int], edited: dict[int, _Edited]
) -> tuple[tuple[Op, ...], dict[str, int]]:
    """The edited code, with its labels before what is inserted before their operations."""
    places = [k for k, op in enumerate(code) if id(op) in edited]
    if not places:
        return code, labels
    out: list[Op] = []
    copied = 0
    for k in places:
        here = edited[id(code[k])]
        out += (*code[copied:k], *here.before, here.op, *here.after)
        copied = k + 1
    out += code[copied:]
    grown = [len(edited[id(code[k])].before) + len(edited[id(code[k])].after) for k in places]
    total = [0, *accumulate(grown)]
    return tuple(out), {name: at + total[bisect_left(places, at)] for name, at in labels.items()}

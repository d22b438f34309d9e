"""Restricts choices to the options that a part of the condition permits, so that a verdict needs fewer candidates."""

from __future__ import annotations

from collections.abc import Callable

from mcheck.answers.final_states import COMPARE
from mcheck.events.choices.candidate import Choice, constant_values, single_event
from mcheck.events.structure import Structure
from mcheck.ir.condition import Compare, ConstTerm, MemTerm, RegTerm
from mcheck.semantics.terms import Term, Unknown, evaluate, typed


def restrict(s: Structure, choices: list[Choice], clause: list[Compare]) -> bool:
    """Keeps only the options that the comparisons of a clause permit; whether any execution remains."""

    readers = {c.node: c for c in choices if c.kind == "rf"}
    finals = {c.address: c for c in choices if c.kind == "final"}
    for comparison in clause:
        left, right, op = comparison.left, comparison.right, comparison.op
        if not isinstance(right, ConstTerm):
            continue
        choice: Choice | None = None
        convert: Callable[[int], int | None] = lambda v: v  # noqa: E731
        if isinstance(left, MemTerm):
            chunks = s.chunks(left.address, left.size)
            if chunks != [(left.address, left.size)]:
                continue
            choice = finals[chunks[0][0]]
            convert = lambda v, t=left.type: typed(t, v)  # type: ignore[assignment,misc] # noqa: E731
        elif isinstance(left, RegTerm):
            register = s.paths[left.thread].registers.get(left.reg, 0)
            if isinstance(register, int):
                if not COMPARE[op](register, right.value):
                    return False
                continue

            uid = single_event(register)
            nodes = s.nodes_of.get(uid, []) if uid is not None else []
            if len(nodes) != 1 or nodes[0] not in readers:
                continue
            choice = readers[nodes[0]]
            convert = lambda v, r=register: _through(r, v)  # type: ignore[misc] # noqa: E731
        if choice is None:
            continue
        values = constant_values(s, choice)
        assert values is not None
        choice.options = [
            o
            for o, v in zip(choice.options, values, strict=True)
            if v is None or (known := convert(v)) is None or COMPARE[op](known, right.value)
        ]
        if not choice.options:
            return False
    return True


def _through(register: Term, value: int) -> int | None:
    try:
        return evaluate(register, lambda _: value)
    except Unknown:
        return None

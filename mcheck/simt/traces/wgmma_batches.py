"""Batching of consecutive wgmma operations: a shorter program with the same findings, except for the lines that they
name.

The reads of a batch differ only in their bytes: they follow the same fence, are of one group, and a thread that
executes something before or after one of them does so before or after all. So if the shorter program has no finding,
neither has the longer one; where there is a finding, the longer one gives its line.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from mcheck.base.records import replace
from mcheck.effects.ranges import join_ranges
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.ops import Op
from mcheck.ir.program import Program


def batch_wgmma(program: Program) -> Program:
    """The program with each run of wgmma as the first of them, which reads what all of them read."""
    made: dict[tuple[int, ...], Op] = {}
    code: dict[tuple[int, ...], tuple[Op, ...]] = {}
    threads = []
    for thread in program.threads:
        key = tuple(map(id, thread.code))
        if key not in code:
            code[key] = _batch(thread.code, made)
        threads.append(replace(thread, code=code[key]))
    return replace(program, threads=tuple(threads))


def batch_code(code: tuple[Op, ...]) -> tuple[Op, ...]:
    """A part of a thread's code with each run of wgmma as one; equal runs become equal operations."""
    return _batch(code, {})


def has_batches(program: Program) -> bool:
    """Whether batching shortens the program."""
    return any(
        isinstance(a, ops.Wgmma) and isinstance(b, ops.Wgmma)
        for t in program.threads
        for a, b in zip(t.code, t.code[1:], strict=False)
    )


def _batch(code: tuple[Op, ...], made: dict[tuple[int, ...], Op]) -> tuple[Op, ...]:
    out: list[Op] = []
    for product, run in groupby(code, key=lambda op: isinstance(op, ops.Wgmma)):
        if not product:
            out += run
            continue
        several = tuple(run)
        key = tuple(map(id, several))
        if key not in made:
            made[key] = _merge(several)
        out.append(made[key])
    return tuple(out)


def _merge(several: Sequence[Op]) -> Op:
    first = several[0]
    if len(several) == 1:
        return first
    assert isinstance(first, ops.Wgmma)
    ranges = []
    for op in several:
        assert isinstance(op, ops.Wgmma)
        for at, size in op.reads:
            assert isinstance(at, Const) and isinstance(size, Const), "operands of a trace are numbers"
            ranges.append((at.value, size.value))
    return replace(first, reads=tuple((Const(at), Const(size)) for at, size in join_ranges(ranges)))

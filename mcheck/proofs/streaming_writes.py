"""Streaming writes: objects that a loop writes sequentially, each period after the bytes of the one before.

The addresses in such an object advance in every period by at least as many bytes as all threads together write in one.
So the writes of different periods never overlap, and no later period touches what is written.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import field

from mcheck.base.records import dataclass
from mcheck.engines.protocol.execution.setup import Setup
from mcheck.engines.protocol.state.address_names import StreamedObject
from mcheck.ir import ops
from mcheck.ir.expr import Binary, Const, Expr, Lanes, Unary
from mcheck.ir.loop_unrolling import Aperiodic, LongLoop, LoopPeriodicity
from mcheck.ir.ops import Op
from mcheck.ir.program import Program
from mcheck.ir.resolve import expressions
from mcheck.ir.type_sizes import type_size


@dataclass(slots=True)
class Loop:
    """The rounds of an agent's loop that are alike.

    ``start`` is its first operation that others may observe, ``end`` is after its last one, ``length`` is the number of
    operations in a period (0 without a loop), ``first`` its first operation of any kind.
    """

    start: int
    end: int
    length: int
    first: int = 0
    begins: tuple[int, ...] = ()
    """Where each round begins, and the end of the last one, including rounds that are like no others."""
    cut: LongLoop = field(default_factory=LongLoop)
    missing: tuple[int, int] = (0, 0)
    """How many rounds are left out, after how many."""

    def find_round(self, pc: int) -> int | None:
        """Return the round of an operation, if it is in one."""
        index = bisect_right(self.begins, pc) - 1
        if not 0 <= index < len(self.begins) - 1:
            return None
        kept, left_out = self.missing
        return self.cut.low + index + (left_out if index >= kept else 0)


@dataclass(frozen=True, slots=True)
class StreamingWrites:
    """An object from ``low`` to ``high``: period k writes at most ``step`` bytes from ``first + k * step`` on."""

    low: int
    high: int
    first: int
    step: int

    def moving(self, turn: int, oldest: int) -> StreamedObject:
        """Return the object in a period, no thread being in a period before ``oldest``."""
        return StreamedObject(self.low, self.high, turn * self.step, self.first + oldest * self.step)


def find_streaming_writes(
    program: Program, setup: Setup, loops: Mapping[int, Loop], rounds: LoopPeriodicity
) -> list[StreamingWrites]:
    """Return the objects with streaming writes; raise ``Aperiodic`` if one of them is used otherwise."""
    out = []
    loop_of = {t: loops[k] for k, group in enumerate(setup.partition) for t in group}
    for name, step in rounds.written.items():
        if any(t.init for t in program.threads):
            raise Aperiodic(f"addresses in {name}, where registers begin with values")
        instance = next(i for i in program.memory.instances if i.object.name == name)
        low, high = instance.base, instance.base + instance.object.size
        if any(i.object.tensor_map for i in program.memory.instances):
            raise Aperiodic(f"addresses in {name}, beside tensor maps")
        found: list[tuple[int, int]] = []
        for thread in program.threads:
            loop = loop_of[thread.index]
            for pc, op in enumerate(thread.code):
                for address, size in _writes(op, low, high, name):
                    number = loop.find_round(pc)
                    if number is None:
                        raise Aperiodic(f"{name}, which is used outside of the loop", op.span)
                    done = number // rounds.period * step
                    found.append((address - done, address + size - done))
        first = min(a for a, _ in found)
        if max(b for _, b in found) - first > step:
            raise Aperiodic(f"what is written to {name} in a period: it overlaps what the next one writes")
        out.append(StreamingWrites(low, high, first, step))
    return out


def _writes(op: Op, low: int, high: int, name: str) -> Iterator[tuple[int, int]]:
    """Yield what an operation writes to an object, as (address, bytes); raise ``Aperiodic`` for any other use."""
    for operand, expr in expressions(op):
        if not any(low <= value < high for value in _constants(expr)):
            continue
        size: int | None = None
        if isinstance(op, ops.BulkCopy) and operand == "dst" and op.reduce is None and isinstance(op.size, Const):
            size = op.size.value
        elif isinstance(op, ops.Store) and operand == "address" and op.sem == "weak":
            size = type_size(op.type) * len(op.srcs)
        if size is None or not isinstance(expr, Const):
            raise Aperiodic(f"a use of {name} other than a plain write", op.span)
        yield expr.value, size


def _constants(expr: Expr) -> Iterator[int]:
    match expr:
        case Const(value):
            yield value
        case Lanes(values):
            yield from values
        case Unary(_, operand):
            yield from _constants(operand)
        case Binary(_, left, right):
            yield from _constants(left)
            yield from _constants(right)

"""Objects that a loop writes on and on, each period behind what the one before has written.

The addresses in such an object go on by as many bytes in every period as all threads together write in one, or more. So
what is written in different periods never overlaps, and what is done with is out of the way of all that is to come.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

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
    """An agent's loop in a program, those of its rounds that are alike: its first operation that others may notice,
    behind its last one, the operations of a period, and its first one at all. ``length`` is 0 where there is no loop.
    """

    start: int
    end: int
    length: int
    first: int = 0
    begins: tuple[int, ...] = ()
    """Where each of its rounds begins, and behind the last one, those that are like no others included."""
    cut: LongLoop = field(default_factory=LongLoop)
    missing: tuple[int, int] = (0, 0)
    """Behind how many rounds how many are left out."""

    def find_round(self, pc: int) -> int | None:
        """Which round an operation is in, if it is in one."""
        index = bisect_right(self.begins, pc) - 1
        if not 0 <= index < len(self.begins) - 1:
            return None
        kept, left_out = self.missing
        return self.cut.low + index + (left_out if index >= kept else 0)


@dataclass(frozen=True, slots=True)
class StreamingWrites:
    """An object from ``low`` to ``high`` of which period k writes bytes from ``first + k * step`` on, up to as many as
    ``step``.
    """

    low: int
    high: int
    first: int
    step: int

    def moving(self, turn: int, oldest: int) -> StreamedObject:
        """The object in a period, no thread being in one before the ``oldest``."""
        return StreamedObject(self.low, self.high, turn * self.step, self.first + oldest * self.step)


def find_streaming_writes(
    program: Program, setup: Setup, loops: Mapping[int, Loop], rounds: LoopPeriodicity
) -> list[StreamingWrites]:
    """The objects that are written on and on; raises ``Aperiodic`` if that is not all that is done with one."""
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
    """What an operation writes to an object, as (address, bytes); raises ``Aperiodic`` if it uses it otherwise."""
    for operand, expr in expressions(op):
        if not any(low <= value < high for value in _constants(expr)):
            continue
        size: int | None = None
        if isinstance(op, ops.BulkCopy) and operand == "dst" and op.reduce is None and isinstance(op.size, Const):
            size = op.size.value
        elif isinstance(op, ops.Store) and operand == "address" and op.sem == "weak":
            size = type_size(op.type) * len(op.srcs)
        if size is None or not isinstance(expr, Const):
            raise Aperiodic(f"a use of {name} that is no plain write", op.span)
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

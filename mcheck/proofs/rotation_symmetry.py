"""Rounds that are alike but for a turn: each does to the next stage of every buffer what the one before did to its own.

The text says that code is alike in rounds a period apart (``mcheck.ir.loop_unrolling``). Of a ring with four stages and
a phase bit that is a period of eight rounds, though any two neighbours say the same: of ``full[2]`` what the other says
of ``full[1]``, with the parity that belongs to it. Such a change of names is a *turn*: the bytes of some objects go
round in a circle, some mbarriers change the parity of their phase, all else stays as it is. Where the operations of
every round are those of the round before with the turn applied, so is all that the model and the engine make of them.
For they ask of addresses which bytes are the same ones, and of a phase whether it is the one with a parity.

That needs three things of the code, which are looked at operation by operation over a whole period: operands that
decide what is touched are constants; they differ as the turn says, or not at all, and then they are not among what it
moves; no access runs over the end of a stage (``History.splits_ring_block``), as the halves would come apart. Whether
an address is legal may depend on it, so that each stage has to have been used before a turn is argued with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields

from mcheck.effects.operands import decisive_fields, leaves
from mcheck.effects.site import widened
from mcheck.engines.protocol.execution.setup import Setup
from mcheck.engines.protocol.state.cyclic_names import Ring, RotatedNames, Rotation
from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr, Lanes
from mcheck.ir.loop_unrolling import LoopPeriodicity
from mcheck.ir.memory import Instance
from mcheck.ir.ops import Op
from mcheck.ir.program import Thread
from mcheck.ir.resolve import expr_fields, expressions
from mcheck.proofs.streaming_writes import Loop

MBARRIER = 8
"""Bytes of an mbarrier object."""
RANGE_OPERANDS = frozenset(("reads", "writes"))
"""Operands that are pairs of an address and a size."""
ADDRESS_OPERANDS = frozenset(("address", "dst", "src", "mbar", "shared", "tensor_map", *RANGE_OPERANDS))
"""Operands that are addresses."""
TEXT_FIELDS = ("span", "text", "section")
"""Fields that say how an operation is written."""


def find_rotation(setup: Setup, loops: Mapping[int, Loop], rounds: LoopPeriodicity, every: int) -> Rotation | None:
    """The turn from a round to the one that comes ``every`` rounds later, ``loops`` being those of the agents cut into
    so many; ``None`` if they differ in more. ``rounds`` has the period of the text.
    """
    if any(i.base != i.physical for i in setup.program.memory.instances):  # two names for one byte
        return None
    reader = _RoundComparison(setup, rounds, every)
    for agent, group in enumerate(setup.partition):
        if not all(reader.loop(setup.program.threads[t], loops[agent], rounds.period // every) for t in group):
            return None
    return reader.rotation()


def is_fixed_behind(rotation: Rotation, setup: Setup, loops: Mapping[int, Loop], places: Mapping[int, int]) -> bool:
    """Whether a turn leaves all as it is that comes behind the loops, and what agents have still to do that are in
    none, but stand at these ``places``.
    """
    return all(
        _is_fixed(rotation, op)
        for agent, group in enumerate(setup.partition)
        for t in group
        for op in setup.program.threads[t].code[loops[agent].end if loops[agent].length else places[agent] :]
    )


def _is_fixed(rotation: Rotation, op: Op) -> bool:
    """Whether a turn leaves an operation as it is, whatever the registers hold."""
    return not any(at is None or rotation.affects(at) for at in _addresses(ops.performed_operation(op)))


@dataclass(slots=True)
class _RoundComparison:
    """Compares the operations of rounds; collects the addresses that take the places of each other."""

    setup: Setup
    rounds: LoopPeriodicity
    every: int
    pairs: dict[int, set[tuple[int, int]]] = field(default_factory=dict)
    """By the base of an object, what takes the place of what in the later round."""
    flips: dict[int, int] = field(default_factory=dict)
    """By the address of an mbarrier, whether those who wait for it change the parity in the later round."""
    compared: dict[tuple[int, int], tuple[Op, Op]] = field(default_factory=dict)

    def loop(self, thread: Thread, loop: Loop, periods: int) -> bool:
        """Whether the rounds of a period of the text go into the next ones."""
        if not loop.length:
            return True
        code, length = thread.code, loop.length
        end = loop.first + periods * length
        if end + length > loop.end:
            return False
        compared = self.compared
        for pc in range(loop.first, end):
            one, other = code[pc], code[pc + length]
            if (id(one), id(other)) in compared:
                continue
            if isinstance(one, ops.Branch) and isinstance(other, ops.Branch):
                there = thread.labels[one.target]
                inside = loop.first <= there and there + length <= loop.end
                if not inside or thread.labels[other.target] != there + length or one.condition != other.condition:
                    return False
            elif not isinstance(one, ops.Label) and not self._same(one, other):
                return False
        return True

    def _same(self, one: Op, other: Op) -> bool:
        """Whether the one may become the other."""
        self.compared[id(one), id(other)] = one, other
        if type(one) is not type(other):
            return False
        asked = expr_fields(type(one))
        if any(
            getattr(one, f.name) != getattr(other, f.name)
            for f in fields(one)
            if f.name not in asked and f.name not in TEXT_FIELDS
        ):
            return False
        if isinstance(one, ops.Await) and isinstance(other, ops.Await):
            return one.compare == other.compare and self._same(one.inner, other.inner)
        return self._operands(one, other)

    def _operands(self, one: Op, other: Op) -> bool:
        decisive = decisive_fields(one)
        before, after = expressions(one), expressions(other)
        if len(before) != len(after):
            return False
        for (name, x), (_, y) in zip(before, after, strict=True):
            if name not in decisive:
                stored = bool(self.rounds.values) and isinstance(one, ops.Store) and name == "srcs"
                if x != y and not stored:
                    return False
            elif isinstance(one, ops.MbarrierWait) and name == "parity":
                if not self._parities(one, x, y):
                    return False
            elif isinstance(one, ops.TensorCopy) and name == "coords" and self.rounds.coordinates:
                continue
            elif x != y and name not in ADDRESS_OPERANDS:
                return False
        one_by_one = tuple(_addresses(one)), tuple(_addresses(other))
        return len(one_by_one[0]) == len(one_by_one[1]) and all(map(self._address, *one_by_one))

    def _address(self, before: int | None, after: int | None) -> bool:
        """Whether an address may take the place of another one."""
        if before is None or after is None:
            return False
        instance = self.setup.program.memory.find(before)
        if instance is None or not instance.base <= after < instance.base + instance.object.size:
            return before == after
        self.pairs.setdefault(instance.base, set()).add((before, after))
        return True

    def _parities(self, wait: ops.MbarrierWait, x: Expr, y: Expr) -> bool:
        """Whether the parity that is waited for fits what others wait for."""
        if not (isinstance(x, Const) and isinstance(y, Const)):
            return False
        flip = (x.value ^ y.value) & 1
        return all(at is not None and self.flips.setdefault(at, flip) == flip for at in _addresses(wait))

    def rotation(self) -> Rotation | None:
        """The turn, if what was collected is one."""
        memory = self.setup.program.memory
        circles: list[Ring] = []
        for base, pairs in sorted(self.pairs.items()):
            instance = memory.find(base)
            assert instance is not None
            if instance.object.name in self.rounds.growing:
                if not self._grows(instance, pairs):
                    return None
            elif any(before != after for before, after in pairs):
                circle = _find_ring(instance, pairs)
                if circle is None:
                    return None
                circles.append(circle)
        found = Rotation(tuple(circles), frozenset(at for at, flip in self.flips.items() if flip))
        return found if self._comes_round(found) else None

    def _grows(self, instance: Instance, pairs: set[tuple[int, int]]) -> bool:
        """Whether addresses that grow do so evenly."""
        step, left = divmod(self.rounds.growing[instance.object.name] * self.every, self.rounds.period)
        steps = {after - before for before, after in pairs}
        return not left and steps <= ({step} if instance.object.name in self.rounds.written else {0, step})

    def _comes_round(self, found: Rotation) -> bool:
        """Whether a period of the text brings all back, and no mbarrier lies on the border of a block."""
        often = self.rounds.period // self.every
        turned = RotatedNames(found, often)
        for circle in found.rings:
            if circle.step * often % circle.size:
                return False
        for at in self.setup.mbarriers:
            around = found.ring_at(at)
            if around is not None and (at - around.low) % around.block + MBARRIER > around.block:
                return False
            if turned.parity_change(at):
                return False
        return True


def _find_ring(instance: Instance, pairs: set[tuple[int, int]]) -> Ring | None:
    """The circle in which the first of each pair goes to the second: forwards by one step, or back to the beginning."""
    steps = sorted({after - before for before, after in pairs})
    if len(steps) != 2 or not steps[0] < 0 < steps[1]:
        return None
    size = steps[1] - steps[0]
    places = [at for pair in pairs for at in pair]
    low = instance.base if max(places) < instance.base + size else min(places)
    circle = Ring(low, size, steps[1])
    inside = low + size <= instance.base + instance.object.size and max(places) < low + size
    return circle if inside and all(circle.rotate(before, 1) == after for before, after in pairs) else None


def _addresses(op: Op) -> Iterator[int | None]:
    """The addresses that decide what an operation touches, one or one of each lane: ``None`` for one in which a
    register has a part. What else decides has to be a constant, too.
    """
    for name in decisive_fields(op):
        for k, expr in enumerate(leaves(getattr(op, name))):
            sizes = name in RANGE_OPERANDS and k % 2
            match expr:
                case Const(value):
                    values: tuple[int, ...] = (value,)
                case Lanes(values):
                    pass
                case _:
                    yield None
                    continue
            if name in ADDRESS_OPERANDS and not sizes:
                yield from map(widened, values)

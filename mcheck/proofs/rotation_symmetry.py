"""Rotation symmetry: rounds that are equal up to a rotation of the stages of every buffer.

The text says that code is alike in rounds a period apart (``mcheck.ir.loop_unrolling``). For a ring with four stages
and a phase bit that is a period of eight rounds, although any two neighbours do the same: to ``full[2]`` what the other
does to ``full[1]``, with the corresponding parity. Such a renaming is a *rotation*: the bytes of some objects are
permuted cyclically, some mbarriers change the parity of their phase, everything else stays as it is. Where the
operations of every round are those of the round before with the rotation applied, so is everything that the model and
the engine derive from them. For these depend on addresses only by which bytes are the same, and on a phase only by
whether it has a given parity.

The code has to satisfy three conditions, which are checked operation by operation over a whole period: operands that
decide which bytes are accessed are constants; they differ as the rotation says, or not at all, and then it does not
move them; no access crosses the end of a stage (``History.splits_ring_block``), as its halves would be separated.
Whether an address is legal may depend on it, so each stage has to have been used before a rotation is argued with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, fields

from mcheck.base.records import dataclass
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
"""Size of an mbarrier object in bytes."""
RANGE_OPERANDS = frozenset(("reads", "writes"))
"""Operands that are pairs of an address and a size."""
ADDRESS_OPERANDS = frozenset(("address", "dst", "src", "mbar", "shared", "tensor_map", *RANGE_OPERANDS))
"""Operands that are addresses."""
TEXT_FIELDS = ("span", "text", "section")
"""Fields that say how an operation is written."""


def find_rotation(setup: Setup, loops: Mapping[int, Loop], rounds: LoopPeriodicity, every: int) -> Rotation | None:
    """Return the rotation from a round to the one ``every`` rounds later; ``None`` if they differ in more.

    ``loops`` are those of the agents, divided into so many rounds; ``rounds`` has the period of the text.
    """
    if any(i.base != i.physical for i in setup.program.memory.instances):  # two names for one byte
        return None
    reader = _RoundComparison(setup, rounds, every)
    for agent, group in enumerate(setup.partition):
        if not all(reader.loop(setup.program.threads[t], loops[agent], rounds.period // every) for t in group):
            return None
    return reader.rotation()


def is_fixed_behind(rotation: Rotation, setup: Setup, loops: Mapping[int, Loop], places: Mapping[int, int]) -> bool:
    """Return whether a rotation changes nothing of the code after the loops.

    Nor of what agents outside of any loop, which stand at these ``places``, have still to execute.
    """
    return all(
        _is_fixed(rotation, op)
        for agent, group in enumerate(setup.partition)
        for t in group
        for op in setup.program.threads[t].code[loops[agent].end if loops[agent].length else places[agent] :]
    )


def _is_fixed(rotation: Rotation, op: Op) -> bool:
    """Return whether a rotation leaves an operation as it is, whatever the registers hold."""
    return not any(at is None or rotation.affects(at) for at in _addresses(ops.performed_operation(op)))


@dataclass(slots=True)
class _RoundComparison:
    """A comparison of the operations of two rounds; collects the pairs of corresponding addresses."""

    setup: Setup
    rounds: LoopPeriodicity
    every: int
    pairs: dict[int, set[tuple[int, int]]] = field(default_factory=dict)
    """By the base of an object, pairs of addresses that correspond in the two rounds."""
    flips: dict[int, int] = field(default_factory=dict)
    """By the address of an mbarrier, whether waits for it change parity in the later round."""
    compared: dict[tuple[int, int], tuple[Op, Op]] = field(default_factory=dict)

    def loop(self, thread: Thread, loop: Loop, periods: int) -> bool:
        """Return whether the rounds of a period of the text correspond to the next ones."""
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
        """Return whether one operation may correspond to the other."""
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
        """Return whether one address may correspond to the other."""
        if before is None or after is None:
            return False
        instance = self.setup.program.memory.find(before)
        if instance is None or not instance.base <= after < instance.base + instance.object.size:
            return before == after
        self.pairs.setdefault(instance.base, set()).add((before, after))
        return True

    def _parities(self, wait: ops.MbarrierWait, x: Expr, y: Expr) -> bool:
        """Return whether the parity of a wait is consistent with those of other waits."""
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
        """Return whether addresses that grow do so evenly."""
        step, left = divmod(self.rounds.growing[instance.object.name] * self.every, self.rounds.period)
        steps = {after - before for before, after in pairs}
        return not left and steps <= ({step} if instance.object.name in self.rounds.written else {0, step})

    def _comes_round(self, found: Rotation) -> bool:
        """Return whether a period of the text is the identity, and no mbarrier crosses the border of a block."""
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
    """Return the ring in which the first of each pair moves to the second: forward by one step, or to the start."""
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
    """Return the addresses that decide which bytes an operation accesses, one or one for each lane.

    ``None`` stands for one that depends on a register. Other deciding operands have to be constants, too.
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

"""Translations: programs that do the same at other places of their buffers, as the clusters of a grid do.

A translation moves every object of global memory by a distance of its own. Where the operations of one program are
those of another with the translation applied, every execution of one is one of the other with its bytes renamed: the
model depends on addresses only by which bytes are the same. What else an address decides is the same, too:

* whether the access is legal: the effects of both operations are without faults, bounds and alignment among them;
* which bytes are the same: each access is inside its object in both programs, where the translation is one-to-one, and
  two objects share no byte, as there are no aliases;
* contents: nothing is known of an object that moves, or it is all zeros; what is stored, and all else that an operation
  says, is equal;
* tensor maps: nothing writes them, and they lie where they lie. A box that moves is inside its tensor as a whole.

Names of places in messages do change, so that an answer with findings is not one for the other program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field, fields

from mcheck.base.records import dataclass, replace
from mcheck.effects.dispatch import effect_of, tensor_copy_effect
from mcheck.effects.effect import Box, Effect
from mcheck.effects.operands import Operands, decisive_expressions, evaluate_operands
from mcheck.effects.site import Layout, Site, layout_of
from mcheck.effects.unwritten_objects import find_unwritten_objects, places_of
from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr, Lanes
from mcheck.ir.memory import SHARED_BASE, Instance
from mcheck.ir.ops import Op, performed_operation
from mcheck.ir.program import Program, Thread
from mcheck.semantics.tensor_footprint import box_bytes, rows_inside

TEXT_FIELDS = frozenset(("span", "text", "section"))
"""Fields that say how an operation is written."""
Range = tuple[int, int]
"""An address and a number of bytes."""


def is_translation(one: Program, other: Program) -> bool:
    """Whether a translation maps one program to the other."""
    if not _same_frame(one, other):
        return False
    comparison = _Comparison(layout_of(one), find_unwritten_objects(one) & find_unwritten_objects(other))
    return all(map(comparison.same_code, one.threads, other.threads))


def _same_frame(one: Program, other: Program) -> bool:
    return (
        (one.dialect, one.clustered, one.parameter, one.shortened) == (other.dialect, other.clustered, None, None)
        and one.memory == other.memory
        and one.condition == other.condition
        and one.assumptions == other.assumptions
        and all(i.base == i.physical and not i.object.copies for i in one.memory.instances)
        and len(one.threads) == len(other.threads)
        and all(map(_same_thread, one.threads, other.threads))
    )


def _same_thread(one: Thread, other: Thread) -> bool:
    return (
        (one.place, one.role, one.name, len(one.code)) == (other.place, other.role, other.name, len(other.code))
        and (one.labels, one.init, one.types) == (other.labels, other.init, other.types)
    )  # fmt: skip


@dataclass(slots=True)
class _Comparison:
    """A comparison of the operations of two programs with the same memory. ``distances`` are those known so far, by the
    base of each object; ``unwritten`` are the objects that nothing writes.
    """

    layout: Layout
    unwritten: frozenset[int]
    distances: dict[int, int] = field(default_factory=dict)
    compared: dict[tuple[int, int], bool | None] = field(default_factory=dict)
    """By the identities of two operations: whether they are the same, ``None`` if that depends on the lane."""

    def same_code(self, one: Thread, other: Thread) -> bool:
        """Whether the translation maps the code of a thread to that of another one."""
        site = Site(self.layout, one.place)
        for x, y in zip(one.code, other.code, strict=True):
            key = id(x), id(y)
            if key not in self.compared:
                self.compared[key] = _is_same(x, y)
            same = self.compared[key]
            if same is None:
                same = self._moves(performed_operation(x), performed_operation(y), site)
            if not same:
                return False
        return True

    def _moves(self, x: Op, y: Op, site: Site) -> bool:
        """Whether the effects of two operations, equal but for their operands, are those of a translation."""
        a, b = _effect(x, site), _effect(y, site)
        if not isinstance(x, ops.TensorCopy) or not isinstance(y, ops.TensorCopy):
            return self._is_moved(a, b)
        if a != b or a.faults or x.unplaced or y.unplaced:
            return False
        address = a.accesses[0].address
        instance = self.layout.objects.at(address)
        if instance is None or instance.base != address or address not in self.unwritten or not self._is_at(address, 0):
            return False
        if len(instance.object.tensor_map) != 1:
            return False
        (spec,) = instance.object.tensor_map
        a, b = (tensor_copy_effect(op, _operands(op, site), site, spec) for op in (x, y))
        if a.box is None or b.box is None:
            return False
        rows = tuple(map(_rows, (a.box, b.box)))
        if a.box != b.box and not (_is_whole(a.box, rows[0]) and _is_whole(b.box, rows[1])):
            return False
        boxes_fit = replace(a.box, coords=()) == replace(b.box, coords=())
        return boxes_fit and self._are_at(*rows) and self._is_moved(replace(a, box=None), replace(b, box=None))

    def _is_moved(self, a: Effect, b: Effect) -> bool:
        """Whether two effects without boxes are the same but for the places of their bytes, which are moved."""
        return (
            not (a.faults or b.faults or a.box or b.box)
            and (a.signals, a.mbarrier, a.result) == (b.signals, b.mbarrier, b.result)
            and [r.src is None for r in a.runs] == [r.src is None for r in b.runs]
            and [s.value for s in a.stores] == [s.value for s in b.stores]
            and self._are_at(list(_ranges(a)), list(_ranges(b)))
        )

    def _are_at(self, a: Sequence[Range], b: Sequence[Range]) -> bool:
        """Whether each of some ranges is moved as its object is."""
        return [size for _, size in a] == [size for _, size in b] and all(
            self._is_at(at, there - at) for (at, _), (there, _) in zip(a, b, strict=True)
        )

    def _is_at(self, address: int, distance: int) -> bool:
        """Whether the object at an address is moved by a distance, which it is from now on if it was not known."""
        instance = self.layout.objects.at(address)
        if instance is None or instance is not self.layout.objects.at(address + distance):
            return False
        return self.distances.setdefault(instance.base, distance) == distance and (not distance or _may_move(instance))


def _may_move(instance: Instance) -> bool:
    item = instance.object
    alike = item.init is None or not any(item.init)
    return item.space == "global" and alike and not item.held and not item.tensor_map


def _is_same(x: Op, y: Op) -> bool | None:
    """Whether two operations are the same; ``None`` if they are but for where they access memory that may move."""
    inner, there = performed_operation(x), performed_operation(y)
    if type(x) is not type(y) or type(inner) is not type(there) or (x is not inner and not _equal(x, y, {"inner"})):
        return False
    free = {*inner.facets.reads, *inner.facets.writes, *(("coords",) if isinstance(inner, ops.TensorCopy) else ())}
    if not _equal(inner, there, free):
        return False
    places = [at for op in (inner, there) for expr in decisive_expressions(op) for at in places_of(expr)]
    same = all(getattr(inner, name) == getattr(there, name) for name in free)
    if same and all(at is not None and at >= SHARED_BASE for at in places) and not isinstance(inner, ops.TensorCopy):
        return True
    return False if None in places else None


def _equal(x: Op, y: Op, free: AbstractSet[str]) -> bool:
    """Whether two operations of one kind are the same but for how they are written, and some fields."""
    return all(
        getattr(x, f.name) == getattr(y, f.name) for f in fields(x) if f.name not in TEXT_FIELDS and f.name not in free
    )


def _operands(op: Op, site: Site) -> Operands:
    def number(expr: Expr) -> int:
        assert isinstance(expr, Const | Lanes)
        return expr.value if isinstance(expr, Const) else expr.values[site.place.lane]

    return evaluate_operands(op, number)


def _effect(op: Op, site: Site) -> Effect:
    return effect_of(op, _operands(op, site), site)


def _ranges(made: Effect) -> Iterator[Range]:
    """The bytes of an effect without a box."""
    yield from ((a.address, a.size) for a in made.accesses)
    yield from ((s.address, s.size) for s in made.stores)
    for run in made.runs:
        yield run.dst, run.size
        if run.src is not None:
            yield run.src, run.size


def _rows(box: Box) -> list[Range]:
    return list(rows_inside(box.spec, box.mode, box.coords, box.info))


def _is_whole(box: Box, rows: Sequence[Range]) -> bool:
    """Whether a box lies inside its tensor, so that coordinates say nothing but where it begins."""
    return sum(size for _, size in rows) == box_bytes(box.spec, box.mode, box.info)

"""Reads at addresses that grow with the iterations: global memory that nothing writes, where the place of a read makes
no difference. The loads of the parameter itself are among them.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import Word, type_bits
from mcheck.frontend.ptx.memory_layout import GAP, PARAM_BASE, UNKNOWN_SIZE
from mcheck.frontend.ptx.module import operand_registers
from mcheck.ir.loop_unrolling import Aperiodic
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import COPIES, Kind
from mcheck.semantics.tensor_map import step_bytes
from mcheck.semantics.tensor_map_values import decode
from mcheck.simt.distinct import distinct
from mcheck.simt.execution.cluster import Cluster
from mcheck.simt.execution.compiler import Compiler, Fetch
from mcheck.simt.execution.lanes import WARP, Mask
from mcheck.simt.execution.loop_visits import BeforeStep
from mcheck.simt.instructions.access_operands import to_generic
from mcheck.simt.parametric.affine import Value
from mcheck.simt.parametric.invariant_registers import (
    AFTER,
    BEFORE,
    INSIDE,
    InvariantRegisters,
    deciding_registers,
)
from mcheck.simt.parametric.loaded_values import Loaded, load_values, loaded_size, loaded_targets
from mcheck.simt.parametric.shared_bytes import SharedBytes, SteadyBytes

PLAIN_COPY = 3
"""The operands of a ``cp.async`` that copies as many bytes as it writes."""
COPIED = 16
"""Alignment of the addresses of copies, in bytes."""
FILLING = frozenset((
    Kind.FILL, Kind.MATRIX_STORE, Kind.ASYNC_STORE, Kind.ASYNC_REDUCTION, Kind.CANCEL_REQUEST,
))  # fmt: skip
"""Instructions that may write shared memory, beside stores, atomics and copies."""


WORD = 8
"""The most bytes of a value that is followed through memory."""


def _may_fill(copy: ptx.Statement) -> bool:
    """Whether a copy to shared memory may write known bytes: others of it, or zeros behind a shorter source."""
    return "global" not in copy.opcode.spaces or (copy.kind is Kind.ASYNC_COPY and len(copy.operands) > PLAIN_COPY)


def _first_at_place(address: Word) -> NDArray[np.int64]:
    """For each lane the first one that has its address."""
    _, first, place = np.unique(address, return_index=True, return_inverse=True)
    return np.asarray(first[place.reshape(-1)], np.int64)


def _counts_as_one(value: Value, unknown: Mask, warps: NDArray[np.int64], first: NDArray[np.int64]) -> bool:
    """Whether lanes that store to one place, with one value here, count as one with all numbers, as they do here
    (``mcheck.simt.instructions.joint_stores``): if they store one value with all of them, or one that nobody knows in
    one warp.
    """
    shared = first != np.arange(len(first))
    alike = ~value.bad & ~value.bad[first] & (value.slopes == value.slopes[:, first]).all(axis=0)
    alike |= unknown & unknown[first] & (warps == warps[first])
    return bool((alike | ~shared).all())


@dataclass(slots=True)
class GrowingAddresses(InvariantRegisters):
    """The checks of loads and copies."""

    growing_objects: set[int] = field(default_factory=set)
    """The objects that are read at growing addresses."""
    shared: SteadyBytes = field(init=False)
    loaded: dict[int, list[Loaded]] = field(default_factory=dict)
    """By lane, the values that it has loaded; ``None`` for those on which nothing rests."""
    others_fill: bool = False
    """Whether other instructions than stores and atomics may write shared memory, in another way with other numbers."""

    def begin(self, compiler: Compiler) -> None:
        """Initialise before the first step."""
        InvariantRegisters.begin(self, compiler)
        ctas = int(compiler.lanes.cta.max()) + 1
        self.shared = SteadyBytes(SharedBytes(ctas, compiler.places.shared_size))
        contents = compiler.places.contents.items()
        told = any(not all(quality) for at, (_, quality) in contents if at >= GLOBAL_BASE + GAP)
        statements = [s for u in compiler.code.units for s in u.function.body]
        copies = [s for s in statements if s.kind in COPIES and s.opcode.space == "shared"]
        self.others_fill = any(s.kind in FILLING for s in statements) or any(told or _may_fill(s) for s in copies)

    def _load(self, unit: Unit, statement: ptx.Statement) -> BeforeStep:
        place = statement.operands[1]
        assert isinstance(place, ptx.Address)
        fetch, size = self.compiler.fetch(unit, place), type_size(statement.opcode.type)
        asked, whole = bool(loaded_targets(self.compiler, unit, statement)), loaded_size(statement)
        given = list(operand_registers(statement.operands[0]))
        targets = [(j, unit.frame + r.index, type_bits(r.type)) for j, r in enumerate(given)]
        targets = [x for x in targets if x[1] in self.compiler.code.needed_rows]
        based = self._wanted(unit, operand_registers(place))
        rows = [row for _, row, _ in targets]
        if "param" in statement.opcode.spaces:

            def parameter(_: Cluster, mine: Mask) -> None:
                for register, row in based:
                    self._require_invariant(statement, register, row, mine)
                lanes = np.flatnonzero(mine)
                at = np.broadcast_to(fetch()[0], mine.shape)[lanes].astype(np.int64)
                at = np.where(at < PARAM_BASE, at + PARAM_BASE, at)
                for j, row, bits in targets:
                    self._set([row], lanes, statement, *self._parameter(at + j * size, size, bits, lanes))

            return parameter
        if "const" in statement.opcode.spaces:
            return self._constant(statement, based, rows)

        def before(c: Cluster, mine: Mask) -> None:
            for register, row in based:
                self._read(c, statement, register, row, fetch, mine, whole)
            lanes = np.flatnonzero(mine)
            known = np.zeros(len(lanes), np.bool_)
            if asked:
                at = to_generic(np.broadcast_to(fetch()[0], mine.shape)[lanes])
                if not self.others_fill:
                    known = self.shared.load(at, whole, self.part[lanes] == INSIDE)
                values = load_values(c, at, whole, lanes)
                for lane, sure, value in zip(lanes.tolist(), known.tolist(), values, strict=True):
                    self.loaded.setdefault(lane, []).append(value if sure else None)
            self._set(rows, lanes, statement, 0, bad=~known)

        return before

    def _store(self, unit: Unit, statement: ptx.Statement) -> BeforeStep:
        """A store keeps which bytes of shared memory are the same for all numbers; so does any other change."""
        effect = self._require_operands(unit, statement, deciding_registers(statement))
        place, source = statement.place, statement.operands[1]
        fetch, size = self.compiler.fetch(unit, place), type_size(statement.opcode.type)
        items = source.items if isinstance(source, ptx.Vector) else (source,)
        weak = statement.kind is Kind.STORE and not statement.opcode.is_strong
        values = [(o, self.compiler.fetch(unit, o)) for o in items] if weak and size <= WORD else []
        whole = size * (len(items) if weak else statement.opcode.vector)

        def before(c: Cluster, mine: Mask) -> None:
            effect(c, mine)
            lanes = np.flatnonzero(mine)
            at = to_generic(np.broadcast_to(fetch()[0], mine.shape)[lanes])
            steady, data = np.full(len(lanes), bool(values)), np.zeros((len(lanes), whole), np.uint8)
            first = _first_at_place(at)
            for j, (item, value) in enumerate(values):
                given = self._value(unit, item, value, lanes)
                unknown = np.broadcast_to(value()[1], mine.shape)[lanes] != 0
                if not _counts_as_one(given, unknown, lanes // WARP, first):
                    raise Aperiodic(
                        f"'{statement.text}', by which lanes may store different values to one place", statement.span
                    )
                steady &= given.invariant
                words = np.ascontiguousarray(given.base.astype("<u8"))
                data[:, j * size : (j + 1) * size] = words.view(np.uint8).reshape(-1, WORD)[:, :size]
            if not self.shared.store(at, data, steady, self.part[lanes] == AFTER):
                raise Aperiodic(f"'{statement.text}', which changes what a round before has loaded", statement.span)

        return before

    def _constant(self, statement: ptx.Statement, based: list[tuple[ptx.Register, int]], rows: list[int]) -> BeforeStep:
        def before(_: Cluster, mine: Mask) -> None:
            for register, row in based:
                self._require_invariant(statement, register, row, mine)
            self._set(rows, np.flatnonzero(mine), statement, 0, bad=False)

        return before

    def _parameter(
        self, at: NDArray[np.int64], size: int, bits: int, lanes: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], Mask]:
        """The slopes of a load of parameters at ``at``, and where they are unknown."""
        low = PARAM_BASE + self.compiler.places.symbols[self.compiler.lanes.launch.entry, self.argument.name]
        whole = (at == low) & (size == self.argument.size) & (bits == 8 * size)
        touched = (at < low + self.argument.size) & (at + size > low)
        slopes = np.zeros((3, len(lanes)), np.int64)
        part = self.part[lanes]
        slopes[0] = np.where(whole & (part != BEFORE), self.period, 0)
        slopes[1] = np.where(whole & (part != AFTER), self.period, 0)
        slopes[2] = np.where(whole, 1, 0)
        return slopes, touched & ~whole

    def _copy(self, unit: Unit, statement: ptx.Statement) -> BeforeStep:
        """``cp.async`` and similar copies: their source addresses in global memory may grow with the iterations."""
        kind, opcode = statement.kind, statement.opcode
        source = statement.operands[1] if len(statement.operands) > 1 else None
        if opcode.space == "shared" and isinstance(source, ptx.Address):
            if kind is Kind.TENSOR_COPY:
                if not opcode.has("im2col", "tile::gather4"):
                    return self._tensor(unit, statement, source)
            elif kind in (Kind.ASYNC_COPY, Kind.BULK_COPY) and "global" in opcode.spaces:
                return self._source_of(unit, statement, source)
        return self._require_operands(unit, statement, statement.uses)

    def _source_of(self, unit: Unit, statement: ptx.Statement, source: ptx.Address) -> BeforeStep:
        fetch, based = self.compiler.fetch(unit, source), self._wanted(unit, operand_registers(source))
        others = [r for o in statement.operands if o is not source for r in operand_registers(o)]
        effect = self._require_operands(unit, statement, others)
        amounts = [o.value for o in statement.operands[2:3] if isinstance(o, ptx.Immediate)]

        def before(c: Cluster, mine: Mask) -> None:
            effect(c, mine)
            for register, row in based:
                self._read(c, statement, register, row, fetch, mine, amounts[0] if amounts else COPIED)
                self.others_fill |= bool(self.slopes[:, row, mine].any())

        return before

    def _read(
        self, c: Cluster, statement: ptx.Statement, register: ptx.Register, row: int, fetch: Fetch, mine: Mask,
        size: int,
    ) -> None:  # fmt: skip
        """Record the object that is read at a growing address; raises ``Aperiodic`` if that matters."""
        lanes = np.flatnonzero(mine)
        value = Value(np.broadcast_to(fetch()[0], mine.shape)[lanes], self.slopes[:, row, lanes], self.bad[row, lanes])
        moving = value.slopes.any(axis=0)
        if value.bad.any() or not moving.any():
            self._require_invariant(statement, register, row, mine)
            return
        at, slopes = value.base[moving], value.slopes[:, moving]
        low, high = int(at.min()), int(at.max())
        found = c.places.memory.find(low)
        if not GLOBAL_BASE <= low <= high < SHARED_BASE or found is None or c.places.memory.find(high) is not found:
            self._require_invariant(statement, register, row, mine)
        assert found is not None
        known = found.object.size != UNKNOWN_SIZE
        if (
            known
            and not self.numbers.stays_between(at, slopes, found.base, found.base + found.object.size - size).all()
        ):
            raise Aperiodic(
                f"the address of '{statement.text}', which grows with the iterations; {found.object.name} does not",
                statement.span,
            )
        self._aligned(statement, slopes, COPIED if statement.kind is Kind.BULK_COPY else size & -size)
        self.growing_objects.add(found.base)

    def _aligned(self, statement: ptx.Statement, slopes: NDArray[np.int64], unit: int) -> None:
        if (slopes[:2] % unit).any():
            raise Aperiodic(f"the alignment of '{statement.text}', which differs in each iteration", statement.span)
        if (slopes[2] % unit).any():
            self.numbers.spare = 0

    def _tensor(self, unit: Unit, statement: ptx.Statement, source: ptx.Address) -> BeforeStep:
        coords = [r for o in source.rest for r in operand_registers(o)]
        items = [x for o in source.rest[:1] for x in (o.items if isinstance(o, ptx.Vector) else (o,))]
        rows = self._wanted(unit, coords)
        others = [r for o in statement.operands if o is not source for r in operand_registers(o)]
        based = ptx.Address(source.base, source.offset)
        effect = self._require_operands(unit, statement, [*others, *operand_registers(based)])
        fetch = self.compiler.fetch(unit, based)
        fetches = {r: self.compiler.fetch(unit, r) for r, _ in rows}

        def before(c: Cluster, mine: Mask) -> None:
            effect(c, mine)
            lanes = np.flatnonzero(mine)
            for register, row in rows:
                value = self._value(unit, register, fetches[register], lanes)
                if value.bad.any():
                    self._require_invariant(statement, register, row, mine)
                if not value.slopes.any():
                    continue
                self.others_fill = True
                if not self.numbers.in_range(value, "s32")[1].all():
                    raise Aperiodic(f"{register.name} in '{statement.text}', which overflows", statement.span)
                for address in distinct(np.broadcast_to(fetch()[0], mine.shape)[lanes]).tolist():
                    self._box(c, statement, address, value, first=register in list(operand_registers(items[0])))

        return before

    def _box(self, c: Cluster, statement: ptx.Statement, address: int, value: Value, *, first: bool) -> None:
        """A box that advances with the iterations in the tensor of the map at an address."""
        contents = c.store.read_map(address)
        spec = None if contents is None else decode(contents)
        found = None if spec is None else c.places.memory.find(spec.global_address)
        plain = spec is not None and spec.interleave_layout == "none" and spec.elemtype[:1] in "usfbt"
        if spec is None or found is None or not plain or "b4" in spec.elemtype or "b6" in spec.elemtype:
            raise Aperiodic(f"the coordinates of '{statement.text}', by a map of this kind", statement.span)
        if first:
            self._aligned(statement, value.slopes * step_bytes(spec), COPIED)
        self.growing_objects.add(found.base)

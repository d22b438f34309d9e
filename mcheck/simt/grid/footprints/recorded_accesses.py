"""Recording of the accesses of global memory that a cluster makes, in terms of its coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx import taint
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import Word
from mcheck.frontend.ptx.lowering import operation_template
from mcheck.frontend.ptx.memory_layout import LOCAL_BASE
from mcheck.frontend.ptx.module import operand_registers
from mcheck.ir import ops
from mcheck.ir.expr import Const
from mcheck.ir.memory import SHARED_BASE
from mcheck.ir.scopes import NARROW_SCOPES
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import (
    BARRIERS,
    COLLECTIVES,
    COPIES,
    FENCES,
    GRID_DEPENDENCIES,
    JUMPS,
    MBARRIERS,
    MULTIMEM,
    PREFETCHES,
    TMEM,
    WARPGROUP,
    Kind,
)
from mcheck.isa.opcode import GENERIC
from mcheck.semantics.tensor_map import bounding_box, element_size, is_im2col, step_bytes
from mcheck.semantics.tensor_map_values import MAP_SIZE, decode
from mcheck.simt.distinct import distinct, distinct_rows
from mcheck.simt.execution.cluster import Cluster
from mcheck.simt.execution.compiler import STEP_MAKERS, Fetch
from mcheck.simt.execution.lanes import WARP, Mask
from mcheck.simt.grid.footprints.access_placement import (
    DEPENDS,
    UNALIGNED,
    AccessKind,
    AccessPlacement,
    group_by_slopes,
)
from mcheck.simt.grid.footprints.affine_forms import ALWAYS
from mcheck.simt.grid.footprints.class_names import are_merged_alike
from mcheck.simt.grid.footprints.footprint import READ, REDUCE, SOMEWHERE, UPDATE, WRITE, Form
from mcheck.simt.grid.footprints.state import Indices
from mcheck.simt.instructions.access_operands import to_generic
from mcheck.simt.instructions.wmma import matrix_lines
from mcheck.simt.parametric.affine import Slopes, Value

Before = Callable[[Cluster, Indices], None]
COPIED = 16
LINE = 128
"""The bytes that ``discard`` destroys."""
OWN_ONLY = frozenset(("own",))
"""The memories of an access of the lane's own memory."""
WITHOUT_GLOBAL_ACCESS = (
    FENCES | GRID_DEPENDENCIES | PREFETCHES | MBARRIERS | WARPGROUP | BARRIERS | COLLECTIVES | JUMPS | TMEM
) | {
    Kind.FILL, Kind.MATRIX_LOAD, Kind.MATRIX_STORE, Kind.CANCEL_REQUEST,  # shared memory only
    Kind.EVENT, Kind.BREAKPOINT, Kind.REGISTER_COUNT, Kind.SLEEP, Kind.CACHE_PRIORITY,
    Kind.CALL,  # the instructions of the function are watched themselves
}  # fmt: skip
"""Kinds of instructions that access no global memory, or whose accesses the model does not have."""


@dataclass(slots=True)
class AccessRecorder(AccessPlacement):
    """Recorder of the instructions that access memory."""

    executes_alone: ClassVar[bool] = False
    """Whether a cluster of the class finds in global memory what it has stored itself, and nothing of others."""

    def memories_at(self, spaces: frozenset[str], fetch: Fetch, lanes: Indices) -> frozenset[str]:
        """The memories that lanes access by an address that may be in these spaces."""
        del fetch, lanes
        return spaces

    def pin(self, rows: Iterable[int], lanes: Indices, reason: str, span: Span | None) -> None:
        """Restrict the class to clusters in which the operands of a strong access are the same, if that is wanted."""

    def may_be_omitted(self, statement: ptx.Statement) -> bool:
        """Whether an instruction may be omitted without adding races: a weak access of memory, or an atomic that
        releases nothing. Asynchronous ones may not, whose bytes are waited for.
        """
        kind = statement.kind
        weak = kind in (Kind.LOAD, Kind.STORE) and not statement.opcode.is_strong
        if kind is Kind.LOAD and self.compiler.code.stores_named:
            return False  # the value decides which stores are one, and is another one where there is no load
        return weak or (kind is Kind.REDUCTION and not self.compiler.code.stores_decide)

    def require_fixed(self, unit: Unit, statement: ptx.Statement, used: Iterable[ptx.Register]) -> Before:
        """Require the operands of an instruction to be the same in all clusters."""
        guard = None if statement.guard is None else statement.guard.register
        rows = self._needed_rows(unit, [r for r in used if r != guard])
        targets = self._needed_rows(unit, statement.defs)
        reason = f"an operand of '{statement.text}' depends on %ctaid"

        def before(_: Cluster, lanes: Indices) -> None:
            self.require_same(rows, lanes, reason, statement.span)
            self.set_same(targets, lanes)

        return before

    def _needed_rows(self, unit: Unit, found: Iterable[ptx.Register]) -> list[int]:
        rows = [unit.frame + r.index for r in dict.fromkeys(found)]
        return [row for row in rows if row in self.compiler.code.needed_rows]

    def watch_access(self, unit: Unit, statement: ptx.Statement) -> Before | None:
        """The action before an instruction that may access global memory; ``None`` for others.

        An instruction that is executed, and of a kind about which nothing is said here, may access any of it. Raises
        for a statement of which no step can be made.
        """
        space = statement.opcode.space
        match statement.kind:
            case Kind.LOAD:
                return self._load(unit, statement)
            case Kind.STORE:
                return self._store(unit, statement)
            case Kind.ATOMIC | Kind.REDUCTION:
                return self._atomic(unit, statement)
            case kind if kind in MULTIMEM:
                return self._unknown_access(unit, statement)
            case kind if kind in COPIES:
                return self._copy(unit, statement)
            case Kind.DISCARD:
                return self._plain(unit, statement, AccessKind(WRITE, LINE))
            case Kind.FRAGMENT_LOAD | Kind.FRAGMENT_STORE:
                return self._matrix(unit, statement)
            case Kind.MAP_UPDATE | Kind.MAP_PUBLICATION:
                return self._map(unit, statement)
            case Kind.PROXY_FENCE if statement.address is not None:
                return self._plain(unit, statement, AccessKind(READ, 0, aligned=MAP_SIZE))
            case Kind.BULK_PREFETCH:
                return self._prefetch(unit, statement)
            case Kind.ASYNC_STORE | Kind.ASYNC_REDUCTION if space == "shared":
                return None
            case kind if kind in WITHOUT_GLOBAL_ACCESS or kind not in STEP_MAKERS:  # without a step, its lanes give up
                return None
        return self._unknown_access(unit, statement)

    # --- instructions ---------------------------------------------------------------------------------------------

    def _load(self, unit: Unit, statement: ptx.Statement) -> Before | None:
        place = statement.place
        opcode, targets = statement.opcode, self._needed_rows(unit, statement.defs)
        target = statement.operands[0]
        count = len(target.items) if isinstance(target, ptx.Vector) else 1
        size = type_size(opcode.type) * count
        fetch, based = self.compiler.fetch(unit, place), [unit.frame + r.index for r in operand_registers(place)]
        weak = not opcode.is_strong
        kind = AccessKind(READ, size, plain=weak or opcode.scope in NARROW_SCOPES, aligned=size)
        own = opcode.space in ("param", "local")
        silent = own or opcode.space == "const"
        possible = _memories(opcode.space)
        elements = [
            (unit.frame + r.index, j)
            for j, o in enumerate(target.items if isinstance(target, ptx.Vector) else (target,))
            for r in operand_registers(o)
        ]

        strong = opcode.is_strong
        differs = DEPENDS.format(statement.text)

        def before(_: Cluster, lanes: Indices) -> None:
            if strong:
                self.pin(based, lanes, differs, statement.span)
            moves = self.may_differ(based)
            if not silent:
                self.record_access(unit, statement, place, fetch, lanes, kind)
            if not targets:
                return
            spaces = self.memories_at(possible, fetch, lanes)
            if self.named is not None and (moves or not self.tainted_memory.isdisjoint(spaces)):
                handed = not self.tainted_memory.isdisjoint(spaces - {"shared"})
                value = self.value(unit, place, fetch, lanes)[0]
                for row, j in elements:
                    self._name_loaded(row, j * size // count, size // count, value, lanes, spaces, handed=handed)
                return
            at = np.broadcast_to(fetch()[0], self.compiler.lanes.exists.shape)[lanes]
            entry = own and bool((at < LOCAL_BASE).all())
            handed = not entry and opcode.space != "const" and not self.tainted_memory.isdisjoint(spaces)
            (self.set_unknown if moves or handed else self.set_same)(targets, lanes)

        return before

    def _name_loaded(
        self, row: int, offset: int, size: int, value: Value, lanes: Indices, spaces: frozenset[str], *, handed: bool
    ) -> None:
        """Set the class name of a register to which lanes load ``size`` bytes, ``offset`` behind an address: a fresh
        one where memory other than shared memory holds values that depend on the coordinates (``handed``).
        """
        assert self.named is not None
        at = to_generic(value.base) + np.uint64(offset)
        if spaces == frozenset(("shared",)) and not value.bad.any() and not value.slopes.any():
            name = self.named.load(at, size, lanes)
        elif "own" in spaces or handed or value.bad.any() or (at >= SHARED_BASE).any():
            name = self.named.fresh(lanes)
        else:
            name = self.named.at_place(at, self.form_names(value.slopes))
        slopes, bad = np.zeros_like(value.slopes), name != 0
        stored = self.named.slopes_of(name) if 8 * size == self.widths[row] else None
        if stored is not None:
            slopes, bad = stored[0], bad & ~stored[1]
        self.set_form(row, lanes, Value(value.base, slopes, bad), None, name)

    def watch_contents(self, unit: Unit, statement: ptx.Statement, fixed: Before) -> Before:
        """The same for a load of matrices: its results have fresh names where contents depend on the coordinates."""
        based = [unit.frame + r.index for r in statement.uses]
        targets = self._needed_rows(unit, statement.defs)

        def before(c: Cluster, lanes: Indices) -> None:
            moves = self.may_differ(based)
            fixed(c, lanes)
            if self.named is not None and (moves or self.tainted_memory):
                self.set_unknown(targets, lanes)

        return before

    def _store(self, unit: Unit, statement: ptx.Statement) -> Before:
        place, source = statement.operands[:2]
        assert isinstance(place, ptx.Address)
        items = source.items if isinstance(source, ptx.Vector) else (source,)
        opcode, code = statement.opcode, self.compiler.code
        size, weak = type_size(opcode.type) * len(items), not opcode.is_strong
        own = opcode.space in ("param", "local")
        generic = opcode.space == GENERIC
        fetch, based = self.compiler.fetch(unit, place), [unit.frame + r.index for r in operand_registers(place)]
        given = [unit.frame + r.index for r in operand_registers(source)]
        followed = code.stores_decide and type_size(opcode.type) <= 8
        sources = [self.compiler.fetch(unit, i) for i in items] if followed else []
        differs = f"the value that '{statement.text}' stores depends on %ctaid"
        told = any(isinstance(i, ptx.Special) and i.name.partition(".")[0] in ("ctaid", "clusterid") for i in items)
        kind = AccessKind(WRITE, size, plain=weak or opcode.scope in NARROW_SCOPES, aligned=size)
        possible = _memories(opcode.space)

        def before(_: Cluster, lanes: Indices) -> None:
            private = own or (generic and self._may_be_private(fetch, lanes))
            if not weak:
                self.pin((*based, *given), lanes, differs, statement.span)
            spaces = self.memories_at(possible, fetch, lanes)
            moves = told or (private and self.may_differ(based))
            if moves or self.may_differ(given):
                self.tainted_memory |= spaces
                others = lanes if moves else lanes[np.logical_or.reduce([self.differs(row, lanes) for row in given])]
                needed = code.stores_needed and not self.executes_alone and self._is_any_known(sources, others)
                if not own and (not weak or needed):
                    self.space.isolate(differs, statement.span)
            elif self.executes_alone and self.may_differ(based):
                self.tainted_memory |= spaces
            if self.named is not None and not own and not followed and self.may_differ(given):
                self.space.isolate(differs, statement.span)
            if self.named is not None and not own and followed:
                value = self.value(unit, place, fetch, lanes)[0]
                self._name_stored(unit, items, sources, to_generic(value.base), size, lanes, differs, statement.span)
            if self.optional is not None and (private or code.stores_decide):
                self.tainted_memory |= spaces
            if not own:
                self.record_access(unit, statement, place, fetch, lanes, kind)

        return before

    def _name_stored(
        self, unit: Unit, items: tuple[ptx.Operand, ...], sources: list[Fetch], at: NDArray[np.uint64], size: int,
        lanes: Indices, reason: str, span: Span | None,
    ) -> None:  # fmt: skip
        """Keep the class names of what lanes store, and require that those of them that count as one store do so in
        every cluster of the class: their values have equal numbers and class names (``class_names``).
        """
        assert self.named is not None
        numbers: list[Word] = []
        qualities: list[Word] = []
        names: list[Word] = []
        forms: list[Slopes | None] = []
        for item, source in zip(items, sources, strict=True):
            every = self.compiler.lanes.exists.shape
            number: Word = np.broadcast_to(source()[0], every)[lanes]
            quality = np.broadcast_to(source()[1], every)[lanes]
            rows = [unit.frame + r.index for r in operand_registers(item)]
            for row in rows:
                self.require_values(row, lanes, reason, span)
            value = self.value(unit, item, source, lanes)[0]
            numbers.append(number)
            qualities.append(quality.astype(np.uint64))
            names.append(self.class_name(value, rows[0] if rows else None, lanes))
            whole = value.slopes.any() and not value.bad.any() and 8 * size == len(items) * self.widths[rows[0]]
            forms.append(value.slopes if whole else None)
        if self.optional is not None and self.optional.any():
            names = [np.where(self.optional != ALWAYS, self.named.fresh(lanes), name) for name in names]
            forms = [None] * len(names)
        if not self.merges_alike(at, numbers, qualities, names, lanes):
            self.space.isolate(reason, span)
        width = size // len(items)
        for j, (number, name, form) in enumerate(zip(numbers, names, forms, strict=True)):
            self.named.save(at + np.uint64(j * width), width, number, name, form)

    def merges_alike(
        self, at: Word, numbers: list[Word], qualities: list[Word], names: list[Word], lanes: Indices
    ) -> bool:
        """Whether lanes that store one value to one place do so in every cluster of the class."""
        del lanes
        return are_merged_alike(at, numbers, qualities, names)

    def differs(self, row: int, lanes: Indices) -> Mask:
        """In which of these lanes a register may hold something else in other clusters."""
        found: Mask = self.conditions(row, lanes) != ALWAYS
        return found

    def _is_any_known(self, sources: list[Fetch], lanes: Indices) -> bool:
        """Whether all items of a value that is stored are known in some lane: an unknown one may be any, so what other
        clusters store there is followed as well.
        """
        known = [np.broadcast_to(s()[1], self.compiler.lanes.exists.shape)[lanes] & taint.UNKNOWN == 0 for s in sources]
        return bool(np.logical_and.reduce(known).any())

    def _may_be_private(self, fetch: Fetch, lanes: Indices) -> bool:
        """Whether a generic address of one of these lanes is in its own memory."""
        at = np.broadcast_to(fetch()[0], self.compiler.lanes.exists.shape)[lanes]
        return bool((at >= LOCAL_BASE).any())

    def _atomic(self, unit: Unit, statement: ptx.Statement) -> Before:
        opcode = statement.opcode
        place = statement.place
        based = [unit.frame + r.index for r in operand_registers(place)]
        fetch = self.compiler.fetch(unit, place)
        targets = self._needed_rows(unit, statement.defs)
        values = [unit.frame + r.index for o in statement.operands if o is not place for r in operand_registers(o)]
        values = [v for v in values if v not in targets]
        packed = 2 if opcode.type.endswith("x2") else 1
        scalar = type_size(opcode.type) // packed
        alone = statement.kind is Kind.REDUCTION or not targets
        wide = opcode.scope not in NARROW_SCOPES
        size = type_size(opcode.type) * opcode.vector
        reduces = alone and wide
        kind = AccessKind(
            REDUCE if reduces else UPDATE, size, unit=scalar if reduces else 0, plain=not wide, aligned=size
        )

        possible = _memories(opcode.space)
        differs = f"an operand of '{statement.text}' depends on %ctaid"
        pinned = [*based, *values] if self.compiler.code.stores_decide else based

        def before(_: Cluster, lanes: Indices) -> None:
            self.pin(pinned, lanes, differs, statement.span)
            spaces = self.memories_at(possible, fetch, lanes)
            handed = self.named is not None and not self.tainted_memory.isdisjoint(spaces)
            if handed and self.compiler.code.stores_named and "shared" in spaces:  # other bytes have no class names
                self.space.isolate(f"what '{statement.text}' changes depends on %ctaid", statement.span)
            if self.compiler.code.stores_decide and self.may_differ(values):
                self.tainted_memory |= spaces
                self.require_same(values, lanes, differs, statement.span)
            self.record_access(unit, statement, place, fetch, lanes, kind)
            (self.set_unknown if handed or self.may_differ(based) else self.set_same)(targets, lanes)

        return before

    def _copy(self, unit: Unit, statement: ptx.Statement) -> Before | None:
        """A copy. What it leaves is followed where it is the same in every cluster."""
        op = operation_template(unit.function, statement)
        accesses = self._copied_accesses(unit, statement, op)
        if not isinstance(op, ops.CpAsync | ops.BulkCopy):
            return accesses
        recorded = accesses or self.require_fixed(unit, statement, statement.uses)
        rows = [unit.frame + r.index for r in statement.uses]
        source = _memories("global" if isinstance(op, ops.CpAsync) else op.src_space.partition("::")[0])
        joins = isinstance(op, ops.BulkCopy) and op.reduce is not None  # what other clusters add is in no order

        def before(c: Cluster, lanes: Indices) -> None:
            recorded(c, lanes)
            c.copy_varies = joins or self.may_differ(rows) or not self.tainted_memory.isdisjoint(source)

        return before

    def _copied_accesses(self, unit: Unit, statement: ptx.Statement, op: ops.Op) -> Before | None:
        places = [o for o in statement.operands if isinstance(o, ptx.Address)]
        match op:
            case ops.CpAsync():
                size = op.size.value if isinstance(op.size, Const) else COPIED
                kind = AccessKind(READ, size, aligned=size)
                return self._copy_access(unit, statement, places[1], kind, sizes=True)
            case ops.BulkCopy() if "global" in (op.src_space, op.dst_space):
                reads_it = op.src_space == "global"
                place = places[1] if reads_it else places[0]
                amount = next((o for o in statement.operands[2:] if not isinstance(o, ptx.Address)), None)
                if op.reduce is not None and op.type is not None:
                    unit_size = type_size(op.type.removesuffix("x2"))
                    kind = AccessKind(REDUCE, 0, unit=unit_size, proxy="async", aligned=COPIED)
                else:
                    kind = AccessKind(READ if reads_it else WRITE, 0, proxy="async", aligned=COPIED)
                return self._copy_access(unit, statement, place, kind, amount=amount)
            case ops.TensorCopy():
                return self._tensor(unit, statement, op)
        return None

    def _copy_access(
        self, unit: Unit, statement: ptx.Statement, place: ptx.Address, kind: AccessKind, *,
        amount: ptx.Operand | None = None, sizes: bool = False,
    ) -> Before:  # fmt: skip
        """A copy from or to a place in global memory; for ``cp.async`` (``sizes``) the bytes that it reads may be fewer
        than it writes, the rest are zeros (9.7.9.25.3.1). If their number depends on the coordinates, the class is
        restricted to the clusters that read as many: a masked copy makes a class of those that it reads for, and one
        of those that get zeros, and what is recorded is what each of their clusters reads.
        """
        left = statement.operands[3:] if sizes else ()
        if left and not (isinstance(left[0], ptx.Register) and left[0].type == "pred"):
            amount = left[0]
        amounts = self._needed_rows(unit, [r for o in left for r in operand_registers(o)])
        others = [r for o in statement.operands if o is not place and o not in left for r in operand_registers(o)]
        rest = self.require_fixed(unit, statement, others)
        fetch = self.compiler.fetch(unit, place)
        size = None if amount is None else self.compiler.fetch(unit, amount)
        differs = f"the size that '{statement.text}' reads depends on %ctaid"

        def before(c: Cluster, lanes: Indices) -> None:
            rest(c, lanes)
            self.require_same(amounts, lanes, differs, statement.span)
            if size is None:
                self.record_access(unit, statement, place, fetch, lanes, kind)
                return
            given = np.broadcast_to(size()[0], c.lanes.exists.shape)[lanes] & np.uint64(0xFFFFFFFF)
            for length in distinct(given).tolist():
                one = AccessKind(kind.kind, int(length), kind.unit, kind.proxy, aligned=kind.aligned)
                self.record_access(unit, statement, place, fetch, lanes[given == length], one)

        return before

    def _prefetch(self, unit: Unit, statement: ptx.Statement) -> Before:
        """A bulk prefetch accesses nothing, but its address has to be aligned, and its size a whole number of chunks
        (9.7.9.25.4.3).
        """
        place = statement.place
        others = [r for o in statement.operands if o is not place for r in operand_registers(o)]
        rest, fetch = self.require_fixed(unit, statement, others), self.compiler.fetch(unit, place)

        def before(c: Cluster, lanes: Indices) -> None:
            rest(c, lanes)
            value, when = self.value(unit, place, fetch, lanes)
            self._require_placed(statement, when)
            if value.bad.any() or (value.slopes % COPIED).any():
                self.space.isolate(UNALIGNED.format(statement.text), statement.span)

        return before

    def _plain(self, unit: Unit, statement: ptx.Statement, kind: AccessKind) -> Before:
        place = statement.place
        return self._copy_access(unit, statement, place, kind)

    def _matrix(self, unit: Unit, statement: ptx.Statement) -> Before:
        """``wmma.load`` and ``wmma.store``: a line of the matrix for each of the first lanes of a warp."""
        place = statement.place
        number = statement.operands.index(place)
        count, width, bits = matrix_lines(statement.opcode)
        loads = statement.kind is Kind.FRAGMENT_LOAD
        after = statement.operands[number + (1 if loads else 2) :]
        stride = self.compiler.fetch(unit, after[0] if after else ptx.Immediate(width))
        rest = self.require_fixed(unit, statement, [r for o in after for r in operand_registers(o)])
        fetch = self.compiler.fetch(unit, place)
        kind = AccessKind(READ if loads else WRITE, max(width * bits // 8, 4), plain=True, aligned=COPIED)

        def before(c: Cluster, lanes: Indices) -> None:
            rest(c, lanes)
            mine = lanes[lanes % WARP < count]
            step = np.broadcast_to(stride()[0], c.lanes.exists.shape)[mine]
            offset = (mine % WARP).astype(np.uint64) * step * np.uint64(bits) // np.uint64(8)
            self.record_access(unit, statement, place, fetch, mine, kind, offset=offset)

        return self.watch_contents(unit, statement, before) if loads else before

    def _map(self, unit: Unit, statement: ptx.Statement) -> Before:
        """An edit of a tensor map: in global memory it is a write of the object."""
        place = statement.place
        return self._copy_access(unit, statement, place, AccessKind(WRITE, MAP_SIZE, aligned=MAP_SIZE))

    def _unknown_access(self, unit: Unit, statement: ptx.Statement) -> Before:
        rest = self.require_fixed(unit, statement, statement.uses)

        def before(c: Cluster, lanes: Indices) -> None:
            rest(c, lanes)
            self._record_unplaced(statement, UPDATE)

        return before

    # --- tensors ---------------------------------------------------------------------------------------------------

    def _tensor(self, unit: Unit, statement: ptx.Statement, op: ops.TensorCopy) -> Before:
        place = next(o for o in statement.operands if isinstance(o, ptx.Address) and o.rest)
        items = [x for o in place.rest[:1] for x in (o.items if isinstance(o, ptx.Vector) else (o,))]
        mapped = ptx.Address(place.base, place.offset)
        follows = op.mode in ("tile", "im2col", "im2col_no_offs")
        coords = {r for o in items for r in operand_registers(o)} if follows else set()
        others = [r for o in statement.operands for r in operand_registers(o) if r not in coords]
        others = [r for r in others if r not in set(operand_registers(mapped))]
        rest, fetch = self.require_fixed(unit, statement, others), self.compiler.fetch(unit, mapped)
        fetches: list[tuple[ptx.Operand, Fetch]] = [(o, self.compiler.fetch(unit, o)) for o in items]
        kind = REDUCE if op.reduce is not None else READ if op.kind == "load" else WRITE
        maps = [unit.frame + r.index for r in operand_registers(mapped)]
        read_map = AccessKind(READ, MAP_SIZE, proxy="tensormap", aligned=MAP_SIZE)

        def before(c: Cluster, lanes: Indices) -> None:
            rest(c, lanes)
            self.record_access(unit, statement, mapped, fetch, lanes, read_map)
            at = np.broadcast_to(fetch()[0], c.lanes.exists.shape)[lanes]
            if self.may_differ(maps) and any(int(a) not in c.store.maps for a in distinct(at)):
                self.space.isolate(f"the tensor map of '{statement.text}' depends on %ctaid", statement.span)
            given = [self.value(unit, o, f, lanes) for o, f in fetches]
            for address in distinct(at).tolist():
                some = np.flatnonzero(at == address)
                parts = [Value(v.base[some], v.slopes[:, some], v.bad[some]) for v, _ in given]
                for _, when in given:
                    self._require_placed(statement, when[some])
                self._box(c, statement, op, kind, int(address), parts)

        return before

    def _box(
        self, c: Cluster, statement: ptx.Statement, op: ops.TensorCopy, kind: str, address: int, parts: list[Value]
    ) -> None:
        contents = c.store.read_map(address)
        spec = None if contents is None else decode(contents)
        tensor = None if spec is None else self._buffer(spec.global_address)
        if spec is None or tensor is None:
            self._record_unplaced(statement, kind)
            return
        unit = element_size(spec.elemtype) if kind == REDUCE else 0
        if any(v.bad.any() for v in parts):
            self.space.isolate(f"the coordinates of '{statement.text}' are not followed", statement.span)
            self._record_unplaced(statement, kind)
            return
        numbers = [self.coordinates.in_range(v, "s32") for v in parts]
        moves = parts[0].slopes * step_bytes(spec)
        if (moves % COPIED).any() or not all(fits.all() for _, fits in numbers):
            self.space.isolate(
                f"the coordinates of '{statement.text}' do not stay aligned, or overflow", statement.span
            )
        if is_im2col(spec):
            for (base, _), part, (low, high) in zip(numbers[1:], parts[1:], bounding_box(spec), strict=False):
                self.coordinates.stays_between(base, part.slopes, low, high)
        if op.mode != "tile" or spec.interleave_layout != "none" or len(parts) != spec.rank:
            form = Form(buffer=int(self.bases[tensor]), kind=kind, unit=unit, proxy="async", whole=True)
            self.footprint.add(form, statement.span, SOMEWHERE)
            return
        starts = np.stack([base.astype(np.int64) for base, _ in numbers], axis=1)
        shape = (spec.global_address, spec.elemtype, spec.global_dim, spec.global_stride)
        slopes = np.stack([v.slopes for v in parts], axis=2)
        for some, by in group_by_slopes(slopes):
            form = Form(
                buffer=int(self.bases[tensor]), kind=kind, slopes=by, lengths=tuple(spec.box_dim), shape=shape,
                unit=unit, proxy="async",
            )  # fmt: skip
            self.footprint.add(form, statement.span, distinct_rows(starts[some]))


def _memories(space: str) -> frozenset[str]:
    """The kinds of memory that an access of a state space may be to: the lane's own, shared and global memory."""
    if space == GENERIC:
        return frozenset(("own", "shared", "global"))
    if space in ("param", "local"):
        return OWN_ONLY
    return frozenset((space,)) if space in ("shared", "global") else frozenset(("shared", "global"))

"""Loads, stores, matrix loads and stores: the memory they access, and the values they return where those matter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mcheck.base.errors import Unsupported
from mcheck.frontend.ptx import lane_arithmetic, taint
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.code import Unit
from mcheck.frontend.ptx.lane_arithmetic import Word, truncate
from mcheck.frontend.ptx.lowering import operation_template
from mcheck.frontend.ptx.memory_layout import GAP, LOCAL_BASE, PARAM_BASE
from mcheck.frontend.ptx.module import operand_registers
from mcheck.ir import ops
from mcheck.ir.expr import Binary, Const, Expr, Name, Reg, Special, Unary
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE
from mcheck.ir.type_sizes import type_size
from mcheck.isa.kinds import FENCES, GRID_DEPENDENCIES, Kind
from mcheck.isa.opcode import READONLY, read_opcode
from mcheck.semantics.tensor_map_values import decode
from mcheck.simt.execution.cluster import Cluster, MissingParameter, Step
from mcheck.simt.execution.compiler import Compiler, Fetch, no_effect, register_maker
from mcheck.simt.execution.lanes import WARP, Mask, Quality
from mcheck.simt.execution.polling_loops import AwaitedValue, find_awaited, find_sign_tests, find_tests
from mcheck.simt.execution.trace import decisive_operands, fill_operands
from mcheck.simt.execution.value_numbering import hash_number, number_warp
from mcheck.simt.traces.dependent_grids import record_early_accesses

Indices = NDArray[np.int64]

ROW = 16
"""The bytes of a row of a matrix that ``ldmatrix`` and ``stmatrix`` move (9.7.14.5.15)."""


def to_generic(address: Word) -> Word:
    """Convert shared addresses to generic ones by adding their base."""
    return np.where(address < GLOBAL_BASE, address + np.uint64(SHARED_BASE), address)


def fetch_lanes(fetch: Fetch, mask: Mask, lanes: Indices) -> tuple[Word, Quality]:
    """The values of an operand in some lanes."""
    value, known = fetch()
    return np.broadcast_to(value, mask.shape)[lanes], np.broadcast_to(known, mask.shape)[lanes]


def visible_accesses(
    c: Cluster, statement: ptx.Statement, address: Word, known: Quality, lanes: Indices
) -> tuple[Word, Indices]:
    """The accesses that other lanes can observe: those of shared and global memory whose address is known."""
    found = int(np.bitwise_or.reduce(known)) if len(known) else 0
    keep = (address < LOCAL_BASE) & ~((address >= PARAM_BASE) & (address < PARAM_BASE + GAP))
    if found:
        missing = ((known & taint.MISSING) != 0) & (
            ((known & taint.UNKNOWN) != 0) | (address < GLOBAL_BASE) | (address >= SHARED_BASE)
        )
        if missing.any() and statement.opcode.space == "shared":
            raise MissingParameter(
                f"the address of '{statement.text}' depends on a parameter that the launch does not give",
                statement.span, hint=c.explain_missing(statement),
            )  # fmt: skip
        unknown = (known & taint.UNKNOWN) != 0
        if unknown.any():
            c.trace.note_gap("the address depends on data and was not followed", statement.span)
            keep &= ~unknown
        if found & (taint.ORDER | taint.CONVERGED):
            c.trace.note_order_dependence("an address depends on other threads", statement.span)
            c.counters.decides_address = c.counters.decides_address or bool(found & taint.COUNTED)
    return address[keep], lanes[keep]


def fetch_expression(expr: Expr, k: Compiler, unit: Unit) -> Fetch:
    """A function that reads an expression of the instruction table."""
    match expr:
        case Const(value):
            return k.fetch(unit, ptx.Immediate(value))
        case Reg(name):
            return k.fetch(unit, next(r for r in unit.function.registers if r.name == name))
        case Name(name):
            return k.fetch(unit, ptx.Symbol(name))
        case Special(name):
            return k.fetch(unit, ptx.Special(name))
        case Unary("!", inner):
            found = fetch_expression(inner, k, unit)
            return lambda: (np.uint64(1) - found()[0], found()[1])
        case Unary("-", Const(value)):
            return k.fetch(unit, ptx.Immediate(-value))
        case Binary("+", left, Const(value)):
            base, more = fetch_expression(left, k, unit), np.uint64(value & (1 << 64) - 1)
            size = 32 if isinstance(left, Reg) and _is_narrow(unit, left.name) else 64
            return lambda: (lane_arithmetic.truncate(base()[0] + more, size), base()[1])
    raise Unsupported("an operand of this kind is not followed")


def _is_narrow(unit: Unit, name: str) -> bool:
    found = next(r for r in unit.function.registers if r.name == name)
    return found.type.endswith("32")


# --- ld and st -----------------------------------------------------------------------------------------------


@register_maker(Kind.LOAD)
def load_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``ld``: weak loads return the value in the order of this run."""
    if statement.opcode.has(READONLY):
        operation_template(unit.function, statement)  # raises, for it has no model
    target, place = statement.operands[:2]
    assert isinstance(place, ptx.Address)
    space, kind = statement.opcode.space, statement.opcode.type
    size = type_size(kind)
    wanted = k.is_needed(unit, statement)
    rows = k.destination_rows(unit, target) if wanted else []
    widths = [lane_arithmetic.type_bits(r.type) or 64 for r in operand_registers(target)]
    fetch = k.fetch(unit, place)
    values, known = k.lanes.values, k.lanes.quality
    signed = kind[0] == "s" and size < 8
    op: ops.Load | None = None
    if space in ("param", "local", "const"):
        if not wanted:
            return no_effect
    else:
        plain = read_opcode(("ld", *statement.opcode.parts[1:])).without("nc")
        made = operation_template(unit.function, statement, plain)
        assert isinstance(made, ops.Load)
        op = replace(made, dsts=(None,) * len(made.dsts))
    strong = op is not None and op.sem != "weak"
    waited = find_waits(k, unit, at - unit.start, size) if strong and len(rows) == 1 else None

    def run(c: Cluster, mask: Mask) -> Mask | None:
        if strong and c.forced.wanted:
            mask = c.hold_back(mask, to_generic(fetch_lanes(fetch, mask, np.flatnonzero(mask))[0]), size, writes=False)
            if not mask.any():
                return None
        for some, wait in ((mask, None),) if waited is None else waited(mask):
            loaded(c, some, wait)
        return mask

    def loaded(c: Cluster, mask: Mask, wait: AwaitedValue | None) -> None:
        lanes = np.flatnonzero(mask)
        address, sure = fetch_lanes(fetch, mask, lanes)
        followed = False
        if op is not None:
            c.check_assumed_failures(mask)
            if statement.opcode.has("nc"):  # PTX ISA 9.7.9.9: the memory is read only
                c.trace.assumptions["no thread writes what ld.global.nc reads while the kernel runs"] = None
            whole = to_generic(address)
            found, those = visible_accesses(c, statement, whole, sure, lanes)
            if len(those):
                if not strong:
                    c.note_effect(mask)
                proxy = "async" if c.tensor.holds_results(found) else op.proxy
                if wait is not None:
                    c.trace.emit(
                        (at, wait), [found], those, lambda v: _await_load(op, wait, v[0]), spread=False, again=True
                    )
                    those = those[:0]
            if len(those):
                c.trace.emit(
                    (at, proxy), [found], those, lambda v: replace(op, address=v[0], proxy=proxy),
                    spread=not strong, again=strong,
                )  # fmt: skip
            followed = len(found) == len(lanes)
            address = whole
        elif space == "param":
            address = np.where(address < PARAM_BASE, address + np.uint64(PARAM_BASE), address)
        for j, row in enumerate(rows):
            if row is None:
                continue
            value, q = c.store.load(address + np.uint64(j * size), min(size, 8), lanes)
            if strong and c.forced.wanted:
                value = c.take_forced(lanes, value)
            if k.code.atomics_decide:
                c.counters.record_load(address, q)
            if size > 8:  # of 128 bits the lower half is followed
                q = q | c.store.load(address + np.uint64(j * size + 8), 8, lanes)[1]
            if signed:
                value = lane_arithmetic.to_signed(value, 8 * size).astype(np.uint64)
            value = lane_arithmetic.truncate(value, widths[j])
            values[row][lanes] = value
            if strong and wait is None and j == 0:
                c.note_loads(lanes, address, value)
            if wait is not None:
                c.note_failed_polls(lanes[[not wait.accepts(v) for v in value.tolist()]])
            order = np.uint8(taint.ORDER) if _depends_on_order(c, op, wait) else np.uint8(0)
            known[row][lanes] = q | (sure & ~np.uint8(taint.MISSING)) | order
            if order and strong and followed and len(rows) == 1:
                c.trace.record_loaded(lanes, address, value, (q & ~np.uint8(taint.ORDER)) == 0)
            elif order:
                c.trace.has_unbound_values = True

    return run


def _depends_on_order(c: Cluster, op: ops.Load | None, wait: AwaitedValue | None) -> bool:
    """Whether the value of a load depends on the order of the threads: that of a strong one, unless it waits for
    exactly that, and, where threads have taken locks in some order, that of any load.
    """
    if op is None:
        return False
    return c.lock_taken if op.sem == "weak" else wait is None or not wait.condition_only


def find_waits(
    k: Compiler, unit: Unit, at: int, size: int
) -> Callable[[Mask], list[tuple[Mask, AwaitedValue | None]]] | None:
    """The conditions that lanes wait for at a load or an atomic that is repeated, lanes with equal conditions together;
    ``None`` if nothing tests its value.
    """
    statement = unit.function.body[at]
    target = statement.operands[0]
    tested = [o for t in find_tests(unit.function, at) for o in unit.function.body[t].operands[1:]]
    operands = list(dict.fromkeys((*tested, *find_sign_tests(unit.function, at))))
    if operands:
        operands += [o for o in statement.operands[1:] if isinstance(o, ptx.Register) and o not in operands]
    fetches = {o: k.fetch(unit, o) for o in operands}
    known: dict[tuple[int | None, ...], AwaitedValue | None] = {}
    if not operands:
        return None

    def waited(mask: Mask) -> list[tuple[Mask, AwaitedValue | None]]:
        lanes = np.flatnonzero(mask)
        given = {o: fetch_lanes(fetches[o], mask, lanes) for o in operands if o != target}
        states = [q.astype(np.uint64) for _, q in given.values()]
        table = np.stack([np.zeros(len(lanes), np.uint64), *(v for v, _ in given.values()), *states])
        kinds, back = np.unique(table, axis=1, return_inverse=True)
        out: list[tuple[Mask, AwaitedValue | None]] = []
        for n in range(kinds.shape[1]):
            found = kinds[1:, n].tolist()
            # The value that an atomic has returned is certain in the order that is followed.
            sure = [
                None if q & ~taint.ORDER else v for v, q in zip(found[: len(given)], found[len(given) :], strict=True)
            ]
            values: dict[ptx.Operand, int | None] = dict(zip(given, sure, strict=True))
            key = tuple(values.values())
            if key not in known:
                wait = find_awaited(unit.function, at, values.get)
                known[key] = wait if wait is not None and type_size(wait.type) == size else None
            some = np.zeros_like(mask)
            some[lanes[back.reshape(-1) == n]] = True
            out.append((some, known[key]))
        return out

    return waited


def _await_load(op: ops.Load, wait: AwaitedValue, address: Expr) -> ops.Op:
    """A load that is repeated until its value satisfies the awaited condition."""
    kind = wait.type if wait.type[0] == "s" else op.type
    load = replace(op, address=address, dsts=(Reg("spun"),), type=kind)
    compare = wait.operator, Const(wait.right)
    return ops.Await(inner=load, compare=compare, span=op.span, text=op.text, section=op.section)


@register_maker(Kind.STORE)
def store_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``st``."""
    place, source = statement.operands[:2]
    assert isinstance(place, ptx.Address)
    space, size = statement.opcode.space, type_size(statement.opcode.type)
    fetch = k.fetch(unit, place)
    items = source.items if isinstance(source, ptx.Vector) else (source,)
    keeps = k.code.stores_decide or space in ("param", "local")
    sources = [k.fetch(unit, x) for x in items] if keeps and size <= 8 else []
    op: ops.Store | None = None
    if space not in ("param", "local"):
        made = operation_template(unit.function, statement)
        assert isinstance(made, ops.Store)
        op = made
    data = tuple(Reg("data") for _ in items)

    def run(c: Cluster, mask: Mask) -> Mask | None:
        lanes = np.flatnonzero(mask)
        address, sure = fetch_lanes(fetch, mask, lanes)
        if keeps and op is not None and c.forced.wanted:
            mask = c.hold_back(mask, to_generic(address), size, writes=True)
            if not mask.any():
                return None
            lanes = np.flatnonzero(mask)
            address, sure = fetch_lanes(fetch, mask, lanes)
        given = [fetch_lanes(s, mask, lanes) for s in sources]
        if op is not None:
            c.check_assumed_failures(mask)
            c.note_effect(mask)
            address = to_generic(address)
            c.tensor.result_words.difference_update(address.tolist() if c.tensor.result_words else ())
            found, those = visible_accesses(c, statement, address, sure, lanes)
            exact = (
                (op.sem != "weak" or k.code.stores_needed)
                and len(given) == len(items)
                and not any(q.any() for _, q in given)
            )
            leaves = [found, *((v for v, _ in given) if exact and len(those) == len(lanes) else ())]
            if op.sem == "weak" and len(those):
                stored = given
                if len(those) < len(lanes):  # of the others the address is not known
                    placed = np.isin(lanes, those)
                    stored = [(v[placed], q[placed]) for v, q in given]
                one = distinct_stores(c, statement, found, stored, those)
                those, leaves = those[one], [leaf[one] for leaf in leaves]
            if len(those):
                c.trace.emit(
                    at, leaves, those,
                    lambda v: replace(op, address=v[0], srcs=tuple(v[1:]) or data), spread=op.sem == "weak",
                )  # fmt: skip
            if not exact and op.sem != "weak" and len(given) == len(items) and len(those) == len(lanes):
                c.trace.record_stored(lanes, given)
        if keeps and size > 8:
            given = [(np.zeros(len(lanes), np.uint64), np.full(len(lanes), taint.UNKNOWN_NAMELESS, np.uint8))] * 2
        for j, (value, q) in enumerate(given):
            c.store.save(address + np.uint64(j * min(size, 8)), min(size, 8), lanes, value, q)
        return mask

    return run


def distinct_stores(
    c: Cluster, statement: ptx.Statement, address: Word, given: list[tuple[Word, Quality]], lanes: Indices
) -> Indices:
    """Of lanes that store by one instruction, one lane for each place and value (indices into ``lanes``).

    Of unknown values, those with one name count as one; of a warp's unknown values any two do. Compilers let all lanes
    that hold a value store it, those of a warp the result that a reduction leaves in each of them. If lanes of a warp
    write to one place by one instruction, one of the writes takes effect (CUDA C++ programming guide).
    """
    one = np.arange(len(lanes))
    if len(np.unique(address)) == len(one):
        return one
    cluster = c.lanes.cluster[lanes].astype(np.uint64)  # those of two clusters are stores of their own
    if given:
        open_ = np.bitwise_or.reduce([q for _, q in given]) & ~np.uint8(taint.UNKNOWN)
        own = np.where(open_ != 0, lanes + 1, 0).astype(np.uint64)
        one = _first_of_each([address, cluster, own, *(v for v, _ in given)])
        if len(one) < len(lanes):
            c.trace.assumptions[f"lanes that store one value to one place count as one store: {_quote(statement)}"] = (
                None
            )
    key = [address, (lanes // WARP).astype(np.uint64)]
    for value, q in given:
        key += [np.where(q == 0, value, np.uint64(0)), (q == 0).astype(np.uint64)]
    left = one[_first_of_each([word[one] for word in key])]
    if len(left) < len(one):
        said = f"if lanes of a warp store to one place at once, one of the stores takes effect: {_quote(statement)}"
        c.trace.assumptions[said] = None
    c.trace.has_conflicting_stores |= len(np.unique(address[left])) < len(left)
    return left


def _first_of_each(key: list[Word]) -> Indices:
    """The first index of each distinct row of a table, given by columns."""
    found: Indices = np.unique(np.stack(key), axis=1, return_index=True)[1]
    return np.sort(found)


def _quote(statement: ptx.Statement) -> str:
    return f"'{statement.text}' (line {statement.span.line})"


# --- matrices -----------------------------------------------------------------------------------------------


@register_maker(Kind.MATRIX_LOAD, Kind.MATRIX_STORE)
def matrix_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of ``ldmatrix`` and ``stmatrix``: lane k accesses the row that its address names, as many lanes as there
    are rows (9.7.15.5.15, 9.7.15.5.16).
    """
    loads = statement.kind is Kind.MATRIX_LOAD
    place = statement.place
    fetch = k.fetch(unit, place)
    count = int((statement.opcode.choice(("x1", "x2", "x4")) or "x1")[1:])
    rows = count * (8 if statement.opcode.has("m8n8") else 16)
    section = "9.7.15.5.15" if loads else "9.7.15.5.16"
    space = "shared::cta" if statement.opcode.space == "shared" else "generic"
    common = {"span": statement.span, "text": statement.text, "section": section, "type": "b32", "space": space}
    if statement.opcode.has("m16n8"):
        rows = count * 8
    opaque = _loaded_names(k, unit, statement) if loads and k.is_needed(unit, statement) else None
    sources = (
        [k.fetch(unit, r) for r in operand_registers(statement.operands[1])]
        if not loads and k.code.stores_decide
        else []
    )

    def made(address: Expr) -> ops.Op:
        if loads:
            return ops.Load(dsts=(None,) * 4, address=address, **common)  # type: ignore[arg-type]
        return ops.Store(srcs=(Reg("data"),) * 4, address=address, **common)  # type: ignore[arg-type]

    def run(c: Cluster, mask: Mask) -> Mask:
        c.check_assumed_failures(mask)
        c.note_effect(mask)
        lanes = np.flatnonzero(mask)
        lanes = lanes[lanes % 32 < rows]
        address, sure = fetch_lanes(fetch, mask, lanes)
        address = to_generic(address)
        found, those = visible_accesses(c, statement, address, sure, lanes)
        if not loads:
            name, state = _row_names(sources, mask)
            if len(those) == len(lanes):
                given = [(name[lanes], state[lanes])] if k.code.stores_named else []
                one = distinct_stores(c, statement, found, given, lanes)
                found, those = found[one], those[one]
            for j in range(2 if sources else 0):
                c.store.save(
                    address + np.uint64(8 * j), 8, lanes, hash_number(name + np.uint64(j))[lanes], state[lanes]
                )
        if len(those):
            c.trace.emit(at, [found], those, lambda v: made(v[0]), spread=True)
        if opaque is not None:
            opaque(c, mask, address, lanes)
        return mask

    return run


def _row_names(sources: list[Fetch], mask: Mask) -> tuple[Word, Quality]:
    """The name, in each lane, of the row that a warp stores at the lane's address."""
    given = [source() for source in sources]
    name = number_warp([value for value, _ in given], mask)
    state = np.bitwise_or.reduce([np.zeros(len(mask), np.uint8), *(q for _, q in given)])
    lost = ((state & ~np.uint8(taint.UNKNOWN)) != 0) & mask
    whole = np.repeat(lost.reshape(-1, WARP).any(axis=1), WARP)
    return name, np.where(whole, np.uint8(taint.UNKNOWN_NAMELESS), np.uint8(taint.UNKNOWN))


def _loaded_names(k: Compiler, unit: Unit, statement: ptx.Statement) -> Callable[[Cluster, Mask, Word, Indices], None]:
    """Set the results of ``ldmatrix``: names computed from the contents of the rows, or unknown."""
    rows = k.register_rows(unit, statement.defs)
    values, known = k.lanes.values, k.lanes.quality

    def run(c: Cluster, mask: Mask, address: Word, lanes: Indices) -> None:
        words = np.zeros((2, len(mask)), np.uint64)
        state = np.zeros(len(mask), np.uint8)
        for j in range(2):
            words[j, lanes], q = c.store.load(address + np.uint64(8 * j), 8, lanes)
            state[lanes] |= q
        lost = np.repeat((state.reshape(-1, WARP) & ~np.uint8(taint.UNKNOWN)).any(axis=1), WARP)
        name = number_warp([*words], mask)
        for j, row in enumerate(rows):
            np.copyto(values[row], truncate(hash_number(name + np.uint64(j)), 32), where=mask)
            known[row][mask] = np.where(lost, taint.UNKNOWN_NAMELESS, taint.UNKNOWN)[mask]

    return run


# --- whatever the table has an operation for ------------------------------------------------------------------


def emission_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int, *, spread: bool = False) -> Step:
    """The step of an instruction without a needed result: append its operation with the values of its operands."""
    op = operation_template(unit.function, statement)
    send = make_sender(k, unit, statement, at, op, spread=spread)

    def run(c: Cluster, mask: Mask) -> Mask:
        send(c, mask, {})
        return mask

    return run


Operands = dict[str, list[Word]]
"""The values of the operands that matter, by field; empty if nothing was emitted."""


def make_sender(
    k: Compiler, unit: Unit, statement: ptx.Statement, at: int, op: ops.Op, *, spread: bool = False, once: bool = False
) -> Callable[[Cluster, Mask, dict[str, object]], tuple[Indices, Operands]]:
    """A function that appends an operation to some lanes, with other fields set, and returns the lanes and their
    operands.

    ``once``: lanes of a warp with equal operands do it once. It is a copy from shared memory, where several have the
    effect of one: CUTLASS lets a whole warp issue its tensor stores.
    """
    leaves = decisive_operands(op)
    names = [name for name, _ in leaves]
    fetches = [fetch_expression(expr, k, unit) for _, expr in leaves]
    op = without_values(op)

    def send(c: Cluster, mask: Mask, more: dict[str, object]) -> tuple[Indices, Operands]:
        c.check_assumed_failures(mask)
        c.note_effect(mask)
        lanes = np.flatnonzero(mask)
        found: Operands = {}
        flat: list[Word] = []
        unplaced = False
        for name, fetch in zip(names, fetches, strict=True):
            value, sure = fetch_lanes(fetch, mask, lanes)
            doubt = int(np.bitwise_or.reduce(sure))
            if doubt & taint.UNKNOWN:
                if doubt & taint.MISSING:
                    raise MissingParameter(
                        f"'{statement.text}' depends on a parameter that the launch does not give",
                        statement.span, hint=c.explain_missing(statement),
                    )  # fmt: skip
                if name == "coords":
                    unplaced = True
                elif _is_global_operand(op, name):
                    c.trace.note_gap(
                        "the address in global memory depends on data and was not followed", statement.span
                    )
                    value = np.where(sure & taint.UNKNOWN, c.unknown_addresses(name, len(value)), value)
                elif isinstance(op, ops.CpAsync) and name in _NOTHING_READ:  # what is not read is zero: all is written
                    c.trace.note_gap(
                        "the size of the copy depends on data: its reads were not followed", statement.span
                    )
                    value = np.full_like(value, _NOTHING_READ[name])
                else:
                    c.give_up(mask, f"the {name.replace('_', ' ')} depends on data")
                    return lanes, {}
            elif doubt & (taint.ORDER | taint.CONVERGED):
                c.trace.note_order_dependence(f"the {name.replace('_', ' ')} depends on the order of threads", c.span)
            if name in ADDRESSES:
                value = to_generic(value)
            found.setdefault(name, []).append(value)
            flat.append(value)
        if unplaced:  # the image in shared memory is that of the tile at the origin
            c.trace.note_gap("the coordinates depend on data: accesses of the tensor were not followed", statement.span)
            more = {**more, "unplaced": True}
            flat = [np.zeros_like(v) if name == "coords" else v for name, v in zip(names, flat, strict=True)]
            found["coords"] = [np.zeros_like(v) for v in found["coords"]]
        if once and len(lanes) > 1:
            first = _first_of_each([(lanes // WARP).astype(np.uint64), *flat])
            if len(first) < len(lanes):
                c.trace.assumptions[f"lanes of a warp that issue one copy count as one copy: {_quote(statement)}"] = (
                    None
                )
                lanes, flat = lanes[first], [value[first] for value in flat]
                found = {name: [value[first] for value in given] for name, given in found.items()}
        if isinstance(op, ops.TensorCopy) and not _has_tensor_map(c, statement, mask, found["tensor_map"][0]):
            return lanes, {}
        c.trace.emit((at, *more.values()), flat, lanes, lambda v: fill_operands(op, v, **more), spread=spread)
        return lanes, found

    return send


def _has_tensor_map(c: Cluster, statement: ptx.Statement, mask: Mask, places: Word) -> bool:
    """Whether a tensor copy can be followed as far as its map is concerned: a map that is a parameter must be given by
    the launch.
    """
    for place in np.unique(places).tolist():
        if not PARAM_BASE <= place < PARAM_BASE + GAP:
            continue
        contents = c.store.read_map(place)
        if contents is None:
            text = f"'{statement.text}' needs a tensor map that the launch does not give"
            raise MissingParameter(text, statement.span, hint=c.explain_missing(statement))
        if decode(contents) is None:
            c.give_up(mask, "the launch gives the tensor map of the copy as bytes, not by its fields")
            return False
    return True


_NOTHING_READ = {"src_size": 0, "ignore_src": 1}
"""The operands of ``cp.async`` with which it reads nothing."""


def _is_global_operand(op: ops.Op, name: str) -> bool:
    """Whether an operand of a copy without a tensor map is an address in global memory."""
    match op:
        case ops.CpAsync():
            return name == "src"
        case ops.BulkCopy():
            return (op.src_space if name == "src" else op.dst_space if name == "dst" else "") == "global"
    return False


ADDRESSES = frozenset(("address", "dst", "src", "mbar", "shared"))
"""Operands that may be addresses in a shared window."""


def without_values(op: ops.Op) -> ops.Op:
    """The operation with unspecified stored or returned values."""
    match op:
        case ops.AsyncStore():
            return replace(op, srcs=tuple(Reg("data") for _ in op.srcs))
    return op


@register_maker(*FENCES, Kind.FILL)
def fence_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:
    """The step of fences and other instructions without special handling."""
    return emission_step(k, unit, statement, at)


OTHER_GRIDS = "only one grid is executed: the results of the preceding grid (griddepcontrol) are assumed to be there"


@register_maker(*GRID_DEPENDENCIES)
def other_grids_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:  # noqa: ARG001 - one signature
    """The step of ``griddepcontrol``, which waits for or releases another grid, which is not followed."""
    waits = statement.kind is Kind.GRID_WAIT

    def step(c: Cluster, mask: Mask) -> Mask:
        c.trace.assumptions[OTHER_GRIDS] = None
        if waits:
            record_early_accesses(c, mask, statement)
        return mask

    return step


NO_EFFECT = frozenset((
    Kind.SLEEP, Kind.REGISTER_COUNT, Kind.PREFETCH, Kind.EVENT, Kind.BREAKPOINT, Kind.CACHE_PRIORITY, Kind.DISCARD,
))  # fmt: skip


@register_maker(*NO_EFFECT)
def no_effect_step(k: Compiler, unit: Unit, statement: ptx.Statement, at: int) -> Step:  # noqa: ARG001 - one signature
    """The step of an instruction without effect on memory or control."""
    return no_effect

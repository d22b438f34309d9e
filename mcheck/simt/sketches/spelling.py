"""Operations of a trace as statements of the block form.

The opcode is that of the module; the operands are written anew, with a placeholder for each number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mcheck.base.errors import Span, Unsupported
from mcheck.effects.site import widened
from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr, Lanes
from mcheck.ir.memory import Cta
from mcheck.ir.ops import Op
from mcheck.simt.sketches.objects import Declarations

NUMBER, OFFSET, INDEX = "\0n", "\0o", "\0i"
"""Placeholders for a number by itself, for one that is added to an address, and for an index."""
DATA = "r0"
FULL = (1 << 64) - 1

Column = tuple[int, ...]
"""A number for each lane of a group."""


@dataclass(slots=True)
class Statement:
    """Text with placeholders, and their numbers, lane by lane."""

    text: list[str]
    columns: list[Column]
    span: Span | None


@dataclass(slots=True)
class Speller:
    """Writer of the operations of some lanes of a warp in a CTA; ``tokens``: by state register, its name here."""

    declared: Declarations
    cta: Cta
    lanes: Sequence[int]
    tokens: dict[str, str] = field(default_factory=dict)

    def statements(self, op: Op) -> list[Statement]:
        """The statements of an operation: several for a wgmma of several ranges, none for a prefetch."""
        try:
            return self._spelled(op)
        except Unsupported as error:
            where = f"line {op.span.line}: " if op.span is not None else ""
            raise Unsupported(f"{where}a sketch cannot say '{op.text}': {error.message}") from None

    def _spelled(self, op: Op) -> list[Statement]:
        inner = ops.performed_operation(op)
        if isinstance(inner, ops.Prefetch | ops.UnknownContinuation | ops.AssumedValue):
            return []
        if isinstance(inner, ops.Wgmma):
            return [self._product(inner, part) for part in _pairs(inner.reads)]
        if ops.multimem_of(inner) is not None:
            raise Unsupported("accesses of the copies of a multimem address are not put together again")
        made = Statement([], [], op.span)
        if isinstance(op, ops.Await):
            made.text.append("await ")
        made.text.append(_opcode(inner))
        spell = SPELLINGS.get(type(inner))
        if spell is None:
            raise Unsupported("it has no block form")
        before = len(made.text)
        spell(self, made, inner, isinstance(op, ops.Await))
        if len(made.text) > before:
            made.text.insert(before, " ")
        made.text.append(";")
        return [made]

    # --- operands ------------------------------------------------------------------------------------------------

    def operand_values(self, expr: Expr) -> Column:
        """The values of an operand by lane."""
        match expr:
            case Const(value):
                return (value,) * len(self.lanes)
            case Lanes(values):
                return tuple(values[lane] for lane in self.lanes)
        raise Unsupported("an operand is not a number")

    def write_number(self, made: Statement, expr: Expr, bits: int = 64) -> None:
        """Write a number; all ones is written as -1."""
        top = (1 << bits) - 1
        made.text.append(NUMBER)
        made.columns.append(tuple(-1 if v & top in (top, FULL) else v for v in self.operand_values(expr)))

    def write_address(self, made: Statement, expr: Expr, *, brackets: bool = True, reads: bool = True) -> None:
        """Write an address: an object and an offset, or an element of an array of mbarriers. If nothing is read or
        written there, the object may be another one.
        """
        found = tuple(widened(v) for v in self.operand_values(expr))
        instances = (
            [self.declared.instance(v) for v in found]
            if reads
            else [self.declared.nearest_instance(min(found))] * len(found)
        )
        first = instances[0]
        if any(i.object is not first.object for i in instances):
            raise Unsupported("its lanes access several objects")
        offsets = tuple(v - i.base for v, i in zip(found, instances, strict=True))
        ranks = tuple(-1 if i.cta is None else i.cta.rank for i in instances)
        made.text.append("[" if brackets else "")
        bars = [self.declared.bars.get((first.object.name, at)) for at in offsets]
        named = [b for b in bars if b is not None]
        if len(named) == len(bars) and len({name for name, _ in named}) == 1:
            made.text += [f"{named[0][0]}[", INDEX, "]"]
            made.columns.append(tuple(index for _, index in named))
            self._rank(made, ranks)
        else:
            made.text.append(self.declared.object_name(first))
            self._rank(made, ranks)
            made.text.append(OFFSET)
            made.columns.append(offsets)
        made.text.append("]" if brackets else "")

    def _rank(self, made: Statement, ranks: Column) -> None:
        if any(rank not in (-1, self.cta.rank) for rank in ranks):
            made.text += ["@(", NUMBER, ")"]
            made.columns.append(ranks)

    def _product(self, op: ops.Wgmma, reads: tuple[tuple[Expr, Expr], ...]) -> Statement:
        made = Statement([opcode(op.text), " {%f0, %f1, %f2, %f3}, "], [], op.span)
        if len(reads) == 1:
            made.text.append("{%r0, %r1, %r2, %r3}, ")
        for k, (at, size) in enumerate(reads):
            made.text.append(", [" if k else "[")
            self.write_address(made, at, brackets=False)
            made.text.append(", ")
            self.write_number(made, size)
            made.text.append("]")
        made.text.append(";")
        return made


def opcode(text: str) -> str:
    """The text before the operands, without guard and cache hints."""
    words = text.split()
    if words and words[0].startswith("@"):
        words = words[1:]
    parts = (words[0].rstrip(";") if words else "").split(".")
    if parts[0] in ("ld", "ldu"):
        parts = ["ld", *(p for p in parts[1:] if p != "nc")]
    return ".".join(p for p in parts if p != "L2::cache_hint")


def _opcode(op: Op) -> str:
    """The opcode of the module; a matrix load or store becomes a load or store of a row by each lane."""
    found = opcode(op.text)
    match op:
        case ops.Load() if not found.startswith("ld."):
            return _row("ld", op.space, op.type, len(op.dsts))
        case ops.Store() if not found.startswith("st."):
            return _row("st", op.space, op.type, len(op.srcs))
    return found


def _row(name: str, space: str, type_name: str, count: int) -> str:
    where = "" if space == "generic" else f".{space}"
    return f"{name}{where}{f'.v{count}' if count > 1 else ''}.{type_name}"


Spelling = Callable[[Speller, Statement, Op, bool], None]
SPELLINGS: dict[type[Op], Spelling] = {}


def _spells(*kinds: type[Op]) -> Callable[[Spelling], Spelling]:
    def register(spelling: Spelling) -> Spelling:
        for kind in kinds:
            SPELLINGS[kind] = spelling
        return spelling

    return register


ZEROS = {"f32": "0f00000000", "f64": "0d0000000000000000"}
"""Stored values do not matter; a register that is never written would cause a warning."""


def _repeat(word: str, count: int) -> str:
    return word if count == 1 else "{" + ", ".join([word] * count) + "}"


@_spells(ops.Load)
def _load(s: Speller, made: Statement, op: Op, waits: bool) -> None:
    assert isinstance(op, ops.Load)
    if waits:
        raise Unsupported("it waits for a value")
    made.text.append(_repeat(DATA, len(op.dsts)) + ", ")
    s.write_address(made, op.address)


@_spells(ops.Store)
def _store(s: Speller, made: Statement, op: Op, _: bool) -> None:
    assert isinstance(op, ops.Store)
    s.write_address(made, op.address)
    made.text.append(", " + _repeat(ZEROS.get(op.type, "0"), len(op.srcs)))


@_spells(ops.Atomic)
def _atomic(s: Speller, made: Statement, op: Op, waits: bool) -> None:
    assert isinstance(op, ops.Atomic)
    if waits:
        raise Unsupported("it waits for a value")
    if not op.is_red:
        made.text.append(f"{DATA}, ")
    s.write_address(made, op.address)
    for src in op.srcs:
        made.text.append(", ")
        if isinstance(src, Const | Lanes):
            s.write_number(made, src)
        else:
            made.text.append(ZEROS.get(op.type, "0"))


@_spells(ops.Fence, ops.ClusterBarrier, ops.Commit, ops.WgmmaFence)
def _bare(s: Speller, made: Statement, op: Op, _: bool) -> None:
    del s, made, op


@_spells(ops.ProxyFence)
def _proxy_fence(s: Speller, made: Statement, op: Op, _: bool) -> None:
    assert isinstance(op, ops.ProxyFence)
    if op.address is not None and op.size is not None:
        s.write_address(made, op.address)
        made.text.append(", ")
        s.write_number(made, op.size)


@_spells(ops.Barrier)
def _barrier(s: Speller, made: Statement, op: Op, _: bool) -> None:
    assert isinstance(op, ops.Barrier) and op.barrier is not None
    if op.kind == "red":
        made.text.append("r0, " if op.red_op in (None, "popc") else "%p0, ")
    s.write_number(made, op.barrier)
    if op.count is not None:
        made.text.append(", ")
        s.write_number(made, op.count)
    if op.kind == "red":
        made.text.append(", %p1")


@_spells(ops.WarpSync)
def _warp_sync(s: Speller, made: Statement, op: Op, _: bool) -> None:
    assert isinstance(op, ops.WarpSync)
    s.write_number(made, op.mask, 32)


@_spells(ops.Collective)
def _collective(s: Speller, made: Statement, op: Op, _: bool) -> None:
    assert isinstance(op, ops.Collective)
    kind, mode = op.op.partition(".")[::2]
    forms = {
        "elect": f"{DATA}|%p0, ",
        "shfl": f"{DATA}, r1, r2, 31, ",
        "redux": f"{DATA}, r1, ",
        "match": f"{DATA}, r1, ",
    }
    if kind == "vote":
        made.text.append(f"{DATA}, %p1, " if mode == "ballot" else "%p0, %p1, ")
    elif kind in forms:
        made.text.append(forms[kind])
    else:
        raise Unsupported("it has no block form")
    s.write_number(made, op.mask, 32)


@_spells(ops.MbarrierInit)
def _init(s: Speller, made: Statement, op: Op, _: bool) -> None:
    assert isinstance(op, ops.MbarrierInit)
    s.write_address(made, op.address)
    made.text.append(", ")
    s.write_number(made, op.count)


@_spells(ops.MbarrierInval)
def _inval(s: Speller, made: Statement, op: Op, _: bool) -> None:
    assert isinstance(op, ops.MbarrierInval)
    s.write_address(made, op.address)


@_spells(ops.MbarrierTx)
def _tx(s: Speller, made: Statement, op: Op, _: bool) -> None:
    assert isinstance(op, ops.MbarrierTx)
    s.write_address(made, op.address)
    made.text.append(", ")
    s.write_number(made, op.tx)


@_spells(ops.MbarrierArrive)
def _arrive(s: Speller, made: Statement, op: Op, _: bool) -> None:
    assert isinstance(op, ops.MbarrierArrive)
    if op.state is not None:
        name = f"%s{op.span.line if op.span is not None else 0}"
        for old in [t for t, n in s.tokens.items() if n == name]:
            del s.tokens[old]
        s.tokens[op.state.name] = name
        made.text.append(name + ", ")
    else:
        made.text.append("_, ")
    s.write_address(made, op.address)
    for more in (op.count, op.tx):
        if more is not None:
            made.text.append(", ")
            s.write_number(made, more)


@_spells(ops.MbarrierWait)
def _wait(s: Speller, made: Statement, op: Op, waits: bool) -> None:
    assert isinstance(op, ops.MbarrierWait)
    if not waits:
        raise Unsupported("it is a poll")
    s.write_address(made, op.address)
    made.text.append(", ")
    if op.parity is not None:
        s.write_number(made, op.parity)
    else:
        name = s.tokens.get(getattr(op.state, "name", ""))
        if name is None:
            raise Unsupported("it waits for the phase of an arrive before the last one of its place")
        made.text.append(name)


@_spells(ops.WaitGroup)
def _wait_group(s: Speller, made: Statement, op: Op, _: bool) -> None:
    assert isinstance(op, ops.WaitGroup)
    if not op.commits:
        s.write_number(made, op.pending)


@_spells(ops.CpAsyncArrive)
def _copies_arrive(s: Speller, made: Statement, op: Op, _: bool) -> None:
    assert isinstance(op, ops.CpAsyncArrive)
    s.write_address(made, op.address)


@_spells(ops.CpAsync)
def _copy(s: Speller, made: Statement, op: Op, _: bool) -> None:
    assert isinstance(op, ops.CpAsync)
    if op.ignore_src is not None and any(s.operand_values(op.ignore_src)):
        raise Unsupported("it ignores its source")
    s.write_address(made, op.dst)
    made.text.append(", ")
    s.write_address(made, op.src, reads=op.src_size is None or all(s.operand_values(op.src_size)))
    made.text.append(", ")
    s.write_number(made, op.size)
    if op.src_size is not None:
        made.text.append(", ")
        s.write_number(made, op.src_size)


@_spells(ops.BulkCopy)
def _bulk(s: Speller, made: Statement, op: Op, _: bool) -> None:
    assert isinstance(op, ops.BulkCopy)
    for expr in (op.dst, op.src):
        s.write_address(made, expr)
        made.text.append(", ")
    s.write_number(made, op.size)
    if op.mbar is not None:
        made.text.append(", ")
        s.write_address(made, op.mbar)
    for mask in (op.cta_mask, op.byte_mask):
        if mask is not None:
            made.text.append(", ")
            s.write_number(made, mask)


@_spells(ops.TensorCopy)
def _tensor(s: Speller, made: Statement, op: Op, _: bool) -> None:
    assert isinstance(op, ops.TensorCopy)
    if op.kind == "load":
        s.write_address(made, op.shared)
        made.text.append(", ")
    made.text.append("[")
    s.write_address(made, op.tensor_map, brackets=False)
    made.text.append(", {")
    for k, coord in enumerate(op.coords):
        made.text.append(", " if k else "")
        made.text.append(NUMBER)
        made.columns.append(tuple((v & 0xFFFFFFFF ^ 0x80000000) - 0x80000000 for v in s.operand_values(coord)))
    made.text.append("}]")
    if op.kind != "load":
        made.text.append(", ")
        s.write_address(made, op.shared)
    if op.mbar is not None:
        made.text.append(", ")
        s.write_address(made, op.mbar)
    if op.im2col_info:
        made.text.append(", {")
        for k, info in enumerate(op.im2col_info):
            made.text.append(", " if k else "")
            s.write_number(made, info)
        made.text.append("}")
    if op.cta_mask is not None:
        made.text.append(", ")
        s.write_number(made, op.cta_mask)


@_spells(ops.AsyncStore)
def _async_store(s: Speller, made: Statement, op: Op, _: bool) -> None:
    assert isinstance(op, ops.AsyncStore)
    s.write_address(made, op.address)
    made.text.append(", " + _repeat(ZEROS.get(op.type, "0"), len(op.srcs)))
    if op.mbar is not None:
        made.text.append(", ")
        s.write_address(made, op.mbar)


@_spells(ops.Fill)
def _fill(s: Speller, made: Statement, op: Op, _: bool) -> None:
    assert isinstance(op, ops.Fill)
    s.write_address(made, op.address)
    made.text.append(", ")
    s.write_number(made, op.size)
    made.text.append(", 0")


def _pairs(reads: tuple[tuple[Expr, Expr], ...]) -> list[tuple[tuple[Expr, Expr], ...]]:
    return [reads[k : k + 2] for k in range(0, len(reads), 2)]

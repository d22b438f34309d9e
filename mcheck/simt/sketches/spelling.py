"""Operations of a trace as statements of the block form.

The opcode is that of the module; the operands are written anew, with a placeholder for each number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from mcheck.base.errors import Span, Unsupported
from mcheck.base.records import dataclass
from mcheck.effects.site import widened
from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr, Lanes
from mcheck.ir.memory import Cta
from mcheck.ir.ops import Op
from mcheck.simt.sketches.objects import Declarations

NUMBER, OFFSET = "\0n", "\0o"
"""Placeholders for a number by itself, and for one that is added to an address."""
DATA = "r0"
FULL = (1 << 64) - 1
ZEROS = {"f32": "0f00000000", "f64": "0d0000000000000000"}
"""Stored values do not matter; a register that is never written would cause a warning."""

Column = tuple[int, ...]
"""A number for each lane of a group."""


@dataclass(frozen=True, slots=True)
class Statement:
    """Text with placeholders, and their numbers, lane by lane."""

    text: tuple[str, ...]
    columns: tuple[Column, ...]
    span: Span | None


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of a statement, likewise."""

    text: tuple[str, ...]
    columns: tuple[Column, ...] = ()


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
        waits = isinstance(op, ops.Await)
        if isinstance(inner, ops.Prefetch | ops.UnknownContinuation | ops.AssumedValue):
            return []
        if isinstance(inner, ops.Wgmma):
            parts = [inner.reads[k : k + 2] for k in range(0, len(inner.reads), 2)]
            return [_statement(opcode(op.text), self._product(part), op.span) for part in parts]
        if ops.multimem_of(inner) is not None:
            raise Unsupported("accesses of the copies of a multimem address are not put together again")
        if waits and isinstance(inner, ops.Load | ops.Atomic):
            raise Unsupported("it waits for a value")
        if not waits and isinstance(inner, ops.MbarrierWait):
            raise Unsupported("it is a poll")
        return [_statement(("await " if waits else "") + _opcode(inner), self._operands(inner), op.span)]

    def _operands(self, op: Op) -> list[Operand]:
        match op:
            case ops.Fence() | ops.ClusterBarrier() | ops.Commit() | ops.WgmmaFence():
                return []
            case ops.Load():
                return [_repeat(DATA, len(op.dsts)), self._place(op.address)]
            case ops.Store():
                return [self._place(op.address), _zeros(op)]
            case ops.Atomic():
                drawn = [] if op.is_red else [_word(DATA)]
                sources = [self._number(s) if isinstance(s, Const | Lanes) else _word(_zero(op.type)) for s in op.srcs]
                return [*drawn, self._place(op.address), *sources]
            case ops.ProxyFence(address=address, size=size):
                return [] if address is None or size is None else [self._place(address), self._number(size)]
            case ops.Barrier():
                return self._barrier(op)
            case ops.WarpSync():
                return [self._number(op.mask, 32)]
            case ops.Collective():
                return [_word(_collective(op.op)), self._number(op.mask, 32)]
            case ops.WaitGroup():
                return [] if op.commits else [self._number(op.pending)]
            case ops.AsyncStore():
                return [self._place(op.address), _zeros(op), *self._places(op.mbar)]
            case ops.Fill():
                return [self._place(op.address), self._number(op.size), _word("0")]
            case ops.CpAsync() | ops.BulkCopy() | ops.TensorCopy():
                return self._copy(op)
        return self._mbarrier_operands(op)

    def _mbarrier_operands(self, op: Op) -> list[Operand]:
        match op:
            case ops.MbarrierInit():
                return [self._place(op.address), self._number(op.count)]
            case ops.MbarrierInval() | ops.CpAsyncArrive():
                return [self._place(op.address)]
            case ops.MbarrierTx():
                return [self._place(op.address), self._number(op.tx)]
            case ops.MbarrierArrive():
                return [_word(self._new_token(op)), self._place(op.address), *self._numbers(op.count, op.tx)]
            case ops.MbarrierWait():
                phase = _word(self._token(op)) if op.parity is None else self._number(op.parity)
                return [self._place(op.address), phase]
        raise Unsupported("it has no block form")

    def _barrier(self, op: ops.Barrier) -> list[Operand]:
        assert op.barrier is not None
        numbers = [self._number(op.barrier), *self._numbers(op.count)]
        if op.kind != "red":
            return numbers
        return [_word(DATA if op.red_op in (None, "popc") else "%p0"), *numbers, _word("%p1")]

    def _copy(self, op: ops.CpAsync | ops.BulkCopy | ops.TensorCopy) -> list[Operand]:
        match op:
            case ops.CpAsync():
                if op.ignore_src is not None and any(self.operand_values(op.ignore_src)):
                    raise Unsupported("it ignores its source")
                reads = op.src_size is None or all(self.operand_values(op.src_size))
                source = self._place(op.src, reads=reads)
                return [self._place(op.dst), source, self._number(op.size), *self._numbers(op.src_size)]
            case ops.BulkCopy():
                ends = [self._place(op.dst), self._place(op.src), self._number(op.size)]
                return [*ends, *self._places(op.mbar), *self._numbers(op.cta_mask, op.byte_mask)]
        coordinates = [self._coordinate(coord) for coord in op.coords]
        tensor = _join([self._place(op.tensor_map, brackets=""), _join(coordinates, "{}")], "[]")
        ends = [self._place(op.shared), tensor]
        im2col = [_join([self._number(info) for info in op.im2col_info], "{}")] if op.im2col_info else []
        return [
            *(ends if op.kind == "load" else reversed(ends)),
            *self._places(op.mbar),
            *im2col,
            *self._numbers(op.cta_mask),
        ]

    def _product(self, reads: tuple[tuple[Expr, Expr], ...]) -> list[Operand]:
        """The operands of a wgmma that reads these ranges: a matrix that is none of them is in registers."""
        in_registers = [_word("{%r0, %r1, %r2, %r3}")] if len(reads) == 1 else []
        ranges = [_join([self._place(at, brackets=""), self._number(size)], "[]") for at, size in reads]
        return [_word("{%f0, %f1, %f2, %f3}"), *in_registers, *ranges]

    # --- operands ------------------------------------------------------------------------------------------------

    def operand_values(self, expr: Expr) -> Column:
        """The values of an operand by lane."""
        match expr:
            case Const(value):
                return (value,) * len(self.lanes)
            case Lanes(values):
                return tuple(values[lane] for lane in self.lanes)
        raise Unsupported("an operand is not a number")

    def _number(self, expr: Expr, bits: int = 64) -> Operand:
        """A number; all ones is written as -1."""
        top = (1 << bits) - 1
        return Operand((NUMBER,), (tuple(-1 if v & top in (top, FULL) else v for v in self.operand_values(expr)),))

    def _numbers(self, *given: Expr | None) -> list[Operand]:
        return [self._number(expr) for expr in given if expr is not None]

    def _coordinate(self, expr: Expr) -> Operand:
        """A signed number of 32 bits."""
        values = tuple((v & 0xFFFFFFFF ^ 0x80000000) - 0x80000000 for v in self.operand_values(expr))
        return Operand((NUMBER,), (values,))

    def _place(self, expr: Expr, *, brackets: str = "[]", reads: bool = True) -> Operand:
        """An address: an object and an offset, or an element of an array of mbarriers. If nothing is read or written
        there, the object may be another one.
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
        rank = self._rank(tuple(-1 if i.cta is None else i.cta.rank for i in instances))
        bars = [self.declared.bars.get((first.object.name, at)) for at in offsets]
        named = [b for b in bars if b is not None]
        if len(named) == len(bars) and len({name for name, _ in named}) == 1:
            place = Operand((f"{named[0][0]}[", NUMBER, "]"), (tuple(index for _, index in named),))
            return _join([place, *rank], brackets, between="")
        name, offset = _word(self.declared.object_name(first)), Operand((OFFSET,), (offsets,))
        return _join([name, *rank, offset], brackets, between="")

    def _places(self, given: Expr | None) -> list[Operand]:
        return [] if given is None else [self._place(given)]

    def _rank(self, ranks: Column) -> list[Operand]:
        own = all(rank in (-1, self.cta.rank) for rank in ranks)
        return [] if own else [Operand(("@(", NUMBER, ")"), (ranks,))]

    # --- states of mbarriers -------------------------------------------------------------------------------------

    def _new_token(self, op: ops.MbarrierArrive) -> str:
        """The name of the state that an arrive returns; that of an earlier one of its place is taken."""
        if op.state is None:
            return "_"
        name = f"%s{op.span.line if op.span is not None else 0}"
        for old in [t for t, n in self.tokens.items() if n == name]:
            del self.tokens[old]
        self.tokens[op.state.name] = name
        return name

    def _token(self, op: ops.MbarrierWait) -> str:
        name = self.tokens.get(getattr(op.state, "name", ""))
        if name is None:
            raise Unsupported("it waits for the phase of an arrive before the last one of its place")
        return name


def _statement(code: str, operands: Sequence[Operand], span: Span | None) -> Statement:
    whole = _join(operands)
    return Statement((code, *((" ", *whole.text) if operands else ()), ";"), whole.columns, span)


def _join(operands: Sequence[Operand], brackets: str = "", *, between: str = ", ") -> Operand:
    text: list[str] = [brackets[:1]]
    for k, operand in enumerate(operands):
        text += [between if k else "", *operand.text]
    return Operand((*text, brackets[1:]), tuple(column for operand in operands for column in operand.columns))


def _word(text: str) -> Operand:
    return Operand((text,))


def _repeat(word: str, count: int) -> Operand:
    return _word(word if count == 1 else "{" + ", ".join([word] * count) + "}")


def _zero(type_name: str) -> str:
    return ZEROS.get(type_name, "0")


def _zeros(op: ops.Store | ops.AsyncStore) -> Operand:
    return _repeat(_zero(op.type), len(op.srcs))


def _collective(name: str) -> str:
    """The operands of a collective before its mask."""
    kind, _, mode = name.partition(".")
    forms = {
        "elect": f"{DATA}|%p0",
        "shfl": f"{DATA}, r1, r2, 31",
        "redux": f"{DATA}, r1",
        "match": f"{DATA}, r1",
        "vote": f"{DATA}, %p1" if mode == "ballot" else "%p0, %p1",
    }
    if kind not in forms:
        raise Unsupported("it has no block form")
    return forms[kind]


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

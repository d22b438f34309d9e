"""The syntax of an instruction: opcode with modifiers, operands, guard (PTX ISA 4.3, 6.4).

The operands are the same in litmus files and in modules. A scalar has an expression, which is what the instruction
table looks at; in litmus files it may be any (``Value``), in modules it is a register, a constant, a name and so on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.ir import expr as ir
from mcheck.ir.ops import Guard

# --- scalars --------------------------------------------------------------------------------------------------


class Scalar:
    """An operand with one value, or a label."""

    __slots__ = ()

    @property
    def expr(self) -> ir.Expr:
        """The operand as an expression: registers by name, floats as their bits."""
        raise NotImplementedError

    @property
    def negated(self) -> bool:
        """Is it ``!p``?"""
        return False

    @property
    def span(self) -> Span | None:
        """Its place, if it has one of its own."""
        return None


@dataclass(frozen=True, slots=True)
class Value(Scalar):
    """A register, a constant expression, a name (its address, or a label) or an immediate of a litmus file."""

    expr: ir.Expr
    negated: bool = False
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Register(Scalar):
    """A register of a function. ``index`` counts the registers that occur in its body, from 0; ``type`` is PTX's.

    An element of a vector register (``.reg .v4 .f32 v``, written ``v.x`` or ``v.r``) is a register of its own.
    """

    name: str
    type: str
    index: int

    @property
    def expr(self) -> ir.Reg:
        return ir.Reg(self.name)


@dataclass(frozen=True, slots=True)
class Part(Scalar):
    """A byte or half of a register, as video instructions name it: ``%r1.b0``, ``%r1.h1`` (PTX ISA 9.7.17)."""

    register: Register
    selector: str

    @property
    def expr(self) -> ir.Reg:
        return ir.Reg(f"{self.register.name}.{self.selector}")


@dataclass(frozen=True, slots=True)
class Negated(Scalar):
    """``!p`` as an operand (a guard has its own field)."""

    register: Register

    @property
    def expr(self) -> ir.Reg:
        return ir.Reg(self.register.name)

    @property
    def negated(self) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class Special(Scalar):
    """A predefined register (PTX ISA 10), without its percent sign: ``tid.x``, ``laneid``, ``cluster_ctarank``."""

    name: str

    @property
    def expr(self) -> ir.Special:
        return ir.Special(self.name)


@dataclass(frozen=True, slots=True)
class Immediate(Scalar):
    """A constant. ``kind`` is ``int``, ``f32`` (``0f3F800000``) or ``f64`` (``0d…``, ``1.5``).

    ``value`` is the integer with its sign, or the bits of the float.
    """

    value: int
    kind: str = "int"

    @property
    def expr(self) -> ir.Const:
        return ir.Const(self.value)


@dataclass(frozen=True, slots=True)
class Symbol(Scalar):
    """The address of a variable, a parameter or a function, plus ``offset``.

    ``name`` is a key of the function's ``variables``, else of its ``parameters`` and ``returns`` by name, else of the
    module's ``variables``, else of its ``functions`` or ``aliases``. ``generic`` stands in initialisers only.
    """

    name: str
    offset: int = 0
    generic: bool = False

    @property
    def expr(self) -> ir.Expr:
        return _plus(ir.Name(self.name), self.offset)


@dataclass(frozen=True, slots=True)
class Label(Scalar):
    """A label, or the name of a ``.branchtargets``, ``.calltargets`` or ``.callprototype`` list: a key of
    ``Function.labels``, ``Function.branch_targets``, ``Function.call_targets`` or ``Function.prototypes``.
    """

    name: str

    @property
    def expr(self) -> ir.Name:
        return ir.Name(self.name)


def _plus(base: ir.Expr, offset: int) -> ir.Expr:
    return base if offset == 0 else ir.Binary("+", base, ir.Const(offset))


# --- others ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sink:
    """``_``."""

    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Address:
    """``[base + offset]``, or ``[offset]`` where ``base`` is ``None``; ``rest`` are further items of the brackets:
    ``[map, {c0, c1}]`` has a ``Vector``, ``[address, bytes]`` a number.
    """

    base: Operand | None
    offset: int = 0
    rest: tuple[Operand, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def items(self) -> tuple[Operand, ...]:
        """What stands in the brackets, the address first."""
        return (self._first(), *self.rest)

    def _first(self) -> Operand:
        if self.base is None:
            return Immediate(self.offset)
        if self.offset == 0:
            return self.base
        assert isinstance(self.base, Scalar)
        return Value(_plus(self.base.expr, self.offset))


@dataclass(frozen=True, slots=True)
class Vector:
    """``{a, b}``, single elements included; the vector register ``v`` of a module stands as its elements."""

    items: tuple[Operand, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Pair:
    """``p|q``: two destinations."""

    first: Operand
    second: Operand
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Arguments:
    """``(a, b)``: the results or the arguments of a call."""

    items: tuple[Operand, ...]
    span: Span | None = field(default=None, compare=False, repr=False)


Operand = (
    Value
    | Register
    | Part
    | Negated
    | Special
    | Immediate
    | Symbol
    | Label
    | Sink
    | Address
    | Vector
    | Pair
    | Arguments
)

SINK = Sink()


def operand_registers(operand: Operand) -> Iterator[Register]:
    """The registers of a module that occur in an operand."""
    match operand:
        case Register():
            yield operand
        case Part() | Negated():
            yield operand.register
        case Address():
            for item in (*(() if operand.base is None else (operand.base,)), *operand.rest):
                yield from operand_registers(item)
        case Vector() | Arguments():
            for item in operand.items:
                yield from operand_registers(item)
        case Pair():
            yield from operand_registers(operand.first)
            yield from operand_registers(operand.second)
        case Value() | Special() | Immediate() | Symbol() | Label() | Sink():
            pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """``text`` is the source, ``opcode`` the dotted name split at its dots (``cp.async`` is ``("cp", "async")``).

    ``spans`` has the place of every part of the opcode.
    """

    opcode: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None = None
    text: str = ""
    span: Span | None = field(default=None, compare=False)
    spans: tuple[Span, ...] = field(default=(), compare=False)

"""A parsed PTX module: functions, variables, statements with their operands (PTX ISA 4 to 7, 10, 11).

Names are resolved: a register, a label or a variable that an inner ``{ }`` declares under a name that is taken has
another ``name`` than the outer one, so that within a function a name means one thing. Branch targets are indices into
``Function.body``. Constant expressions are folded. What an instruction is, ``mcheck.isa.opcode`` says.

Types are spelled as in PTX, without the dot (``b32``, ``f16x2``, ``pred``); sizes, offsets and alignments are bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.isa.kinds import Kind
from mcheck.isa.opcode import Opcode

# --- operands -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Register:
    """A register of a function. ``index`` counts the registers that occur in its body, from 0; ``type`` is PTX's.

    An element of a vector register (``.reg .v4 .f32 v``, written ``v.x`` or ``v.r``) is a register of its own.
    """

    name: str
    type: str
    index: int


@dataclass(frozen=True, slots=True)
class Part:
    """A byte or half of a register, as video instructions name it: ``%r1.b0``, ``%r1.h1`` (PTX ISA 9.7.17)."""

    register: Register
    selector: str


@dataclass(frozen=True, slots=True)
class Special:
    """A predefined register (PTX ISA 10), without its percent sign: ``tid.x``, ``laneid``, ``cluster_ctarank``."""

    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant. ``kind`` is ``int``, ``f32`` (``0f3F800000``) or ``f64`` (``0d…``, ``1.5``).

    ``value`` is the integer with its sign, or the bits of the float.
    """

    value: int
    kind: str = "int"


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of a variable, a parameter or a function, plus ``offset``.

    ``name`` is a key of the function's ``variables``, else of its ``parameters`` and ``returns`` by name, else of the
    module's ``variables``, else of its ``functions`` or ``aliases``. ``generic`` stands in initialisers only.
    """

    name: str
    offset: int = 0
    generic: bool = False


@dataclass(frozen=True, slots=True)
class Label:
    """A label, or the name of a ``.branchtargets``, ``.calltargets`` or ``.callprototype`` list: a key of
    ``Function.labels``, ``Function.branch_targets``, ``Function.call_targets`` or ``Function.prototypes``.
    """

    name: str


@dataclass(frozen=True, slots=True)
class Sink:
    """``_``."""


@dataclass(frozen=True, slots=True)
class Negated:
    """``!p`` as an operand (a guard has its own field)."""

    register: Register


@dataclass(frozen=True, slots=True)
class Address:
    """``[base + offset]``, or ``[offset]`` where ``base`` is ``None``; ``rest`` are further items of the brackets:
    ``[map, {c0, c1}]`` has a ``Vector``.
    """

    base: Register | Symbol | Special | None
    offset: int = 0
    rest: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Vector:
    """``{a, b}``, single elements included; the vector register ``v`` stands as its elements."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """``p|q``."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Arguments:
    """``(a, b)``: the results or the arguments of a call."""

    items: tuple[Operand, ...]


Operand = Register | Part | Special | Immediate | Symbol | Label | Sink | Negated | Address | Vector | Pair | Arguments

SINK = Sink()


def operand_registers(operand: Operand) -> Iterator[Register]:
    """The registers that occur in an operand."""
    match operand:
        case Register():
            yield operand
        case Part() | Negated():
            yield operand.register
        case Address():
            if isinstance(operand.base, Register):
                yield operand.base
            for item in operand.rest:
                yield from operand_registers(item)
        case Vector() | Arguments():
            for item in operand.items:
                yield from operand_registers(item)
        case Pair():
            yield from operand_registers(operand.first)
            yield from operand_registers(operand.second)
        case Special() | Immediate() | Symbol() | Label() | Sink():
            pass


# --- statements -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Guard:
    """``@p`` or ``@!p``."""

    register: Register
    negated: bool = False


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A location in the source of the compiler (``.loc``, PTX ISA 11.5.3).

    ``path`` is the name in the ``.file`` table; ``function`` and ``inlined_at`` are set where the code was inlined.
    """

    path: str
    line: int
    column: int
    function: str | None = None
    inlined_at: SourceLine | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """An instruction. ``opcode`` says what the instruction table knows of its name.

    ``operands`` of a call: up to three, ``Arguments`` for what is returned (left out if nothing is), then a ``Symbol``
    or ``Register`` for the callee, ``Arguments``, and a ``Label`` of its prototype or targets. Branches have a
    ``Label``. ``text`` is the instruction as it is written with its blanks squeezed, without guard and semicolon;
    ``span`` covers it in the module (its first line if there are several). ``source`` is that of the ``.loc`` above.
    ``lead`` is how far behind the beginning the opcode stands, if in the same line.
    """

    opcode: Opcode
    operands: tuple[Operand, ...]
    guard: Guard | None
    text: str
    span: Span = field(compare=False)
    source: SourceLine | None = field(default=None, compare=False)
    lead: int | None = field(default=None, compare=False)

    @property
    def kind(self) -> Kind:
        """What the instruction does."""
        return self.opcode.kind

    @property
    def only_computes(self) -> bool:
        """Has the instruction no effect except on registers?"""
        return self.opcode.only_computes

    @property
    def defs(self) -> tuple[Register, ...]:
        """The registers that the statement writes."""
        return tuple(r for k, o in enumerate(self.operands) if self._writes(k) for r in operand_registers(o))

    @property
    def uses(self) -> tuple[Register, ...]:
        """The registers that the statement reads, its guard included; one may occur twice."""
        found = [r for k, o in enumerate(self.operands) if self._reads(k) for r in operand_registers(o)]
        if self.guard is not None:
            found.append(self.guard.register)
        return tuple(found)

    @property
    def address(self) -> Address | None:
        """The first operand that is an address."""
        return next((o for o in self.operands if isinstance(o, Address)), None)

    def _writes(self, position: int) -> bool:
        if position not in self.opcode.written:
            return False
        operand = self.operands[position]
        return isinstance(operand, Arguments) if self.opcode.kind is Kind.CALL else not isinstance(operand, Address)

    def _reads(self, position: int) -> bool:
        """Is the operand read? Writing a part of a register keeps the rest of it."""
        updated = position in self.opcode.updated or isinstance(self.operands[position], Part)
        return updated or not self._writes(position)

    def parts(self) -> tuple[Span, ...]:
        """The locations of the parts of the opcode, if it is written without blanks; else none."""
        if self.lead is None:
            return ()
        column, found = self.span.column + self.lead, []
        for part in self.opcode.parts:
            found.append(replace(self.span, column=column, length=max(len(part), 1)))
            column += len(part) + 1
        return tuple(found)


# --- variables and functions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A declared object: ``.global .align 16 .b8 a[4][16] = {…};``.

    ``space`` is ``global``, ``shared``, ``const``, ``local``, ``param`` or ``tex``. ``size`` is that of the whole
    object and ``None`` where the declaration leaves it open (``.extern .shared .b8 smem[];``). ``linkage`` is
    ``extern``, ``visible``, ``weak``, ``common`` or empty. ``shape`` has the array's extents (``None`` for an open
    first one) and ``width`` is the number of elements of ``.v2`` and ``.v4``. ``initial`` are the elements that an
    initialiser gives, as (offset, bytes, value); what it does not give is zero, and ``None`` means that there is none.
    """

    name: str
    space: str
    type: str
    align: int
    size: int | None
    shape: tuple[int | None, ...] = ()
    width: int = 1
    linkage: str = ""
    attributes: tuple[str, ...] = ()
    initial: tuple[tuple[int, int, Immediate | Symbol], ...] | None = None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter or a returned value of a function.

    ``space`` is ``param`` or, of a ``.func``, ``reg``. ``pointer`` is the space that a ``.ptr`` says (``generic`` if it
    names none), else ``None``; ``pointer_align`` is its ``.align``. ``size`` is ``None`` for ``.b8 rest[]``.
    """

    name: str
    type: str
    space: str
    align: int
    size: int | None
    shape: tuple[int | None, ...] = ()
    pointer: str | None = None
    pointer_align: int | None = None
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prototype:
    """The signature in a ``.callprototype``; the names of parameters are as written, often ``_``."""

    returns: tuple[Parameter, ...]
    parameters: tuple[Parameter, ...]
    noreturn: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """An ``.entry`` or a ``.func``; ``defined`` is false for a declaration without a body.

    ``registers`` are those that occur in the body, by index. ``labels`` maps a label to the index in ``body`` of the
    statement behind it (``len(body)`` at the end). ``variables`` are what the body declares (``local``, ``shared``,
    ``param`` and so on, those of inner blocks included). ``branch_targets`` maps a ``.branchtargets`` name to its
    labels, ``call_targets`` a ``.calltargets`` name to functions, ``prototypes`` a ``.callprototype`` name to what it
    says. ``pragmas`` are the strings of ``.pragma``.

    ``directives`` are those between the head and the body, by name without the dot, each with its numbers:
    ``{"reqntid": (384, 1, 1), "minnctapersm": (1,), "noreturn": (), "explicitcluster": ()}``. Extents are as written:
    one to three numbers.
    """

    name: str
    entry: bool
    linkage: str
    returns: tuple[Parameter, ...]
    parameters: tuple[Parameter, ...]
    directives: Mapping[str, tuple[int, ...]]
    defined: bool
    registers: tuple[Register, ...]
    variables: Mapping[str, Variable]
    labels: Mapping[str, int]
    branch_targets: Mapping[str, tuple[str, ...]]
    call_targets: Mapping[str, tuple[str, ...]]
    prototypes: Mapping[str, Prototype]
    pragmas: tuple[str, ...]
    body: tuple[Statement, ...]
    span: Span = field(compare=False)


@dataclass(frozen=True, slots=True)
class SourceParameter:
    """A parameter of a kernel as the C++ source declares it."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Signature:
    """A kernel as the C++ source declares it; ``line`` is that of ``__global__``."""

    name: str
    parameters: tuple[SourceParameter, ...]
    line: int


def parse_version(version: str) -> tuple[int, int]:
    """A PTX version as numbers; (0, 0) if it has another form."""
    major, _, minor = version.partition(".")
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else (0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A module. ``target`` is the architecture (``sm_90a``), ``options`` what else ``.target`` lists.

    ``files`` is the ``.file`` table; ``aliases`` maps an ``.alias`` to the function that it means. A function that is
    declared and defined stands once, as defined. ``signatures`` are those of entries in their source, if it is there.
    """

    path: str
    version: str
    target: str
    options: tuple[str, ...]
    address_size: int
    variables: Mapping[str, Variable]
    functions: Mapping[str, Function]
    aliases: Mapping[str, str]
    files: Mapping[int, str]
    pragmas: tuple[str, ...] = ()
    target_span: Span | None = field(default=None, compare=False)
    signatures: Mapping[str, Signature] = field(default_factory=dict)

    @property
    def ptx(self) -> tuple[int, int]:
        """The PTX version that the module declares."""
        return parse_version(self.version)

    @property
    def entries(self) -> tuple[str, ...]:
        """The names of the kernels that have a body."""
        return tuple(f.name for f in self.functions.values() if f.entry and f.defined)

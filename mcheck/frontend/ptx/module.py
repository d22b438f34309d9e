"""A parsed PTX module: functions, variables, statements with their operands (PTX ISA 4 to 7, 10, 11).

Names are resolved: a register, a label or a variable that an inner ``{ }`` declares under a name that is taken has
another ``name`` than the outer one, so that within a function a name means one thing. Branch targets are indices into
``Function.body``. Constant expressions are folded. What an instruction is, ``mcheck.isa.opcode`` says.

Types are spelled as in PTX, without the dot (``b32``, ``f16x2``, ``pred``); sizes, offsets and alignments are bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from mcheck.base.errors import Span, Unsupported
from mcheck.base.records import dataclass, replace
from mcheck.isa.instruction import (
    SINK,
    Address,
    Arguments,
    Immediate,
    Label,
    Negated,
    Operand,
    Pair,
    Part,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
    operand_registers,
)
from mcheck.isa.kinds import Kind
from mcheck.isa.opcode import Opcode

__all__ = [
    "SINK",
    "Address",
    "Arguments",
    "Immediate",
    "Label",
    "Negated",
    "Operand",
    "Pair",
    "Part",
    "Register",
    "Sink",
    "Special",
    "Symbol",
    "Vector",
    "operand_registers",
]

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

    @property
    def outermost(self) -> SourceLine:
        """The line outside of all calls that the code was inlined in."""
        line = self
        while line.inlined_at is not None:
            line = line.inlined_at
        return line

    @property
    def chain(self) -> tuple[Span, ...]:
        """This location, followed by those of the calls that the code was inlined into."""
        outer = self.inlined_at.chain if self.inlined_at is not None else ()
        return (Span(self.path, self.line, max(self.column, 1)), *outer)


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

    @property
    def place(self) -> Address:
        """The address of an access; raises ``Unsupported`` if there is none."""
        if self.address is None:
            raise Unsupported(f"'{self.text}' has no address", self.span)
        return self.address

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

    @property
    def is_managed(self) -> bool:
        """Whether all GPUs have the variable in common; of others each has its own (5.4.8)."""
        return any(a == "managed" or a.startswith("unified") for a in self.attributes)

    @property
    def is_told(self) -> bool:
        """Whether the module says what the variable holds when it has been loaded: its initialiser, or zero (PTX ISA
        5.1, table 7), unless another module may define it.
        """
        return self.space in ("const", "global") and (
            self.initial is not None or self.linkage not in ("extern", "common")
        )


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


def constant_of(function: Function, operand: Operand) -> int | None:
    """The value of an operand, if it is a number, or a register to which nothing but one is ever moved."""
    if isinstance(operand, Immediate):
        return operand.value
    if not isinstance(operand, Register):
        return None
    moves = [s for s in function.body if operand in s.defs]
    if len(moves) != 1 or moves[0].kind is not Kind.MOVE or moves[0].guard is not None:
        return None
    source = moves[0].operands[1]
    return source.value if isinstance(source, Immediate) else None


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


def qualified_name(function: str, name: str) -> str:
    """The name of a variable in a module: that of a function behind the function's."""
    return f"{function}.{name}" if function else name


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
    def all_variables(self) -> Iterator[tuple[str, Variable]]:
        """All variables, with their names, those of functions behind that of the function (``qualified_name``)."""
        for owner, variables in (("", self.variables), *((f.name, f.variables) for f in self.functions.values())):
            yield from ((qualified_name(owner, name), item) for name, item in variables.items())

    @property
    def parameter_names(self) -> dict[str, tuple[str, ...]]:
        """The names of the parameters of each kernel that has a body."""
        return {name: tuple(p.name for p in self.functions[name].parameters) for name in self.entries}

    @property
    def entries(self) -> tuple[str, ...]:
        """The names of the kernels that have a body."""
        return tuple(f.name for f in self.functions.values() if f.entry and f.defined)

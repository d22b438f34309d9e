"""The vocabulary of the instruction table: families, variants, qualifier slots, operands, rules.

A family is one instruction of the PTX ISA. Its variants differ in the qualifiers they take and in their operands; a
variant lists its qualifier slots in the order in which the ISA writes them. NVIDIA's assembler lets qualifiers of
different kinds change places and keeps the order only among state spaces and among types, so ``Slot.kind`` names those
two kinds and the matcher does the same. A slot of kind ``name`` is a part of the instruction's name to the assembler:
it stands before everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from mcheck.base.records import dataclass
from mcheck.ir.ops import Op
from mcheck.isa.instruction import Operand
from mcheck.isa.kinds import Kind

Qualifiers = Mapping[str, str]
"""The chosen value of each slot that was written (or, for an omitted slot with a default, the default)."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for one qualifier: its legal values (without the dot) and what each value needs.

    ``default`` is the value of an omitted optional slot. ``kind`` is ``space`` or ``type`` where the order among
    qualifiers of that kind matters. ``needs`` maps a value to its targets (see ``mcheck.isa.targets``), ``ptx`` to the
    PTX version that introduced it. An instruction with an ``unmodelled`` value is legal, and what it does is not
    modelled.
    """

    name: str
    values: tuple[str, ...]
    optional: bool = False
    default: str | None = None
    kind: str = ""
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ptx: Mapping[str, str] = field(default_factory=dict)
    unmodelled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition on a combination of qualifiers; where ``test`` is false, ``slot`` is to blame.

    ``expected`` says what is legal, given the other qualifiers.
    """

    test: Callable[[Qualifiers], bool]
    slot: str
    message: str
    expected: Callable[[Qualifiers], str] | str = ""


@dataclass(frozen=True, slots=True)
class Requirement:
    """Where ``test`` holds, the targets that the combination needs; ``slot`` is to blame."""

    test: Callable[[Qualifiers], bool]
    slot: str
    needs: tuple[str, ...]


DESTINATIONS = frozenset(("dst", "pair", "wait", "elect", "result"))
"""The kinds of operands whose registers are written."""
IN_BRACKETS = frozenset(("mem", "tensor", "range"))
"""The kinds of operands that are addresses in brackets."""


@dataclass(frozen=True, slots=True)
class Arg:
    """One operand.

    ``kind``: ``dst`` (register, written), ``sink`` (only ``_``), ``src`` (register or constant), ``reg`` (register,
    read), ``imm`` (constant), ``pred`` (predicate, perhaps negated), ``mem`` (``[address]``), ``tensor``
    (``[map, {coordinates}]``), ``range`` (``[address, bytes]``), ``name`` (a bare location of the table dialect),
    ``label``, ``pair`` (``p`` or ``p|q``), ``any`` (opaque).

    ``type`` is a PTX type, or ``$slot`` for the value of a slot. ``count`` gives the length of a vector operand
    (``None``: a scalar). ``sinkable``: ``_`` may stand for the register. ``when`` says for which qualifiers the
    operand is there; ``optional`` operands are filled from the left. ``values`` are the legal constants
    (``besides``: which those of a relative are, in words), ``low`` and ``high`` their bounds. ``wide``: a wider
    register may stand there, as in ``ld``, ``st`` and ``cvt``.
    ``space`` is the state space that a named object must lie in (``$slot`` for the value of a slot), ``generic``
    are those it may lie in where no space is written (empty: any). ``needs`` are the targets for giving the operand
    at all, ``value_needs`` those of single constants. ``written`` marks a list of registers that are written, ``read``
    one that is read as well. ``inner`` stand between the address of a ``tensor`` operand and its coordinates.
    """

    name: str
    kind: str
    type: str = ""
    count: Callable[[Qualifiers], int | None] | None = None
    when: Callable[[Qualifiers], bool] | None = None
    optional: bool = False
    sinkable: bool = False
    values: tuple[int, ...] = ()
    besides: str = ""
    low: int | None = None
    high: int | None = None
    wide: bool = False
    space: str = ""
    generic: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    value_needs: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    written: bool = False
    read: bool = False
    inner: tuple[Arg, ...] = ()

    def given(self, q: Qualifiers) -> tuple[Arg, ...]:
        """The inner operands that are there with these qualifiers."""
        return tuple(arg for arg in self.inner if arg.when is None or arg.when(q))

    @property
    def is_written(self) -> bool:
        """Are its registers written?"""
        return self.written or self.kind in DESTINATIONS

    @property
    def is_read(self) -> bool:
        """Are its registers read?"""
        return self.read or not self.is_written


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One form of a family. ``needs``, ``ptx`` and ``kind`` override those of the family."""

    name: str = ""
    slots: tuple[Slot, ...] = ()
    args: tuple[Arg, ...] = ()
    lower: Callable[[Match], Op]
    rules: tuple[Rule, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    needs: tuple[str, ...] = ()
    ptx: str = ""
    completion: str = ""
    proxy: str = ""
    undefined: tuple[str, ...] = ()
    kind: Kind | None = None

    def is_modelled(self, q: Qualifiers) -> bool:
        """Is what the instruction does modelled, as far as its qualifiers say?"""
        return not any(q.get(slot.name) in slot.unmodelled for slot in self.slots)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One instruction: ``name`` is the part of the opcode that every variant shares, ``kind`` what it does.

    ``needs`` lists the targets, any of which will do (empty: all); ``completion`` is the completion mechanism of an
    asynchronous operation; ``undefined`` are the conditions under which executing it is undefined behaviour (they are
    findings at run time, never errors here).
    """

    name: str
    kind: Kind
    section: str
    title: str
    variants: tuple[Variant, ...]
    needs: tuple[str, ...] = ()
    ptx: str = "1.0"
    completion: str = ""
    proxy: str = "generic"
    undefined: tuple[str, ...] = ()
    dialect: bool = False

    @property
    def head(self) -> tuple[str, ...]:
        return tuple(self.name.split("."))


@dataclass(frozen=True, slots=True)
class Match:
    """An instruction recognised: its variant, its qualifiers, its operands by name, and what every ``Op`` carries."""

    family: Family
    variant: Variant
    q: Qualifiers
    args: Mapping[str, Operand]
    common: Mapping[str, Any]

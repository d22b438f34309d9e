"""Name resolution inside a function: registers, variables and labels of nested blocks (PTX ISA 4.4, 5.4.6, 6.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mcheck.base.errors import Span
from mcheck.frontend.litmus.codes import suggest
from mcheck.frontend.ptx.module import Operand, Register, Symbol, Variable, Vector
from mcheck.frontend.ptx.problems import problem
from mcheck.frontend.ptx.types import ELEMENTS

_MOST_DIGITS = 9


class FunctionNames:
    """All names of a function; ``unique`` makes an unused one."""

    def __init__(self, module: Mapping[str, object]) -> None:
        self.module = module
        self.registers: list[Register] = []
        self.variables: dict[str, Variable] = {}
        self._taken: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """``name``, or if another block has it already, ``name#2`` and so on."""
        count = self._taken[name] = self._taken.get(name, 0) + 1
        return name if count == 1 else f"{name}#{count}"  # no name of a module has a '#' in it

    def new_register(self, name: str, kind: str) -> Register:
        """Make a new register."""
        made = Register(self.unique(name), kind, len(self.registers))
        self.registers.append(made)
        return made


class Scope:
    """The declarations of one ``{ }``. ``operands`` caches parsed operands by text."""

    __slots__ = ("_declared", "_known", "_ranges", "labels", "names", "operands", "outer", "start")

    def __init__(self, names: FunctionNames, outer: Scope | None, start: int) -> None:
        self.names = names
        self.outer = outer
        self.start = start
        self.operands: dict[str, Operand] = {}
        self.labels: dict[str, str] = {}
        self._declared: dict[str, tuple[str, int]] = {}
        self._ranges: dict[str, tuple[str, int, int]] = {}
        self._known: dict[str, Operand] = {}

    def declare_registers(self, name: str, kind: str, width: int, count: int | None, span: Span) -> None:
        """Declare ``.reg .kind name`` or, with a ``count``, ``name<count>``."""
        if name in self._declared or (count is not None and name in self._ranges):
            raise problem("PTX020", span, name=name)
        if count is not None:
            self._ranges[name] = (kind, width, count)
        else:
            self._declared[name] = (kind, width)
        self.operands.clear()
        self._known.pop(name, None)

    def declare_variable(self, name: str, span: Span) -> str:
        """Declare a variable; returns its name in the function."""
        if name in self._known or name in self._declared:
            raise problem("PTX020", span, name=name)
        found = self.names.unique(name)
        self._known[name] = Symbol(found)
        self.operands.clear()
        return found

    def find(self, name: str) -> Operand | None:
        """Resolve a name: a register, the elements of a vector register, the address of a variable."""
        scope: Scope | None = self
        while scope is not None:
            found = scope._find_here(name)  # noqa: SLF001 - an other one of its kind
            if found is not None:
                return found
            scope = scope.outer
        return Symbol(name) if name in self.names.module else None

    def _find_here(self, name: str) -> Operand | None:
        known = self._known.get(name)
        if known is not None:
            return known
        declared = self._declared.get(name) or self._find_range(name)
        if declared is None:
            return None
        kind, width = declared
        if width == 1:
            made: Operand = self.names.new_register(name, kind)
        else:
            letters = list(ELEMENTS)[:width]
            made = Vector(tuple(self.names.new_register(f"{name}.{letter}", kind) for letter in letters))
        self._known[name] = made
        return made

    def _find_range(self, name: str) -> tuple[str, int] | None:
        """The type and width of ``%r12`` if there is a range ``%r<13>`` or ``%r1<3>``."""
        end = len(name)
        start = end
        while start > 1 and end - start < _MOST_DIGITS and name[start - 1] in "0123456789":
            start -= 1
            found = self._ranges.get(name[:start])
            if found is not None and (name[start] != "0" or start == end - 1) and int(name[start:]) < found[2]:
                return found[0], found[1]
        return None

    def suggest(self, name: str) -> str | None:
        """A suggestion for a name that is not declared."""
        scope: Scope | None = self
        known: list[str] = [*self.names.module]
        while scope is not None:
            for prefix, (_, _, count) in scope._ranges.items():  # noqa: SLF001 - likewise
                if name.startswith(prefix) and name[len(prefix) :].isdecimal():
                    return f"{prefix}<{count}> declares {prefix}0 to {prefix}{count - 1}"
            known += [*scope._declared, *scope._known]  # noqa: SLF001 - likewise
            scope = scope.outer
        return suggest(name, known)

    def enclosing(self) -> Iterator[Scope]:
        """This scope and the enclosing ones, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

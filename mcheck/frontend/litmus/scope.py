"""The symbol table during parsing: registers, constants, loop variables, objects.

In the table form an undeclared name is a 32-bit location with initial value 0. In the block form it is an error, so
that a typo never becomes a new location.
"""

from __future__ import annotations

import re

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.frontend.litmus.codes import problem, suggest
from mcheck.frontend.litmus.error_recovery import Mistakes
from mcheck.frontend.litmus.lexer import Tokens
from mcheck.ir.expr import Const, Expr
from mcheck.ir.memory import MemObject

_PLAIN_REGISTER = re.compile(r"r\d+", re.ASCII)

VECTORS = ("tid", "ntid", "ctaid", "nctaid", "clusterid", "cluster_ctaid", "cluster_nctaid")
SPECIALS = frozenset(
    (
        "laneid", "warpid", "nwarpid", "cluster_ctarank", "cluster_nctarank", "is_explicit_cluster",
        "lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt",
        *(f"{name}.{axis}" for name in VECTORS for axis in "xyz"),
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Function:
    """A function, ``def name(params) = body``; the parameters are names in the body."""

    name: str
    params: tuple[str, ...]
    body: Expr


class Scope:
    """The names that are visible at one point; a child scope sees the declarations of its parent."""

    __slots__ = (
        "constants",
        "deferred",
        "derived",
        "functions",
        "given",
        "implicit",
        "mistakes",
        "objects",
        "parameter",
        "parent",
        "registers",
        "symbolic",
        "symbols",
        "types",
    )

    def __init__(self, parent: Scope | None = None, *, implicit: dict[str, Span] | None = None) -> None:
        self.parent = parent
        inherited = parent.implicit if parent is not None else None
        self.implicit: dict[str, Span] | None = implicit if implicit is not None else inherited
        self.objects: dict[str, MemObject] = parent.objects if parent is not None else {}
        self.functions: dict[str, Function] = parent.functions if parent is not None else {}
        self.mistakes: Mistakes = parent.mistakes if parent is not None else Mistakes()
        self.derived: dict[str, Expr] = parent.derived if parent is not None else {}
        """The definitions of constants that depend on the parameter, where that stays a name."""
        self.deferred = False
        self.parameter: tuple[str, Span] | None = None
        """The parameter of the file: the constant that is ``any``."""
        self.given: int | None = None
        """The value of the parameter in this instance; ``None`` where a parameter is not allowed."""
        self.symbolic = False
        """Whether the parameter stays a name instead."""
        self.types: dict[str, str] = parent.types if parent is not None else {}
        self.constants: dict[str, int] = {}
        self.registers: dict[str, str] = {}
        self.symbols: set[str] = set()

    # --- declaring -----------------------------------------------------------------------------

    def declare_object(self, item: MemObject, span: Span) -> None:
        """Declare a memory object; its name must be new."""
        self._free(item.name, span)
        self.objects[item.name] = item

    def declare_constant(self, name: str, value: int, span: Span) -> None:
        """Declare a constant whose value is known while parsing."""
        self._free(name, span)
        self.constants[name] = value

    def declare_derived(self, name: str, value: Expr, span: Span) -> None:
        """Declare a constant of the file that may depend on the parameter."""
        if isinstance(value, Const):
            self.declare_constant(name, value.value, span)
        else:
            self._free(name, span)
            self.derived[name] = value

    def declare_function(self, function: Function, span: Span) -> None:
        """Declare a function of constants, at file level."""
        self._free(function.name, span)
        self.functions[function.name] = function

    def object_space(self, name: str) -> str | None:
        """The declared state space of an object; ``None`` for a location of the table dialect."""
        item = self.objects.get(name)
        return None if item is None or item.dialect else item.space

    def declare_symbol(self, name: str, span: Span) -> None:
        """Declare a loop variable, or a constant that depends on the thread or on a loop."""
        self._free(name, span)
        self.symbols.add(name)

    def declare_register(self, name: str, type_: str, span: Span) -> None:
        """Declare a register of type ``type_``, from a ``.reg``."""
        if name in self.registers:
            raise problem("LIT020", span, name=f"register {name}")
        if self.declares(name):
            raise problem("LIT020", span, name=name)
        self.registers[name] = type_
        self.types[name] = type_

    def for_tail(self) -> Scope:
        """A child scope for the condition, whose names are checked when they are bound."""
        child = Scope(self, implicit={})
        child.deferred = True
        return child

    def for_role(self) -> Scope:
        """A child scope with its own ``types``, initially those of the file."""
        child = Scope(self)
        child.types = dict(self.types)
        return child

    def _free(self, name: str, span: Span) -> None:
        if self.is_register(name):
            raise problem("LIT021", span, name=name, hint="choose a name that is not r and a number, and not in a .reg")
        if any(name in names for names in (self.constants, self.symbols, self.objects, self.functions, self.derived)):
            raise problem("LIT020", span, name=name)

    def is_plain(self) -> bool:
        """Whether only locations of the table dialect are declared, so that a cell means the same in all such files."""
        return not self.registers and not self.constants and all(item.dialect for item in self.objects.values())

    # --- asking --------------------------------------------------------------------------------

    def file(self) -> Scope:
        """The scope of the file."""
        return self if self.parent is None else self.parent.file()

    def is_register(self, name: str) -> bool:
        """Whether a plain ``name`` (no ``%``) is a register."""
        if _PLAIN_REGISTER.fullmatch(name):
            return True
        scope: Scope | None = self
        while scope is not None:
            if name in scope.registers:
                return True
            scope = scope.parent
        return False

    def register_type(self, name: str) -> str | None:
        """The declared type of a register."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.registers:
                return scope.registers[name]
            scope = scope.parent
        return None

    def constant(self, name: str) -> int | None:
        """The value of a constant, if known while parsing."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.constants:
                return scope.constants[name]
            if name in scope.symbols:
                return None
            scope = scope.parent
        return None

    def is_symbol(self, name: str) -> bool:
        """Whether ``name`` is a loop variable or a constant of the thread."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.symbols:
                return True
            if name in scope.constants:
                return False
            scope = scope.parent
        return False

    def declares(self, name: str) -> bool:
        """Whether ``name`` is a constant, a symbol or an object."""
        return name in self.objects or name in self.derived or self.is_symbol(name) or self.constant(name) is not None

    def names(self) -> set[str]:
        """All visible names, for suggestions."""
        found = {*self.objects, *self.functions}
        scope: Scope | None = self
        while scope is not None:
            found |= scope.constants.keys() | scope.symbols | scope.registers.keys()
            scope = scope.parent
        return found

    def check(self, tokens: Tokens, at: int) -> None:
        """Raise ``InputError`` if the name at token ``at`` is not declared (the table form declares it implicitly)."""
        name = tokens.texts[at]
        if name in self.objects or self.is_symbol(name):
            return
        if self.implicit is not None and "." not in name and ":" not in name:
            if name not in self.implicit:
                self.implicit[name] = tokens.span(at)
            return
        hint = f"did you mean %{name}?" if name in SPECIALS else suggest(name, self.names())
        if hint is None and re.fullmatch(r"[a-z]{1,2}\d*", name):
            hint = f"write a register with %, or declare it with .reg: %{name}"
        if name == "any":
            hint = "outside of loop bounds and places, give the parameter a name: const N = any;"
        expected = "a declared object, constant or register"
        if tokens.texts[at + 1] == "(":
            expected, hint = f"a function, defined by def {name}(k) = …;", suggest(name, self.functions) or hint
        raise problem("LIT018", tokens.span(at), name=name, expected=expected, hint=hint)

    def check_shape(self, name: str, indices: int, rank: Expr | None, span: Span) -> None:
        """Raise ``InputError`` for indices or a rank that the object ``name`` does not have."""
        if self.deferred:
            return
        item = self.objects.get(name)
        if item is None:
            if (indices or rank is not None) and self.is_symbol(name):
                raise problem("LIT064", span, name=name)
            if rank is not None:
                raise problem("LIT060", span, name=name)
            return
        if rank is not None and item.space != "shared":
            raise problem("LIT060", span, name=name)
        if indices > len(item.dims):
            hint = None if item.dims else f"{name} is a scalar; write {name} + 4 for an offset in bytes"
            raise problem("LIT059", span, name=name, dims=len(item.dims), found=indices, hint=hint)

"""What the names of a file stand for while it is parsed: registers, constants, loop variables, objects.

In the table form a name that nothing declares is a 32-bit location that starts as 0. In the block form it is an error:
a typo must never become a new location.
"""

from __future__ import annotations

import re

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.frontend.litmus.codes import did_you_mean, problem
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
    """``def name(params) = body``; the parameters stand in the body as names."""

    name: str
    params: tuple[str, ...]
    body: Expr


class Scope:
    """The names that are visible at one point; a child sees what its parent declares."""

    __slots__ = (
        "constants",
        "deferred",
        "derived",
        "free",
        "functions",
        "given",
        "implicit",
        "mistakes",
        "objects",
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
        """What constants of the file are made of, where one of them stays a name."""
        self.deferred = False
        self.free: tuple[str, Span] | None = None
        """The constant of the file that is any number."""
        self.given: int | None = None
        """The number that it is this time; ``None`` where there can be none."""
        self.symbolic = False
        """Whether it stays a name instead."""
        self.types: dict[str, str] = parent.types if parent is not None else {}
        self.constants: dict[str, int] = {}
        self.registers: dict[str, str] = {}
        self.symbols: set[str] = set()

    # --- declaring -----------------------------------------------------------------------------

    def declare_object(self, item: MemObject, span: Span) -> None:
        """A new memory object; its name must be free."""
        self._free(item.name, span)
        self.objects[item.name] = item

    def declare_constant(self, name: str, value: int, span: Span) -> None:
        """A constant whose value is known while parsing."""
        self._free(name, span)
        self.constants[name] = value

    def declare_derived(self, name: str, value: Expr, span: Span) -> None:
        """A constant of the file that may depend on the one that stays a name."""
        if isinstance(value, Const):
            self.declare_constant(name, value.value, span)
        else:
            self._free(name, span)
            self.derived[name] = value

    def declare_function(self, function: Function, span: Span) -> None:
        """A function of constants; files have them, and roles see them."""
        self._free(function.name, span)
        self.functions[function.name] = function

    def object_space(self, name: str) -> str | None:
        """The state space that an object was declared in; a location of the table dialect has none."""
        item = self.objects.get(name)
        return None if item is None or item.dialect else item.space

    def declare_symbol(self, name: str, span: Span) -> None:
        """A loop variable, or a constant that depends on the thread or on a loop."""
        self._free(name, span)
        self.symbols.add(name)

    def declare_register(self, name: str, type_: str, span: Span) -> None:
        """A register of type ``type_``, from a ``.reg``."""
        if name in self.registers:
            raise problem("LIT020", span, name=f"register {name}")
        if self.declares(name):
            raise problem("LIT020", span, name=name)
        self.registers[name] = type_
        self.types[name] = type_

    def for_tail(self) -> Scope:
        """A child for the condition: what its names are is checked when they are bound."""
        child = Scope(self, implicit={})
        child.deferred = True
        return child

    def for_role(self) -> Scope:
        """A child whose ``types`` are its own and start as those of the file."""
        child = Scope(self)
        child.types = dict(self.types)
        return child

    def _free(self, name: str, span: Span) -> None:
        if self.is_register(name):
            raise problem("LIT021", span, name=name, hint="give it a name that is not r and a number, nor in a .reg")
        if any(name in names for names in (self.constants, self.symbols, self.objects, self.functions, self.derived)):
            raise problem("LIT020", span, name=name)

    def is_plain(self) -> bool:
        """Whether nothing but locations of the dialect is declared, so that a cell reads the same in any such file."""
        return not self.registers and not self.constants and all(item.dialect for item in self.objects.values())

    # --- asking --------------------------------------------------------------------------------

    def file(self) -> Scope:
        """The outermost one."""
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
        """The value of a constant that is known while parsing."""
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
        """Complains about token ``at`` if nothing declares it (the table form declares it on the fly)."""
        name = tokens.texts[at]
        if name in self.objects or self.is_symbol(name):
            return
        if self.implicit is not None and "." not in name and ":" not in name:
            if name not in self.implicit:
                self.implicit[name] = tokens.span(at)
            return
        hint = f"did you mean %{name}?" if name in SPECIALS else did_you_mean(name, self.names())
        if hint is None and re.fullmatch(r"[a-z]{1,2}\d*", name):
            hint = f"a register needs its %, or a .reg: %{name}"
        if name == "any":
            hint = "a number that is any has a name elsewhere than in the bound of a loop: const N = any;"
        expected = "a declared object, constant or register"
        if tokens.texts[at + 1] == "(":
            expected, hint = f"a function, as of def {name}(k) = …;", did_you_mean(name, self.functions) or hint
        raise problem("LIT018", tokens.span(at), name=name, expected=expected, hint=hint)

    def check_shape(self, name: str, indices: int, rank: Expr | None, span: Span) -> None:
        """Complains about indices or a rank that the object ``name`` does not have."""
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
            hint = None if item.dims else f"{name} is a scalar; an offset in bytes is {name} + 4"
            raise problem("LIT059", span, name=name, dims=len(item.dims), found=indices, hint=hint)

"""The instances of a file with a constant that is ``any``."""

from __future__ import annotations

from collections.abc import Callable

from mcheck.base.errors import InputError, Unsupported
from mcheck.frontend.litmus.binding import Role, bind_program
from mcheck.frontend.litmus.conditions import parse_tail
from mcheck.frontend.litmus.header import Header
from mcheck.frontend.litmus.lexer import Tokens
from mcheck.frontend.litmus.parametric.symbolic import declared, is_place, parse_symbolically
from mcheck.frontend.litmus.unroll import Counting
from mcheck.ir.loop_unrolling import Aperiodic
from mcheck.ir.program import Program

KEPT = 8
"""So many instances of a file are kept: small ones are asked for several times."""


class Instances:
    """The instances of a parametric file, by the value of its parameter. The roles are parsed once, so that all
    instances share their operations; a value for which that fails is parsed by itself, which reports the error.
    """

    def __init__(self, head: Header, end: int, parse: Callable[[int], Program]) -> None:
        """``parse`` builds an instance by itself."""
        self._head, self._end = head, end
        self._parse = parse
        self._roles: tuple[list[Role], int] | None = None
        self._bases: tuple[int, ...] = ()
        self._tried = False
        self._kept: dict[int, Program] = {}

    def program(self, size: int) -> Program:
        """The instance with a value of the parameter."""
        found = self._kept.pop(size, None) or self._build(size)
        self._kept[size] = found
        if len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return found

    def _build(self, size: int) -> Program:
        try:
            return self._bound(size) or self._parse(size)
        except InputError:
            return self._parse(size)

    def _bound(self, size: int) -> Program | None:
        head, source = self._head, self._head.source
        scope, initial = declared(head, self._end, size)
        if not self._tried:
            self._tried = True
            self._roles = self._read()
        if self._roles is None or scope.parameter is None or scope.mistakes:
            return None
        roles, behind = self._roles
        ending = parse_tail(Tokens(source, behind, len(source.clean)), scope.for_tail())
        known = {scope.parameter[0]: size}
        found = bind_program(head, scope, initial, roles, ending, dialect=False, counting=Counting(), known=known)
        bases = tuple(i.base for i in found.memory.instances)
        if self._bases not in ((), bases):  # the statements have memoized other addresses
            self._roles = None
            return None
        self._bases = bases
        return found

    def _read(self) -> tuple[list[Role], int] | None:
        """The roles with the parameter as a name, and the offset at which they end."""
        try:
            scope, tokens, roles = parse_symbolically(self._head, self._end)
        except (InputError, Aperiodic, Unsupported):
            return None
        if scope.mistakes or is_place(roles):  # the parameter stands where a number has to
            return None
        return list(roles.values()), tokens.starts[tokens.at]

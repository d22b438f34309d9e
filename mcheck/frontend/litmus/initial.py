"""Records of the init block that are resolved once threads and addresses are known."""

from __future__ import annotations

from dataclasses import field

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.frontend.litmus.tensormaps import MapFields
from mcheck.ir.expr import Expr


@dataclass(frozen=True, slots=True)
class RegisterInit:
    """An initial register, ``P0:r1 = 5``; ``number`` is ``None`` for all threads of the role."""

    thread: str
    number: int | None
    register: str
    value: Expr
    span: Span


@dataclass(slots=True)
class Initial:
    """The unresolved initial values (pointers, tensor maps, registers), the size of all variables, the warnings."""

    pointers: dict[str, list[tuple[int, int, str, Expr, Span]]] = field(default_factory=dict)
    maps: dict[str, list[MapFields]] = field(default_factory=dict)
    registers: list[RegisterInit] = field(default_factory=list)
    size: int = 0
    warnings: list[tuple[str, Span | None]] = field(default_factory=list)

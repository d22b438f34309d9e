"""A finding: what is wrong in some execution of a program, where, and by which section."""

from __future__ import annotations

from dataclasses import dataclass, field

from mcheck.errors import Span

KINDS = ("race", "undefined", "deadlock")
SEVERITIES = ("error", "review", "advice")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One of the accesses of a finding; ``bytes`` is the half-open range inside ``object``."""

    thread: str
    instruction: str
    span: Span | None = field(default=None)
    object: str = ""
    bytes: tuple[int, int] = (0, 0)
    proxy: str = "generic"
    access: str = "read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """``code`` is stable and explained by ``mcheck explain``; ``section`` is the section of the PTX ISA it rests on."""

    code: str
    kind: str
    severity: str
    message: str
    accesses: tuple[Access, ...] = ()
    missing: str = ""
    section: str = ""
    trace: tuple[str, ...] = ()

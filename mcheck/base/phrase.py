"""Phrases: text that knows which of its words are places, objects and instructions of the program.

A reader of JSON gets the plain text. A report for people names places by the lines of the source, objects by their
names alone, and instructions in the words of the language as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from mcheck.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Site:
    """A statement of the program by its 1-based line and column; line 0 if it has none."""

    line: int
    column: int = 1


@dataclass(frozen=True, slots=True)
class Sites:
    """Several statements, ``line 3`` or ``lines 3, 5``; ``last`` stands before the last of the lines."""

    sites: tuple[Site, ...]
    last: str = ", "


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of a ring of ``count``."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"stage {self.number} of {self.count}"


@dataclass(frozen=True, slots=True)
class Thing:
    """An object: its name ``full[0]``, the rank of its CTA if each CTA has one, and ``part``, the bytes that are meant.

    Of a module ``place`` is where it is, ``full@1 + 0x8``, if its variable has mbarriers only, ``stage`` that of its
    ring. An mbarrier in a variable that holds other things has no name of its own, and is called by its ``role``, which
    is ``full`` or ``empty``, and by the place.
    """

    name: str
    cta: int | None = None
    part: str = ""
    place: str = ""
    stage: Stage | None = None
    role: str = ""

    @property
    def ring(self) -> str:
        """What the stages of a ring have in common: the role, or the name without the number."""
        return self.role or self.name.partition("[")[0]

    @property
    def called(self) -> str:
        """What comes before the name of an object that is called by its role."""
        return f"the {self.role} mbarrier at " if self.role and not self.place else ""

    def __str__(self) -> str:
        if self.place:
            return f"{self.name} ({self.place}{f', {self.stage}' if self.stage is not None else ''})"
        stage = f" ({self.stage})" if self.stage is not None else ""
        return f"{self.called}{self.name}{f'@{self.cta}' if self.cta is not None else ''}{self.part}{stage}"


@dataclass(frozen=True, slots=True)
class Code:
    """An instruction of PTX, or ``A_BARRIER`` and its like."""

    text: str


@dataclass(frozen=True, slots=True)
class Aside:
    """What is told in full only."""

    text: str


@dataclass(frozen=True, slots=True)
class Actor:
    """The thread that the sentence behind it is about."""

    thread: str


@dataclass(frozen=True, slots=True)
class Lack:
    """A clause that a message ends with: what is wrong between two accesses, or why a wait does not end."""

    clause: Phrase


@dataclass(frozen=True, slots=True)
class OnlyIf:
    """The end of a message that depends on what is not known."""

    clause: Phrase


@dataclass(frozen=True, slots=True)
class Case:
    """No words, but which case of its finding a message is about: the catalogue has a fix for each ``name``."""

    name: str


Part = str | Site | Sites | Thing | Stage | Code | Aside | Actor | Lack | OnlyIf | Case
Phrase = tuple[Part, ...]

A_BARRIER = Code("a barrier")
GRID_BARRIER = Code("a barrier of the grid")
CLUSTER_BARRIER = Code("barrier.cluster.arrive and barrier.cluster.wait")
_END_OF_SENTENCE = re.compile(r"(?<=[.])\s+(?=[A-Z`])")


def say(template: str, *values: Part | Phrase) -> Phrase:
    """The phrase of a template whose ``{}`` are filled in with these values."""
    first, *rest = template.split("{}")
    parts: list[Part] = [first]
    for value, text in zip(values, rest, strict=True):
        parts += (*(value if isinstance(value, tuple) else (value,)), text)
    return tuple(part for part in parts if part != "")


def plain(phrase: Iterable[Part]) -> str:
    """The text of a phrase in terms of the program."""
    return "".join(map(_plain, phrase))


def _plain(part: Part) -> str:
    match part:
        case Site():
            return f"line {part.line}"
        case Sites():
            *most, last = dict.fromkeys(site.line for site in part.sites)
            return f"lines {', '.join(map(str, most))}{part.last}{last}" if most else f"line {last}"
        case Thing() | Stage():
            return str(part)
        case Code() | Aside():
            return part.text
        case Lack():
            return plain(part.clause)
        case OnlyIf():
            return f"; only if {plain(part.clause)}"
        case Actor():
            return f"{part.thread}: "
        case Case():
            return ""
    return part


def capital(phrase: Phrase) -> Phrase:
    """The phrase with a capital letter, if it begins with a word."""
    first = phrase[0]
    return (first[:1].upper() + first[1:], *phrase[1:]) if isinstance(first, str) else phrase


def join(phrases: Sequence[Phrase], between: str = ", ", last: str = " and ") -> Phrase:
    """Several phrases as one: ``a, b and c``."""
    parts: list[Part] = []
    for k, phrase in enumerate(phrases):
        parts += (*((last if k == len(phrases) - 1 else between,) if k else ()), *phrase)
    return tuple(parts)


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return _END_OF_SENTENCE.split(text)


def sites(phrase: Iterable[Part]) -> Iterator[Site]:
    """The places that a phrase names, in its order."""
    for part in phrase:
        if isinstance(part, Site):
            yield part
        elif isinstance(part, Sites):
            yield from part.sites
        elif isinstance(part, Lack | OnlyIf):
            yield from sites(part.clause)


def things(phrase: Iterable[Part]) -> Iterator[Thing]:
    """The objects that a phrase names."""
    return (part for part in phrase if isinstance(part, Thing))

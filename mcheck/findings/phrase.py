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
class Thing:
    """An object by its label, ``full[0]@1``, perhaps with its address behind it."""

    label: str


@dataclass(frozen=True, slots=True)
class Code:
    """An instruction of PTX, or ``A_BARRIER`` and its like."""

    text: str


@dataclass(frozen=True, slots=True)
class Aside:
    """What is told in full only."""

    text: str


Part = str | Site | Sites | Thing | Code | Aside
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
        case Thing():
            return part.label
        case Code() | Aside():
            return part.text
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

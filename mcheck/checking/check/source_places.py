"""The source locations that the lines of a module were compiled from, for findings, reasons and assumptions."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mcheck.base.errors import Span
from mcheck.base.phrase import sites
from mcheck.base.reasons import Reasons, kernel_place
from mcheck.findings.finding import Access, CompiledLine, Finding
from mcheck.findings.fix_words import mentioned
from mcheck.frontend.ptx.memory_layout import short_name
from mcheck.frontend.ptx.module import Module, SourceLine

Place = tuple[int, int]
"""Line and column of a statement in the module."""
SourceLines = Mapping[Place, SourceLine]
_LINES = re.compile(r"\blines? (\d+(?:(?:, | and )\d+)*)")
_MANGLED = re.compile(r"\b_Z[\w$.]+")


def source_lines(module: Module, *entries: str) -> SourceLines:
    """The source locations that the statements of these entries and of functions were compiled from."""
    functions = [f for f in module.functions.values() if f.name in entries or not f.entry]
    return {(s.span.line, s.span.column): s.source for f in functions for s in f.body if s.source is not None}


def source_place(span: Span, lines: SourceLines) -> Span | None:
    """The place of the kernel that a statement was compiled from, if that is known."""
    chain = _chain_at(span, lines)
    return kernel_place(chain) if chain else None


def locate_finding(finding: Finding, lines: SourceLines, alike: Mapping[int, int]) -> Finding:
    """The finding with the source locations of its accesses and of the lines that it mentions. ``alike``: for each line
    of the module the one that stands for all that were compiled from the same place.
    """
    if not lines:
        return finding
    said = (*sites(finding.said), *(wait.site for wait in finding.waits), *mentioned(finding.fixes))
    numbers = dict.fromkeys(site.line for site in said)
    found = {number: line for (number, _), line in lines.items() if number in numbers}
    return replace(
        finding,
        accesses=tuple(_located(access, lines) for access in finding.accesses),
        lines=tuple(CompiledLine(number, found[number].chain) for number in numbers if number in found),
        gap=tuple(sorted({alike.get(number, number) for number in finding.gap})),
    )


def first_alike(lines: SourceLines) -> dict[int, int]:
    """For each line of the module the first one that was compiled from the same place: an unrolled loop repeats it."""
    first: dict[object, int] = {}
    places = ((number, tuple((span.path, span.line) for span in line.chain)) for (number, _), line in lines.items())
    return {number: first.setdefault(place, number) for number, place in sorted(places, key=lambda one: one[0])}


def _located(access: Access, lines: SourceLines) -> Access:
    return replace(access, source=_chain_at(access.span, lines))


def _chain_at(span: Span | None, lines: SourceLines) -> tuple[Span, ...]:
    line = None if span is None else lines.get((span.line, span.column))
    return () if line is None else line.chain


def locate_reasons(reasons: Reasons, lines: SourceLines) -> Reasons:
    """The reasons with their source locations, and with these for the lines that they mention; names of the module are
    those of the source.
    """
    if not lines:
        return reasons
    return tuple(
        replace(
            reason,
            what=_source_names(name_source_lines(reason.what, lines)),
            during=name_source_lines(reason.during, lines),
            source=_chain_at(reason.span, lines),
            because=locate_reasons(reason.because, lines),
        )
        for reason in reasons
    )


def _source_names(text: str) -> str:
    """The text with mangled names by their last parts."""
    return _MANGLED.sub(lambda found: short_name(found[0]), text)


def name_source_lines(text: str, lines: SourceLines) -> str:
    """The text with lines of a module named by those of its source, ``kernel.cu:12``, where these are known."""
    numbers = {int(number) for part in _LINES.findall(text) for number in re.findall(r"\d+", part)}
    chains = {number: line.chain for (number, _), line in lines.items() if number in numbers}
    return _LINES.sub(lambda found: _named(found, chains), text)


def _named(found: re.Match[str], chains: Mapping[int, Sequence[Span]]) -> str:
    numbers = [int(number) for number in re.findall(r"\d+", found[1])]
    if not all(number in chains for number in numbers):
        return found[0]
    *most, last = dict.fromkeys(_name(kernel_place(chains[number])) for number in numbers)
    between = " and " if " and " in found[1] else ", "
    return f"{', '.join(most)}{between}{last}" if most else last


def _name(place: Span) -> str:
    return f"{os.path.basename(place.path)}:{place.line}"

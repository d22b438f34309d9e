"""The source locations that the lines of a module were compiled from, for findings, reasons and assumptions."""

from __future__ import annotations

import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

from mcheck.base.errors import Span
from mcheck.base.phrase import sites
from mcheck.base.reasons import Reasons, kernel_place
from mcheck.base.records import dataclass, replace
from mcheck.findings.finding import Access, CompiledLine, Finding
from mcheck.findings.fix_words import mentioned
from mcheck.findings.frames import Chain, count_common_calls, inside_frame, statement_of
from mcheck.frontend.ptx.memory_layout import short_name
from mcheck.frontend.ptx.module import Module, SourceLine, Statement
from mcheck.isa import kinds

Place = tuple[int, int]
"""Line and column of a statement in the module."""
SourceLines = Mapping[Place, SourceLine]
_LINES = re.compile(r"\blines? (\d+(?:(?:, | and )\d+)*)")
_MANGLED = re.compile(r"\b_Z[\w$.]+")


@dataclass(frozen=True, slots=True)
class CompiledCode:
    """What the lines of a module were compiled from, each with the calls that it was inlined into. ``synchronises`` are
    the lines of statements that order others.
    """

    places: SourceLines
    chains: Mapping[int, Chain]
    synchronises: tuple[int, ...]

    def line(self, number: int) -> CompiledLine:
        """A line that a finding mentions."""
        chain = self.chains[number]
        first = bisect_left(self.synchronises, number)
        behind = bisect_right(self.synchronises, number)
        before, after = (
            max((count_common_calls((chain, self.chains.get(n, ()))) for n in near), default=0)
            for near in (self.synchronises[max(first - 1, 0) : first], self.synchronises[behind : behind + 1])
        )
        return CompiledLine(number, tuple(chain), before, after)


def compiled_code(module: Module, *entries: str) -> CompiledCode:
    """The same of the statements of these entries and of functions."""
    functions = [f for f in module.functions.values() if f.name in entries or not f.entry]
    places = source_lines(module, *entries)
    chains = {number: line.chain for (number, _), line in places.items()}
    ordering = {s.span.line for f in functions for s in f.body if _synchronises(s)}
    return CompiledCode(places, chains, tuple(sorted(ordering)))


def _synchronises(statement: Statement) -> bool:
    orders_nothing = statement.kind in kinds.MOVES | kinds.BRANCHES and not statement.opcode.orders
    return not statement.only_computes and not orders_nothing


def source_lines(module: Module, *entries: str) -> SourceLines:
    """The source locations that the statements of these entries and of functions were compiled from."""
    functions = [f for f in module.functions.values() if f.name in entries or not f.entry]
    return {(s.span.line, s.span.column): s.source for f in functions for s in f.body if s.source is not None}


def source_place(span: Span, lines: SourceLines) -> Span | None:
    """The place of the kernel that a statement was compiled from, if that is known."""
    chain = _chain_at(span, lines)
    return kernel_place(chain) if chain else None


def locate_finding(finding: Finding, code: CompiledCode) -> Finding:
    """The finding with the source locations of its accesses and of the lines that it mentions."""
    if not code.places:
        return finding
    said = (*sites(finding.said), *(wait.site for wait in finding.waits), *mentioned(finding.fixes))
    numbers = dict.fromkeys(site.line for site in said)
    accesses = tuple(_located(access, code.places) for access in finding.accesses)
    return replace(
        finding,
        accesses=accesses,
        lines=tuple(code.line(number) for number in numbers if number in code.chains),
        gap=_gap(finding.gap, [access.source for access in accesses], code.chains),
    )


def _gap(
    gap: Sequence[CompiledLine], accesses: Sequence[Chain], chains: Mapping[int, Chain]
) -> tuple[CompiledLine, ...]:
    """Statements behind which a fix stands, as places in the function that makes both accesses: a loop that is
    unrolled repeats them, and so do its calls.
    """
    found: dict[object, CompiledLine] = {}
    for one in gap:
        chain = chains.get(one.line)
        inside = tuple(inside_frame(chain, accesses)) if chain else ()
        found.setdefault(tuple(map(statement_of, inside)) or one.line, CompiledLine(one.line, inside))
    return tuple(found.values())


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

"""Source lines to quote: those of the program, and those of the files that a module says it was compiled from.

Such a file is read if its name is that of source code, beside the module or where the module says. ``place_shown``
chooses the place to show of an access that was inlined: the outermost call that tells the accesses of a finding apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mcheck.base.errors import Span
from mcheck.base.source_files import SourceText
from mcheck.findings.finding import Finding

_HEAD = re.compile(r"\s*(?:def\b|@)")


def places_shown(finding: Finding, texts: SourceText) -> list[Span | None]:
    """For each access the place to show: in the source if it can be read, otherwise in the program."""
    chains = [access.source for access in finding.accesses]
    shared = count_shared_calls(chains)
    return [
        place_shown(chain, shared, texts) or access.span for chain, access in zip(chains, finding.accesses, strict=True)
    ]


def primary_place(finding: Finding, shown: Sequence[Span | None]) -> Span | None:
    """Where to look first, of the places shown of its accesses, in reports of every format: at the access that comes
    too early, the second of two; of threads that wait forever at the first.
    """
    order = shown if finding.kind == "deadlock" else [*reversed(shown[:2]), *shown[2:]]
    return next((span for span in order if span is not None), None)


def count_shared_calls(chains: Sequence[tuple[Span, ...]]) -> int:
    """The number of outermost calls that all of these places have in common, and that tell none of them apart."""
    shared = 0
    while all(len(chain) > shared + 1 for chain in chains) and len({_line(c[-shared - 1]) for c in chains}) == 1:
        shared += 1
    return shared if len(chains) > 1 and len({tuple(map(_line, chain)) for chain in chains}) > 1 else 0


def place_shown(chain: Sequence[Span], shared: int, texts: SourceText) -> Span | None:
    """The outermost readable place that is not a shared call, nor the head of a function, which a compiler names as the
    caller of a function that it calls itself; ``None`` if there is none.
    """
    own: Iterable[Span] = reversed(chain[: len(chain) - shared])
    readable = [(span, text) for span in own if (text := texts.line(span)) is not None]
    return next((span for span, text in readable if not _HEAD.match(text)), readable[-1][0] if readable else None)


def _line(span: Span) -> tuple[str, int]:
    return span.path, span.line

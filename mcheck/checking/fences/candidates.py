"""The edits that remove or weaken one synchronisation of a program in block form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mcheck.base.records import dataclass

_HIDDEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"[^\"\n]*\"", re.DOTALL)
_STATEMENT = re.compile(r"(?:^|(?<=[;{}\n]))[ \t]*(?P<text>(?P<guard>@!?%?\w+\s+)?(?P<instruction>[a-z][^;{}|\n]*;))")
_REMOVABLE = re.compile(
    r"fence\.|membar\b|wgmma\.fence\b|tcgen05\.fence|bar\.(warp\.)?sync\b|barrier\.|cp\.async\.(bulk\.)?wait_(group|all)\b"
)
_WEAKER = (
    (re.compile(r"^(fence)\.sc\b"), r"\1.acq_rel"),
    (re.compile(r"^((?:ld|st|atom|red)\b\S*)\.(?:acquire|release|acq_rel)\b"), r"\1.relaxed"),
    (re.compile(r"^((?:fence|ld|st|atom|red)\.\S*?)\.sys\b"), r"\1.gpu"),
    (re.compile(r"^((?:fence|ld|st|atom|red)\.\S*?)\.gpu\b"), r"\1.cluster"),
    (re.compile(r"^((?:fence|ld|st|atom|red)\.\S*?)\.cluster\b"), r"\1.cta"),
    (re.compile(r"^(cp\.async\.bulk\.wait_group)(\s)"), r"\1.read\2"),
)


@dataclass(frozen=True, slots=True)
class Edit:
    """Replacement of the statement at ``start`` to ``end`` of the text, or its removal; ``line`` is 1-based."""

    line: int
    start: int
    end: int
    instruction: str
    replacement: str | None


def find_edits(text: str) -> tuple[Edit, ...]:
    """Each removal and each weakening of one synchronisation, in the order of the text."""
    shown = _HIDDEN.sub(lambda hidden: re.sub(r"[^\n]", " ", hidden[0]), text)
    return tuple(edit for found in _STATEMENT.finditer(shown) for edit in _edits_of(found, shown))


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """The text with these edits, of different statements; lines keep their numbers."""
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + (edit.replacement or "") + text[edit.end :]
    return text


def _edits_of(found: re.Match[str], text: str) -> Iterator[Edit]:
    instruction, guard = found["instruction"], found["guard"] or ""
    line, (start, end) = text.count("\n", 0, found.start("text")) + 1, found.span("text")
    if _REMOVABLE.match(instruction):
        yield Edit(line, start, end, found["text"], None)
    for pattern, weaker in _WEAKER:
        changed, count = pattern.subn(weaker, instruction)
        if count:
            yield Edit(line, start, end, found["text"], guard + changed)

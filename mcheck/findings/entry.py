"""Entries of the catalogue, with their severity under each profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Final

from mcheck.base.phrase import Case, Phrase
from mcheck.base.records import dataclass
from mcheck.findings.fix import Fix, remedy

INSTRUCTION_SECTION = "the section of the instruction"
PROFILES = ("strict", "ptx", "permissive")

_DEFAULTS: Final = MappingProxyType(
    {
        "error": ("error", "error", "error"),
        "review": ("error", "review", "advice"),
        "advice": ("advice", "advice", "advice"),
    }
)
"""Severities under strict, ptx and permissive, by the severity under ptx."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The catalogue entry of one stable code. ``name`` names the defect; codes are never reused.

    ``explanation`` is the rule and its rationale, ``section`` its source, ``remedy`` the fix; ``remedies`` are those of
    special cases, which a message names (``mcheck.base.phrase.Case``). ``bad`` and ``good`` are programs in block
    form, or modules of CTAs of one thread if the block form cannot express them, launched with a ``grid`` of so many
    CTAs: the first has this finding, the second has no error. ``level`` is the severity under the profile ``ptx``;
    ``permissive`` replaces the default severity under that profile. ``continues``: the thread continues after the
    finding, because the effect is known; after other undefined behaviour it stops.
    """

    code: str
    name: str
    kind: str
    explanation: str
    section: str
    remedy: str
    bad: str
    good: str
    remedies: Mapping[str, str] = field(default_factory=dict)
    level: str = "error"
    permissive: str | None = None
    continues: bool = False
    grid: int = 1

    def severity(self, profile: str) -> str:
        """``error``, ``review`` or ``advice`` under ``profile``; raises ``KeyError`` for an unknown profile."""
        strict, ptx, permissive = _DEFAULTS[self.level]
        return {"strict": strict, "ptx": ptx, "permissive": self.permissive or permissive}[profile]

    def section_for(self, instruction: str) -> str:
        """The section of the rule; ``instruction`` is the section of the instruction, which contains some rules."""
        return instruction if self.section == INSTRUCTION_SECTION and instruction else self.section

    @property
    def fix(self) -> Fix:
        """The fix of a finding of which nothing more is known."""
        return remedy(self.remedy)

    def fix_for(self, said: Phrase) -> Fix:
        """The fix of a finding with this message."""
        named = (self.remedies.get(part.name) for part in said if isinstance(part, Case))
        return remedy(next(filter(None, named), self.remedy))

    @property
    def all_remedies(self) -> str:
        """The fixes of all cases."""
        return " ".join((self.remedy, *self.remedies.values()))

    @property
    def is_module_only(self) -> bool:
        """Whether only PTX modules can have this finding."""
        return self.bad.startswith(".version")

    @property
    def consequence(self) -> str:
        """What the thread does after the finding, as text."""
        if self.kind == "deadlock":
            return "the thread waits forever"
        return "the thread continues" if self.continues else "the thread stops; its later instructions are not checked"

"""What the catalogue says about one code, and how grave it is under each profile."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from mcheck.base.records import dataclass

OF_THE_INSTRUCTION = "the section of the instruction"
PROFILES = ("strict", "ptx", "permissive")

_DEFAULTS: Final = MappingProxyType(
    {
        "error": ("error", "error", "error"),
        "review": ("error", "review", "advice"),
        "advice": ("advice", "advice", "advice"),
    }
)
"""By the severity under ``ptx``: strict raises review to error, permissive lowers it to advice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One stable code. ``name`` names the defect, not the cure; a code is never given a second meaning.

    ``message`` is a sentence with named fields in braces that an engine fills in (``message_for``), ``explanation``
    the rule in our words and why it is there, ``section`` where it comes from, ``remedy`` what would mend it;
    ``remedies`` are fixes of single cases, each with a part of the message by which they are known. ``bad`` and
    ``good`` are programs in block form, or modules of one CTA where that has no words for it: the first has this
    finding, the second has no error. ``level`` is the severity under the profile ``ptx``; ``permissive`` replaces the
    usual severity under that profile. ``goes_on``: the thread goes on after it, because what happens is known; after
    other undefined behaviour it stops.
    """

    code: str
    name: str
    kind: str
    message: str
    explanation: str
    section: str
    remedy: str
    bad: str
    good: str
    remedies: tuple[tuple[str, str], ...] = ()
    level: str = "error"
    permissive: str | None = None
    goes_on: bool = False

    def severity(self, profile: str) -> str:
        """``error``, ``review`` or ``advice`` under ``profile``; raises ``KeyError`` for an unknown profile."""
        strict, ptx, permissive = _DEFAULTS[self.level]
        return {"strict": strict, "ptx": ptx, "permissive": self.permissive or permissive}[profile]

    def section_for(self, instruction: str) -> str:
        """Where the rule comes from; ``instruction`` is the section of the instruction, which some rules stand in."""
        return instruction if self.section == OF_THE_INSTRUCTION and instruction else self.section

    def remedy_of(self, message: str) -> str:
        """What would mend a finding with this message."""
        return next((remedy for part, remedy in self.remedies if part in message), self.remedy)

    @property
    def every_remedy(self) -> str:
        """What would mend it, whatever the case."""
        return " ".join((self.remedy, *(remedy for _, remedy in self.remedies)))

    @property
    def of_modules(self) -> bool:
        """Whether only PTX modules can have it."""
        return self.bad.startswith(".version")

    @property
    def afterwards(self) -> str:
        """What the thread does then, in words."""
        if self.kind == "deadlock":
            return "the thread waits forever"
        return "the thread goes on" if self.goes_on else "the thread stops, and what follows is not checked"

    def message_for(self, **fields: object) -> str:
        """The sentence with its fields; one that is not given reads as its name does."""
        return self.message.format_map(_Fields(fields))


class _Fields(dict[str, object]):
    def __missing__(self, key: str) -> str:
        return f"the {key}"

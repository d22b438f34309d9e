"""Questions about a program under a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import TYPE_CHECKING

from mcheck.base.records import dataclass
from mcheck.findings.finding import Finding

if TYPE_CHECKING:
    from mcheck.answers.result import Answer
    from mcheck.engines.protocol.passes import Passes


class Completeness(StrEnum):
    """What an answer has to be complete in."""

    VERDICT = "verdict"
    """Whether the condition holds; states may be missing."""
    STATES = "states"
    """The verdict and every final state."""
    FINDINGS = "findings"
    """Races, undefined behaviour and deadlocks."""
    LIVENESS = "liveness"
    """Whether some fair execution never ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question about a program under a model.

    ``timeout``: seconds for all engines together. ``witnesses``: each state comes with an execution. ``findings``:
    report those of executions that never end too, whatever the file expects. ``thorough``: do not stop soon after the
    first error, or only after the first that is not ``excused``. ``brief``: the protocol engine stops at the first
    error. ``limit``: the maximum number of executions that the protocol engine explores. ``without``: the passes that
    are off (``mcheck.engines.protocol.passes``).
    """

    about: Completeness = Completeness.STATES
    profile: str = "ptx"
    unroll: int = 2
    timeout: float | None = None
    witnesses: bool = False
    findings: bool = False
    thorough: bool = False
    excused: Callable[[Finding], bool] | None = None
    """Findings that do not end the search (``mcheck.answers.merged_answers``)."""
    wants_fixes: Callable[[Answer], bool] | None = None
    """Whether fixes are tried for the findings of an answer of an enumerating engine; ``None``: always."""
    brief: bool = False
    limit: int | None = None
    without: frozenset[str] = frozenset()

    @property
    def passes(self) -> Passes:
        """The passes that are on; raises ``InputError`` if one that is off does not exist."""
        from mcheck.engines.protocol.passes import passes_without

        return passes_without(self.without)


def sort_pass_names(names: Iterable[str]) -> tuple[str, ...]:
    """Some names of passes in order, each once; raises ``InputError`` for one that is none."""
    from mcheck.engines.protocol.passes import find_pass

    return tuple(sorted({str(find_pass(name)) for name in names}))

"""Answers as typed data, from which the JSON schemas of the tools are made.

``decided`` is true if the answer says all that was asked. What was not decided has no value that could pass for
success: ``clean``, ``holds`` and ``fixed`` are ``None`` then.
"""

from __future__ import annotations

from dataclasses import asdict, field
from typing import Any

from mcheck.base.records import dataclass


@dataclass(frozen=True, kw_only=True)
class Place:
    """A place in a source file, 1-based, with the text of the line and what happens there."""

    path: str
    line: int
    column: int
    source: str = ""
    label: str = ""


@dataclass(frozen=True, kw_only=True)
class TextEdit:
    """Insert ``insert`` before the character at ``line`` and ``column`` (1-based) of the file ``path``, in place of the
    text ``replaces``, which stands there in that line.
    """

    path: str
    line: int
    column: int
    insert: str
    replaces: str = ""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """An error in what was asked: in a file at its place, or in an argument."""

    message: str
    code: str | None = None
    path: str | None = None
    line: int | None = None
    column: int | None = None
    expected: str | None = None
    hint: str | None = None


@dataclass(frozen=True, kw_only=True)
class Bug:
    """A bug: the findings that one cause explains. ``fix`` is advice in words; ``edits`` are it as edits of the file,
    if it inserts a line; the tool ``fix`` tries them. ``explain`` the ``code`` for the rule.
    """

    code: str
    kind: str
    severity: str
    message: str
    place: Place | None
    related: list[Place]
    fix: str
    edits: list[TextEdit]
    findings: int
    notes: list[str]
    rule: str
    help: str


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What an answer took."""

    seconds: float = 0.0
    processor_seconds: float = 0.0
    cached: bool = False


@dataclass(frozen=True, kw_only=True)
class CheckAnswer:
    """The answer about races, undefined behaviour and deadlocks.

    ``clean`` is true only if every execution was covered and nothing was found (``proved``), false if there are
    bugs, and null if that was not decided (``bounded``, ``unknown``, ``error``): then ``why_not_decided`` says why, and
    the bugs, if any, may not be all. ``as_expected``: whether the file expects this by an ``expect`` line; null without
    one.
    """

    path: str
    verdict: str
    decided: bool
    clean: bool | None
    summary: str
    bugs: list[Bug] = field(default_factory=list)
    why_not_decided: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    as_expected: bool | None = None
    errors: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    launch_file_to_fill_in: str | None = None
    executions: int = 0
    engine: str = ""
    cost: Cost = field(default_factory=Cost)


@dataclass(frozen=True, kw_only=True)
class ExplainAnswer:
    """The page of a code: the rule and its reason, the fix, a program that has the finding and one that has not."""

    code: str
    name: str = ""
    kind: str = ""
    severity: dict[str, str] = field(default_factory=dict)
    section: str = ""
    explanation: str = ""
    fix: str = ""
    incorrect: str = ""
    correct: str = ""
    help: str = ""
    errors: list[Problem] = field(default_factory=list)
    cost: Cost = field(default_factory=Cost)


@dataclass(frozen=True, kw_only=True)
class OutcomeFound:
    """A final state with an execution that ends in it, step by step."""

    state: dict[str, int | str]
    witness: list[str]


@dataclass(frozen=True, kw_only=True)
class OutcomesAnswer:
    """The final states that the model allows. They are all only if ``complete``.

    ``holds``: whether the condition of the test holds; null without one, or if that was not decided. ``undefined``:
    some execution is undefined, so anything may happen. ``decided``: the states are all, and ``holds`` is not open.
    """

    path: str
    model: str
    condition: str
    decided: bool
    complete: bool
    holds: bool | None
    undefined: bool
    summary: str
    outcomes: list[OutcomeFound] = field(default_factory=list)
    bugs: list[Bug] = field(default_factory=list)
    why_not_decided: list[str] = field(default_factory=list)
    errors: list[Problem] = field(default_factory=list)
    executions: int = 0
    cost: Cost = field(default_factory=Cost)


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What became of the fix of one bug: its edits, if it names any, and what a check of the edited program found."""

    code: str
    message: str
    place: Place | None
    fix: str
    edits: list[TextEdit] = field(default_factory=list)
    helps: bool
    outcome: str


@dataclass(frozen=True, kw_only=True)
class FixAnswer:
    """Edits after which the program is proved clean, each tried by checking the edited program.

    ``fixed`` is true only if ``after`` is ``proved``; false if bugs remain for which no edit helps; null if that was
    not decided. ``edits`` are of the text as it was, ``diff`` shows them; nothing was written. ``changes``: what the
    edited program computes otherwise than before, if it was fixed by more than order. ``tried``: the fixes in the order
    in which they were tried, each with why it was kept or not; a fix in words is for whoever asks to make.
    """

    path: str
    before: str
    after: str
    decided: bool
    fixed: bool | None
    summary: str
    edits: list[TextEdit] = field(default_factory=list)
    diff: str = ""
    changes: list[str] = field(default_factory=list)
    checks: int = 0
    tried: list[Tried] = field(default_factory=list)
    remaining: list[Bug] = field(default_factory=list)
    why_not_decided: list[str] = field(default_factory=list)
    errors: list[Problem] = field(default_factory=list)
    cost: Cost = field(default_factory=Cost)


@dataclass(frozen=True, kw_only=True)
class Synchronisation:
    """A fence, wait, barrier, order or scope of a program. ``replacement`` is a weaker one, null if it can go."""

    line: int
    instruction: str
    replacement: str | None = None
    without_it: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class FencesAnswer:
    """Which synchronisation of a proved program can go or be weaker, and which is needed, with the codes without it.

    ``decided`` is true only if the program is proved as it is, so that each was tried.
    """

    path: str
    verdict: str
    decided: bool
    summary: str
    removable: list[Synchronisation] = field(default_factory=list)
    needed: list[Synchronisation] = field(default_factory=list)
    together: list[int] = field(default_factory=list)
    why_not_decided: list[str] = field(default_factory=list)
    errors: list[Problem] = field(default_factory=list)
    cost: Cost = field(default_factory=Cost)


Answer = CheckAnswer | ExplainAnswer | OutcomesAnswer | FixAnswer | FencesAnswer


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer with its text for people; ``refused``: there is none, because the request is wrong or a bug of mcheck
    was met.
    """

    answer: Answer
    text: str
    refused: bool = False

    @property
    def document(self) -> dict[str, Any]:
        """The answer as JSON."""
        return asdict(self.answer)

"""What the plugin says at the end: how many launches were checked, with which verdicts, and what was not decided."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any

from mcheck.base.records import dataclass
from mcheck.integrations.recording.answers import KernelAnswer
from mcheck.report.text import count

REASON = 200
"""The letters of a reason that the summary shows."""
FEW = 3
"""The modules that the summary names for a reason."""
DURING = "by then: "
"""What the words begin with that tell how far a check came when it was stopped."""
_ORDER = ("proved", "bounded", "unknown", "error", "finding")


@dataclass(slots=True)
class TestRecord:
    """What happened in a test: the answers about its launches, and what came of its assertions about numbers.

    ``assumed``: the assertions about numbers that were assumed to hold. ``stopped``: why the test did not get to its
    end; empty if it did.
    """

    __test__ = False
    answers: list[KernelAnswer] = field(default_factory=list)
    assumed: int = 0
    stopped: str = ""

    def to_json(self) -> dict[str, Any]:
        """As plain values, for a report that goes from process to process."""
        from dataclasses import asdict

        return asdict(self)


def from_json(record: dict[str, Any]) -> TestRecord:
    """The record of a report."""
    answers = [KernelAnswer(**answer) for answer in record["answers"]]
    return TestRecord(answers, record["assumed"], record["stopped"])


def failing(answers: Iterable[KernelAnswer], *, strict: bool) -> list[KernelAnswer]:
    """The answers that make a test fail: findings, errors, for which nothing was checked, and with ``strict`` whatever
    is not proved.
    """
    return [a for a in answers if a.status in ("finding", "error") or (strict and a.status != "ok")]


def message(answers: Sequence[KernelAnswer]) -> str:
    """The text of a test that fails."""
    parts = []
    for answer in answers:
        again = f"again: mcheck check {answer.module}"
        parts.append(f"{answer.report or answer.reason}\n  {again}")
    return "\n\n".join(parts)


def summarize(records: Sequence[TestRecord], target: str) -> Iterator[str]:
    """The lines of the summary; none if nothing was launched and nothing assumed."""
    launches = [answer for record in records for answer in record.answers]
    known = {answer.digest: answer for answer in sorted(launches, key=lambda answer: answer.fresh)}
    modules = {answer.digest for answer in launches}
    if launches:
        verdicts = Counter(answer.verdict for answer in known.values())
        said = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in _ORDER if verdicts[verdict])
        fresh = [answer for answer in known.values() if answer.fresh]
        took = f"{len(fresh)} computed in {sum(answer.seconds for answer in fresh):.0f} s"
        kept = f"{len(modules) - len(fresh)} known before" if len(fresh) < len(modules) else ""
        tests = count(sum(bool(record.answers) for record in records), "test", "tests")
        total = count(len(launches), "launch", "launches")
        how = ", ".join(filter(None, (took, kept)))
        yield f"{target}: {tests} with {total}, {len(modules)} different: {said} ({how})"
    open_answers: dict[tuple[str, str], list[str]] = {}
    for answer in known.values():
        if answer.status in ("unknown", "error"):
            reason = _shortened(_without_places(answer))
            open_answers.setdefault((answer.verdict, reason), []).append(answer.module)
    cut = {answer.module for answer in known.values() if answer.limit is not None}
    for (verdict, reason), paths in open_answers.items():
        yield f"  {len(paths)} {verdict}: {reason}"
        yield f"    {', '.join(paths[:FEW])}{', …' if len(paths) > FEW else ''}"
    if cut:
        limited = count(len(cut), "check was", "checks were")
        yield f"  {limited} stopped by the limit: --mcheck-cpu-timeout N allows N seconds"
    assumed = sum(record.assumed > 0 for record in records)
    if assumed:
        yield f"  {count(assumed, 'test', 'tests')} passed over assertions about numbers: no kernel is run"
    stopped = [record for record in records if record.stopped]
    if stopped:
        yield (
            f"  {count(len(stopped), 'test', 'tests')} ended early, at a number that no kernel has computed:"
            f" {_shortened(stopped[0].stopped)}"
        )


def _without_places(answer: KernelAnswer) -> str:
    """The first of its reasons, without lines, so that kernels with the same reason are one row.

    How far a check came is not one.
    """
    first, *more = (reason for reason in answer.reason.split("; ") if not reason.startswith(DURING))
    named = re.sub(rf"(?:{re.escape(answer.module)}|\S+):\d+:\d+: ", "", first)
    return f"{named}, and {len(more)} more" if more else named


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= REASON else f"{line[:REASON]}…"

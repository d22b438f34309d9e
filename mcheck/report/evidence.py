"""What hardware showed of a kind of finding: figures measured, with the page that has them.

A row is for findings of its code whose accesses it fits: the operation in flight and, where it matters, the other one.
"""

from __future__ import annotations

import re

from mcheck.base.records import dataclass
from mcheck.findings.finding import Finding
from mcheck.findings.fix import Await, Insert


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A figure. ``first`` and ``second`` are patterns of the instructions of the finding's accesses, ``does`` says what
    they do, ``waits`` that the fix is to wait for the copy; ``test`` names the test of ``docs/hopper.md``.
    """

    code: str
    first: str
    second: str
    does: tuple[str, str]
    test: str
    figure: str
    waits: bool = False


_GUARD = re.compile(r"^(?:@!?%?[\w$]+\s+)*")
_BULK = r"cp\.(?:reduce\.)?async\.bulk"
_SHARED_STORE = r"st(?:\.\w+)*\.shared"
_SHARED_LOAD = r"(?:ld(?:\.\w+)*\.shared|ldmatrix)"
MEASURED = (
    Measured(
        code="RACE003", first=r"cp\.async\.c[ag]", second=_SHARED_LOAD, does=("write", "read"),
        test="cp-async-read-before-wait", waits=True,
        figure="7 of 10 reads before the wait were wrong on an H200 under stress, none of 1.67 G behind it",
    ),
    Measured(
        code="RACE003", first=_BULK, second=_SHARED_LOAD, does=("write", "read"),
        test="bulk-load-read-before-wait", waits=True,
        figure="2 of 10 reads before the wait were wrong on an H200 under stress, none of 815 M behind it",
    ),
    Measured(
        code="RACE004", first=_SHARED_STORE, second=_BULK, does=("write", "read"), test="bulk-proxy-raw-no-fence",
        figure="half of the copies missed the store on an H200 under stress, none of 17.4 G with the fence",
    ),
    Measured(
        code="RACE006", first=_SHARED_LOAD, second=_BULK, does=("read", "write"), test="bulk-ring-one-slot-no-fence",
        figure="half of the values were wrong on an H200 under stress, none of 5.86 G with the fence",
    ),
    Measured(
        code="RACE009", first=r"", second=_BULK, does=("write", "read"), test="tensor-map-replaced-without-fences",
        figure="3 of 1,000 copies used the old map on an H200 under stress, none of 606 k with both fences",
    ),
)  # fmt: skip


def _waits(finding: Finding) -> bool:
    """Whether a wait for the copy is missing; not one for those who read what it overwrites."""
    step = finding.fixes[0].steps[0] if finding.fixes else None
    if isinstance(step, Await):
        return step.first or not step.nobody
    return isinstance(step, Insert) and step.waits


def find_evidence(finding: Finding) -> str:
    """The figure that was measured for a finding like this, empty if there is none."""
    if len(finding.accesses) != 2:
        return ""
    one, other = (_GUARD.sub("", access.instruction) for access in finding.accesses)
    return next(
        (
            f"{row.figure} (docs/hopper.md, {row.test})"
            for row in MEASURED
            if row.code == finding.code
            and row.does == tuple(access.access for access in finding.accesses)
            and re.match(row.first, one)
            and re.match(row.second, other)
            and (not row.waits or _waits(finding))
        ),
        "",
    )

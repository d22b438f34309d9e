"""Sketches in which ``const G = any;`` is how many CTAs, or other threads, there are: the answers for a few sizes.

Every size from 1 on is checked, up to ``MOST`` or until one takes long. The smallest with an error is reported. Without
one the answer is ``bounded`` and names the sizes: that larger grids do what these do is not proved. No thread is there
with 0, so that is no size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from mcheck.answers.merged_answers import Excused, is_whole, merge_assumptions, merge_findings
from mcheck.answers.result import Answer
from mcheck.base.budget import Limit
from mcheck.base.errors import InputError
from mcheck.base.reasons import Cause, Reason, Reasons, cut
from mcheck.base.verdicts import Verdict
from mcheck.checking.policy.every_n import Answerer, Sketches
from mcheck.checking.policy.every_number import Attempt, CheckedNumbers, TimeShares, Unproved, answer_every_number
from mcheck.ir.program import Program

MOST = 6
PATIENCE = 2.0
"""Seconds that a size may take, without a time limit, for the next one to be checked."""


def counts_threads(program: Program) -> bool:
    """Whether there are more threads with a larger number."""
    assert program.instance is not None
    try:
        one, two = program.instance(1), program.instance(2)
    except InputError:  # said by whoever looks at the numbers
        return False
    return len(one.threads) != len(two.threads)


def check_every_size(
    program: Program, seconds: float | None, answer: Answerer, excused: Excused = None, *, brief: bool = False
) -> Answer:
    """The answer about findings for every size, from answers about the program with one size at a time."""
    return answer_every_number(Sizes(program, seconds, answer, None), seconds, excused, brief=brief)


class Sizes(Sketches):
    """The programs of a sketch, one for each size."""

    @property
    def least(self) -> int:
        """The smallest size."""
        return 1

    @property
    def shares(self) -> TimeShares:
        """The sizes in turn, as long as there is time."""
        return TimeShares()

    def prove(self, limit: Limit) -> Attempt[int]:  # noqa: ARG002 - one signature
        """There is no proof for sizes."""
        return Unproved()

    def numbers(self, proof: Attempt[int], checked: CheckedNumbers[int]) -> Iterator[int]:  # noqa: ARG002
        """The sizes from 1 on."""
        for size in range(self.least, MOST + 1):
            yield size
            if self.seconds is None and checked.last > PATIENCE:
                return

    def skipped(self, number: int, _: Attempt[int], checked: CheckedNumbers[int]) -> Iterable[int]:  # noqa: ARG002
        """None is left out."""
        return ()

    def conclude_open(self, why: Reasons, checked: CheckedNumbers[int]) -> Answer:
        """``bounded``, if each size is proved; else what is open."""
        found = checked.found
        if not found or checked.slow or not all(map(is_whole, found.values())):
            return Sketches.conclude_open(self, why, checked)
        last = found[max(found)]
        said = f"{self.name(max(found))}: that more threads do what these do is not proved"
        findings = merge_findings([found[k] for k in sorted(found, reverse=True)])
        return replace(
            last, verdict=Verdict.BOUNDED, findings=findings, covered=False, executions=checked.executions,
            assumptions=merge_assumptions([last]), reasons=(Reason(Cause.BOUND, said), *checked.late),
            cut=cut(checked.late),
        )  # fmt: skip

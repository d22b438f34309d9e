"""Sketches in which ``const G = any;`` is the number of CTAs, or of other threads: a proof, or answers for some sizes.

If the CTAs are alike, and share a counter to which each adds one, or flags that others set, pairs of them stand for all
(``mcheck.proofs.cta_pairs``). Otherwise every size from the smallest on is checked, up to ``MOST`` or until one takes
long. The smallest with an error is reported. Without one the answer is ``bounded`` and names the sizes: that larger
grids do what these do is not proved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING

from mcheck.answers.merged_answers import Excused, describe_pairs, is_whole, merge_assumptions, merge_findings
from mcheck.answers.result import Answer, AnyCtas
from mcheck.answers.verdict_rules import SIZES
from mcheck.base.budget import Limit
from mcheck.base.errors import InputError
from mcheck.base.progress import Level, note
from mcheck.base.reasons import Cause, Reason, Reasons, cut
from mcheck.base.records import dataclass, replace
from mcheck.base.verdicts import Verdict
from mcheck.checking.policy.every_n import Answerer, Sketches
from mcheck.checking.policy.every_number import (
    Attempt,
    CheckedNumbers,
    FollowingErrors,
    Proved,
    TimeShares,
    Unproved,
    answer_every_number,
    attempt_proof,
)
from mcheck.frontend.litmus.smallest_number import build_smallest
from mcheck.ir import ops
from mcheck.ir.cta_family import NotAlike
from mcheck.ir.expr import Const
from mcheck.ir.memory import GLOBAL_BASE, SHARED_BASE
from mcheck.ir.ops import Op
from mcheck.ir.program import Program

if TYPE_CHECKING:
    from mcheck.ir.cta_family import CtaFamily
    from mcheck.proofs.cta_pairs import CtaPair

MOST = 6
SMALL = 4
"""So many sizes are small: most bugs of protocols show in one of them."""
SMALL_PATIENCE = 15.0
"""Seconds that a small size may take, without a time limit, for the next one to be checked."""
PATIENCE = 2.0
"""Seconds that the largest small size, or a larger one, may take for that."""
RESIDENT = "all CTAs are there at once, as in a cooperative launch"


def counts_threads(program: Program) -> bool:
    """Whether there are more threads with a larger number."""
    assert program.instance is not None
    try:
        least, smallest = build_smallest(program.instance, 0)
        return len(smallest.threads) != len(program.instance(least + 1).threads)
    except InputError:  # said by whoever looks at the numbers
        return False


def check_every_size(
    program: Program, seconds: float | None, answer: Answerer, excused: Excused = None, *, brief: bool = False,
    provable: Callable[[], bool] = lambda: True,
) -> Answer:  # fmt: skip
    """The answer about findings for every size, from answers about the program with one size at a time.

    ``provable``: whether the model is one for which the argument about pairs of CTAs holds.
    """
    sizes = Sizes(program, seconds, answer, None, provable=provable)
    return sizes.with_assumption(answer_every_number(sizes, seconds, excused, brief=brief))


@dataclass(slots=True)
class Sizes(Sketches):
    """The programs of a sketch, one for each size."""

    provable: Callable[[], bool] = lambda: True
    smallest: int = field(init=False)

    def __post_init__(self) -> None:
        assert self.program.instance is not None
        self.smallest = build_smallest(self.program.instance, 0)[0]

    @property
    def least(self) -> int:
        """The smallest size."""
        return self.smallest

    @property
    def shares(self) -> TimeShares:
        """The sizes in turn, as long as there is time."""
        return TimeShares()

    def prove(self, limit: Limit) -> Attempt[int]:
        """The proof from pairs of CTAs, or why there is none."""
        family = self.program.family
        if family is None or not self.provable():
            return Unproved()

        def attempt(within: Limit) -> Attempt[int]:
            try:
                return self._from_pairs(family(), within)
            except NotAlike as error:
                return Unproved((Reason(Cause.NOT_PERIODIC, error.why, span=error.span),))

        return attempt_proof(limit, attempt)

    def _from_pairs(self, family: CtaFamily, limit: Limit) -> Attempt[int]:
        from mcheck.proofs.cta_pairs import LEAST, check_bounds, choose_pairs, pair_programs

        check_bounds(family, limit)
        pairs = choose_pairs(family, limit)
        answers: list[Answer] = []
        assert self.program.instance is not None
        for number, pair in enumerate(pairs, 1):
            note(Level.NUMBER, f"pair {number} of {len(pairs)} of CTAs")
            size = family.number_with(pair.ctas)
            for two in pair_programs(self.program.instance(size), family, pair):
                given = self.ask(replace(two, assumptions=self.program.assumptions), limit.remaining())
                if given.verdict is not Verdict.PROVED:
                    limit.check()
                    return Unproved((Reason(Cause.NUMBERS, _left_open(pair), because=given.reasons),), size)
                answers.append(given)
        first = family.number_with(LEAST)
        return Proved(
            numbers=range(self.least, first + 1), answers=tuple(answers), executions=sum(a.executions for a in answers),
            said=f"for every number of CTAs: {_protocol(family)}; {describe_pairs(len(pairs))}",
        )  # fmt: skip

    def numbers(self, proof: Attempt[int], checked: CheckedNumbers[int]) -> Iterator[int]:
        """Those that the proof leaves; without one the sizes from the smallest on."""
        if isinstance(proof, Proved):
            yield from proof.numbers
            return
        for size in range(self.least, max(self.least + MOST - 1, proof.change or 0) + 1):
            yield size
            patience = SMALL_PATIENCE if size - self.least < SMALL - 1 else PATIENCE
            if self.seconds is None and checked.last > patience:
                return

    def skipped(self, number: int, _: Attempt[int], checked: CheckedNumbers[int]) -> Iterable[int]:  # noqa: ARG002
        """None is left out."""
        return ()

    # --- conclusions ----------------------------------------------------------------------------------------------

    def conclude_proved(self, proof: Proved[int], checked: CheckedNumbers[int]) -> Answer:
        """The answer for every number of CTAs."""
        given = Sketches.conclude_proved(self, proof, checked)
        assumptions = tuple(f"{SIZES}any number of CTAs" if a.startswith(SIZES) else a for a in given.assumptions)
        together = max(_ctas(self._program(size)) for size in checked.found)
        return replace(given, assumptions=assumptions, ctas=AnyCtas(every=True, together=together))

    def conclude_error(
        self, number: int, proof: Attempt[int], checked: CheckedNumbers[int],
        others: FollowingErrors[int],
    ) -> Answer:  # fmt: skip
        """The answer for the first size with an error."""
        given = Sketches.conclude_error(self, number, proof, checked, others)
        return replace(given, ctas=self._covers(checked))

    def conclude_open(self, why: Reasons, checked: CheckedNumbers[int]) -> Answer:
        """``bounded``, if each size is proved; else what is open."""
        found = checked.found
        if not found or checked.slow or not all(map(is_whole, found.values())):
            given = Sketches.conclude_open(self, why, checked)
            return replace(given, ctas=self._covers(checked))
        last = found[max(found)]
        said = f"{self.name(max(found))}: that more threads do what these do is not proved"
        findings = merge_findings([found[k] for k in sorted(found, reverse=True)])
        return replace(
            last, verdict=Verdict.BOUNDED, findings=findings, covered=False, executions=checked.executions,
            assumptions=merge_assumptions([last]), reasons=(Reason(Cause.BOUND, said, because=why), *checked.late),
            ctas=self._covers(checked), cut=cut(checked.late),
        )  # fmt: skip

    def _program(self, size: int) -> Program:
        assert self.program.instance is not None
        return self.program.instance(size)

    def _covers(self, checked: CheckedNumbers[int]) -> AnyCtas | None:
        """How many CTAs were followed together, if their number is what may be any."""
        sizes = [_ctas(self._program(size)) for size in checked.found]
        if not sizes or _ctas(self._program(self.least)) == _ctas(self._program(self.least + 1)):
            return None
        return AnyCtas(every=False, together=max(sizes))

    def with_assumption(self, given: Answer) -> Answer:
        """The answer, with the assumption that CTAs which wait for each other are there."""
        waits = any(_waits_for_others(op) for op in self._program(self.least).operations)
        if not waits:
            return given
        return replace(given, assumptions=tuple(dict.fromkeys((*given.assumptions, RESIDENT))))


def _ctas(program: Program) -> int:
    return len({t.place.cta for t in program.threads})


def _waits_for_others(op: Op) -> bool:
    """Whether an operation waits for a word of global memory."""
    if not isinstance(op, ops.Await) or not isinstance(op.inner, ops.Load):
        return False
    address = op.inner.address
    return isinstance(address, Const) and GLOBAL_BASE <= address.value < SHARED_BASE


# --- words ----------------------------------------------------------------------------------------------------------


def _protocol(family: CtaFamily) -> str:
    """What the CTAs do with each other."""
    counter, turns = family.counter, family.turns
    if turns is not None:
        who = "the one that drew the ticket before" if turns.draws else "the one before"
        return f"each waits in {turns.object} for the signal of {who}"
    if counter is None:
        reduced = sorted({access.object for access in family.accesses if access.reduces})
        into = f" but what they reduce into {' and '.join(reduced)}" if reduced else ""
        if family.waits:
            return f"they wait for what others set, and set nothing themselves{into}"
        return f"they share no word{into}"
    behind = "all wait until all have" if counter.waits else "only the last one goes on"
    return f"each counts itself in {counter.object}, and {behind}"


def _left_open(pair: CtaPair) -> str:
    return f"CTAs {pair.first} and {pair.second} of {pair.ctas} alone are not proved"

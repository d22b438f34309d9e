"""The driver of every number, with a family whose answers are a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pytest

from mcheck.answers.result import Answer
from mcheck.base.budget import Limit, TimeOut
from mcheck.base.reasons import Cause, Reason, Reasons, timeout_reason
from mcheck.checking.policy.every_number import (
    CheckedNumbers,
    FollowingErrors,
    Proved,
    TimeShares,
    Unproved,
    answer_every_number,
)
from mcheck.findings.finding import Finding

CLEAN = Answer(verdict="proved")  # type: ignore[arg-type]
LATE = Answer(verdict="unknown", covered=False, reasons=(timeout_reason(1.0),))  # type: ignore[arg-type]
PART = Answer(verdict="bounded", covered=False, reasons=(Reason(Cause.BOUND, "12 rounds"),))  # type: ignore[arg-type]


def error(code: str) -> Answer:
    found = Finding(code=code, kind="race", severity="error", said=("",), accesses=(), section="")
    return Answer(verdict="finding", findings=(found,), covered=False)  # type: ignore[arg-type]


@dataclass
class Table:
    """Answers by number, clean ones by default; conclusions that say what they were given."""

    answers: dict[int, Answer]
    proof: Proved[int] | Unproved[int] = field(default_factory=Unproved)
    tried: Iterable[int] = range(6)
    shares: TimeShares = field(default_factory=TimeShares)
    asked: list[tuple[int, float | None]] = field(default_factory=list)

    def prove(self, _: Limit) -> Proved[int] | Unproved[int]:
        return self.proof

    def answer(self, number: int, seconds: float | None) -> Answer:
        self.asked.append((number, seconds))
        return self.answers.get(number, CLEAN)

    def numbers(self, proof: Proved[int] | Unproved[int], _: CheckedNumbers[int]) -> Iterator[int]:
        yield from proof.numbers if isinstance(proof, Proved) else self.tried

    def skipped(self, number: int, _: object, checked: CheckedNumbers[int]) -> list[int]:
        return [k for k in range(number) if k not in checked]

    def following(self, number: int, _: CheckedNumbers[int]) -> Iterable[int]:
        return (number + 1, number + 2)

    def name(self, number: int) -> str:
        return f"n = {number}"

    def conclude_proved(self, proof: Proved[int], checked: CheckedNumbers[int]) -> Answer:
        return said(f"proved, with {sorted(checked.found)}: {proof.said}")

    def conclude_error(
        self, number: int, _: object, checked: CheckedNumbers[int], others: FollowingErrors[int]
    ) -> Answer:  # fmt: skip
        assert number in checked.with_errors
        return said(f"error with {number}, others with {sorted(others.errors)}", *others.late)

    def conclude_open(self, why: Reasons, checked: CheckedNumbers[int]) -> Answer:
        return said(f"open, with {sorted(checked.found)} and {sorted(checked.slow)}", *why, *checked.late)


def said(text: str, *more: Reason) -> Answer:
    return Answer(verdict="unknown", reasons=(Reason(Cause.INPUT, text), *more))  # type: ignore[arg-type]


def proved(*numbers: int, **known: Answer) -> Proved[int]:
    return Proved(
        numbers=numbers, known={int(k[1:]): a for k, a in known.items()}, answers=(CLEAN,), executions=1, said="large"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("family", "answer", "asked"),
    [
        (Table({}, proved(0, 1, 2)), "proved, with [0, 1, 2]: large", [0, 1, 2]),
        (Table({}, proved(0, 1, 2, n1=CLEAN)), "proved, with [0, 1, 2]: large", [0, 2]),
        (Table({1: PART}, proved(0, 1, 2)), "open, with [0, 1, 2] and []; explored up to 12 rounds", [0, 1, 2]),
        (Table({1: error("RACE003")}, proved(0, 1, 2)), "error with 1, others with []", [0, 1, 2, 3]),
        (Table({}), "open, with [0, 1, 2, 3, 4, 5] and []", [0, 1, 2, 3, 4, 5]),
        (Table({1: error("RACE003"), 3: error("RACE006")}), "error with 1, others with [3]", [0, 1, 2, 3]),
        (Table({1: error("RACE003"), 3: error("RACE003")}), "error with 1, others with []", [0, 1, 2, 3]),
        (Table({5: error("RACE003"), 2: error("RACE003")}, tried=(0, 5, 7)), "error with 2, others with []",
         [0, 5, 1, 2, 3, 4]),
    ],
)  # fmt: skip
def test_numbers_are_checked_until_one_has_an_error(family: Table, answer: str, asked: list[int]) -> None:
    given = answer_every_number(family, None)
    assert given.reason == answer
    assert [number for number, _ in family.asked] == asked


def test_a_number_that_takes_too_long_ends_the_search_or_is_skipped() -> None:
    ends, skips = (Table({1: LATE}, shares=TimeShares(skips=skips)) for skips in (False, True))
    assert (answer_every_number(ends, 60.0).reason or "").startswith("open, with [0] and [1]")
    assert (answer_every_number(skips, 60.0).reason or "").startswith("open, with [0, 2, 3, 4, 5] and [1]")


def test_without_a_proof_a_number_has_a_share_of_the_time() -> None:
    shares = TimeShares(one=0.5)
    for proof, most in ((Unproved[int](), 50.0), (proved(0), 100.0)):
        family = Table({}, proof, tried=(0,), shares=shares)
        answer_every_number(family, 100.0)
        ((_, seconds),) = family.asked
        assert seconds == pytest.approx(most, abs=1.0)


def test_time_that_is_over_before_all_numbers_are_checked_proves_nothing() -> None:
    class Late(Table):
        def answer(self, number: int, seconds: float | None) -> Answer:
            if number == 1:
                raise TimeOut("while reading")
            return super().answer(number, seconds)

    given = answer_every_number(Late({}, proved(0, 1)), 60.0)
    assert (given.reason or "").startswith("open, with [0] and []")
    assert given.cut

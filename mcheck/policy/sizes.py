"""A program with a constant that is every number from 0 on (``const N = any;``): the programs with each of them.

What shows with some number is found if the number is among those that are looked at: all small ones, then ever fewer.
That larger ones add nothing is not proved, so that without a finding the answer is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from mcheck.answers.judgement import decides
from mcheck.answers.result import Answer
from mcheck.errors import InputError
from mcheck.limit import Limit, TimeOut, timed_out
from mcheck.program.program import Program

SMALL = 8
"""Up to this number every one is looked at."""
GROWTH = 1.5
LARGEST = 100
"""The largest of the others: what flips once in 32 rounds has done so three times."""


def sizes() -> Iterator[int]:
    """The numbers that are looked at, the smallest first."""
    size = 0
    while size <= LARGEST:
        yield size
        size = size + 1 if size < SMALL else int(size * GROWTH)


def every_size(program: Program, seconds: float | None, answer: Callable[[Program, float | None], Answer]) -> Answer:
    """The answer about findings for all numbers, from that about the program with one in so many seconds."""
    limit = Limit(seconds)
    found: dict[int, Answer] = {}
    try:
        for size in sizes():
            if _decided(_look(program, size, limit, answer, found)):
                break
        smaller = (k for k in range(max(found)) if k not in found and _decided(found[max(found)]))
        for size in smaller:
            if _decided(_look(program, size, limit, answer, found)):
                break
    except TimeOut:
        pass
    return _conclusion(program, found, seconds)


def _look(
    program: Program, size: int, limit: Limit, answer: Callable[[Program, float | None], Answer],
    found: dict[int, Answer],
) -> Answer:  # fmt: skip
    assert program.sized is not None
    left = limit.remaining()
    try:
        one = program.sized(size)
    except InputError as error:
        error.message = f"{error.message} (with {program.free} = {size}, which is any number from 0 on)"
        raise
    given = answer(replace(one, assumptions=program.assumptions), left)
    if timed_out(given.reason):
        raise TimeOut
    found[size] = given
    return given


def _decided(answer: Answer) -> bool:
    return any(map(decides, answer.findings))


def _conclusion(program: Program, found: dict[int, Answer], seconds: float | None) -> Answer:
    name = program.free
    executions = sum(a.executions for a in found.values())
    wrong = min((k for k, a in found.items() if _decided(a)), default=None)
    if wrong is not None:
        given = found[wrong]
        missed = [k for k in range(wrong) if k not in found]
        smallest = "the smallest that shows it" if not missed else f"{missed[0]} to {missed[-1]} were not all looked at"
        said = f"found with {name} = {wrong}, {smallest}"
        if wrong and not missed:
            said += f", so not before round {wrong - 1} of a loop (the first is 0)"
        return replace(given, reason=given.reason or said, executions=executions, covered=False)
    open_ones = [k for k, a in found.items() if a.verdict != "proved"]
    looked = f"nothing was found with {name} = {_listed(sorted(found))}" if found else f"no {name} was looked at"
    reason = f"{name} is any number: {looked}; that larger ones add nothing is not proved"
    if open_ones:
        why = found[open_ones[0]].reason or found[open_ones[0]].bound
        reason = f"{name} is any number, and with {name} = {open_ones[0]}: {why}"
    last = found[max(found)] if found else Answer(verdict="unknown")
    seen = {
        (f.code, tuple(a.span for a in f.accesses)): f for k in sorted(found, reverse=True) for f in found[k].findings
    }
    assumptions = tuple(a for a in last.assumptions if not a.startswith("sizes as written"))
    return replace(
        last, verdict="unknown", findings=tuple(seen.values()), covered=False, assumptions=assumptions,
        executions=executions, reason=reason, cut=seconds is not None and len(found) < len(list(sizes())),
    )  # fmt: skip


def _listed(numbers: list[int]) -> str:
    """Numbers, neighbours as a range."""
    end = 0
    while end + 1 < len(numbers) and numbers[end + 1] == numbers[end] + 1:
        end += 1
    first = f"{numbers[0]} to {numbers[end]}" if end else str(numbers[0])
    return ", ".join([first, *map(str, numbers[end + 1 :])])

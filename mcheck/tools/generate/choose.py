"""Selecting tests: with the verdicts of one model, or those on which two models differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from mcheck.base.records import dataclass, replace
from mcheck.base.verdicts import Verdict
from mcheck.cat.ast import Check, Model
from mcheck.tools.generate.alphabet import Alphabet, load, names
from mcheck.tools.generate.judge import Generated, generate, judge


def sample(alphabet: Alphabet, sizes: tuple[int, ...], every: int) -> Iterator[Generated]:
    """Every ``every``-th test of each size."""
    for size in sizes:
        for number, test in enumerate(generate(alphabet, size)):
            if number % every == 0:
                yield test


def judge_all(found: Iterator[Generated], model: Model, timeout: float | None) -> Iterator[Generated]:
    """The tests with the verdicts of a model."""
    for test in found:
        yield judge(test, model, timeout=timeout)


def find_differences(
    found: Iterable[Generated], models: tuple[Model, Model], timeout: float | None
) -> Iterator[Generated]:
    """The tests on which the models differ in verdict or errors; they expect the answer of the second model.

    Errors are compared only if both models have flags: a model without flags makes no statement about races. A test
    without an answer under one of the models is returned as unknown.
    """
    flagging = all(any(isinstance(s, Check) and s.flag for s in model.statements) for model in models)
    for test in found:
        first, second = (judge(test, m, timeout=timeout, why=False) for m in models)
        if Verdict.UNKNOWN in (first.verdict, second.verdict):
            yield first if first.verdict is Verdict.UNKNOWN else second
        elif first.verdict != second.verdict or (flagging and first.codes != second.codes):
            codes = first.codes if flagging else None
            yield replace(judge(test, models[1]), other=first.verdict, other_codes=codes)


Watch = Callable[[str, int, int], None]
"""A callback before each test: the alphabet, the number of edges, and the number of such tests so far."""


def _ignore_progress(alphabet: str, size: int, number: int) -> None:
    """The default callback, which does nothing."""


def report_progress(found: Iterable[Generated], alphabet: str, watch: Watch) -> Iterator[Generated]:
    """The tests, calling ``watch`` before each."""
    numbers: Counter[int] = Counter()
    for test in found:
        numbers[test.size] += 1
        watch(alphabet, test.size, numbers[test.size])
        yield test


@dataclass(slots=True)
class Search:
    """State of a search: the alphabet and size with a difference, and the number of tests without one so far."""

    alphabet: str | None = None
    size: int = 0
    agreed: int = 0
    watch: Watch = _ignore_progress


def find_smallest_differences(
    models: tuple[Model, Model], size: int | None, every: int, timeout: float | None, search: Search
) -> Iterator[Generated]:
    """The smallest tests on which the models differ: those of the first size and shipped alphabet with a difference.

    Sizes are searched in ascending order, for each size the alphabets with the fewest arcs first.
    """
    alphabets = sorted((load(name) for name in names()), key=lambda a: len(a.arcs))
    sizes = sorted({n for a in alphabets for n in a.sizes}) if size is None else [size]
    for n in sizes:
        for alphabet in alphabets:
            if n not in alphabet.sizes:
                continue
            agreed = 0
            for test in report_progress(sample(alphabet, (n,), every), alphabet.name, search.watch):
                agreed += 1
                for found in find_differences([test], models, timeout):
                    agreed -= 1
                    if found.verdict is not Verdict.UNKNOWN:
                        search.alphabet, search.size = alphabet.name, n
                    yield found
            if search.alphabet:
                return
            search.agreed += agreed

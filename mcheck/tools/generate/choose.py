"""The tests that a command line asks for: judged by one model, or those about which two models differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from mcheck.base.verdicts import Verdict
from mcheck.cat.ast import Check, Model
from mcheck.tools.generate.alphabet import Alphabet, load, names
from mcheck.tools.generate.judge import Generated, generate, judged


def sample(alphabet: Alphabet, sizes: tuple[int, ...], every: int) -> Iterator[Generated]:
    """Every so manieth test of each size."""
    for size in sizes:
        for number, test in enumerate(generate(alphabet, size)):
            if number % every == 0:
                yield test


def judged_all(found: Iterator[Generated], model: Model, timeout: float | None) -> Iterator[Generated]:
    """The tests with the model's verdicts."""
    for test in found:
        yield judged(test, model, timeout=timeout)


def different(found: Iterable[Generated], models: tuple[Model, Model], timeout: float | None) -> Iterator[Generated]:
    """The tests about whose verdict or errors the models differ; they expect what the second model says.

    Errors are compared if both models flag some: one without flags calls nothing free of races. A test that one of the
    models does not answer comes as unknown.
    """
    flagging = all(any(isinstance(s, Check) and s.flag for s in model.statements) for model in models)
    for test in found:
        first, second = (judged(test, m, timeout=timeout, why=False) for m in models)
        if Verdict.UNKNOWN in (first.verdict, second.verdict):
            yield first if first.verdict is Verdict.UNKNOWN else second
        elif first.verdict != second.verdict or (flagging and first.codes != second.codes):
            codes = first.codes if flagging else None
            yield replace(judged(test, models[1]), other=first.verdict, other_codes=codes)


Watch = Callable[[str, int, int], None]
"""Hears of every test before it is judged: the alphabet, its edges, and how many of them there were so far."""


def _unwatched(alphabet: str, size: int, number: int) -> None:
    """Nobody waits for news."""


def watched(found: Iterable[Generated], alphabet: str, watch: Watch) -> Iterator[Generated]:
    """The tests, each told of before it comes."""
    numbers: Counter[int] = Counter()
    for test in found:
        numbers[test.size] += 1
        watch(alphabet, test.size, numbers[test.size])
        yield test


@dataclass(slots=True)
class Search:
    """How far a search got: the alphabet and the size with a difference, and how many tests without one came before."""

    alphabet: str | None = None
    size: int = 0
    agreed: int = 0
    watch: Watch = _unwatched


def smallest(
    models: tuple[Model, Model], size: int | None, every: int, timeout: float | None, search: Search
) -> Iterator[Generated]:
    """The smallest tests about which the models differ: of the first size and shipped alphabet that has one.

    Size by size, and of a size the alphabets with the fewest edges first.
    """
    alphabets = sorted((load(name) for name in names()), key=lambda a: len(a.arcs))
    sizes = sorted({n for a in alphabets for n in a.sizes}) if size is None else [size]
    for n in sizes:
        for alphabet in alphabets:
            if n not in alphabet.sizes:
                continue
            agreed = 0
            for test in watched(sample(alphabet, (n,), every), alphabet.name, search.watch):
                agreed += 1
                for found in different([test], models, timeout):
                    agreed -= 1
                    if found.verdict is not Verdict.UNKNOWN:
                        search.alphabet, search.size = alphabet.name, n
                    yield found
            if search.alphabet:
                return
            search.agreed += agreed

"""The tests that a command line asks for: judged by one model, or those about which two models differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mcheck.cat.ast import Model
from mcheck.generate.alphabet import Alphabet
from mcheck.generate.judge import Generated, generate, judged


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


def different(found: Iterator[Generated], models: tuple[Model, Model], timeout: float | None) -> Iterator[Generated]:
    """The tests about whose verdict or errors the models differ; they expect what the second model says."""
    for test in found:
        first, second = (judged(test, m, timeout=timeout) for m in models)
        if "unknown" in (first.verdict, second.verdict):
            continue
        if (first.verdict, first.codes) != (second.verdict, second.codes):
            yield replace(second, other=first.verdict, other_codes=first.codes)

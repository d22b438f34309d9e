"""Functions of candidates, computed once for all candidates that agree in the choices that the function looks at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from mcheck.events.choices.candidate import Candidate

Result = TypeVar("Result")


class _Observed(tuple[int, ...]):  # noqa: SLOT001 - a tuple cannot have any
    """A candidate that notes which of its choices are looked at, in their order."""

    looked_at: dict[int, None]

    def __getitem__(self, choice: Any) -> Any:
        self.looked_at[choice] = None
        return super().__getitem__(choice)


class DecisionTree(Generic[Result]):
    """A function that looks at one choice of a candidate after another.

    The first choice is the same for all candidates, and each further one depends only on the options of those before.
    """

    def __init__(self, compute: Callable[[Candidate], Result]) -> None:
        self.compute = compute
        self.questions: dict[Candidate, int] = {}
        """The choice that is looked at next, by the options of those before."""
        self.results: dict[Candidate, Result] = {}
        """By the options of all that are looked at."""

    def __call__(self, candidate: Candidate) -> Result:
        options: Candidate = ()
        while (choice := self.questions.get(options)) is not None:
            options = (*options, candidate[choice])
        if options not in self.results:
            options = self._grow(candidate)
        return self.results[options]

    def _grow(self, candidate: Candidate) -> Candidate:
        """Computes the result and notes the way to it."""
        observed = _Observed(candidate)
        observed.looked_at = {}
        result = self.compute(observed)
        options: Candidate = ()
        for choice in observed.looked_at:
            self.questions[options] = choice
            options = (*options, candidate[choice])
        self.results[options] = result
        return options

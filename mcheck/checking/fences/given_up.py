"""Checks of changed programs that were given up, remembered with the seconds that they had."""

from __future__ import annotations

from collections.abc import Callable

from mcheck.checking.backends import AnswerStore
from mcheck.checking.result_cache import Key, ResultCache
from mcheck.checking.run.case import Settings
from mcheck.checking.run.result import Result
from mcheck.checking.suite import Command


class GivenUp(ResultCache[Result]):
    """What checks said that were given up after ``most`` seconds of the processor; complete answers are not in it.

    ``has_time`` tells whether the examination may go on. If not, the check may have had less time than that.
    """

    def __init__(
        self, store: AnswerStore, command: Command, settings: Settings, most: float, has_time: Callable[[], bool]
    ) -> None:
        super().__init__(
            store, Result, command.name, settings, resumes=True, texts=command.texts, jobs=1, given_up_after=most,
            **command.options,
        )  # fmt: skip
        self._has_time = has_time

    def keep(self, key: Key, result: Result) -> None:
        """Stores a result that the limit cut."""
        if result.cut and self._has_time():
            super().keep(key, result)

"""Runs one piece of work in a separate process, if a limit requires that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from mcheck.base.errors import Exceeded, McheckError
from mcheck.base.reasons import Reason, format_reasons
from mcheck.base.records import dataclass
from mcheck.checking.run.case import Case, Settings
from mcheck.checking.run.pool import run_cases
from mcheck.checking.run.single import crash_error, out_of_memory, traceback_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Done(Generic[T]):
    value: T


def run_isolated(path: str, settings: Settings, work: Callable[[], T]) -> T:
    """The result of ``work``, or its exception; ``Exceeded`` if a limit of ``settings`` stops it."""

    def task(_: Case, __: Settings) -> _Done[T] | McheckError:
        try:
            return _Done(work())
        except McheckError as error:
            return error
        except MemoryError:
            return out_of_memory(settings.memory)
        except Exception as error:  # noqa: BLE001 - it goes on in the other process
            broken = crash_error(error)
            broken.add_note(traceback_of(error))
            return broken

    def lost(_: Case, __: Settings, reason: Reason, ___: float) -> _Done[T] | McheckError:
        return Exceeded(format_reasons((reason,)) or "")

    (done,) = run_cases([Case(path)], settings, 1, task, lost)
    if isinstance(done, McheckError):
        raise done
    return done.value

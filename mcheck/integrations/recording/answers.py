"""Answers about recorded launches, each computed once: they are kept in a folder that processes share.

The folder holds a module and a launch for each, so that ``mcheck check`` can be asked again about any of them.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

from mcheck.base.reasons import Cause
from mcheck.base.records import dataclass, replace
from mcheck.base.verdicts import Verdict
from mcheck.integrations.recording.launches import KernelLaunch

NAME = 40
"""The letters of a kernel's name that the name of a file has."""
DIGITS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelAnswer:
    """The answer about a launch: the verdict, the report of ``mcheck check``, and the reason if it is not certain.

    ``status``: ``ok``, ``finding``, ``unknown``, or ``error`` if no check took place, as the module or the launch is
    wrong, mcheck failed, or its process died. ``limit``: the seconds after which the check was stopped, with
    ``processor_time`` those of the processor; None if it ended by itself. ``fresh``: computed now, not found in the
    folder.
    """

    kernel: str
    module: str
    digest: str
    verdict: str
    status: str
    report: str
    reason: str = ""
    seconds: float = 0.0
    limit: float | None = None
    processor_time: bool = False
    fresh: bool = False


Check: TypeAlias = Callable[[str, Mapping[str, Any]], KernelAnswer]
"""Checks the module at a path with a launch."""


class AnswerFolder:
    """The answers in a folder, for one ``version`` of mcheck; ``limit`` is the time that a check may take, with
    ``processor_time`` that of the processor.
    """

    def __init__(
        self, folder: Path, version: str, check: Check, limit: float | None, *, processor_time: bool = False
    ) -> None:
        self._folder = folder
        self._version = version
        self._check = check
        self._limit = limit
        self._processor_time = processor_time

    def answer(self, launch: KernelLaunch) -> KernelAnswer:
        """The answer about a launch. A process that asks for it while another computes it waits."""
        stem = f"{_file_name(launch.kernel)}-{launch.digest[:DIGITS]}"
        with self._locked(stem):
            return self._kept(stem, launch) or self._computed(stem, launch)

    def _kept(self, stem: str, launch: KernelLaunch) -> KernelAnswer | None:
        """The answer in the folder, unless it is another version's, or was cut by a shorter limit."""
        try:
            kept = json.loads((self._folder / f"{stem}.answer").read_text(encoding="utf-8"))
            answer = KernelAnswer(**kept["answer"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        about = kept.get("version") == self._version and answer.digest == launch.digest
        return replace(answer, fresh=False) if about and not self._may_take_longer_than(answer) else None

    def _may_take_longer_than(self, cut: KernelAnswer) -> bool:
        """Whether a check has more time now; a second of the processor is at least one of the clock."""
        if cut.limit is None or self._limit is None:
            return cut.limit is not None
        return self._limit > cut.limit or (self._processor_time and not cut.processor_time)

    def _computed(self, stem: str, launch: KernelLaunch) -> KernelAnswer:
        module = self._folder / f"{stem}.ptx"
        module.write_text(launch.module, encoding="utf-8")
        module.with_suffix(".json").write_text(json.dumps(launch.launch, indent=1), encoding="utf-8")
        found = self._check(os.path.relpath(module), launch.launch)
        answer = replace(_without(found, launch.lacks), kernel=launch.kernel, digest=launch.digest, fresh=True)
        if answer.status == "error":  # it may be one of the surroundings, such as a package that is missing
            return answer
        whole = self._folder / f"{stem}.answer"
        part = whole.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps({"version": self._version, "answer": asdict(answer)}), encoding="utf-8")
        part.replace(whole)
        return answer

    @contextmanager
    def _locked(self, stem: str) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / f"{stem}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _file_name(kernel: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "_-" else "_" for letter in kernel[:NAME])


def _without(answer: KernelAnswer, lacks: str) -> KernelAnswer:
    """The answer, given that the launch file could not express everything: it is not proved then."""
    if not lacks or answer.verdict != Verdict.PROVED:
        return answer
    return replace(answer, verdict=str(Verdict.BOUNDED), status="unknown", reason=lacks)


def check_with_mcheck(limit: float | None, *, processor_time: bool = False, **options: Any) -> Check:
    """The check of ``mcheck.ptx.check``, with its report for a test: the causes among the findings."""

    def check(path: str, launch: Mapping[str, Any]) -> KernelAnswer:
        from mcheck import ptx
        from mcheck.integrations.testing import report

        clock, processor = (None, limit) if processor_time else (limit, None)
        result = ptx.check(path, launch, timeout=clock, cpu_timeout=processor, **options)
        problem = "" if result.problem is None else str(result.problem)
        died = any(reason.cause is Cause.DIED for reason in result.reasons)
        return KernelAnswer(
            kernel=result.name,
            module=path,
            digest="",
            verdict=str(Verdict.ERROR if died else result.verdict),
            status="error" if died else result.status,
            report=report(result, details=False),
            reason=result.reason or problem,
            seconds=round(result.seconds, 3),
            limit=limit if result.cut and not died else None,
            processor_time=processor_time,
        )

    return check

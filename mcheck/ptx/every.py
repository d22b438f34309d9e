"""A parameter that is every number: the answer without it where that suffices, else the first numbers one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from mcheck.answers.result import Answer
from mcheck.cat.ast import Model
from mcheck.limit import Limit, TimeOut, no_time
from mcheck.policy.question import Question
from mcheck.ptx.answer import answer
from mcheck.ptx.cluster import Missing
from mcheck.ptx.launch import Any, Argument, Launch
from mcheck.ptx.module import Module

LAST = {1: 8, 2: 3}
"""The largest number that is tried, by the number of such parameters; 1 for more of them."""


def answer_for_every(module: Module, launch: Launch, model: Model, question: Question, engine: str) -> Answer:
    """``mcheck.ptx.answer.answer``. Where control depends on parameters that are ``"any"``, a finding is that of the
    smallest numbers that have one and names them; without a finding the answer is ``bounded``.
    """
    names = [a.name for a in launch.arguments if _is_any(a)]
    try:
        return answer(module, launch, model, question, engine)
    except Missing:
        if not names:
            raise
    limit = Limit(question.timeout)
    last = LAST.get(len(names), 1)
    found = Answer(verdict="unknown", engine="protocol")
    executions = 0
    for numbers in sorted(product(range(last + 1), repeat=len(names)), key=sum):
        try:
            asked = replace(question, timeout=limit.remaining())
        except TimeOut:
            return replace(found, verdict="unknown", reason=no_time(question.timeout), cut=True, executions=executions)
        found = answer(module, _with(launch, dict(zip(names, numbers, strict=True))), model, asked, engine)
        executions += found.executions
        said = ", ".join(f"{name} = {number}" for name, number in zip(names, numbers, strict=True))
        if found.findings:
            findings = tuple(replace(f, message=f"{f.message}, with {said}") for f in found.findings)
            return replace(found, findings=findings, covered=False, executions=executions)
        if found.verdict == "unknown":
            return replace(found, reason=f"with {said}: {found.reason}", executions=executions)
    reason = f"{_listed(names)} from 0 to {last}, not every number"
    return replace(found, verdict="bounded", reason=reason, covered=False, bound=reason, executions=executions)


def _is_any(argument: Argument) -> bool:
    return any(isinstance(place, Any) for _, place in argument.places)


def _with(launch: Launch, numbers: dict[str, int]) -> Launch:
    """The launch with numbers in the places of ``Any``."""
    return replace(launch, arguments=tuple(_given(a, numbers.get(a.name)) for a in launch.arguments))


def _given(argument: Argument, number: int | None) -> Argument:
    if number is None:
        return argument
    data = number.to_bytes(argument.size, "little")
    return replace(argument, data=data, known=((0, argument.size),), places=())


def _listed(names: Sequence[str]) -> str:
    return " and ".join(names)

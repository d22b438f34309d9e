"""Traces as text: a schedule as a table with a column for each role, an execution as a line for each event."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcheck.answers.number_text import UNKNOWN, format_contents
from mcheck.findings.trace import Reads, Signals, Step, StepEffect, StepPart, Trace, WaitResult, Writer, Writes

_LONG_LIST = re.compile(r"\{\s*([^{},]+)(?:,[^{},]+){8,},\s*([^{},]+?)\s*\}")
"""Ten or more elements in braces."""
NARROWEST = 12
"""The minimum width of a column."""
MOST_COLUMNS = 6
"""The maximum number of columns; with more threads each step names its thread instead."""


def format_trace(trace: Trace) -> tuple[str, ...]:
    """The lines of a trace as text."""
    return tuple(_schedule(trace) if trace and trace[0].number is not None else _execution(trace))


def _schedule(trace: Trace) -> Iterator[str]:
    """A table with a column for each role and a step per line, whose text may extend over the columns to its right."""
    names = list(dict.fromkeys(step.thread for step in trace))
    width = max(NARROWEST, *map(len, names)) + 2
    abreast = len(names) <= MOST_COLUMNS
    yield "step  " + ("".join(name.ljust(width) for name in names).rstrip() if abreast else "thread")
    for step in trace:
        if step.skipped:
            yield f"   ... {step.skipped} other step{'' if step.skipped == 1 else 's'}"
        before = " " * (width * names.index(step.thread)) if abreast else step.thread.ljust(width)
        yield f"{step.number:4d}  {before}{_cell(step)}"


def _cell(step: Step) -> str:
    return f"{step.span.line}: {format_instruction(step)}" if step.span is not None else format_instruction(step)


def format_instruction(step: Step) -> str:
    """The instruction with its loop iteration, marked if only a part of it is performed."""
    turn = f"[{step.iteration}] " if step.iteration else ""
    part = "" if step.part is StepPart.EXECUTES else f"({step.part}) "
    return f"{turn}{part}{abridge_registers(step.instruction)}"


def abridge_registers(text: str) -> str:
    """An instruction with long register lists, as of an accumulator, reduced to the first and last element."""
    return _LONG_LIST.sub(r"{\1, …, \2}", text)


def _execution(trace: Trace) -> Iterator[str]:
    for step in trace:
        if step.skipped:
            yield f"… {step.skipped} steps before"
        match step.part:
            case StepPart.EXECUTES:
                text = step.instruction
            case StepPart.COPIES:
                text = "  its copy"
            case _:
                text = f"{step.instruction}  ({step.part})"
        effect = _effect(step.effect)
        yield f"{step.thread}: {text}" + (f"  {effect}" if effect else "")


def _effect(effect: StepEffect | None) -> str:
    match effect:
        case Reads():
            if effect.value is None and effect.writer is None:
                return f"reads {effect.object} = {UNKNOWN} (uninitialised)"
            return f"reads {effect.object} = {_value(effect)} from {_writer(effect.writer)}"
        case Writes():
            return f"writes {effect.object} = {_value(effect)}"
        case Signals():
            return "signals its completion"
        case WaitResult(result) if result is not None:
            return f"-> {result}"
    return ""


def _value(effect: Reads | Writes) -> str:
    return format_contents(effect.value, effect.size, effect.unit)


def _writer(writer: Writer | None) -> str:
    if writer is None:
        return "the initial value"
    return f"the copy of {writer.thread}" if writer.asynchronous else f"{writer.thread}: {writer.instruction}"

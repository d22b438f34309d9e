"""A trace in words: a schedule as a table with a lane for each role, an execution as a line for each event."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcheck.answers.number_text import UNKNOWN, format_contents
from mcheck.findings.trace import Answers, Effect, Happening, Reads, Signals, Step, Trace, Writer, Writes

_LONG_LIST = re.compile(r"\{\s*([^{},]+)(?:,[^{},]+){8,},\s*([^{},]+?)\s*\}")
"""Ten elements in braces, or more."""
NARROWEST = 12
"""Characters of a lane."""
LANES = 6
"""Lanes that stand side by side. The steps of more threads name theirs instead, or no line would fit a screen."""


def texts(trace: Trace) -> tuple[str, ...]:
    """The lines of a trace."""
    return tuple(_schedule(trace) if trace and trace[0].number is not None else _execution(trace))


def _schedule(trace: Trace) -> Iterator[str]:
    """Each role has a lane. A step stands alone in its line, so that its text may go on over the lanes to its right."""
    names = list(dict.fromkeys(step.thread for step in trace))
    width = max(NARROWEST, *map(len, names)) + 2
    abreast = len(names) <= LANES
    yield "step  " + ("".join(name.ljust(width) for name in names).rstrip() if abreast else "thread")
    for step in trace:
        if step.skipped:
            yield f"   ... {step.skipped} other step{'' if step.skipped == 1 else 's'}"
        before = " " * (width * names.index(step.thread)) if abreast else step.thread.ljust(width)
        yield f"{step.number:4d}  {before}{_cell(step)}"


def _cell(step: Step) -> str:
    return f"{step.span.line}: {instruction(step)}" if step.span is not None else instruction(step)


def instruction(step: Step) -> str:
    """The instruction with its round, marked if only a part of it happens."""
    turn = f"[{step.turn}] " if step.turn else ""
    part = "" if step.happening is Happening.EXECUTES else f"({step.happening}) "
    return f"{turn}{part}{abridge_registers(step.instruction)}"


def abridge_registers(text: str) -> str:
    """An instruction with its long lists of registers, as those of an accumulator, by their ends."""
    return _LONG_LIST.sub(r"{\1, …, \2}", text)


def _execution(trace: Trace) -> Iterator[str]:
    for step in trace:
        if step.skipped:
            yield f"… {step.skipped} steps before"
        match step.happening:
            case Happening.EXECUTES:
                text = step.instruction
            case Happening.COPIES:
                text = "  its copy"
            case _:
                text = f"{step.instruction}  ({step.happening})"
        effect = _effect(step.effect)
        yield f"{step.thread}: {text}" + (f"  {effect}" if effect else "")


def _effect(effect: Effect | None) -> str:
    match effect:
        case Reads():
            if effect.value is None and effect.writer is None:
                return f"reads {effect.object} = {UNKNOWN}, for nothing has written it"
            return f"reads {effect.object} = {_value(effect)} from {_writer(effect.writer)}"
        case Writes():
            return f"writes {effect.object} = {_value(effect)}"
        case Signals():
            return "signals its completion"
        case Answers(result) if result is not None:
            return f"-> {result}"
    return ""


def _value(effect: Reads | Writes) -> str:
    return format_contents(effect.value, effect.size, effect.unit)


def _writer(writer: Writer | None) -> str:
    if writer is None:
        return "the initial value"
    return f"the copy of {writer.thread}" if writer.asynchronous else f"{writer.thread}: {writer.instruction}"

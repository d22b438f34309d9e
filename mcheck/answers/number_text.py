"""Values as people read them, the same in steps, states and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

UNKNOWN = "unknown"
MEANING = "unknown: nothing has written it, or a division by zero gave it; shared memory starts with whatever was there"
"""What is said where the word is shown."""
_PLAIN = 8
"""Bytes of what is read as one number."""
_RUNS = 6
"""Runs of equal elements that are shown of a wide value."""


def format_number(value: int) -> str:
    """A number: decimal, or hexadecimal where nobody counts as far."""
    return str(value) if value < 1 << 32 else hex(value)


def format_contents(value: int | None, size: int, unit: int) -> str:
    """``size`` bytes: a number, or the elements of ``unit`` bytes as PTX initialises them, ``{7, 7, 1, 0 x13}``."""
    if value is None:
        return UNKNOWN
    if size <= _PLAIN:
        return format_number(value)
    unit = next(n for n in (unit if unit > 1 else 4, 4, 2, 1) if n <= _PLAIN and size % n == 0)
    parts = [format_number(value >> 8 * at & (1 << 8 * unit) - 1) for at in range(0, size, unit)]
    runs = [(text, len(list(run))) for text, run in groupby(parts)]
    told = [f"{text} x{count}" if count > 4 else ", ".join([text] * count) for text, count in runs[:_RUNS]]
    left = sum(count for _, count in runs[_RUNS:])
    return f"{{{', '.join(told)}{f', and {left} more' if left else ''}}}"


def ranges(numbers: Sequence[int], most: int = 4) -> str:
    """Ascending numbers as ranges of which both ends are meant, the first ``most`` of them: ``0..3, 16``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    shown = [str(a) if a == b else f"{a}..{b}" for a, b in runs[:most]]
    return ", ".join(shown) + (", …" if len(runs) > most else "")

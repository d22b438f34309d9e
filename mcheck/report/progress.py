"""The progress bar of a long suite; rich is imported only once it is clear that the suite is long."""

from __future__ import annotations

import sys
from collections import Counter
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from mcheck.report.lines import Printer

if TYPE_CHECKING:
    from rich.progress import Progress

DELAY = 0.5
OFTEN, SELDOM = 0.2, 10.0
"""Seconds between two updates, on a terminal and in a file."""
VERDICTS = ("pass", "fail", "alike", "differ", "proved", "bounded", "finding", "ignored", "unknown", "error")
"""The counted verdicts, in order."""


class SearchProgress:
    """Progress of a search of unknown length, on a stream beside the report: one line of a terminal, overwritten, or
    occasional lines in a file.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._next = monotonic() + (DELAY if self._live else SELDOM)
        self._shown = False

    def update(self, text: str) -> None:
        """Show the text, unless the last update was a moment ago."""
        now = monotonic()
        if now < self._next:
            return
        self._next = now + (OFTEN if self._live else SELDOM)
        self._shown = self._live
        self._stream.write(f"\r\x1b[K{text}" if self._live else f"{text}\n")
        self._stream.flush()

    def clear(self) -> None:
        """Clear the line before a line of the report."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = False


class Bar:
    """Progress bar with counts of verdicts. If the report goes to the same terminal, its lines scroll above the bar."""

    def __init__(self, total: int, printer: Printer | None, *, enabled: bool) -> None:
        self._total = total
        self._printer = printer
        self._enabled = enabled and total > 1
        self._done = 0
        self._wrong = 0
        self._verdicts: Counter[str] = Counter()
        self._since = monotonic()
        self._progress: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def advance(self, verdict: str, *, ok: bool) -> None:
        """Count one more result."""
        self._done += 1
        self._wrong += not ok
        self._verdicts[verdict] += 1
        if not self._enabled:
            return
        if self._progress is None:
            if monotonic() - self._since < DELAY:
                return
            self._progress = self._start()
        self._progress.update(self._progress.task_ids[0], completed=self._done, description=self._counts())

    def _counts(self) -> str:
        """The non-zero counts: ``12 pass, 3 fail, 1 unknown; 2 not ok``."""
        named = [f"{self._verdicts[v]} {v}" for v in VERDICTS if self._verdicts[v]]
        return ", ".join(named) + (f"; {self._wrong} not ok" if self._wrong else "")

    def _start(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        console = self._printer.console if self._printer is not None else Console(file=sys.stderr)
        columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
        progress = Progress(*columns, console=console, transient=True, redirect_stdout=False)
        progress.add_task("", total=self._total)
        progress.start()
        console.show_cursor(True)  # if a signal killed this process, the terminal would keep a hidden cursor
        return progress

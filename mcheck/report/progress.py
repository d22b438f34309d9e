"""The progress bar of a long suite; rich is imported only once it is clear that the suite is long."""

from __future__ import annotations

import sys
from collections import Counter
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from mcheck.base.progress import send_notes
from mcheck.report.lines import Printer

if TYPE_CHECKING:
    from rich.progress import Progress

DELAY = 0.5
OFTEN, SELDOM = 0.2, 10.0
"""Seconds between two updates, on a terminal and in a file."""
PATIENCE, LONG = 2.0, 20.0
"""Seconds after which a single check first says how far it has come, on a terminal and in a file."""
VERDICTS = ("pass", "fail", "alike", "differ", "proved", "bounded", "finding", "ignored", "unknown", "error")
"""The counted verdicts, in order."""


class _News:
    """News on a stream beside the report: one line of a terminal, overwritten, or lines in a file."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._shown = False

    def _show(self, text: str) -> None:
        self._shown = self._live
        self._stream.write(f"\r\x1b[K{text}" if self._live else f"{text}\n")
        self._stream.flush()

    def clear(self) -> None:
        """Clear the line before a line of the report."""
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = False


class SearchProgress(_News):
    """Progress of a search of unknown length, on a stream beside the report: one line of a terminal, overwritten, or
    occasional lines in a file.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._next = monotonic() + (DELAY if self._live else SELDOM)

    def update(self, text: str) -> None:
        """Show the text, unless the last update was a moment ago."""
        now = monotonic()
        if now < self._next:
            return
        self._next = now + (OFTEN if self._live else SELDOM)
        self._show(text)


class CheckProgress(_News):
    """Says how far the check of a single file has come, from a moment on when its user may wonder: in one line of a
    terminal, or in lines of a file, each after twice the time of the one before.
    """

    def __init__(self, stream: TextIO, name: str, hint: str) -> None:
        super().__init__(stream)
        self._name, self._hint = name, hint
        self._since = monotonic()
        self._due = PATIENCE if self._live else LONG

    def __enter__(self) -> Self:
        send_notes(self.update)
        return self

    def __exit__(self, *_: object) -> None:
        send_notes(None)
        self.clear()

    def update(self, text: str) -> None:
        """Show how far the check has come, unless that was shown a moment ago."""
        seconds = monotonic() - self._since
        if seconds < self._due or not text:
            return
        self._due = seconds + OFTEN if self._live else 2 * self._due
        said = f"{self._name}: after {seconds:.0f} s: {text}"
        if self._live:
            from shutil import get_terminal_size  # few checks take so long

            width = get_terminal_size().columns - 1
            self._show(said if len(said) <= width else said[: width - 1] + "…")
        else:
            self._show(said + self._hint)
            self._hint = ""


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

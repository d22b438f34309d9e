"""Options of ``mcheck check`` for a baseline: the findings that are known, so that only new ones are errors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from mcheck.tools.cli.configuration import is_on_command_line
from mcheck.tools.cli.options import together

if TYPE_CHECKING:
    from mcheck.checking.run.case import Case
    from mcheck.checking.run.result import Result
    from mcheck.findings.baseline import Baseline, KnownFinding

MOST = 10
"""The maximum number of entries that are named."""

options = together(
    click.option("--baseline", metavar="FILE", help="Findings listed in FILE are no errors; only new ones are."),
    click.option(
        "--update-baseline", is_flag=True, help="Add new findings to the baseline, and drop those no longer found."
    ),
    click.option("--write-baseline", metavar="FILE", help="Write all findings to FILE, as a baseline for later."),
)
"""The options for a baseline."""


class BaselineFile:
    """The baseline of a command: what it says of the files that are checked, and what becomes of it."""

    def __init__(self, given: Mapping[str, Any], scheduler: str | None) -> None:
        known = given["baseline"]
        if given["write_baseline"] and not is_on_command_line(click.get_current_context(), "baseline"):
            known = None  # the file that a configuration names is to be written anew
        self._path: str | None = known or given["write_baseline"]
        self._writes = bool(given["write_baseline"] or given["update_baseline"])
        self._before: Baseline | None = None
        if given["update_baseline"] and not known:
            raise click.UsageError("--update-baseline needs --baseline FILE")
        if given["write_baseline"] and known:
            raise click.UsageError("--write-baseline writes a new file; --baseline FILE --update-baseline changes one")
        if self._path is not None and scheduler is not None:
            raise click.UsageError("a baseline compares source lines of this machine: leave out --scheduler")
        if known:
            from mcheck.checking.check.baseline_file import read_baseline

            self._before = read_baseline(known)

    @property
    def thorough(self) -> bool:
        """Whether all findings are wanted, for they will be written."""
        return self._writes

    def known_in(self, cases: Sequence[Case], todo: Mapping[str, str]) -> Baseline | None:
        """What is known of the files; ``todo`` has the modules that are checked in place of sources."""
        if self._before is None or self._path is None:
            return None
        from mcheck.checking.check.baseline_file import relative_name

        path = self._path
        return self._before.for_files({relative_name(c.path, path): todo.get(c.path, c.path) for c in cases})

    def finish(self, results: Sequence[Result]) -> bool:
        """Write the baseline if the user asked for it, and say what is no longer found; whether it was written."""
        if self._path is None:
            return False
        from mcheck.checking.check.baseline_file import format_baseline, list_gone, update_baseline
        from mcheck.findings.baseline import Baseline
        from mcheck.report.output import output

        before = self._before or Baseline()
        if not self._writes:
            gone = list_gone(before, results, self._path)
            _say(gone, self._path, "no longer found; --update-baseline drops it")
            return False
        update = update_baseline(before, results, self._path)
        with output(self._path) as stream:
            stream.write(format_baseline(update.baseline))
        _say(update.gone, self._path, "dropped, no longer found")
        total = len(update.baseline.entries)
        changes = f" ({len(update.added)} new, {len(update.gone)} dropped)" if before.entries else ""
        click.echo(f"{self._path}: {total} {'entry' if total == 1 else 'entries'} written{changes}", err=True)
        return True


def _say(entries: Sequence[KnownFinding], path: str, what: str) -> None:
    said = Counter((entry.file, entry.code, _place(entry)) for entry in entries)
    for (file, code, place), count in list(said.items())[:MOST]:
        times = f" ({count} entries)" if count > 1 else ""
        click.echo(f"{path}: {file}: {code} `{place}`{times}: {what}", err=True)
    if len(said) > MOST:
        click.echo(f"{path}: and {len(said) - MOST} more", err=True)


def _place(entry: KnownFinding) -> str:
    """The text that names an entry: the shortest of its accesses."""
    return min((a.source or a.instruction for a in entry.accesses), key=len, default=entry.message)

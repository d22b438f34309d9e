"""``mcheck doc``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mcheck.base.verdicts import Verdict
from mcheck.tools.cli import options

if TYPE_CHECKING:
    from mcheck.checking.backends import Backend
    from mcheck.checking.run.case import Case, Settings


@click.command("doc", short_help="Write the allowed outcomes of a suite as pages with pictures.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "-o", "--output", "folder", required=True, metavar="DIR",
    help="Output folder, new or empty; with --paper a file.",
)  # fmt: skip
@options.format_("html", "md")
@click.option("--paper", is_flag=True, help="Write one LaTeX table instead of pages.")
@click.option(
    "--playground",
    default="",
    metavar="URL",
    help="Address of a playground (mcheck playground), absolute or relative to DIR; pages link their programs there.",
)
@click.option("--title", default="Outcomes and findings", show_default=True, help="Heading of the index.")
@options.model
@options.profile
@options.jobs("Pages computed")
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), default=20.0, show_default=True, metavar="SECONDS",
    help="Limit per test and model; the answer is unknown after it.",
)  # fmt: skip
@options.cache
@options.scheduler
@options.tls
@options.memory
@options.unroll
@options.assume
@options.color
def command(
    paths: tuple[str, ...],
    folder: str,
    form: str,
    paper: bool,
    playground: str,
    title: str,
    model: str | None,
    profile: str,
    jobs: int | None,
    cache: str | None,
    scheduler: str | None,
    tls: str | None,
    timeout: float,
    memory: int | None,
    unroll: int,
    assume: tuple[str, ...],
    color: str,
) -> int:
    """Write a page for every test under PATH: program, question, verdict under each model, outcomes, findings.

    The site is static and needs no network: open DIR/index.html. With --format md it is Markdown for a repository.
    The page of a sketch with `const N = any`, and of a PTX module K.ptx with the launch K.json, shows the answer of
    mcheck check. The page of a file that cannot be read says why.

    \b
    mcheck doc litmus -o site
    mcheck doc my-tests --format md -o docs/outcomes --title "Our tests"
    mcheck doc my-tests --paper -o table.tex --title "Our tests"
    """
    import sys

    from mcheck.checking.check.files import collect_files, explain_skipped_modules
    from mcheck.checking.run.case import Settings
    from mcheck.checking.run.pool import default_jobs
    from mcheck.report.lines import Printer
    from mcheck.report.output import wants_color
    from mcheck.report.problems import show_warning
    from mcheck.report.progress import Bar
    from mcheck.report.site.build import Entry, Site, write_site

    cases, bare = collect_files(paths)
    if bare:
        show_warning(f"{explain_skipped_modules(bare)}: skipped", None, color=color)
    settings = Settings(model=model, profile=profile, unroll=unroll, timeout=timeout, memory=memory, assume=assume)
    if paper:
        with options.open_backend(jobs, cache, None, scheduler, timeout, tls) as backend:
            return _paper(cases, settings, folder, title, backend)
    problems = Printer(sys.stderr, color=wants_color(color, sys.stderr))
    with Bar(len(cases), problems, enabled=sys.stderr.isatty()) as bar:

        def each(entry: Entry) -> None:
            if entry.problem:
                problems.line(f"{entry.path}: {entry.problem}")
            bar.advance(entry.verdict, ok=entry.status == "ok")

        entries = write_site(
            Site(
                cases=cases,
                roots=paths,
                folder=folder,
                form=form,
                title=title,
                settings=settings,
                playground=playground,
                left_out=bare,
                jobs=jobs or default_jobs(),
                cache=cache,
                scheduler=scheduler,
                tls=tls,
                say=problems.line,
                each=each,
            )
        )
    failed = sum(1 for e in entries if e.problem)
    start = "README.md" if form == "md" else "index.html"
    about = f", {failed} without an answer" if failed else ""
    click.echo(f"{len(entries)} page{'' if len(entries) == 1 else 's'}{about}: {folder.rstrip('/')}/{start}")
    if any(e.problem and e.status != "unknown" for e in entries):
        return 2
    return 3 if failed or any(e.verdict == Verdict.UNKNOWN for e in entries) else 0


def _paper(cases: list[Case], settings: Settings, target: str, title: str, backend: Backend) -> int:
    """Write the table and return the exit status."""
    from mcheck.checking.check.command import check_command
    from mcheck.checking.check.files import has_any_constant, is_module
    from mcheck.checking.run.case import Options
    from mcheck.checking.run.command import RUN
    from mcheck.checking.run.single import list_reasons
    from mcheck.checking.suite import answer_cases
    from mcheck.report.formats.paper import latex_table
    from mcheck.report.output import output

    modules = [case for case in cases if is_module(case.path)]
    with output(target) as stream:
        tests = [case for case in cases if case not in modules]
        rows = {r.path: r for r in answer_cases(tests, settings, RUN, backend)}
        unread = {path for path, row in rows.items() if row.verdict in (Verdict.ERROR, Verdict.UNKNOWN)}
        asked = modules + [case for case in cases if case.path in unread and has_any_constant(case)]
        rows |= {r.path: r for r in answer_cases(asked, settings, check_command(Options()), backend)}
        found = [rows[case.path] for case in cases]
        stream.write(latex_table(found, title))
    statuses = {result.verdict for result in found}
    for result in found:
        if result.verdict is Verdict.ERROR:
            for reason in list_reasons(result.reason, result.problem):
                placed = reason.startswith(f"{result.path}:")
                click.echo(reason if placed else f"{result.path}: {reason}", err=True)
    click.echo(f"{len(found)} row{'' if len(found) == 1 else 's'}: {target}")
    return 2 if "error" in statuses else 3 if "unknown" in statuses else 0

"""``mcheck doc``."""

from __future__ import annotations

import click

from mcheck.commands import options


@click.command("doc", short_help="Write the allowed outcomes of a suite as pages with pictures.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option(
    "-o", "--output", "folder", required=True, metavar="DIR", help="The folder to write: a new or an empty one."
)
@options.format_("html", "md")
@click.option("--title", default="Allowed outcomes", show_default=True, help="The heading of the index.")
@options.model
@options.profile
@click.option(
    "-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="Pages made at the same time (default: one per core)."
)
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), default=20.0, show_default=True, metavar="SECONDS",
    help="Per test and model; what takes longer is unknown.",
)  # fmt: skip
@options.cache
@options.scheduler
@options.memory
@options.unroll
@options.assume
@options.color
def command(
    paths: tuple[str, ...],
    folder: str,
    form: str,
    title: str,
    model: str | None,
    profile: str,
    jobs: int | None,
    cache: str | None,
    scheduler: str | None,
    timeout: float,
    memory: int | None,
    unroll: int,
    assume: tuple[str, ...],
    color: str,
) -> int:
    """Write a page for every test under PATH: program, question, verdict under each model, all outcomes, findings.

    The site is static and needs no network: open DIR/index.html. With --format md it is Markdown for a repository.
    A test that cannot be read gets a page that says why; the others are written.

    \b
    mcheck doc litmus -o site
    mcheck doc my-tests --format md -o docs/outcomes --title "Our tests"
    """
    import sys

    from mcheck.report.lines import Printer
    from mcheck.report.output import wants_color
    from mcheck.report.progress import Bar
    from mcheck.report.site.build import Entry, Site, write_site
    from mcheck.run.case import Settings
    from mcheck.run.collect import collect
    from mcheck.run.pool import default_jobs

    cases = collect(paths)
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
                settings=Settings(
                    model=model, profile=profile, unroll=unroll, timeout=timeout, memory=memory, assume=assume
                ),
                jobs=jobs or default_jobs(),
                cache=cache,
                scheduler=scheduler,
                say=problems.line,
                each=each,
            )
        )
    failed = sum(1 for e in entries if e.problem)
    start = "README.md" if form == "md" else "index.html"
    about = f", {failed} of them without an answer" if failed else ""
    click.echo(f"{len(entries)} page{'' if len(entries) == 1 else 's'}{about}: {folder.rstrip('/')}/{start}")
    if failed:
        return 2
    return 3 if any(e.verdict == "unknown" for e in entries) else 0

"""Building the site: pages are computed in parallel and written to a folder that appears once it is complete."""

from __future__ import annotations

import os
import re
import secrets
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from mcheck import __version__
from mcheck.base.errors import InputError
from mcheck.base.files import LOST_DIRECTORY, has_lost_directory
from mcheck.base.reasons import Reason
from mcheck.base.records import dataclass, replace
from mcheck.checking.check.files import is_module, launch_file
from mcheck.checking.run.case import Case, Settings
from mcheck.report.finding import compiled_from
from mcheck.report.output import umask
from mcheck.report.playground_links import playground_link
from mcheck.report.site.content import Page
from mcheck.report.site.draft import build_folder
from mcheck.report.site.page import OTHERS, lost_page, page_task
from mcheck.report.site.page_cache import load_or_compute, open_page_store, page_memory
from mcheck.report.site.problems import name_of_file, page_without_answer

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

TEMPLATES = Path(__file__).parent / "templates"
ASSETS = ("style.css", "search.js", "page.js")
RESERVED = {*ASSETS, "index.html", "readme.md"}
LONGEST = 160
"""The maximum length of a name in bytes, with room for suffixes."""
MOST_ACCESSES = 24
"""The maximum number of accesses shown per finding; a deadlock may have hundreds."""
FOREIGN = "the file, or its launch, is a link to a file outside the given folders"
_UNSAFE = re.compile(r"[^\w.+-]")


@dataclass(frozen=True, slots=True)
class Entry:
    """A test in the index: its ``file`` without suffix, relative to the site, and the words for the search.

    ``codes`` are the codes of its findings with their severities; ``has_errors``: one is an error; ``is_clean``: no
    findings and everything was checked; ``expected``: the findings match the expectations of the file.
    """

    name: str
    path: str
    suite: str
    file: str
    kind: str
    verdict: str
    about: str
    topics: tuple[str, ...]
    codes: tuple[tuple[str, str], ...]
    words: str
    problem: str
    status: str
    has_errors: bool
    is_clean: bool
    expected: bool


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests of one folder."""

    name: str
    anchor: str
    pages: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    """The suite and file of the page of a case."""

    case: Case
    suite: str
    file: str
    foreign: bool = False
    """Whether it is a link in a folder to a file elsewhere, which is not published."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A site to write. ``cache`` is a folder with pages from earlier runs; ``scheduler`` the address of a scheduler
    whose workers compute pages (``mcheck.checking.machines``), with the certificates in ``tls``. ``each`` is called
    with every page when it is done, ``say`` with warnings.
    ``playground`` is the address of a playground relative to the site, or empty. ``left_out`` are modules without a
    page, because they have no launch.
    """

    cases: Sequence[Case]
    roots: Sequence[str]
    folder: str
    form: str
    title: str
    settings: Settings
    jobs: int
    playground: str
    left_out: Sequence[str]
    cache: str | None
    scheduler: str | None
    tls: str | None
    say: Callable[[str], None]
    each: Callable[[Entry], None]


def write_site(site: Site) -> list[Entry]:
    """Write the site and return its entries; on failure no folder is left."""
    target = Path(site.folder)
    draft = _draft(target)
    try:
        with build_folder(draft):
            entries = _pages(site, draft)
            _index(site, draft, entries)
            os.chmod(draft, 0o777 & ~umask())
            with suppress(FileNotFoundError):
                target.rmdir()  # empty, as _draft has checked
            os.replace(draft, target)
    except OSError as error:
        raise InputError(f"cannot write {site.folder}: {error.strerror or error}") from None
    return entries


def _draft(target: Path) -> Path:
    """The name of a new folder beside the target; refused if the target is in use."""
    if has_lost_directory(str(target)):
        raise InputError(f"cannot write {target}: {LOST_DIRECTORY}")
    try:
        if target.is_dir():
            if any(target.iterdir()):
                raise InputError(
                    f"cannot write {target}: the folder is not empty", hint="name a new or an empty folder"
                )
        elif target.exists() or target.is_symlink():
            raise InputError(f"cannot write {target}: it is not a folder")
        parent = target.resolve().parent
        parent.mkdir(parents=True, exist_ok=True)
        return parent / f".{target.name}.{secrets.token_hex(8)}"
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror or error}") from None


# --- pages -------------------------------------------------------------------------------------------------


def plan(cases: Sequence[Case], roots: Sequence[str]) -> list[_Plan]:
    """The suite and file of every case: unique names that are valid in every file system and URL."""
    taken: Counter[str] = Counter()
    out = []
    for case in cases:
        root = _folder_of(case.path, roots)
        inside = (
            os.path.relpath(os.path.realpath(case.path), os.path.realpath(root))
            if root
            else os.path.basename(case.path)
        )
        folder = os.path.dirname(inside).replace(os.sep, "/")
        suite = folder or (os.path.basename(os.path.realpath(root)) if root else "tests")
        stem = name_of_file(inside)
        file = "/".join(_safe(part) for part in f"{suite}/{stem}".split("/"))
        known = unicodedata.normalize("NFKC", file).casefold()  # names that a file system may identify
        taken[known] += 1
        if taken[known] > 1:
            file += f"~{taken[known]}"
        out.append(_Plan(case, suite, file, foreign=_is_foreign(case.path, roots)))
    return out


def _folder_of(path: str, roots: Sequence[str]) -> str:
    """The given folder that contains a file, after resolving links; empty if none does."""
    real = os.path.realpath(path)
    return next((r for r in roots if os.path.isdir(r) and real.startswith(os.path.realpath(r) + os.sep)), "")


def _is_foreign(path: str, roots: Sequence[str]) -> bool:
    """Whether a page would publish a file outside the given paths: the test itself or the launch of a module."""
    if path in roots:
        return False
    shown = (path, launch_file(path) if is_module(path) else None)
    return any(file is not None and not _folder_of(file, roots) for file in shown)


def _safe(part: str) -> str:
    """A name that is valid in every file system and URL and differs from the reserved names of the site."""
    name = _UNSAFE.sub("_", part).lstrip(".") or "_"
    name = name.encode()[:LONGEST].decode(errors="ignore")
    return f"_{name}" if name.casefold() in RESERVED else name


def _pages(site: Site, draft: Path) -> list[Entry]:
    from mcheck.cat.model_files import model_names
    from mcheck.checking.backends import Backend, compute_cases
    from mcheck.checking.cache.database import open_store
    from mcheck.checking.result_cache import compute_uncached
    from mcheck.checking.run.command import preload
    from mcheck.checking.run.pool import run_cases

    plans = plan(site.cases, site.roots)
    where = {id(p.case): k for k, p in enumerate(plans)}
    for p in plans:
        (draft / p.file).parent.mkdir(parents=True, exist_ok=True)
    settings = site.settings
    preload(settings)
    _load_everything()

    whole = None if settings.timeout is None else settings.timeout * 3 + OTHERS * 5  # the engines have their own limits
    patient = replace(settings, timeout=whole)
    task = partial(page_task, timeout=settings.timeout)

    def written(page: Page, k: int) -> Entry:
        page = replace(page, suite=plans[k].suite, file=plans[k].file)
        return _write_page(site, draft, page, _neighbour(plans, k, -1), _neighbour(plans, k, 1))

    def foreign(k: int) -> Entry:
        return written(page_without_answer(plans[k].case.path, "error", FOREIGN, "This file is not published"), k)

    def make(case: Case, given: Settings, folder: str | None) -> Entry | InputError:
        k = where[id(case)]
        if plans[k].foreign:
            return foreign(k)
        try:
            return written(load_or_compute(case, folder, settings, lambda: task(case, given)), k)
        except InputError as error:
            return error

    def lost(case: Case, given: Settings, reason: Reason, seconds: float) -> Entry | InputError:
        return written(lost_page(case, given, reason, seconds), where[id(case)])

    def here() -> Iterator[Entry]:
        with open_page_store(site.cache, settings.timeout, site.say) as folder:
            for entry in run_cases([p.case for p in plans], patient, site.jobs, partial(make, folder=folder), lost):
                if isinstance(entry, InputError):
                    raise entry
                yield entry

    def elsewhere() -> Iterator[Entry]:
        asked = [p.case for p in plans if not p.foreign]
        with open_store(site.cache, timeout=settings.timeout, say=site.say) as store:
            means = Backend(jobs=site.jobs, scheduler=site.scheduler, tls=site.tls, store=store, say=site.say)

            def fresh(cases: Sequence[Case]) -> Iterator[Page]:
                return compute_cases(cases, patient, means, task, lost_page, _load_everything, tuple(model_names()))

            pages = compute_uncached(
                asked, None if store is None else page_memory(store, settings), fresh, lambda case: (case.path,)
            )
            for k, p in enumerate(plans):
                yield foreign(k) if p.foreign else written(next(pages), k)

    entries: list[Entry] = []
    for entry in here() if site.scheduler is None else elsewhere():
        entries.append(entry)
        site.each(entry)
    return entries


def _load_everything() -> None:
    """Import and read what every page needs, before processes are forked."""
    import mcheck.report.picture.svg  # noqa: F401 - imported for the workers
    from mcheck.cat.model_files import model_names
    from mcheck.checking.policy.executions import preload
    from mcheck.checking.run.single import load_model

    preload()
    _environment("html")
    for name in model_names():
        load_model(name)


def _neighbour(plans: list[_Plan], k: int, step: int) -> _Plan | None:
    other = k + step
    return plans[other] if 0 <= other < len(plans) and plans[other].suite == plans[k].suite else None


def _write_page(site: Site, draft: Path, page: Page, before: _Plan | None, after: _Plan | None) -> Entry:
    ending = "md" if site.form == "md" else "html"
    depth = page.file.count("/")
    tried = not is_module(page.path)
    text = (
        _environment(site.form)
        .get_template(f"test.{ending}")
        .render(
            page=page,
            title=site.title,
            root="../" * depth,
            playground=playground_link(site.playground, "../" * depth, page.source)
            if site.playground and tried
            else "",
            anchor=anchor_of(page.suite),
            version=__version__,
            undefined=any(v.own and v.undefined for v in page.verdicts),
            remarks=any(v.reason or v.undefined for v in page.verdicts),
            leaf=page.file.rsplit("/", 1)[-1],
            before=_link(before, ending),
            after=_link(after, ending),
            most=MOST_ACCESSES,
        )
    )
    _write(draft / f"{page.file}.{ending}", text)
    if site.form == "md":
        from mcheck.report.picture.svg import STYLE, ground

        paper = ground("100%", "100%")
        for picture in page.pictures:
            head, _, rest = picture.svg.partition("</desc>")
            _write(draft / f"{page.file}-{picture.number}.svg", f"{head}</desc>\n<style>{STYLE}</style>\n{paper}{rest}")
    codes = {f.finding.code: f.finding.severity for f in page.findings}
    about = " ".join(page.doc) or page.problem
    leaf = page.file.rsplit("/", 1)[-1]
    words = " ".join([page.name, leaf, page.suite, about, *page.sections, *page.topics, *codes, page.source])
    return Entry(
        name=page.name,
        path=page.path,
        suite=page.suite,
        file=page.file,
        kind=page.kind,
        verdict=page.verdict,
        about=about,
        topics=page.topics,
        codes=tuple(codes.items()),
        words=" ".join(dict.fromkeys(words.lower().split())),
        problem=page.problem,
        status=page.status,
        has_errors=page.has_errors,
        is_clean=page.is_clean,
        expected=page.as_expected,
    )


def _link(other: _Plan | None, ending: str) -> dict[str, str] | None:
    if other is None:
        return None
    leaf = other.file.rsplit("/", 1)[-1]
    return {"href": f"{quote(leaf)}.{ending}", "name": name_of_file(other.case.path)}


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


# --- index -------------------------------------------------------------------------------------------------


def anchor_of(suite: str) -> str:
    """The anchor of a suite in the index page."""
    return "suite-" + re.sub(r"\W+", "-", suite).strip("-")


def _index(site: Site, draft: Path, entries: list[Entry]) -> None:
    suites = [
        Suite(name, anchor_of(name), tuple(e for e in entries if e.suite == name))
        for name in dict.fromkeys(e.suite for e in entries)
    ]
    topics = Counter(t for e in entries for t in e.topics)
    names = Counter(e.name for e in entries)
    ending, name = ("md", "README.md") if site.form == "md" else ("html", "index.html")
    text = (
        _environment(site.form)
        .get_template(f"index.{ending}")
        .render(
            title=site.title,
            root="",
            playground=playground_link(site.playground, "") if site.playground else "",
            version=__version__,
            pages=entries,
            suites=suites,
            topics=sorted(topics.items()),
            verdicts=sorted({e.verdict for e in entries}),
            failed=[e for e in entries if e.problem],
            left_out=site.left_out,
            shared={name for name, count in names.items() if count > 1},
        )
    )
    _write(draft / name, text)
    if site.form == "html":
        from mcheck.report.picture.svg import STYLE

        for asset in ASSETS:
            text = (TEMPLATES / asset).read_text(encoding="utf-8")
            _write(draft / asset, text + (STYLE + "\n" if asset == "style.css" else ""))


# --- templates ---------------------------------------------------------------------------------------------


def to_html(text: str) -> Markup:
    """A message as HTML, with code in backticks."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped


@cache
def _environment(form: str) -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=form == "html",  # noqa: S701 - Markdown escapes by its own filters
        undefined=StrictUndefined,
        trim_blocks=form == "html",
        keep_trailing_newline=True,
    )
    filters: dict[str, Callable[..., Any]] = {
        "href": quote,
        "md": _markdown,
        "code": _code,
        "fenced": _fenced,
        "compiled": compiled_from,
        "message": to_html,
    }
    environment.filters.update(filters)
    return environment


def _markdown(text: object) -> str:
    """Text with Markdown escaped, on one line."""
    return re.sub(r"([\\`*_{}\[\]<>|#~])", r"\\\1", " ".join(str(text).split()))


def _code(text: object) -> str:
    """A Markdown code span that is valid in a table."""
    plain = " ".join(str(text).split())
    ticks = "`" * (max((len(run) for run in re.findall("`+", plain)), default=0) + 1)
    return f"{ticks}{plain}{ticks}".replace("|", "\\|")


def _fenced(text: object) -> str:
    """A Markdown code block."""
    plain = str(text).rstrip("\n")
    ticks = "`" * max(3, max((len(run) for run in re.findall("`+", plain)), default=0) + 1)
    return f"{ticks}ptx\n{plain}\n{ticks}"

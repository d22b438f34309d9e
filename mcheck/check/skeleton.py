"""The sketch of a PTX module: what one cluster does, in mcheck's own language."""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.cat.ast import Model
from mcheck.check.case import Options, Settings
from mcheck.check.modules import inputs, source_lines
from mcheck.limit import Limit
from mcheck.policy.ask import ask
from mcheck.policy.question import About, Question
from mcheck.ptx import launching, reading
from mcheck.ptx.follow import Followed, follow
from mcheck.ptx.sketches.emit import sketch
from mcheck.run.case import DEFAULT_MODEL, Case
from mcheck.run.single import model_of


def skeleton(case: Case, settings: Settings, options: Options, *, wrong: bool = False) -> str:
    """The sketch of a module with its launch, in block form; of the first way with an error if something is ``wrong``.

    Raises ``InputError`` for what is wrong with the files, ``Unsupported`` with the line for what a sketch cannot say.
    """
    text, given = inputs(case, options)
    module = reading.module(text, case.path)
    launch = launching.launch(module, given)
    ways = follow(module, launch, Limit(settings.timeout))
    first = next(ways)
    way = first
    if wrong:
        question = Question(about=About.FINDINGS, profile=settings.profile, timeout=settings.timeout, brief=True)
        way = _wrong(first, ways, model_of(settings.model or DEFAULT_MODEL), question)
    return sketch(way, source_lines(module, launch.entry))


def _wrong(first: Followed, others: Iterator[Followed], model: Model, question: Question) -> Followed:
    """The first way in which something is wrong; where there is but one nobody need ask."""
    second = next(others, None)
    if second is None or _fails(first, model, question):
        return first
    return next((way for way in (second, *others) if _fails(way, model, question)), first)


def _fails(way: Followed, model: Model, question: Question) -> bool:
    return any(f.severity == "error" for f in ask(way.program, model, question, "protocol").findings)

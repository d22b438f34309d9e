"""Translates a PTX module to a sketch of what one cluster does, in mcheck's own language."""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.base.budget import Limit
from mcheck.cat.ast import Model
from mcheck.checking.check.module_models import model_of_version
from mcheck.checking.check.modules import read_inputs
from mcheck.checking.check.source_places import source_lines
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Completeness, Question
from mcheck.checking.run.case import DEFAULT_MODEL, Case, Options, Settings
from mcheck.checking.run.single import load_model
from mcheck.frontend.ptx import launch_reader, reader
from mcheck.simt.sketches.emit import emit_sketch
from mcheck.simt.trace_extraction import ClusterTrace, extract_traces


def skeleton(case: Case, settings: Settings, options: Options, *, wrong: bool = False) -> str:
    """The sketch of a module with its launch, in block form; with ``wrong``, of the first path that has an error, if
    one has.

    Raises ``InputError`` for invalid files, ``Unsupported`` with the line for what a sketch cannot express.
    """
    text, given = read_inputs(case, options)
    module = reader.parse_module(text, case.path)
    launch = launch_reader.build_launch(module, given)
    model = model_of_version(module.ptx)
    ways = extract_traces(module, launch, Limit(settings.timeout))
    first = next(ways)
    way = first
    if wrong:
        question = Question(
            about=Completeness.FINDINGS,
            profile=settings.profile,
            timeout=settings.timeout,
            brief=True,
            without=frozenset(settings.without),
        )
        way = _wrong(first, ways, load_model(settings.model or model), question)
    named = model if settings.model is None and model != DEFAULT_MODEL else None
    return emit_sketch(way, source_lines(module, launch.entry), named)


def _wrong(first: ClusterTrace, others: Iterator[ClusterTrace], model: Model, question: Question) -> ClusterTrace:
    """The first path with an error; a single path is not checked."""
    second = next(others, None)
    if second is None or _fails(first, model, question):
        return first
    return next((way for way in (second, *others) if _fails(way, model, question)), first)


def _fails(way: ClusterTrace, model: Model, question: Question) -> bool:
    return any(f.severity == "error" for f in ask(way.program, model, question, "protocol").findings)

"""Which part of a model does which test need?

    python -m benchmarks.coverage [MODEL...] [--jobs N] [--pool N] [--only REGEX] [--tests GLOB] [--out FILE]

Every alternative of a union and every conjunct of an intersection in a definition or an axiom is left out in turn, and
so is what a difference takes away. For each such edit the first test is named whose verdict or errors change: a
generated one if there is one (the smallest), else one of the suites, or a PTX module of ``benchmarks/modules`` where
litmus tests lack the instructions. An edit that no test notices is a part that nobody has shown to be needed. What the
models share is left out of the first of them; where none of its tests notices, of the next one too.
"""

from __future__ import annotations

import argparse
import glob
import json
import re
import sys
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from mcheck.answers.result import Answer
from mcheck.base.errors import McheckError
from mcheck.base.resources import litmus
from mcheck.cat import load_model
from mcheck.cat.ast import Check, Let, LetRec, Model, Node, Op1, Op2, Statement
from mcheck.checking.modules.answer import answer_launch
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.litmus import parse
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from mcheck.tools.generate.alphabet import load
from mcheck.tools.generate.judge import generate
from tests.cat.pretty import show, show_statement

SAMPLES = (
    ("families", 4, 1), ("oneway", 2, 1), ("oneway", 3, 1), ("async", 2, 1), ("tensor", 2, 1), ("cluster", 2, 1),
    ("reduce", 2, 1), ("classic", 3, 1), ("classic", 4, 8), ("async", 3, 4), ("tensor", 3, 4), ("cluster", 3, 2),
    ("reduce", 3, 1), ("families", 5, 2), ("scopes", 4, 60), ("families", 6, 6), ("reduce", 4, 4), ("async", 4, 120),
    ("cluster", 4, 40),
)  # fmt: skip
"""Alphabet, size, and of how many tests one is taken."""

SECONDS = 2.0
"""A test that takes longer under the model as it is, is left out."""

MODULES = Path(__file__).parent / "modules"
"""PTX modules, each with its launch beside it."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A model with a part left out: in which definition, and which part."""

    where: str
    part: str
    model: Model


Said = tuple[str, tuple[str, ...]]
Test = Callable[[Model, float], Said | None]
"""Verdict and codes of errors under a model; nothing if the seconds are over."""


Part = tuple[str, str]
"""In which definition, and which part."""


def edits(model: Model, known: frozenset[str] = frozenset(), needless: Collection[Part] = ()) -> Iterator[Edit]:
    """The model with one part left out, part by part; of statements that are ``known`` only the ``needless`` parts."""
    for number, statement in enumerate(model.statements):
        before = show_statement(statement) in known
        for where, part, changed in _statement(statement):
            if before and (where, part) not in needless:
                continue
            statements = (*model.statements[:number], changed, *model.statements[number + 1 :])
            yield Edit(where, part, replace(model, statements=statements))


def _statement(statement: Statement) -> Iterator[tuple[str, str, Statement]]:
    if isinstance(statement, Let):
        for part, body in _without(statement.body):
            yield statement.var.name, part, replace(statement, body=body)
    elif isinstance(statement, LetRec):
        for n, binding in enumerate(statement.bindings):
            for part, body in _without(binding.body):
                changed = (*statement.bindings[:n], replace(binding, body=body), *statement.bindings[n + 1 :])
                yield binding.var.name, part, LetRec(changed)
    elif isinstance(statement, Check):
        for part, body in _without(statement.body):
            yield statement.name, part, replace(statement, body=body)


def _without(node: Node) -> Iterator[tuple[str, Node]]:
    """The node with one operand of a union, an intersection or a difference left out, at any depth."""
    if isinstance(node, Op1):
        for part, arg in _without(node.arg):
            yield part, replace(node, arg=arg)
    elif isinstance(node, Op2):
        if node.op in ("|", "&"):
            # Operands of a longer union are left out one by one, not in groups.
            if not (isinstance(node.left, Op2) and node.left.op == node.op):
                yield f"{node.op} {show(node.left)}", node.right
            if not (isinstance(node.right, Op2) and node.right.op == node.op):
                yield f"{node.op} {show(node.right)}", node.left
        elif node.op == "\\":
            yield f"\\ {show(node.right)}", node.left
        for part, left in _without(node.left):
            yield part, replace(node, left=left)
        for part, right in _without(node.right):
            yield part, replace(node, right=right)


# --- tests --------------------------------------------------------------------------------------------------


def pool(limit: int) -> list[tuple[str, str]]:
    """Names and texts: generated tests, small ones first, then the suites, then modules."""
    found: list[tuple[str, str]] = []
    for name, size, step in SAMPLES:
        found += [(f"{name}/{t.name}", t.text) for n, t in enumerate(generate(load(name), size)) if n % step == 0]
    folder = Path(litmus())
    suites = [f for f in sorted(folder.rglob("*.litmus")) if f.parent.name not in ("kernels", "liveness")]
    return (
        found[:limit]
        + [(f"litmus/{f.relative_to(folder)}", f.read_text()) for f in suites]
        + [(str(f), f.read_text()) for f in sorted(MODULES.glob("*.ptx"))]
    )


def test(name: str, text: str) -> Test:
    """A litmus test, or a module whose launch lies beside it; raises ``McheckError`` if it cannot be read."""
    if name.endswith(".ptx"):
        read = parse_module(text)
        how = build_launch(read, from_object(json.loads(Path(name).with_suffix(".json").read_text())))

        def of_module(model: Model, seconds: float) -> Said | None:
            given = answer_launch(read, how, model, Question(about=Completeness.FINDINGS, timeout=seconds))
            return None if given.verdict == "unknown" else (given.verdict, _errors(given))

        return of_module
    program = replace(parse(text, name), model=None)

    def of_program(model: Model, seconds: float) -> Said | None:
        try:
            given = ask(program, model, Question(about=Completeness.STATES, timeout=seconds, findings=True), "explicit")
        except McheckError:
            return None
        return None if given.verdict == "unknown" else (given.verdict, _errors(given))

    return of_program


def _errors(given: Answer) -> tuple[str, ...]:
    return tuple(sorted({f.code for f in given.findings}))


_TESTS: list[tuple[str, Test, Said]] = []


def _before(row: tuple[str, str], model: Model) -> tuple[str, str, Said] | None:
    try:
        said = test(*row)(model, SECONDS)
    except McheckError:
        return None
    return None if said is None else (*row, said)


def _prepare(rows: list[tuple[str, str, Said]]) -> None:
    _TESTS[:] = [(name, test(name, text), known) for name, text, known in rows]


def _notices(edit: Edit) -> tuple[str, str, str | None, int]:
    for number, (name, asked, known) in enumerate(_TESTS):
        now = asked(edit.model, 5 * SECONDS)
        if now is not None and now != known:
            return edit.where, edit.part, name, number + 1
    return edit.where, edit.part, None, len(_TESTS)


class _Judge:
    """``_before`` for one model, for other processes."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def __call__(self, row: tuple[str, str]) -> tuple[str, str, Said] | None:
        return _before(row, self.model)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=["ptx-9.0", "ptx-9.3", "ptx-9.5"])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--pool", type=int, default=100_000, help="the most generated tests that are looked at")
    parser.add_argument("--only", default="", metavar="REGEX", help="the parts whose 'definition: part' it is found in")
    parser.add_argument("--tests", metavar="GLOB", help="these files instead of all tests")
    parser.add_argument("--out", type=Path, help="a line of JSON per edit")
    given = parser.parse_args()
    asked = (
        pool(given.pool) if given.tests is None else [(f, Path(f).read_text()) for f in sorted(glob.glob(given.tests))]
    )
    unseen = 0
    lines = []
    known: frozenset[str] = frozenset()
    needless: set[Part] = set()
    for name in given.models:
        started = time.perf_counter()
        model = load_model(name)
        every = [e for e in edits(model, known, needless) if re.search(given.only, f"{e.where}: {e.part}")]
        known |= {show_statement(statement) for statement in model.statements}
        with ProcessPoolExecutor(given.jobs) as processes:
            rows = [r for r in processes.map(_Judge(model), asked, chunksize=8) if r is not None]
        found = []
        with ProcessPoolExecutor(given.jobs, initializer=_prepare, initargs=(rows,)) as processes:
            for where, part, test, looked in processes.map(_notices, every):
                found.append(test)
                if test is None:
                    needless.add((where, part))
                lines.append({"model": name, "where": where, "part": part, "test": test, "looked": looked})
                print(f"{name} {where}: {part}: {test or 'NOBODY'}", flush=True)
        nobody = found.count(None)
        unseen += nobody
        seconds = time.perf_counter() - started
        print(f"{name}: {len(every)} parts, {nobody} that none of {len(rows)} tests needs, {seconds:.0f} s")
    if given.out is not None:
        given.out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return bool(unseen)


if __name__ == "__main__":
    sys.exit(main())

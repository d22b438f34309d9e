"""Judging generated tests by a model: the verdict, the findings, and the axiom of a forbidden cycle."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from mcheck.answers.result import State
from mcheck.base.records import dataclass, replace
from mcheck.base.verdicts import Verdict
from mcheck.cat.ast import Model
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Completeness, Question
from mcheck.ir.condition import And, Compare, ConstTerm, Formula, MemTerm, RegTerm
from mcheck.ir.program import Program
from mcheck.tools.generate import names
from mcheck.tools.generate.alphabet import Alphabet
from mcheck.tools.generate.cycles import Cycle, cycles
from mcheck.tools.generate.layout import NoTest, lay_out
from mcheck.tools.generate.write import write


@dataclass(frozen=True, slots=True)
class Generated:
    """A generated test: ``edges`` as in its name, ``text`` without expectations before ``judge``.

    ``other`` and ``other_codes`` are the verdict and errors of another model, if two are compared; no codes if one of
    the models has no flags.
    """

    name: str
    edges: tuple[str, ...]
    size: int
    text: str
    verdict: Verdict | None = None
    kinds: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    axiom: str = ""
    reason: str = ""
    other: Verdict | None = None
    other_codes: tuple[str, ...] | None = None
    executions: int = 0

    def program(self) -> Program:
        """The program of the text."""
        from mcheck.frontend.litmus import parse

        return parse(self.text, f"{self.name}.litmus")


def generate(alphabet: Alphabet, size: int, every: int = 1) -> Iterator[Generated]:
    """The tests of all cycles of a size that have one, or of every ``every``-th cycle, with unique names."""
    taken: dict[str, int] = {}
    for cycle in islice(cycles(alphabet, size), 0, None, every):
        try:
            layout = lay_out(alphabet, cycle)
            name = names.name(cycle)
            # Cycles with equal names are numbered, in the order of the alphabet.
            taken[name] = taken.get(name, 0) + 1
            unique = name if taken[name] == 1 else f"{name}.{taken[name]}"
            edges = tuple(spell_edges(cycle))
            text = write(layout, unique, [" ".join(edges)], [])
        except NoTest:
            continue
        yield Generated(unique, edges, size, text)


def spell_edges(cycle: Cycle) -> Iterator[str]:
    """The edges of a cycle with the annotations of their ends."""
    for arc in cycle:
        yield f"{arc.source.note}>{arc.edge.label}" if arc.source.note else arc.edge.label


def judge(test: Generated, model: Model, *, timeout: float | None = None, why: bool = True) -> Generated:
    """The test with its verdict under the model and matching ``expect`` lines; ``why``: also find the axiom."""
    program = test.program()
    question = Question(about=Completeness.STATES, timeout=timeout, findings=True)
    given = ask(program, model, question, "explicit")
    if given.verdict is Verdict.UNKNOWN:
        return replace(test, verdict=Verdict.UNKNOWN, reason=given.reason or "")
    errors = [f for f in given.findings if f.severity in ("error", "review")]
    kinds = tuple(dict.fromkeys(f.kind for f in errors))
    codes = tuple(sorted({f.code for f in given.findings if f.severity == "error"}))
    axiom = find_forbidding_axiom(program, model) if why and given.verdict is Verdict.FAIL else ""
    clean = not any(f.severity == "error" for f in given.findings)
    expects = [f"expect {given.verdict}", f"expect {'clean' if clean else ' | '.join(sorted(set(kinds)))}"]
    notes = f'"Forbidden by {axiom} of {model.name}."\n' if axiom else ""
    text = re.sub(r"^\{$", lambda _: f"{notes}{{", test.text, count=1, flags=re.MULTILINE)
    return replace(
        test,
        text=text + "\n".join(expects) + "\n",
        verdict=given.verdict,
        kinds=kinds,
        codes=codes,
        axiom=axiom,
        executions=given.executions,
    )


def find_forbidding_axiom(program: Program, model: Model) -> str:
    """The axiom that forbids the condition of a program."""
    from mcheck.checking.policy.executions import explain_forbidden

    found = explain_forbidden(
        program, model, asked_state(program.condition.formula), Question(about=Completeness.STATES)
    )
    return found.axiom if found is not None else ""


def asked_state(formula: Formula) -> State:
    """The state that a conjunction of equalities describes."""
    parts = formula.parts if isinstance(formula, And) else (formula,)
    state = []
    for part in parts:
        if isinstance(part, Compare) and isinstance(part.left, RegTerm | MemTerm) and isinstance(part.right, ConstTerm):
            state.append((part.left.label, part.right.value))
    return tuple(state)

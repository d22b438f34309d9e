"""What a model makes of a generated test: the verdict, the findings, and the axiom where the cycle is forbidden."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from mcheck.answers.result import State
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
    """A test: ``edges`` as its name spells them, ``text`` without expectations until ``judged``.

    ``other`` and ``other_codes`` are another model's verdict and errors, where two are compared; no codes where one of
    the models flags no errors.
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
    """The tests of all cycles of a size that have one, or of every so manieth cycle, each with a name of its own."""
    taken: dict[str, int] = {}
    for cycle in islice(cycles(alphabet, size), 0, None, every):
        try:
            layout = lay_out(alphabet, cycle)
            name = names.name(cycle)
            # Cycles that differ in what no name says are numbered: their order is that of the alphabet.
            taken[name] = taken.get(name, 0) + 1
            unique = name if taken[name] == 1 else f"{name}.{taken[name]}"
            edges = tuple(spelled(cycle))
            text = write(layout, unique, [" ".join(edges)], [])
        except NoTest:
            continue
        yield Generated(unique, edges, size, text)


def spelled(cycle: Cycle) -> Iterator[str]:
    """The edges of a cycle with the annotations of their ends."""
    for arc in cycle:
        yield f"{arc.source.note}>{arc.edge.label}" if arc.source.note else arc.edge.label


def judged(
    test: Generated, model: Model, *, engine: str = "explicit", timeout: float | None = None, why: bool = True
) -> Generated:
    """The test with what the model says of it, and with ``expect`` lines that say the same; ``why``: and the axiom."""
    program = test.program()
    question = Question(about=Completeness.STATES, timeout=timeout, findings=True)
    given = ask(program, model, question, engine)
    if given.verdict is Verdict.UNKNOWN:
        return replace(test, verdict=Verdict.UNKNOWN, reason=given.reason or "")
    errors = [f for f in given.findings if f.severity in ("error", "review")]
    kinds = tuple(dict.fromkeys(f.kind for f in errors))
    codes = tuple(sorted({f.code for f in given.findings if f.severity == "error"}))
    axiom = forbidding(program, model) if why and given.verdict is Verdict.FAIL else ""
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


def forbidding(program: Program, model: Model) -> str:
    """The axiom that forbids the condition of a program."""
    from mcheck.checking.policy.executions import explain_forbidden

    found = explain_forbidden(program, model, asked(program.condition.formula), Question(about=Completeness.STATES))
    return found.axiom if found is not None else ""


def asked(formula: Formula) -> State:
    """The one state that a conjunction of equalities asks for."""
    parts = formula.parts if isinstance(formula, And) else (formula,)
    state = []
    for part in parts:
        if isinstance(part, Compare) and isinstance(part.left, RegTerm | MemTerm) and isinstance(part.right, ConstTerm):
            state.append((part.left.label, part.right.value))
    return tuple(state)

"""Small kernels, each right and with bugs: the protocol engine on the module, and the engine that enumerates executions
on its transcription, which shares nothing with how modules are followed.
"""

from __future__ import annotations

import pytest

from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Completeness, Question
from mcheck.checking.run.single import load_model
from mcheck.frontend import litmus
from mcheck.ptx import check
from tests.simt.idioms import Kernel, kernels
from tests.simt.transcribed import sketch

EVERY = list(kernels())


@pytest.mark.daily
@pytest.mark.parametrize("kernel", EVERY, ids=lambda k: k.name)
def test_both_engines_find_what_is_wrong(kernel: Kernel) -> None:
    verdict = "finding" if kernel.codes else "proved"
    module = check(kernel.text, kernel.launch)
    assert (module.verdict, errors(module.findings)) == (verdict, kernel.codes)
    program = litmus.parse(sketch(kernel.text, kernel.launch), kernel.name)
    answer = ask(program, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS), "explicit")
    assert (answer.verdict, errors(answer.findings)) == (verdict, kernel.codes)


def errors(findings: object) -> frozenset[str]:
    """The codes of errors."""
    return frozenset(f.code for f in findings if f.severity == "error")  # type: ignore[attr-defined]


def test_there_are_enough_of_them() -> None:
    assert len(EVERY) >= 60
    assert sum(not k.codes for k in EVERY) >= 20

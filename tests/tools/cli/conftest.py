"""Running command lines in this process, with the real engine or one that says what a test wants it to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from mcheck.answers.result import Answer
from mcheck.base.reasons import Cause, Reason
from mcheck.ir.program import Program
from mcheck.tools.cli.main import main

MP = """\
PTX MP
{ x=0; f=0; }
 P0@cta 0,gpu 0         | P1@cta 1,gpu 0        ;
 st.weak x, 1           | ld.acquire.gpu r0, f  ;
 st.release.gpu f, 1    | ld.weak r1, x         ;
~exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""


@dataclass(frozen=True)
class Done:
    """What a command line left behind."""

    status: int
    out: str
    err: str


@pytest.fixture
def mcheck(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Runs ``mcheck`` with the given arguments."""

    def call(*arguments: object) -> Done:
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err + captured.out
        return Done(status, captured.out, captured.err)

    return call


@pytest.fixture
def litmus(tmp_path: Path) -> Callable[..., Path]:
    """Writes a test called ``name`` that ends in ``tail``; its text is valid unless ``text`` replaces it."""

    def write(name: str, tail: str = "", *, text: str | None = None) -> Path:
        path = tmp_path / f"{name}.litmus"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(MP.replace("PTX MP", f"PTX {path.stem}") + tail + "\n" if text is None else text)
        return path

    return write


Say = Callable[[dict[str, Answer | Exception | Callable[[], Answer]]], list[dict[str, object]]]


@pytest.fixture
def engine_says(monkeypatch: pytest.MonkeyPatch) -> Say:
    """Replaces the engines by a table from the names of tests to answers; returns the list of the calls' options.

    The engine that ``auto`` asks where another has no answer has none either.
    """

    def install(table: dict[str, Answer | Exception | Callable[[], Answer]]) -> list[dict[str, object]]:
        calls: list[dict[str, object]] = []

        def answer(program: Program, model: object, **options: object) -> Answer:
            calls.append({"name": program.name, "model": model, **options})
            said = table.get(program.name, Answer(verdict="pass"))
            if isinstance(said, Exception):
                raise said
            return said() if callable(said) else said

        def silent(program: Program, model: object, **options: object) -> Answer:
            return Answer(
                verdict="unknown",
                complete=False,
                reasons=(Reason(Cause.UNSUPPORTED, "another engine was to be asked"),),
            )

        monkeypatch.setattr("mcheck.engines.explicit.engine.answer", answer)
        monkeypatch.setattr("mcheck.engines.protocol.answer.answer", silent)
        return calls

    return install

"""The corpus of launches: it is whole, its rows name lines of code, and kernels that keep apart answer as they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.launch_corpus import FOLDER, Answer, agrees, read_answers
from mcheck.findings import catalogue
from mcheck.frontend.ptx.launch_reader import FIELDS, build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from mcheck.ptx import check

ANSWERS = list(read_answers())
APART = [answer for answer in ANSWERS if answer.shares != "protocol"]
PROTOCOLS = [answer for answer in ANSWERS if answer.shares == "protocol"]
ANSWERED = [answer for answer in PROTOCOLS if not (answer.today or answer.slow)]
OPEN = [answer for answer in PROTOCOLS if answer.today or answer.slow]
MODULES = sorted({answer.module for answer in ANSWERS})
OF_SEVERAL_LAUNCHES = {"programmatic", "gpu"}
"""Fields of a launch that have a meaning only beside other launches."""


def test_the_corpus_is_whole() -> None:
    kernels = {answer.kernel: answer.shares for answer in ANSWERS}
    assert len(kernels) == 83
    assert sum(shares == "protocol" for shares in kernels.values()) == 56
    assert len(MODULES) == 273
    assert len(ANSWERS) == 347
    named = {path for answer in ANSWERS for path in (answer.module, answer.launch, answer.source)}
    assert set(FOLDER.glob("*/*.*")) == named


def test_rows_have_names_of_their_own() -> None:
    assert len({answer.label for answer in ANSWERS}) == len(ANSWERS)


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.label)
def test_rows_say_what_is_right_and_why(answer: Answer) -> None:
    assert answer.why.endswith(".")
    assert answer.shares in {"nothing", "reductions", "one value", "protocol"}
    assert set(answer.also) <= {"proved", "finding", "bounded"}
    assert answer.verdict in {"proved", "finding", "unknown"}
    assert answer.verdict != "unknown" or re.search(r"\(Q\d+\)", answer.why)
    assert answer.twin == 0 or answer.verdict == "finding"
    if answer.verdict in ("proved", "unknown"):
        assert (answer.kind, answer.codes, answer.lines) == ("", (), frozenset())
        return
    assert answer.verdict == "finding"
    family = {"race": "RACE", "deadlock": "DEAD", "undefined": "UB"}[answer.kind]
    assert answer.codes
    for code in answer.codes:
        assert code.startswith(family)
        assert any(known.startswith(code) for known in catalogue.codes())
    assert answer.lines
    assert answer.lines <= lines_of_code(answer)


def lines_of_code(answer: Answer) -> set[int]:
    """The lines of the source for which the module has instructions, those of functions in line included."""
    text = answer.module.read_text(encoding="utf-8")
    name = re.escape(answer.source.name)
    (number,) = re.findall(rf'^\s*\.file\s+(\d+)\s+"{name}"', text, re.MULTILINE)
    places = rf"(?:\.loc\s+|inlined_at\s+){number}\s+(\d+)"
    return {int(line) for line in re.findall(places, text)}


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.label)
def test_launches_fit_their_modules(answer: Answer) -> None:
    module = parse_module(answer.module.read_text(encoding="utf-8"), str(answer.module))
    whole = answer.description()
    buffers = whole.get("buffers", {})
    used = set()
    for launch in whole.get("launches", [whole]):
        assert "cooperative" not in launch or launch["cooperative"] is True
        params = {}
        for name, value in launch["params"].items():
            if isinstance(value, dict) and isinstance(value.get("buffer"), str):
                copies = buffers[value["buffer"]].get("multicast", [])
                used |= {value["buffer"], *copies}
                params[name] = {"buffer": buffers[copies[0] if copies else value["buffer"]]["bytes"]}
            else:
                params[name] = value
        allowed = {"cooperative", *(OF_SEVERAL_LAUNCHES if buffers else ())}
        assert set(launch) <= {*FIELDS, *allowed}
        read = build_launch(
            module, from_object({k: v for k, v in launch.items() if k not in allowed} | {"params": params})
        )
        assert len([argument for argument in read.arguments if argument.is_given]) == len(params)
    assert used == set(buffers)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_modules_are_small_and_carry_nothing_of_the_machine_they_were_built_on(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text) < 15_000
    assert "/" not in "".join(line for line in text.splitlines() if line.lstrip().startswith(".file"))
    twin = path.stem.removeprefix("twin") if path.stem != "kernel" else "0"
    assert text.splitlines()[0].endswith(f"TWIN={twin}")


@pytest.mark.daily
@pytest.mark.parametrize("answer", APART, ids=lambda answer: answer.label)
def test_kernels_that_keep_apart_answer_as_they_say(answer: Answer) -> None:
    found = check(answer.module, answer.description())
    if answer.today:
        assert found.verdict == answer.today, "if it is right now, the row needs no 'today' any more"
    else:
        assert agrees(answer, found)


@pytest.mark.daily(days=48)
@pytest.mark.parametrize("answer", ANSWERED, ids=lambda answer: answer.label)
def test_protocols_answer_as_they_say(answer: Answer) -> None:
    found = check(answer.module, answer.description(), timeout=100)
    assert agrees(answer, found), (found.verdict, found.reason, found.findings)


@pytest.mark.slow
@pytest.mark.parametrize("answer", OPEN, ids=lambda answer: answer.label)
def test_protocols_that_may_be_left_open_have_no_wrong_answer(answer: Answer) -> None:
    """``bounded`` and ``unknown`` differ with the time; ``python -m benchmarks.launch_corpus --answers`` shows both."""
    found = check(answer.module, answer.description(), timeout=30)
    assert agrees(answer, found) or found.verdict in ("bounded", "unknown"), (found.verdict, found.findings)

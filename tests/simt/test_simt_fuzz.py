"""Some modules and launches with mistakes in every run; ``python -m tests.simt.fuzz`` has more."""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace
from pathlib import Path

import pytest

from mcheck.base.errors import InputError
from mcheck.base.reasons import Cause, Reason
from mcheck.checking.run.case import Settings
from mcheck.checking.run.result import Result
from mcheck.frontend.ptx import reader
from mcheck.frontend.ptx.module import Module
from mcheck.frontend.ptx.reader import parse_module
from tests.effort import effort
from tests.simt import fuzz

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
BODY = f"{HEAD}.entry k() {{ .reg .pred %p<4>; .reg .b32 %r<9>;\n"
MANY = 50_000
LONG = {
    "no semicolon": BODY + "a " * MANY,
    "brackets": f"{BODY}mov.b32 %r1, {'[' * MANY};}}",
    "braces": f"{BODY}mov.b32 %r1, {'{' * MANY};}}",
    "parentheses": f"{BODY}mov.b32 {'(1,' * MANY};}}",
    "commas": f"{BODY}mov.b32 {',' * MANY};}}",
    "an opcode": f"{BODY}mov{' .x' * MANY}",
    "quotes": BODY + '"' * MANY,
    "comments": BODY + "/*" * MANY,
    "signs": f"{HEAD}.global .u32 a = {'-' * MANY}1;",
    "a choice": f"{HEAD}.global .u32 a = {'1?' * MANY}1;",
    "digits": f"{HEAD}.global .u32 a = {'9' * MANY};",
    "nested values": f"{HEAD}.global .u32 a[] = {'{' * MANY}",
    "sections": HEAD + ".section .debug_str { a: " * MANY,
    "lines": BODY + ".loc " * MANY,
    "an unknown label": BODY + "".join(f"L{k}: bra L{k};\n" for k in range(MANY // 10)) + "bra L; }",
}


@pytest.mark.daily(days=8, least=0)
@pytest.mark.parametrize("first", range(0, 152, 38))
def test_nothing_crashes(first: int) -> None:
    found = fuzz.run(38, seed=3, first=first, largest=6000)
    assert found.crashes == []
    assert found.verdicts["error"] > 2
    assert found.verdicts["proved"] + found.verdicts["finding"] + found.verdicts["unknown"] > 2, "some reach the engine"


def test_every_module_is_taken_and_the_quick_ones_more_often() -> None:
    known = fuzz.modules()
    weights = [fuzz.weight(module) for module in known]
    assert len(known) > 50
    assert set(weights) == {1, fuzz.OFTEN}
    assert sum(weights) * 2 > len(known) * fuzz.OFTEN, "half of them are quick"
    assert {launch.get("entry") for _, launch in known} >= fuzz.SLOW


def test_a_mutant_is_none_of_the_modules() -> None:
    known = fuzz.modules(4000)
    weights = [fuzz.weight(module) for module in known]
    whole = {(text, json.dumps(launch, indent=1)) for text, launch in known}
    assert all(fuzz.mutant(random.Random(f"{k}"), known, weights) not in whole for k in range(300))


def test_what_is_wrong_with_an_answer_is_said() -> None:
    settings = Settings(profile="ptx", timeout=5.0, memory=fuzz.MEMORY)
    text, launch = fuzz.modules(2000)[0]
    result, seconds = fuzz.check(text, json.dumps(launch), settings, apart=True)
    assert result.verdict == "proved"
    assert fuzz.wrong(result, seconds, 5.0) is None
    assert "of the processor" in str(fuzz.wrong(result, 5.0 + 2 * fuzz.GRACE, 5.0))
    for cause, text in (
        (Cause.MEMORY, "more than 1 GiB of memory"),
        (Cause.DIED, "the process that ran the test died with signal 9"),
    ):
        assert fuzz.wrong(replace(result, verdict="unknown", reasons=(Reason(cause, text),)), seconds, 5.0) == text
    assert fuzz.wrong(replace(result, verdict="unknown", reasons=()), seconds, 5.0) is not None


def test_time_that_others_have_the_processor_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    text, launch = fuzz.modules(2000)[0]
    settings = Settings(profile="ptx", timeout=1.0, memory=fuzz.MEMORY)

    def slowly(*given: str) -> Module:
        time.sleep(1.2)
        return parse_module(*given)

    fuzz.preload("protocol")
    monkeypatch.setattr(reader, "parse_module", slowly)
    result, seconds = fuzz.check(text, json.dumps(launch), settings, apart=True)
    assert result.verdict == "proved"
    assert seconds < 1.2


@pytest.mark.daily(days=3, least=0)
def test_a_process_that_takes_too_much_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    text, launch = fuzz.modules(2000)[0]
    settings = Settings(profile="ptx", timeout=0.2, memory=fuzz.MEMORY)
    monkeypatch.setattr(fuzz, "GRACE", 0.2)

    def forgets_the_time(*_: object) -> Result:
        while time.process_time() < until:
            pass
        return done

    done, _ = fuzz.check(text, json.dumps(launch), settings, apart=False)
    until = 0.2 + 2 * fuzz.GRACE  # by the clock of the forked process, which begins at 0
    monkeypatch.setattr(fuzz, "check_text", forgets_the_time)
    result, seconds = fuzz.check(text, json.dumps(launch), settings, apart=True)
    assert "of the processor" in str(fuzz.wrong(result, seconds, 0.2))


@pytest.mark.parametrize("text", LONG.values(), ids=LONG.keys())
def test_a_long_mistake_takes_no_longer_than_its_length(text: str) -> None:
    def read() -> None:
        with pytest.raises(InputError):
            parse_module(text)

    assert effort(read, 5) < 5


def test_names_of_many_blocks_take_no_longer_than_their_number() -> None:
    blocks = "{ .reg .b32 q; mov.b32 q, 1; }\n" * (MANY // 5)

    def read() -> None:
        assert len(parse_module(f"{BODY}{blocks}}}").functions["k"].registers) == MANY // 5

    assert effort(read, 10) < 10


def test_a_run_goes_on_where_the_last_one_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "LIMITS", (30.0,))  # long enough that no verdict depends on the machine
    state = tmp_path / "state.json"
    whole = fuzz.run(6, seed=5, largest=2000)
    _, kept = fuzz.load(state, 5)
    fuzz.store(state, 5, 3, fuzz.run(3, seed=5, largest=2000, found=kept))
    following, again = fuzz.load(state, 5)
    assert following == 3
    assert fuzz.run(3, 5, following, largest=2000, found=again).verdicts == whole.verdicts
    with pytest.raises(SystemExit):
        fuzz.load(state, 6)

"""Some modules and launches with mistakes in every run; ``python -m tests.ptx.fuzz`` has more."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from mcheck.errors import InputError
from mcheck.ptx.reading import module
from tests.ptx import fuzz

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


def test_nothing_crashes() -> None:
    found = fuzz.run(60, seed=3, largest=4000)
    assert found.crashes == []
    assert found.verdicts["error"] > 10
    assert found.verdicts["proved"] + found.verdicts["finding"] + found.verdicts["unknown"] > 3, "some reach the engine"


@pytest.mark.parametrize("text", LONG.values(), ids=LONG.keys())
def test_a_long_mistake_takes_no_longer_than_its_length(text: str) -> None:
    started = time.process_time()
    with pytest.raises(InputError):
        module(text)
    assert time.process_time() - started < 5


def test_names_of_many_blocks_take_no_longer_than_their_number() -> None:
    started = time.process_time()
    blocks = "{ .reg .b32 q; mov.b32 q, 1; }\n" * (MANY // 5)
    assert len(module(f"{BODY}{blocks}}}").functions["k"].registers) == MANY // 5
    assert time.process_time() - started < 10


def test_a_run_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    whole = fuzz.run(6, seed=5, largest=2000)
    _, kept = fuzz.load(state, 5)
    fuzz.store(state, 5, 3, fuzz.run(3, seed=5, largest=2000, found=kept))
    following, again = fuzz.load(state, 5)
    assert following == 3
    assert fuzz.run(3, 5, following, largest=2000, found=again).verdicts == whole.verdicts
    with pytest.raises(SystemExit):
        fuzz.load(state, 6)

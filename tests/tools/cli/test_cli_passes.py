"""``--without``: a hidden option, part of what an answer is kept under."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mcheck.checking.cache.database import open_store
from mcheck.engines.protocol.passes import Pass
from tests.engines.protocol.sketches import ring

COUNTERS = """PTX counters
{ .global .u32 x = 0; }
a@cta 0 { red.relaxed.gpu.global.add.u32 [x], 1; }
b@cta 1 { red.relaxed.gpu.global.max.u32 [x], 7; }
"""
COUNTED = """PTX counted
{ .global .u32 x = 0; }
asked@cta 0, warp 0, lane 0 { atom.relaxed.gpu.global.add.u32 r0, [x], 1; }
other@cta 0, warp 1, lane 0..3 { red.relaxed.gpu.global.add.u32 [x], 1; }
exists (asked:r0 == 2)
"""


@pytest.mark.parametrize("command", ["run", "check"])
def test_a_name_that_is_none_is_an_error_with_the_names(command: str, mcheck: Callable, litmus: Callable) -> None:
    done = mcheck(command, litmus("a"), "--without", "slicin")
    said = " ".join(done.err.split())
    assert done.status == 2
    assert "Invalid value for '--without': there is no pass named 'slicin'; did you mean slicing?" in said
    assert all(one.value in said for one in Pass)


@pytest.mark.parametrize("command", ["run", "check"])
def test_the_option_is_for_those_who_know_it(command: str, mcheck: Callable) -> None:
    assert "--without" not in mcheck(command, "--help").out


@pytest.mark.parametrize(("command", "text"), [("check", COUNTERS), ("run", COUNTED)])
def test_an_answer_without_a_pass_is_kept_by_itself(
    command: str, text: str, mcheck: Callable, litmus: Callable, tmp_path: Path
) -> None:
    path, cache = litmus("counters", text=text), tmp_path / "cache"
    off = ("--without", "unused-contents", "--without", "thread-symmetry")

    def answered(*options: str) -> tuple[object, int]:
        done = mcheck(command, path, "--engine", "protocol", "--cache", cache, "--format", "json", *options)
        (told,) = json.loads(done.out)["tests" if command == "run" else "results"]
        return told["verdict"], told["executions"]

    (given, few), (same, many) = answered(), answered(*off)
    assert given == same
    assert few < many
    assert (answered(), answered(*off)) == ((given, few), (same, many))
    assert answered(*off[2:], *off[:2]) == (same, many)
    with open_store(str(cache)) as store:
        assert store is not None
        assert store.statistics().answers == 2, "in another order they are the same passes"


@pytest.mark.daily(days=3, least=0)
def test_a_proof_is_asked_for_without_a_pass(mcheck: Callable, litmus: Callable) -> None:
    path = litmus("ring", text=ring(rounds=100))
    few, whole = mcheck("check", path), mcheck("check", path, "--without", "long-loops")
    assert (few.status, whole.status) == (0, 0)
    assert "the state repeats every" in few.out
    assert "the state repeats every" not in whole.out

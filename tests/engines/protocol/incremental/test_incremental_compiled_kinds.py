"""What a fork has compiled is compiled by the process that it was forked from."""

from __future__ import annotations

import pickle

import pytest

from mcheck.cat import load_model
from mcheck.cat.algebra.compiled_models import tape_of
from mcheck.engines.protocol.findings_answer import check
from mcheck.engines.protocol.incremental import state
from mcheck.engines.protocol.incremental.compiled_kinds import CompiledKind, compile_kinds, compiled_kinds
from mcheck.engines.protocol.incremental.kinds import Shown
from mcheck.frontend.litmus import parse
from tests.engines.protocol.sketches import ring

MODEL = load_model("ptx-9.0")
RING = ring(rounds=40, warps=4)
SMALL = "PTX small\n{ .global .u32 x; }\nP@cta 0 { st.global.u32 [x], 1; }\nexpect pass\n"


def test_kinds_that_were_compiled_can_be_compiled_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_COMPILED", {})
    check(parse(RING, "ring.litmus"), MODEL)
    found = compiled_kinds()
    assert any(one.known is not None for one in found)
    monkeypatch.setattr(state, "_COMPILED", {})
    check(parse(SMALL, "small.litmus"), MODEL)
    assert not found <= compiled_kinds()
    compile_kinds(pickle.loads(pickle.dumps(found)))
    assert found <= compiled_kinds()


def test_what_was_compiled_of_other_models_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_COMPILED", {})
    compile_kinds({CompiledKind(id(tape_of(MODEL)), Shown(), (), frozenset(), None, enters=True)})
    assert not compiled_kinds()

"""What a tape is compiled to: what has no pair yet makes nothing be stored."""

from __future__ import annotations

from mcheck.cat import parse_model
from mcheck.cat.algebra.tape import compile_model
from mcheck.engines.protocol.incremental.compilation import Compiled, compile_tape
from mcheck.engines.protocol.incremental.kinds import Shown

EDGES = frozenset(("po", "rf"))


def compiled(relation: str, shown: Shown) -> Compiled:
    tape = compile_model(parse_model(f'"one"\nempty {relation} as E', "one.cat"))
    return compile_tape(tape, shown, tuple(check.node for check in tape.checks), frozenset())


def test_a_closure_that_meets_nothing_is_not_computed() -> None:
    relation = "(po+ & addr) | rf"
    assert not compiled(relation, Shown(edges=EDGES)).stored
    assert compiled(relation, Shown(edges=EDGES | {"addr"})).stored, "the closure"


def test_what_leads_nowhere_is_not_computed() -> None:
    relation = "(po+ ; addr) | rf"
    assert not compiled(relation, Shown(edges=EDGES)).stored
    assert compiled(relation, Shown(edges=EDGES | {"addr"})).stored, "the closure"

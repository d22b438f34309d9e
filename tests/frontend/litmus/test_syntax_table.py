"""The table form: every form of the dialect, and the peers' suite where it is at hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcheck.base.errors import InputError
from mcheck.frontend.litmus import load, parse
from mcheck.ir.condition import And, Compare, ConstTerm, MemTerm, Not, Or, RegTerm
from mcheck.ir.ops import Atomic, Await, Barrier, Branch, Label, Load, MbarrierInit, Store
from mcheck.ir.program import Program

VALID = Path(__file__).parent / "valid"
COMPAT = Path(__file__).parents[4] / "shared" / "compat" / "litmus"


@pytest.fixture(scope="module")
def forms() -> Program:
    return load(str(VALID / "table.litmus"))


def simple(cells: str = "st.weak x, 1", init: str = "x=0;", tail: str = "exists (x == 1)", head: str = "PTX t") -> str:
    return f"{head}\n{{ {init} }}\n P0@cta 0,gpu 0 ;\n {cells} ;\n{tail}\n"


def test_head(forms: Program) -> None:
    assert forms.name == "the-table+form_2.0"
    assert forms.doc == ("with // inside",)
    assert forms.dialect
    assert not forms.clustered
    assert forms.warnings == ()


def test_places(forms: Program) -> None:
    assert [(t.name, t.place.cta.gpu, t.place.cta.number) for t in forms.threads] == [
        ("P0", 0, 0),
        ("P1", 0, 0),
        ("P2", 1, 1),
    ]
    assert forms.threads[0].place.warp != forms.threads[1].place.warp


def test_code(forms: Program) -> None:
    p0, p1, p2 = forms.threads
    assert [type(op) for op in p0.code[:4]] == [Store, Label, Atomic, Branch]
    assert p0.labels == {"LC00": 1}
    assert [type(op) for op in p1.code] == [Load, Barrier, MbarrierInit, Await]
    assert p2.labels == {"LC20": 0, "LC21": 2}


def test_initial_state(forms: Program) -> None:
    memory = forms.memory
    values = {i.object.name: int.from_bytes(i.object.init or b"", "little") for i in memory.instances if i.cta is None}
    minus_one = 0xFFFFFFFF
    assert values == {"x": 0, "s": 0, "y": minus_one, "z": minus_one, "w": 3, "g": 0, "_late": 0}
    x, s, g = (memory.instance_of(name) for name in ("x", "s", "g"))
    assert x is not None
    assert s is not None
    assert g is not None
    assert s.base == x.base
    assert g.base != x.base
    assert {s.physical, g.physical} == {x.physical}
    assert forms.threads[0].init == {"r5": 3, "p1": 0}
    y = memory.instance_of("y")
    assert y
    assert forms.threads[1].init == {"r6": x.base, "r7": y.base}


def test_condition(forms: Program) -> None:
    condition = forms.condition
    assert condition.kind == "exists"
    assert condition.text.startswith("final (0:r1 = 0 /\\")
    assert condition.filter == Compare("==", RegTerm(0, "r1", "P0:r1"), ConstTerm(0))
    assert isinstance(condition.formula, Or)
    conjunction, negation = condition.formula.parts
    assert isinstance(conjunction, And)
    assert isinstance(negation, Not)
    x = forms.memory.instance_of("x")
    assert x
    location = MemTerm(x.base, 4, "s32", "x")
    assert conjunction.parts[1:] == (
        Compare("==", location, ConstTerm(1)),
        Compare("!=", location, ConstTerm(-1)),
        Compare("==", RegTerm(1, "r6", "P1:r6"), ConstTerm(x.base)),
    )


@pytest.mark.parametrize(
    ("tail", "kind"),
    [
        ("exists (x == 1)", "exists"),
        ("~exists (x == 1)", "~exists"),
        ("~ exists x == 1", "~exists"),
        ("not exists (x = 1)", "~exists"),
        ("forall (x == 1);", "forall"),
        ("final (x = 1) with tso: ~exists; cc: exists;", "exists"),
        ("exists 0==0", "exists"),
        ("exists true", "exists"),
        ("", "none"),
    ],
)
def test_quantifiers(tail: str, kind: str) -> None:
    assert parse(simple(tail=tail), "t.litmus").condition.kind == kind


ACCEPTED = {
    "lower case, no blanks": "ptx lower\n{x=0;}\nP0@cta 0,gpu 0;\nst.weak x,1;\nexists x==1",
    "odd head": 'PTX a-b+c_d.e (* c *)\n"two\nlines {q}"\n{ x = 0x10 }\n P0@cta 0 , gpu 0 ;\n st.weak x , 0x2 ;\n',
    "words in the head": "PTX words more, ignored: yes\n{ };\n P0@cta 0,gpu 0 ;\n st.weak x, 1 ;\n",
    "byte order mark": "\ufeffPTX bom\r\n{ x=0; }\r\n P0@cta 0,gpu 0 ;\r\n st.weak x, 1 ;\r\n",
    "exec comment": "PTX e\n{ }\n<< a | b ; { >>\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n st.weak x, 1 | ;\n || ;\n",
    "short rows": "PTX s\n{ }\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n st.weak x, 1 ;\n LC0: | ld.weak r0, x ;\n",
    "initialised twice": "PTX t\n{ x=0; x=1; P0:r0=0; P0:r0=1; }\n P0@cta 0,gpu 0 ;\n st.weak x, r0 ;\n",
    "empty rows": "PTX e\n{ }\n P0@cta 0,gpu 0 ;\n ;\n st.weak x, 1 ;\n ;\nexists (x == 1)\n",
    "signs, ids without P": "PTX n\n{ x=-5; }\n 0@cta 0,gpu 0 ;\n st.weak x, -7 ;\n",
    "full PTX": "PTX f\n{ .global .u32 a[2]; }\n P0@cta 0 ;\n st.u32 [a+4], 1 ;\n ld.acquire.gpu.u32 r1, [a] ;\n",
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(text: str) -> None:
    from mcheck.frontend.litmus.source import decode_source

    parse(decode_source(text.encode(), "t.litmus"), "t.litmus")


def test_clusters_in_the_table() -> None:
    rows = " P0@cluster 0, cta 0 | P1@cta 1, cluster 0 ;\n st.shared::cluster.u32 [s@1], 1 | ;\n"
    text = "PTX c\n{ .shared .u32 s; }\n" + rows
    program = parse(text, "c.litmus")
    assert program.clustered
    assert [thread.place.cta.rank for thread in program.threads] == [0, 1]


def test_unwritten_register_is_a_warning() -> None:
    program = parse(simple(tail="exists (P0:r3 == 0)"), "t.litmus")
    assert [message for message, _ in program.warnings] == ["register r3 of P0 is neither written nor initialised"]


def test_read_but_never_written_is_a_warning() -> None:
    program = parse(simple("st.weak x, r4"), "t.litmus")
    assert [(message, span and span.line) for message, span in program.warnings] == [
        ("register r4 of P0 is neither written nor initialised", 4)
    ]


def test_cells_that_read_alike_keep_their_places() -> None:
    text = simple("st.weak x, 1 ;\n st.weak  x, 1 ;\n st.weak x, 1")
    for _ in range(2):
        code = parse(text, "t.litmus").threads[0].code
        assert [(op.span.line, op.span.column) for op in code if op.span] == [(4, 2), (5, 2), (6, 2)]
        assert {op.address for op in code} == {code[0].address}  # type: ignore[attr-defined]
    moved = parse(simple(init="a=0; x=0;"), "other.litmus").threads[0].code[0]
    assert moved.span is not None
    assert moved.span.path == "other.litmus"
    assert moved.address != code[0].address  # type: ignore[attr-defined]


def test_unbound_name_in_the_condition_is_an_error() -> None:
    with pytest.raises(InputError, match="y is neither declared nor used"):
        parse(simple(tail="exists (y == 1)"), "t.litmus")


def test_expectations() -> None:
    program = parse(simple(tail="exists (x == 1)\nexpect pass\nexpect race | deadlock"), "t.litmus")
    assert program.expectation.verdict == "pass"
    assert program.expectation.kinds == (("race", "deadlock"),)


def test_each_line_of_expectations_is_one() -> None:
    program = parse(simple(tail="exists (x == 1)\nexpect race | deadlock\nexpect undefined\nexpect fail"), "t.litmus")
    assert program.expectation.verdict == "fail"
    assert program.expectation.kinds == (("race", "deadlock"), ("undefined",))


@pytest.mark.skipif(not COMPAT.is_dir(), reason="the peers' suite is not at hand (../shared/compat)")
def test_peers_suite() -> None:
    files = sorted(COMPAT.rglob("*.litmus"))
    assert len(files) >= 155
    for path in files:
        program = load(str(path))
        assert program.dialect
        assert program.threads
        assert program.condition.kind != "none"

"""Edits of a program: where they stand, in which threads, and what they cost."""

from __future__ import annotations

from dataclasses import replace

from mcheck.frontend.litmus import parse
from mcheck.ir import ops
from mcheck.ir.amendment import Insertion, Replacement, apply_amendments
from mcheck.ir.expr import Const
from mcheck.ir.program import Program
from tests.effort import effort

LOOP = """PTX loop
{ .shared .u32 x, y; }
one@cta 0, warp 0..2 {
  st.shared.u32 [x], 1;
AGAIN:
  ld.shared.u32 r0, [y];
  @%p1 bra AGAIN;
  st.shared.u32 [y], 2;
}
other@cta 0, warp 2, lane 0 {
  st.shared.u32 [x], 3;
}
"""
SYNC = ops.Barrier(kind="sync", barrier=Const(0), text="bar.sync 0")


def program(text: str = LOOP) -> Program:
    return parse(text, "loop.litmus")


def line_of(op: ops.Op) -> int | None:
    return op.span.line if op.span is not None else None


def test_insertions_stand_beside_the_statement_and_labels_before_them() -> None:
    before = program()
    read = next(op for op in before.operations if isinstance(op, ops.Load))
    assert read.span is not None
    after = apply_amendments(before, [Insertion(SYNC, after=k, span=read.span) for k in (False, True)])
    for old, new in zip(before.threads, after.threads, strict=True):
        if old.role == "other":
            assert new.code == old.code
            continue
        at = old.code.index(read)
        assert [op.text for op in new.code[at : at + 3]] == [SYNC.text, read.text, SYNC.text]
        assert [line_of(op) for op in new.code if op.text != SYNC.text] == [line_of(op) for op in old.code]


def test_a_label_stays_before_what_is_inserted_at_its_statement() -> None:
    before = program()
    old = before.threads[0]
    (name,) = old.labels
    for at in range(len(old.code)):
        span = old.code[at].span
        if span is None:
            continue
        new = apply_amendments(before, [Insertion(SYNC, after=False, span=span)]).threads[0]
        earlier = sum(op.span == span for op in old.code[: old.labels[name]])
        assert new.labels[name] == old.labels[name] + earlier


def test_replacements_follow_each_other_and_threads_share_the_result() -> None:
    before = program()
    write = before.threads[0].code[0]
    assert write.span is not None
    changes = [Replacement(lambda op, more=more: replace(op, text=op.text + more), write.span) for more in "ab"]
    after = apply_amendments(before, changes)
    edited = [t.code[0] for t in after.threads if t.role == "one"]
    assert {op.text for op in edited} == {f"{write.text}ab"}
    assert len({id(op) for op in edited}) == len({id(t.code[0]) for t in before.threads if t.role == "one"})
    assert after.threads[-1].code == before.threads[-1].code


def test_an_edit_of_many_threads_costs_a_glance_at_each_operation() -> None:
    body = "".join(f"  st.shared.u32 [x], {k};\n" for k in range(400))
    before = program(f"PTX many\n{{ .shared .u32 x; }}\none@cta 0, warp 0..8 {{\n{body}}}\n")
    own = replace(before, threads=tuple(replace(t, code=(*t.code,)) for t in before.threads))
    span = own.threads[0].code[-1].span
    assert span is not None
    assert len({id(t.code) for t in own.threads}) == 256
    assert effort(lambda: apply_amendments(own, [Insertion(SYNC, after=True, span=span)]), enough=0.1) < 0.1

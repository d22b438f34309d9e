"""Multimem instructions are split into an access for each copy, and what counts operations follows."""

from __future__ import annotations

import pytest

from mcheck.base.errors import Unsupported
from mcheck.frontend.litmus import parse
from mcheck.ir import ops
from mcheck.ir.expr import Binary, Const, Reg
from mcheck.ir.program import Program

HEAD = "PTX t\n{ .global .align 16 .u32 x[4], y[4], z[4]; m @ multimem aliases x, y, z; }\n"


def program(body: str, head: str = HEAD) -> Program:
    return parse(f"{head}P@cta 0 {{\n{body}\n}}\n", "t.litmus")


def test_one_access_for_each_copy() -> None:
    found = program("multimem.st.release.sys.u32 [m+4], 7;")
    bases = {i.object.name: i.base for i in found.memory.instances}
    code = found.threads[0].code
    assert all(isinstance(op, ops.Store) and (op.sem, op.scope) == ("release", "sys") for op in code)
    assert [op.address for op in code] == [Const(bases[name] + 4) for name in "xyz"]  # type: ignore[attr-defined]
    forms = [ops.multimem_of(op) for op in code]
    assert [(f.number, f.more) for f in forms if f is not None] == [(0, True), (1, True), (2, False)]
    assert [f.distance for f in forms if f is not None] == [bases[name] - bases["m"] for name in "xyz"]


def test_a_register_may_have_the_address() -> None:
    code = program("mov.u64 %rd1, m;\nmultimem.red.and.b32 [%rd1], 7;").threads[0].code[1:]
    assert all(isinstance(op, ops.Atomic) and isinstance(op.address, Binary) for op in code)
    several = HEAD.replace("m @", "m @ multimem aliases x; n @").replace("aliases x, y, z", "aliases y, z")
    with pytest.raises(Unsupported, match="one of several multimem addresses"):
        program("mov.u64 %rd1, m;\nmultimem.red.and.b32 [%rd1], 7;", several)


def test_sums_are_computed_in_registers_that_no_source_can_name() -> None:
    load, *more = program("multimem.ld_reduce.add.u32 r0, [m];").threads[0].code
    assert isinstance(load, ops.Load)
    assert [type(op).__name__ for op in more] == ["Load", "Load", "Alu", "Alu"]
    assert [op.dsts for op in more[2:]] == [(Reg("r0"),)] * 2  # type: ignore[attr-defined]
    assert "." in str(load.dsts[0])


def test_values_packed_in_registers_are_accessed_one_by_one() -> None:
    code = program("multimem.st.v2.f16x2 [m], {r0, r1};").threads[0].code
    assert [len(op.srcs) for op in code] == [4, 4, 4]  # type: ignore[attr-defined]
    reductions = program("multimem.red.add.v2.f32 [m], {r0, r1};").threads[0].code
    assert len(reductions) == 6
    assert all(isinstance(op, ops.Atomic) and len(op.srcs) == 1 for op in reductions)


def test_labels_and_iterations_follow() -> None:
    found = program("for k in 0..2 { multimem.st.u32 [m+4*k], k; }\nL: ld.u32 r0, [x];\nbra L;").threads[0]
    assert found.code[found.labels["L"]].text == "L:"
    assert found.iterations is not None
    labels = [found.iterations.label_at(k) for k in range(7)]
    assert labels == ["k=0"] * 3 + ["k=1"] * 3 + [""]


def test_an_await_is_a_loop() -> None:
    code = program("await multimem.ld_reduce.acquire.sys.add.u32 r0, [m] >= 3;").threads[0].code
    assert isinstance(code[0], ops.Label)
    last = code[-1]
    assert isinstance(last, ops.Branch)
    assert last.condition == Binary("<", Reg("r0"), Const(3))

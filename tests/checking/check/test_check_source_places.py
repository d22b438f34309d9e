"""Reasons in terms of the source that a module was compiled from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mcheck.base.reasons import Cause, Reason
from mcheck.base.source_files import SourceText
from mcheck.checking.check.source_places import locate_reasons
from mcheck.frontend.ptx.module import SourceLine
from mcheck.ptx import check
from mcheck.report.finding import title

WHAT = "the value that 'st.shared.u8 [_ZZ6splitkPKfS0_PfS1_PiiE4last], %rs1' stores depends on %ctaid"


def test_reasons_have_the_names_of_the_source() -> None:
    reason = Reason(Cause.NOT_FOLLOWED, WHAT, because=(Reason(Cause.NOT_FOLLOWED, "line 12 is not followed"),))
    lines = {(12, 3): SourceLine("k.cu", 16, 5)}
    (found,) = locate_reasons((reason,), lines)
    assert found.what == WHAT.replace("_ZZ6splitkPKfS0_PfS1_PiiE4last", "last")
    assert found.because[0].what == "k.cu:16 is not followed"
    assert locate_reasons((replace(reason, what="_Zebra is a name"),), lines)[0].what == "_Zebra is a name"
    assert locate_reasons((reason,), {}) == (reason,), "a module that no source was compiled to has its own names"


MODULE = """.version 8.0
.target sm_90
.address_size 64
.visible .entry _Z5writePfi(.param .u64 _Z5writePfi_param_0, .param .u32 _Z5writePfi_param_1) .reqntid 64, 1, 1
{
  .reg .pred %p<2>; .reg .b32 %r<3>; .reg .b64 %rd<2>;
  .loc 1 3 1
  ld.param.u64 %rd1, [_Z5writePfi_param_0];
  ld.param.u32 %r1, [_Z5writePfi_param_1];
  mov.u32 %r2, %tid.x;
  setp.ge.s32 %p1, %r2, %r1;
  @%p1 ret;
  st.global.u32 [%rd1], %r2;
  ret;
}
.file 1 "write.cu"
"""
SOURCE = "\n__global__ void write(float *out, int n) {\n  if (threadIdx.x < n) out[0] = threadIdx.x;\n}\n"


@pytest.mark.parametrize("there", [True, False])
def test_parameters_have_the_names_of_the_source_if_it_is_there(tmp_path: Path, there: bool) -> None:
    source, module = tmp_path / "write.cu", tmp_path / "write.ptx"
    if there:
        source.write_text(SOURCE)
    module.write_text(MODULE.replace("write.cu", str(source)))
    names = ("out", "n") if there else ("_Z5writePfi_param_0", "_Z5writePfi_param_1")
    for given in (names, ("0", "1"), ("_Z5writePfi_param_0", "_Z5writePfi_param_1")):
        launch = {"grid": 1, "params": {given[0]: {"buffer": 4}, given[1]: 64}}
        (race,) = check(str(module), launch).findings
        assert {access.object for access in race.accesses} == {names[0]}


TURNS = """.version 8.7
.target sm_90a
.address_size 64
.visible .global .align 4 .u32 turn = 0;
.visible .entry k()
.reqntid 1, 1, 1
{
  .reg .b32 %r<4>;
  .reg .pred %p<2>;
  .loc 1 3 3
  mov.u32 %r1, %ctaid.x;
again:
  ld.acquire.gpu.global.u32 %r2, [turn];
  setp.ne.u32 %p1, %r2, %r1;
  @%p1 bra again;
  add.u32 %r3, %r1, 1;
  st.release.gpu.global.u32 [turn], %r3;
  ret;
}
.file 1 "turns.cu"
"""


def test_a_wait_for_a_cta_that_need_not_be_resident_is_told_in_terms_of_the_source(tmp_path: Path) -> None:
    source, module = tmp_path / "turns.cu", tmp_path / "turns.ptx"
    source.write_text("__global__ void k() {\n  // in turns\n  while (acquire(&turn) != blockIdx.x) {}\n}\n")
    module.write_text(TURNS.replace("turns.cu", str(source)))
    (found,) = check(str(module), {"grid": 2}).findings
    _, said = title(found, SourceText(module.read_text(), str(module)))
    why = "if only CTA (1, 0, 0) is resident, no other CTA begins before this wait ends"
    assert said == f"deadlock: line 3 (cta(1, 0, 0).warp0[0]) reads `turn`, which keeps the value 0: {why}"
    assert found.message.endswith(f"waits for turn until another CTA writes it, but {why}")

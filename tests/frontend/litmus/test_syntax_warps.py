"""tensormap.cp_fenceproxy is one operation of the lanes that come to it."""

from __future__ import annotations

import pytest

from mcheck.frontend.litmus import parse
from mcheck.ir import ops

TEXT = """PTX publish
{{
  .global .align 128 .b8 a[4096], b[4096];
  .global .tensormap tm = {{ global_address = a, elemtype = u8, rank = 2, global_dim = {{64, 64}}, \
global_stride = {{64}}, box_dim = {{64, 16}}, element_stride = {{1, 1}}, interleave_layout = none, \
swizzle_mode = none, swizzle_atomicity = 16B, fill_mode = zero }};
  .shared .align 128 .b8 image[128];
}}
warp@cta 0, warp 0, lane 2..6 {{
  nanosleep.u32 1;
LOOP:
  {before} tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [tm], [image], 128;
END:
  bra END;
}}
"""


@pytest.mark.parametrize("lane", range(4))
def test_the_first_lane_copies_between_two_meetings(lane: int) -> None:
    thread = parse(TEXT.format(before=""), "publish.litmus").threads[lane]
    kinds = [type(op) for op in thread.code]
    copies = [ops.TensormapCopyFence] if lane == 0 else []
    met = kinds[thread.labels["LOOP"] : thread.labels["END"]]
    assert [k for k in met if k is not ops.Label] == [ops.WarpSync, *copies, ops.WarpSync]
    masks = {op.mask.value for op in thread.code if isinstance(op, ops.WarpSync)}  # type: ignore[attr-defined]
    assert masks == {0b111100}


def test_a_lane_alone_copies_by_itself() -> None:
    for before in ("if (%laneid == 2)", "@%p1"):
        text = TEXT.format(before=before)
        if "if" in before:
            text = text.replace("if (%laneid == 2) ", "if (%laneid == 2) { ").replace("128;\nEND", "128; }\nEND")
        threads = parse(text, "publish.litmus").threads
        assert not any(isinstance(op, ops.WarpSync) for t in threads for op in t.code)

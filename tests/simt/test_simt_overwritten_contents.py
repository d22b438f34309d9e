"""Contents that the launch gives, and that an operation overwrites whose values are not followed."""

from __future__ import annotations

import pytest

from mcheck.ptx import check

KERNEL = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 out) .reqntid 32, 1, 1 {{
.reg .pred %p, %q; .reg .b32 %r<9>; .reg .b64 %a<9>; .reg .f32 %f<9>; .reg .b128 %x;
.shared .align 128 .b32 box[512];
ld.param.u64 %a1, [data]; ld.param.u64 %a2, [out];
mov.u32 %r1, %tid.x; mov.u32 %r2, 7; mov.u32 %r3, box; mov.f32 %f1, 0f3F800000;
mov.u64 %a3, 7; mov.b128 %x, {{%a3, %a3}};
st.shared.v4.u32 [box], {{%r2, %r2, %r2, %r2}};
fence.proxy.async;
{all_lanes}
setp.ne.u32 %q, %r1, 0;
@%q bra MEET;
{first_lane}
MEET: bar.sync 0;
ld.{space}.u32 %r4, [{place}];
setp.eq.u32 %p, %r4, {initial};
@%p ret;
st.global.u32 [%a2], %r1;
ret; }}
"""
BULK = """cp{}.async.bulk.global.shared::cta.bulk_group{} [%a1], [%r3], 16;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
fence.proxy.async;
"""
WRITES = {
    "a bulk copy": BULK.format("", ""),
    "a bulk reduction": BULK.format(".reduce", ".add.u32"),
    "additions of a vector": "red.global.v2.f32.add [%a1], {%f1, %f1};",
    "additions of a pair": "red.global.add.noftz.f16x2 [%a1], %r2;",
    "an exchange of 128 bits": "atom.global.exch.b128 %x, [%a1], %x;",
}
MATRIX = "wmma.store.d.sync.aligned.row.m16n16k16.{}.s32 [{}], {{%r2, %r2, %r2, %r2, %r2, %r2, %r2, %r2}}, 16;"


def find(*, first_lane: str = "", all_lanes: str = "", space: str = "global", place: str = "%a1") -> set[str]:
    """The findings about a kernel whose threads race if the word does not hold what it held at first."""
    text = KERNEL.format(
        first_lane=first_lane, all_lanes=all_lanes, space=space, place=place, initial=0 if space == "global" else 7
    )
    data = {"buffer": 1024, "init": {"hex": "00" * 1024}}
    return {f.code for f in check(text, {"grid": 1, "params": {"data": data, "out": {"buffer": 4}}}).findings}


@pytest.mark.daily
@pytest.mark.parametrize("name", WRITES)
def test_what_is_written_without_being_followed_is_not_known(name: str) -> None:
    assert find(first_lane=WRITES[name]) == {"RACE001"}


def test_matrices_that_are_stored_are_not_known() -> None:
    assert find(all_lanes=MATRIX.format("global", "%a1")) == {"RACE001"}
    stored = "bar.sync 0;\n" + MATRIX.format("shared", "box").replace("%r2", "%r1")
    assert find(all_lanes=stored, space="shared", place="box") == {"RACE001"}


def test_contents_that_are_not_overwritten_stay_known() -> None:
    assert find() == set()
    assert find(first_lane=BULK.format("", "").replace("[%a1]", "[%a1+16]")) == set()

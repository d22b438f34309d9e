"""What the warps of a warpgroup execute alike, or it is undefined: wgmma, setmaxnreg (PTX ISA 9.7.15.5.2, 9.7.19.5)."""

from __future__ import annotations

import pytest

from mcheck import api

HEAD = "PTX t\n{ .shared .align 128 .b8 s[1024]; .shared .b64 bar; }\n"
FENCE = "wgmma.fence.sync.aligned;"
MMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {r10,r11,r12,r13}, [s, 512], [s + 512, 128];"
WIDE = "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {r1,r2,r3,r4,r5,r6,r7,r8}, [s, 512], [s + 512, 256];"
END = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
PRODUCT = f"{FENCE} {MMA} {END}"

WRONG = {
    "three warps of four": f"if (%warpid < 3) {{ {PRODUCT} }} bar.sync 0;",
    "three that hand over to the fourth": f"""if (%tid.x == 0) {{ mbarrier.init.shared::cta.b64 [bar], 96; }}
        bar.sync 0;
        if (%warpid < 3) {{ {PRODUCT} mbarrier.arrive.shared::cta.b64 _, [bar]; }}
        else {{ await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0; st.shared.u32 [s + 4*%laneid], 1; }}""",
    "one that skips the product alone": f"{FENCE} if (%warpid != 2) {{ {MMA} }} {END}",
    "one that has left": f"if (%warpid == 2) {{ exit; }} {PRODUCT}",
    "products of two shapes": f"{FENCE} if (%warpid < 2) {{ {MMA} }} else {{ {WIDE} }} {END}",
    "one that skips a round": f"for k in 0..8 {{ if (k != 5 || %warpid != 2) {{ {PRODUCT} }} }}",
    "registers of three": "if (%warpid < 3) { setmaxnreg.dec.sync.aligned.u32 40; }",
    "registers of two sizes": """if (%warpid < 2) { setmaxnreg.dec.sync.aligned.u32 40; }
        else { setmaxnreg.dec.sync.aligned.u32 32; }""",
}
RIGHT = {
    "all four": PRODUCT,
    "rounds of all": f"for k in 0..8 {{ {PRODUCT} }}",
    "registers of all": "setmaxnreg.dec.sync.aligned.u32 40;",
    "all that are left": f"{PRODUCT} if (%warpid == 2) {{ exit; }} bar.sync 1, 96;",
}


def codes(text: str) -> set[str]:
    return {f.code for f in api.check(text).findings}


@pytest.mark.parametrize("name", WRONG)
def test_some_warps_of_a_warpgroup_are_undefined(name: str) -> None:
    assert codes(f"{HEAD}P@cta 0, warp 0..4 {{ {WRONG[name]} }}\n") == {"UB307"}


@pytest.mark.parametrize("name", RIGHT)
def test_all_warps_of_a_warpgroup_are_not(name: str) -> None:
    assert codes(f"{HEAD}P@cta 0, warp 0..4 {{ {RIGHT[name]} }}\n") == set()


def test_two_warpgroups_may_go_different_ways() -> None:
    code = f"if (%warpid < 4) {{ setmaxnreg.dec.sync.aligned.u32 40; }} else {{ {PRODUCT} }}"
    assert codes(f"{HEAD}P@cta 0, warp 0..8 {{ {code} }}\n") == set()


def test_a_warp_of_another_role_is_not_asked() -> None:
    roles = f"P@cta 0, warp 0, lane 0 {{ bar.warp.sync 1; }}\nQ@cta 0, warp 1..4 {{ {PRODUCT} }}\n"
    assert codes(HEAD + roles) == set()


def test_a_round_that_one_warp_skips_is_found_for_any_number() -> None:
    code = f"for k in 0..N {{ if (k != 5 || %warpid != 2) {{ {PRODUCT} }} }}"
    text = HEAD.replace("{ .shared", "const N = any;\n{ .shared", 1) + f"P@cta 0, warp 0..4 {{ {code} }}\n"
    result = api.check(text)
    assert result.verdict == "finding"
    assert {f.code for f in result.findings} == {"UB307"}

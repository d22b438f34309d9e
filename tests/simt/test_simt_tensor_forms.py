"""tcgen05: each form of its instructions in a small module that the assembler takes, and twins with a mistake."""

from __future__ import annotations

import re

import pytest

from mcheck.base.errors import InputError
from tests.assembler import Assembler
from tests.simt.tensor_kernels import COLUMNS, DONE, ask, describe, found_at, module, registers

# --- forms that are right -----------------------------------------------------------------------------------------

D, A, IN_TENSOR, B, META, SCALES = "[%r10]", "%rd1", "[%r11]", "%rd2", "[%r12]", "[%r13], [%r14]"
DENSE = [
    f"tcgen05.mma.GROUP.kind::f16 {D}, {A}, {B}, %r20, %p5;",
    f"tcgen05.mma.GROUP.kind::f16 {D}, {A}, {B}, %r20, MASK, %p5, 3;",
    f"tcgen05.mma.GROUP.kind::tf32 {D}, {IN_TENSOR}, {B}, %r20, %p5;",
    f"tcgen05.mma.GROUP.kind::f8f6f4 {D}, {A}, {B}, %r20, 0;",
    f"tcgen05.mma.GROUP.kind::i8 {D}, {A}, {B}, %r20, %p5;",
    f"tcgen05.mma.GROUP.kind::f16.collector::a::discard {D}, {A}, {B}, %r20, %p5;",
    f"tcgen05.mma.GROUP.kind::f16.ashift {D}, {IN_TENSOR}, {B}, %r20, %p5;",
    "\n  ".join(
        f"tcgen05.mma.GROUP.kind::f16.collector::a::{use} {D}, {A}, {B}, %r20, %p5;"
        for use in ("fill", "use", "lastuse")
    ),
    f"tcgen05.mma.GROUP.kind::mxf8f6f4.block_scale {D}, {A}, {B}, %r20, {SCALES}, %p5;",
    f"tcgen05.mma.GROUP.kind::mxf8f6f4.block_scale.scale_vec::1X {D}, {IN_TENSOR}, {B}, %r20, {SCALES}, %p5;",
    f"tcgen05.mma.GROUP.kind::mxf4.block_scale.block32 {D}, {A}, {B}, %r20, {SCALES}, %p5;",
    f"tcgen05.mma.GROUP.kind::mxf4nvf4.block_scale.scale_vec::4X.collector::a::fill {D}, {A}, {B}, %r20, {SCALES}, 0;",
]
SPARSE = [
    f"tcgen05.mma.sp.GROUP.kind::f16 {D}, {A}, {B}, {META}, %r20, %p5;",
    f"tcgen05.mma.sp.GROUP.kind::tf32.collector::a::fill {D}, {IN_TENSOR}, {B}, {META}, %r20, MASK, %p5;",
    f"tcgen05.mma.sp.GROUP.kind::mxf4.block_scale {D}, {A}, {B}, {META}, %r20, {SCALES}, %p5;",
]
STATIONARY = [
    f"tcgen05.mma.ws.cta_group::1.kind::f16 {D}, {A}, {B}, %r20, %p5;",
    f"tcgen05.mma.ws.cta_group::1.kind::f16.collector::b2::fill {D}, {IN_TENSOR}, {B}, %r20, %p5, %rd3;",
]
COPIES = [
    f"tcgen05.cp.GROUP.{shape}{formats} {D}, {B};"
    for shape in ("128x256b", "128x128b", "64x128b.warpx2::02_13", "64x128b.warpx2::01_23", "32x128b.warpx4")
    for formats in ("", ".b8x16.b6x16_p32", ".b8x16.b4x16_p64")
] + [f"tcgen05.cp.GROUP.4x256b {D}, {B};", f"tcgen05.shift.GROUP.down {D};", f"tcgen05.shift.down.GROUP {D};"]


def of_group(form: str, group: int) -> str:
    """A form for one CTA or for two."""
    mask = "{" + ", ".join(f"%r{30 + k}" for k in range(4 * group)) + "}"
    return form.replace("GROUP", f"cta_group::{group}").replace("MASK", mask)


ISSUED = [
    pytest.param(of_group(form, group), group, describe(128 * group, 64, sparse=form in SPARSE), id=f"{group}: {form}")
    for group in (1, 2)
    for form in (*DENSE, *SPARSE, *COPIES)
] + [pytest.param(form, 1, describe(64, 64), id=form) for form in STATIONARY]


@pytest.mark.daily
@pytest.mark.parametrize(("issued", "group", "idesc"), ISSUED)
def test_what_is_issued_is_over_behind_its_commit(issued: str, group: int, idesc: int, assembler: Assembler) -> None:
    text = module(issued, group=group, idesc=idesc)
    assert assembler.assemble(text, "-arch", "sm_100a") == (0, "")
    found = ask(text, group)
    assert (found.verdict, found.findings) == ("proved", ()), found.reason
    early = ask(text.replace(DONE, ""), group)
    assert any("RACE" in code for code in found_at(text.replace(DONE, ""), early)), early.verdict


SHAPES = {"32x32b": (1, ""), "16x64b": (1, ""), "16x128b": (2, ""), "16x256b": (4, ""), "16x32bx2": (1, ", 32")}
WAIT_LD, WAIT_ST = (f"\n  tcgen05.wait::{what}.sync.aligned;" for what in ("ld", "st"))
MOVES = [
    (
        f"tcgen05.ld.sync.aligned.{shape}.x{number}{pack}.b32 {registers(number * each)}, [%r15]{split};" + WAIT_LD,
        "sm_100a",
    )
    for shape, (each, split) in SHAPES.items()
    for number in (1, 8)
    for pack in ("", ".pack::16b")
]
MOVES += [
    (
        f"tcgen05.st.sync.aligned.{shape}.x4{pack}.b32 [%r15]{split}, {registers(4 * each)};" + WAIT_ST,
        "sm_100a",
    )
    for shape, (each, split) in SHAPES.items()
    for pack in ("", ".unpack::16b")
]
MOVES += [
    (
        f"tcgen05.ld.red.sync.aligned.{shape}.x4.{op} {registers(4)}, %r39, [%r15]{split};" + WAIT_LD,
        "sm_103a",
    )
    for shape, split in (("32x32b", ""), ("16x32bx2", ", 32"))
    for op in ("min.f32", "max.abs.NaN.f32", "f32.min", "max.u32", "s32.min")
]


@pytest.mark.daily
@pytest.mark.parametrize(("moved", "target"), MOVES, ids=[move.partition(";")[0] for move, _ in MOVES])
def test_loads_and_stores_are_over_behind_their_waits(moved: str, target: str, assembler: Assembler) -> None:
    text = module(behind=moved, target=target)
    assert assembler.assemble(text, "-arch", target) == (0, "")
    found = ask(text)
    assert (found.verdict, found.findings) == ("proved", ()), found.reason
    twin = re.sub(r"tcgen05\.wait::.*", "", text)
    assert any("dealloc" in line for lines in found_at(twin, ask(twin)).values() for line in lines)


# --- misuses ------------------------------------------------------------------------------------------------------

PRODUCT = f"tcgen05.mma.cta_group::1.kind::f16 {D}, {A}, {B}, %r20, %p5;"
LOAD = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r40}, [%r15];\n  tcgen05.wait::ld.sync.aligned;"


@pytest.mark.daily
@pytest.mark.parametrize(
    ("text", "code", "at"),
    [
        pytest.param(module(PRODUCT, idesc=describe(96, 64)), "UB109", "tcgen05.mma", id="M = 96"),
        pytest.param(module(PRODUCT, idesc=describe(256, 64)), "UB109", "tcgen05.mma", id="M of two CTAs"),
        pytest.param(module(PRODUCT, idesc=describe(128, 0)), "UB109", "tcgen05.mma", id="N = 0"),
        pytest.param(
            module(PRODUCT.replace("f16", "i8"), idesc=describe(128, 40)), "UB109", "tcgen05.mma", id="N of integers"
        ),
        pytest.param(
            module(STATIONARY[0], idesc=describe(64, 72)), "UB109", "tcgen05.mma", id="N of a stationary matrix"
        ),
        pytest.param(
            module(DENSE[6].replace("GROUP", "cta_group::1"), idesc=describe(64, 64)),
            "UB109",
            "tcgen05.mma",
            id="rows of half the lanes shifted",
        ),
        pytest.param(
            module(f"add.u32 %r10, %r10, 0x80000;\n  {PRODUCT}", idesc=describe(64, 64)),
            "UB109",
            "tcgen05.mma",
            id="D from lane 8 on",
        ),
        pytest.param(
            module(
                f"add.u32 %r10, %r10, 0x100000;\n  {PRODUCT.replace(A + ',', IN_TENSOR + ',')}", idesc=describe(64, 64)
            ),
            "UB109",
            "tcgen05.mma",
            id="D and A from different lanes on",
        ),
        pytest.param(
            module(PRODUCT).replace("%r23, 0x4010", "%r23, 0x60004010"), "UB109", "tcgen05.mma", id="swizzle mode 3"
        ),
        pytest.param(
            module("add.u32 %r11, %r10, 0x100000;\n  tcgen05.shift.cta_group::1.down [%r11];"),
            "UB109",
            "tcgen05.shift",
            id="shift from lane 16 on",
        ),
        pytest.param(
            module(behind=f"add.u32 %r15, %r15, %r1;\n  {LOAD}"), "UB109", "tcgen05.ld", id="addresses that differ"
        ),
        pytest.param(
            module().replace("cta_group::1.mbarrier", "cta_group::2.mbarrier"), "UB605", "tcgen05.commit", id="groups"
        ),
    ],
)
def test_operands_against_the_rules_are_found(text: str, code: str, at: str) -> None:
    found = ask(text)
    said = found_at(text, found)
    assert set(said) == {code}, (found.verdict, found.reason)
    assert all(at in line for line in said[code])


PAIR = module(of_group(DENSE[0], 2), group=2, idesc=describe(256, 64))


@pytest.mark.daily
@pytest.mark.parametrize(
    ("old", "new", "code", "at"),
    [
        pytest.param("%rs1, 3;", "%rs1, 7;", "UB107", "tcgen05.commit", id="a CTA beyond the cluster"),
        pytest.param("%rs1, 3;", "%rs1, 0;", "UB107", "tcgen05.commit", id="no CTA"),
        pytest.param("%rs1, 3;", "%rs1, 1;", "DEAD003", "try_wait", id="the peer is not told"),
        pytest.param(
            "  tcgen05.dealloc", "  @%p6 bra DONE;\n  tcgen05.dealloc", "DEAD008", "tcgen05.dealloc", id="half freed"
        ),
        pytest.param(
            "  tcgen05.relinquish",
            "  @%p6 bra DONE;\n  tcgen05.relinquish",
            "DEAD008",
            "relinquish",
            id="half the permit",
        ),
        pytest.param(
            "  tcgen05.alloc",
            "  @!%p6 bra FIRST;\n  barrier.cluster.arrive.release.aligned;\n  barrier.cluster.wait.acquire.aligned;\n"
            "FIRST:\n  tcgen05.alloc",
            "DEAD008",
            "tcgen05.alloc",
            id="the peer waits for what comes behind",
        ),
    ],
)
def test_what_a_pair_does_not_do_together_is_found(old: str, new: str, code: str, at: str) -> None:
    assert PAIR.count(old) == 1
    text = PAIR.replace(old, new)
    found = ask(text, 2)
    said = found_at(text, found)
    assert code in said, (found.verdict, found.reason)
    assert any(at in line for line in said[code])


def test_a_pair_needs_a_cluster() -> None:
    text = PAIR.replace(".reqnctapercluster 2, 1, 1\n", "").replace("%rs1, 3;", "%rs1, 1;")
    assert "UB605" in found_at(text, ask(text))


def test_ctas_of_a_pair_that_allocate_differently_are_left_open() -> None:
    """The text does not say whether both have to ask for as many columns."""
    text = PAIR.replace("[base], 512;", "[base], %r60;").replace("%r10, 512;", "%r10, %r60;")
    text = text.replace("  @%p1 bra MEET;\n", "  mov.u32 %r60, 512;\n  @%p6 mov.u32 %r60, 256;\n  @%p1 bra MEET;\n")
    found = ask(text, 2)
    assert found.verdict == "unknown"
    assert "512 and for 256 columns" in str(found.reason) or "256 and for 512 columns" in str(found.reason)


def test_two_warps_that_allocate_have_two_allocations() -> None:
    text = module().replace("  @%p1 bra MEET;\n", "", 1).replace("512", "64")
    text = text.replace("320", "8").replace("352", "16").replace("384", "24").replace("%r10, 256", "%r10, 32")
    assert set(found_at(text, ask(text))) >= {"UB601"}


FREED = module(behind=LOAD).replace("  tcgen05.relinquish", f"  {LOAD}\n  tcgen05.relinquish")


def test_columns_that_were_freed_are_not_used() -> None:
    found = ask(FREED)
    said = found_at(FREED, found)
    assert set(said) == {"UB604"}
    numbers = {a.span.line for f in found.findings for a in f.accesses if a.span is not None}
    assert min(numbers) > next(k for k, line in enumerate(FREED.splitlines(), 1) if "dealloc" in line)


def test_a_product_into_columns_that_were_freed_is_found() -> None:
    first, rest = module(PRODUCT).split("WAIT:\n")
    free = (
        f"  @%p1 bra FREED;\n  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, {COLUMNS};\nFREED:\n  bar.sync 0;\n"
    )
    text = (
        first.replace("  setp.ne.u32 %p3", free + "  setp.ne.u32 %p3")
        + "WAIT:\n"
        + re.sub(r"  tcgen05\.dealloc.*\n", "", rest)
    )
    said = found_at(text, ask(text))
    assert any("tcgen05.mma" in line for line in said["UB604"])


def test_what_ld_red_reduces_to_is_not_what_the_register_held() -> None:
    loaded = "tcgen05.ld.red.sync.aligned.32x32b.x4.min.u32 {%r40, %r41, %r42, %r43}, %r39, [%r15];"
    behind = (
        f"mov.u32 %r39, 0;\n  {loaded}\n  tcgen05.wait::ld.sync.aligned;\n"
        "  setp.eq.u32 %p7, %r39, 0;\n  @%p7 bra LEFT;\n  st.shared.u32 [a], %r1;\nLEFT:"
    )
    text = module(behind=behind, target="sm_103a")
    assert any("st.shared" in line for line in found_at(text, ask(text)).get("RACE001", ()))


def test_what_ld_red_reduces_to_is_used_behind_the_wait() -> None:
    loaded = "tcgen05.ld.red.sync.aligned.32x32b.x2.max.u32 {%r40, %r41}, %r39, [%r15];"
    use = "add.u32 %r38, %r39, 1;\n  bar.sync 0;\n  "
    text = module(behind=f"{loaded}\n  {use}tcgen05.wait::ld.sync.aligned;", target="sm_103a")
    assert {f.code for f in ask(text).findings} == {"UB702"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (module(PRODUCT.replace("f16", "f16.frobnicate")), "'.frobnicate' is not a qualifier of 'tcgen05.mma'"),
        (module(PRODUCT.replace("::1", "::3")), "'.cta_group::3' is not a qualifier"),
        (module(PRODUCT.replace("f16", "f16.ashift")), "needs a first matrix in tensor memory"),
        (module(SPARSE[0].replace("GROUP", "cta_group::1").replace(f"{META}, ", "")), "are not those"),
        (module("tcgen05.cp.cta_group::1.32x128b [%r10], %rd2;"), "do not match"),
        (module(behind=LOAD.replace("x1", "x2")), "takes a vector of 2 registers, 1 given"),
        (module(behind=LOAD.replace("32x32b.x1.b32", "16x32bx2.x1.b32")), "distance of the halves"),
        (module(behind="tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {%r40, %r41}, %r39, [%r15];"), "sm_103f"),
    ],
)
def test_what_is_no_form_is_refused(text: str, words: str, assembler: Assembler) -> None:
    assert assembler.assemble(text, "-arch", "sm_100a")[0] != 0
    with pytest.raises(InputError) as raised:
        ask(text)
    assert words in str(raised.value)


def test_a_newer_module_with_another_form_is_left_open() -> None:
    text = module(PRODUCT.replace("f16", "f16.frobnicate")).replace(".version 8.8", ".version 9.6")
    found = ask(text)
    assert found.verdict == "unknown"
    assert "frobnicate" in str(found.reason)


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("tcgen05.alloc.", "tcgen05.alloc.exclusive."),
        ("kind::f16", "kind::f16.collector::b::fill"),
        ("arrive::one.", "arrive::one.sync_restrict::shared::read::mma::a."),
    ],
)
def test_what_a_newer_part_has_besides_is_left_open(written: str, instead: str) -> None:
    text = module(PRODUCT)
    assert written in text
    found = ask(text.replace(written, instead))
    assert found.verdict == "unknown"
    assert "legal but not modelled" in str(found.reason)


def test_a_descriptor_of_another_sparsity_is_left_open() -> None:
    assert ask(module(PRODUCT, idesc=describe(128, 64, sparse=True))).verdict == "unknown"


@pytest.mark.daily(days=3, least=0)
def test_the_lanes_of_a_copy_of_four_rows_may_be_one_of_each_warp() -> None:
    """The text does not say; a load of another lane of the same columns is in nobody's way."""
    copy = "tcgen05.cp.cta_group::1.4x256b [%r10], %rd2;"
    text = module(copy).replace(DONE, f"  {LOAD}\n")
    lanes = [a for f in ask(text).findings for a in f.accesses if "lane 32" in str(a) or "warp1" in str(a)]
    assert lanes


# --- collectors ---------------------------------------------------------------------------------------------------


def using(*uses: str, a: str = A) -> str:
    """Products with these uses of the collector of A; all but the first have ``a``."""
    named = [f"f16.collector::a::{use}" if use else "f16" for use in uses]
    return "\n  ".join(PRODUCT.replace("f16", name).replace(A, a if k else A) for k, name in enumerate(named))


AGAIN = f"""@%p3 bra APART;
  WRITE
  fence.proxy.async.shared::cta;
  {using("use")}
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [over];
AGAIN:
  mbarrier.try_wait.parity.shared::cta.b64 %p4, [over], 1;
  @!%p4 bra AGAIN;
APART:
  bar.sync 0;"""
COPY = "mov.u64 %rd4, data;\n  cp.async.cg.shared.global [{}], [%rd4], 16;\n  cp.async.wait_all;"


@pytest.mark.daily
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(module(using("", "use")), id="not filled"),
        pytest.param(module(using("lastuse")), id="never filled"),
        pytest.param(module(using("fill", "lastuse", "use")), id="given up"),
        pytest.param(module("add.s64 %rd3, %rd1, 512;\n  " + using("fill", "use", a="%rd3")), id="another matrix"),
        pytest.param(module(using("fill"), AGAIN.replace("WRITE", "st.shared.b32 [%r3], %r1;")), id="overwritten"),
        pytest.param(
            module(using("fill"), AGAIN.replace("WRITE", "st.shared.v2.b32 [%r3+4088], {%r1, %r1};")),
            id="the last bytes overwritten",
        ),
        pytest.param(module(using("fill"), AGAIN.replace("WRITE", COPY.format("%r3"))), id="overwritten by a copy"),
        pytest.param(
            module(
                STATIONARY[1] + "\n  " + STATIONARY[0].replace("f16", "f16.collector::b1::lastuse"),
                idesc=describe(64, 64),
            ),
            id="another collector of B",
        ),
    ],
)
def test_a_collector_without_the_matrix_is_for_review(text: str) -> None:
    found = ask(text)
    assert {(f.code, f.severity) for f in found.findings} == {("UB606", "review")}, (found.verdict, found.reason)


@pytest.mark.daily
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(module(using("fill", "use", "lastuse", "", "fill", "use")), id="in order"),
        pytest.param(module(using("fill"), AGAIN.replace("WRITE", "st.shared.b32 [%r4], %r1;")), id="B overwritten"),
        pytest.param(module(using("fill"), AGAIN.replace("WRITE", COPY.format("%r4"))), id="a copy over B"),
        pytest.param(
            module(using("fill", "lastuse").replace("cta_group::1", "cta_group::2"), group=2, idesc=describe(256, 64)),
            id="a pair",
        ),
    ],
)
def test_a_collector_with_the_matrix_is_proved(text: str) -> None:
    found = ask(text, ctas=2 if "reqnctapercluster" in text else 1)
    assert str(found.verdict) == "proved", (found.reason, found.findings)


@pytest.mark.daily
@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        pytest.param(using("fill"), using("use"), "bounded", id="filled and used"),
        pytest.param(using("use"), using("fill"), "bounded", id="used and filled"),
        pytest.param(using("fill", "lastuse"), using(""), "bounded", id="discarded by another thread"),
        pytest.param(using(""), using(""), "proved", id="not used"),
    ],
)
def test_a_collector_that_several_threads_use_depends_on_their_order(first: str, second: str, verdict: str) -> None:
    text = module(first).replace("[over], 1;\n  fence", "[over], 2;\n  fence")
    other = f"""  setp.eq.u32 %p7, %r1, 32;
  @!%p7 bra MINE;
  {second.replace(D, "[%r11]")}
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [over];
MINE:
"""
    found = ask(text.replace("  @%p3 bra WAIT;\n", other + "  @%p3 bra WAIT;\n"))
    assert str(found.verdict) == verdict, (found.reason, found.findings)

"""Effects: what each instruction violates and touches for given operands, without any engine."""

from __future__ import annotations

import pytest

from mcheck.effects import async_copies
from mcheck.effects.dispatch import effect_of, tensor_copy_effect
from mcheck.effects.effect import Access, Effect, Run, Signal
from mcheck.effects.operands import evaluate_operands
from mcheck.effects.registry import EFFECTS
from mcheck.effects.site import Layout, Objects, Site
from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr, Reg
from mcheck.ir.memory import (
    GLOBAL_BASE,
    SHARED_BASE,
    SHARED_WINDOW,
    Cta,
    Instance,
    MemObject,
    MemoryMap,
    TensorMapSpec,
)
from mcheck.ir.ops import Op
from mcheck.ir.program import Place

CTAS = (Cta(0, 0, 0, 0), Cta(1, 0, 0, 1), Cta(2, 0, 1, 0))
G = GLOBAL_BASE
S = [SHARED_BASE + number * SHARED_WINDOW for number in range(3)]
MEMORY = MemoryMap(
    (
        Instance(MemObject(name="g", space="global", elem="b8", elem_size=1, size=256), G, G),
        *(
            Instance(MemObject(name="s", space="shared", elem="b8", elem_size=1, size=256), S[c.number], S[c.number], c)
            for c in CTAS
        ),
    )
)
SITE = Site(Layout(Objects(MEMORY), CTAS, True), Place(CTAS[0], 0, 0))


def number(expr: Expr) -> int:
    assert isinstance(expr, Const)
    return expr.value


def evaluated(op: Op) -> Effect:
    return effect_of(op, evaluate_operands(op, number), SITE)


def c(value: int | None) -> Const:
    assert value is not None
    return Const(value)


def bulk(
    dst: int,
    src: int,
    size: int = 16,
    dst_space: str = "shared::cta",
    src_space: str = "global",
    mbar: int | None = S[0] + 8,
    mask: int | None = None,
    byte_mask: int | None = None,
) -> ops.BulkCopy:
    return ops.BulkCopy(
        dst=c(dst), src=c(src), size=c(size), dst_space=dst_space, src_space=src_space,
        mbar=None if mbar is None else c(mbar), cta_mask=None if mask is None else c(mask),
        byte_mask=None if byte_mask is None else c(byte_mask),
    )  # fmt: skip


def cp_async(dst: int, src: int, size: int, src_size: int | None = None, ignore: bool = False) -> ops.CpAsync:
    return ops.CpAsync(
        dst=c(dst), src=c(src), size=c(size), src_size=None if src_size is None else c(src_size),
        ignore_src=Const(1) if ignore else None,
    )  # fmt: skip


def store(dst: int, mbar: int, reduce: str | None = None) -> ops.AsyncStore:
    return ops.AsyncStore(address=c(dst), srcs=(Const(1),), type="u32", mbar=c(mbar), reduce=reduce)


def load(address: int, space: str, type_: str = "u32", count: int = 1) -> ops.Load:
    return ops.Load(dsts=(Reg("r"),) * count, address=c(address), type=type_, space=space)


FENCE = ops.ProxyFence(kind="tensormap", half="acquire", address=c(G), size=Const(64))

CHECKS: list[tuple[str, list[str], Op]] = [
    ("bulk", [], bulk(S[0] + 64, G)),
    ("fill", [], ops.Fill(address=c(S[0]), size=Const(24))),
    ("fill of nothing", [], ops.Fill(address=c(G), size=Const(0))),
    ("fill of 12", ["UB110"], ops.Fill(address=c(S[0]), size=Const(12))),
    ("fill past the end", ["UB103"], ops.Fill(address=c(S[0]), size=Const(512))),
    ("fill in global memory", ["UB108"], ops.Fill(address=c(G), size=Const(8))),
    ("fill of the peer", ["UB108"], ops.Fill(address=c(S[1]), size=Const(8))),
    ("bulk of nothing", [], bulk(S[0] + 64, G, 0)),
    ("bulk of 24", ["UB101"], bulk(S[0] + 64, G, 24)),
    ("bulk source at 8", ["UB102"], bulk(S[0] + 64, G + 8)),
    ("bulk destination at 4", ["UB102"], bulk(S[0] + 68, G)),
    ("bulk too long", ["UB103"], bulk(S[0] + 64, G, 208)),
    ("bulk from the end", ["UB103"], bulk(S[0] + 64, G + 256)),
    ("bulk, two things wrong", ["UB101", "UB102"], bulk(S[0] + 68, G, 24)),
    ("mask of nobody", ["UB107"], bulk(S[0] + 64, G, dst_space="shared::cluster", mask=0)),
    ("mask of an absent CTA", ["UB107"], bulk(S[0] + 64, G, dst_space="shared::cluster", mask=4)),
    ("mask with a bit above 15", ["UB107"], bulk(S[0] + 64, G, dst_space="shared::cluster", mask=0x10001)),
    ("mask", [], bulk(S[0] + 64, G, dst_space="shared::cluster", mask=3)),
    ("load into the peer as cta", ["UB105"], bulk(S[1] + 64, G)),
    ("load into the peer", [], bulk(S[1] + 64, G, dst_space="shared::cluster", mbar=S[1] + 8)),
    ("load into another cluster", ["UB105"], bulk(S[2] + 64, G, dst_space="shared::cluster")),
    ("mbarrier in global", ["UB204"], bulk(S[0] + 64, G, mbar=G + 8)),
    ("mbarrier of another cluster", ["UB204"], bulk(S[0] + 64, G, mbar=S[2] + 8)),
    ("to the peer", [], bulk(S[1] + 64, S[0], dst_space="shared::cluster", src_space="shared::cta", mbar=S[1] + 8)),
    ("to itself", ["UB105"], bulk(S[0] + 64, S[0], dst_space="shared::cluster", src_space="shared::cta")),
    ("store from the peer", ["UB105"], bulk(G, S[1], dst_space="global", src_space="shared::cta", mbar=None)),
    ("store", [], bulk(G, S[0], dst_space="global", src_space="shared::cta", mbar=None)),
    ("load of shared as global", ["UB108"], bulk(S[0] + 64, S[0])),
    ("cp.async", [], cp_async(S[0], G, 16)),
    ("cp.async of 12", ["UB101", "UB102", "UB102"], cp_async(S[0], G, 12)),
    ("src-size equal", [], cp_async(S[0], G, 8, 8)),
    ("src-size above", ["UB104"], cp_async(S[0], G, 8, 9)),
    ("src-size 0 from nowhere", [], cp_async(S[0], G + 4096, 8, 0)),
    ("ignored source from nowhere", [], cp_async(S[0], G + 4096, 8, None, True)),
    ("cp.async from nowhere", ["UB103"], cp_async(S[0], G + 4096, 8)),
    ("cp.async misaligned", ["UB102"], cp_async(S[0], G + 4, 8)),
    ("cp.async into the peer", ["UB105"], cp_async(S[1], G, 8)),
    ("st.async", [], store(S[0], S[0] + 8)),
    ("st.async apart", ["UB105"], store(S[0], S[1] + 8)),
    ("red.async at home", ["UB105"], store(S[0], S[0] + 8, "add")),
    ("red.async", [], store(S[1], S[1] + 8, "add")),
    ("global", [], load(G, "global")),
    ("shared as global", ["UB108"], load(S[0], "global")),
    ("global as shared", ["UB108"], load(G, "shared::cta")),
    ("peer as shared::cta", ["UB108"], load(S[1], "shared::cta")),
    ("peer", [], load(S[1], "shared::cluster")),
    ("stranger", ["UB108"], load(S[2], "shared::cluster")),
    ("nowhere", ["UB103"], load(G + 4096, "global")),
    ("past the end", ["UB103"], load(G + 248, "global", "u64", 2)),
    ("vector misaligned", ["UB102"], load(G + 8, "global", "u64", 2)),
    ("wait on the peer", ["UB204"], ops.MbarrierWait(address=c(S[1]), dst=None, parity=Const(0))),
    ("parity 2", ["UB109"], ops.MbarrierWait(address=c(S[0]), dst=None, parity=Const(2))),
    ("remote arrive with a state", ["UB214"], ops.MbarrierArrive(address=c(S[1]), state=Reg("s"), space="generic")),
    ("barrier 16", ["UB302"], ops.Barrier(kind="sync", barrier=Const(16), count=Const(32))),
    ("barrier of 48", ["UB301"], ops.Barrier(kind="sync", barrier=Const(1), count=Const(48))),
    ("mask without the lane", ["UB109"], ops.WarpSync(mask=Const(2))),
    ("mapa beyond the cluster", ["UB108"], ops.Alu(op="mapa", type="u64", dsts=(Reg("r"),), srcs=(c(S[0]), Const(5)))),
    (
        "tensormap fence of 64",
        ["UB403"],
        ops.ProxyFence(kind="tensormap", half="acquire", address=c(G), size=Const(64)),
    ),
    ("wgmma of a peer", ["UB105"], ops.Wgmma(reads=((c(S[1]), Const(64)),))),
]


@pytest.mark.parametrize(("codes", "op"), [x[1:] for x in CHECKS], ids=[x[0] for x in CHECKS])
def test_preconditions(codes: list[str], op: Op) -> None:
    assert [fault.code for fault in evaluated(op).faults] == codes


def test_a_multicast_signals_every_destination() -> None:
    """Each CTA gets the bytes and, at the same place, a signal that tells of these."""
    made = evaluated(bulk(S[0] + 64, G, 16, "shared::cluster", mask=3))
    assert made.runs == (Run(G, S[0] + 64, 16), Run(G, S[1] + 64, 16))
    assert made.signals == (Signal(S[0] + 8, 16, 0), Signal(S[1] + 8, 16, 1))
    assert [[async_copies.covers(s, r.dst) for r in made.runs] for s in made.signals] == [[True, False], [False, True]]


def test_a_byte_mask_leaves_bytes_out() -> None:
    made = evaluated(bulk(G, S[0], 32, "global", "shared::cta", mbar=None, byte_mask=0x00FF))
    assert made.runs == (Run(S[0], G, 8), Run(S[0] + 16, G + 16, 8))


def test_cp_async_fills_the_rest() -> None:
    assert evaluated(cp_async(S[0], G, 8, 3)).runs == (Run(G, S[0], 3), Run(None, S[0] + 3, 5))


def test_what_is_wrong_is_planned_as_far_as_it_can_be() -> None:
    """A misaligned copy still names its bytes; one that leaves its object moves nothing."""
    assert evaluated(bulk(S[0] + 68, G)).runs == (Run(G, S[0] + 68, 16),)
    assert evaluated(bulk(S[0] + 64, G + 256)).runs == ()


def test_mapa_gives_the_place_in_the_peer() -> None:
    assert evaluated(ops.Alu(op="mapa", type="u64", dsts=(Reg("r"),), srcs=(c(S[0] + 4), Const(1)))).result == S[1] + 4


def test_addresses_of_32_bits_are_offsets_into_the_window() -> None:
    assert evaluated(load(S[0] - SHARED_BASE + 4, "shared::cta")).accesses == (Access(S[0] + 4, 4),)


@pytest.mark.parametrize(
    ("ranges", "wrong"), [([(100, 4), (112, 8), (120, 4)], False), ([(100, 4), (112, 16), (120, 4)], True)]
)
def test_copies_of_one_group(ranges: list[tuple[int, int]], wrong: bool) -> None:
    assert bool(async_copies.one_group(ranges).faults) is wrong


SPEC = TensorMapSpec(
    global_address=G, elemtype="u32", rank=2, global_dim=(8, 8), global_stride=(32,), box_dim=(4, 2),
    element_stride=(1, 1),
)  # fmt: skip


def tensor(
    shared: int, kind: str = "load", mbar: int | None = S[0] + 8, group: int = 1, **more: object
) -> ops.TensorCopy:
    return ops.TensorCopy(
        kind=kind, dim=2, mode="tile", shared=c(shared), tensor_map=c(G), coords=(Const(0), Const(0)),
        mbar=None if mbar is None else c(mbar), cta_group=group, **more,  # type: ignore[arg-type]
    )  # fmt: skip


TENSORS: list[tuple[str, list[str], ops.TensorCopy, TensorMapSpec | None]] = [
    ("load", [], tensor(S[0] + 128), SPEC),
    ("no map", ["UB404"], tensor(S[0] + 128), None),
    ("load into the peer", [], tensor(S[1] + 128, mbar=S[1] + 8), SPEC),
    ("load, mbarrier elsewhere", ["UB105"], tensor(S[1] + 128), SPEC),
    ("load, mbarrier in the pair", [], tensor(S[1] + 128, group=2), SPEC),
    ("load into the peer as cta", ["UB105"], tensor(S[1] + 128, mbar=S[1] + 8, dst_space="shared::cta"), SPEC),
    ("store from the peer", ["UB105"], tensor(S[1] + 128, "store", None), SPEC),
    ("store", [], tensor(S[0] + 128, "store", None), SPEC),
    ("misaligned", ["UB102"], tensor(S[0] + 64), SPEC),
]


@pytest.mark.parametrize(("codes", "op", "spec"), [x[1:] for x in TENSORS], ids=[x[0] for x in TENSORS])
def test_tensor_preconditions(codes: list[str], op: ops.TensorCopy, spec: TensorMapSpec | None) -> None:
    made = tensor_copy_effect(op, evaluate_operands(op, number), SITE, spec)
    assert [fault.code for fault in made.faults] == codes


def test_a_box_is_moved_row_by_row() -> None:
    op = tensor(S[0] + 128)
    made = tensor_copy_effect(op, evaluate_operands(op, number), SITE, SPEC)
    assert list(made.moved()) == [Run(G, S[0] + 128, 16), Run(G + 32, S[0] + 144, 16)]
    assert made.signals == (Signal(S[0] + 8, 32),)


def test_every_operation_with_decisive_operands_has_a_plan() -> None:
    """What must be known is there for an effect; groups only count."""
    kinds = [kind for kind in vars(ops).values() if isinstance(kind, type) and issubclass(kind, Op)]
    decisive = {kind for kind in kinds if kind.decisive}
    assert decisive - set(EFFECTS) == {ops.WaitGroup}


def test_a_plan_can_be_all_that_an_instruction_needs() -> None:
    """``st.bulk`` has no handler: the engines and ``exec`` follow its effect."""
    from mcheck.engines.concrete import execute
    from mcheck.events import emit

    emit.import_emitters()
    for op in (ops.Fill, ops.Prefetch):
        assert op not in emit.HANDLERS
        assert op not in execute.HANDLERS
        assert op in EFFECTS

"""Bulk asynchronous copies, reductions and prefetches, and their groups (PTX ISA 9.7.9.25.4, 9.7.9.27.2)."""

from __future__ import annotations

from mcheck.ir.ops import BulkCopy, Commit, Op, Prefetch, WaitGroup
from mcheck.isa.families.common import (
    CACHE_HINT,
    CACHE_POLICY,
    SM_90,
    SM_100,
    address,
    is_given,
    optional_value,
    pairs,
    value,
)
from mcheck.isa.schema import Arg, Family, Match, Rule, Slot, Variant

MBARRIER = Slot("completion_mechanism", ("mbarrier::complete_tx::bytes",))
GROUP = Slot("completion_mechanism", ("bulk_group",))
MULTICAST = Slot("multicast", ("multicast::cluster",), optional=True)
CTA_MASK = Arg("ctaMask", "src", "u16", when=is_given("multicast"))


def space(name: str, value: str, ptx: str = "") -> Slot:
    """A state space that this variant requires."""
    return Slot(name, (value,), kind="space", ptx={value: ptx} if ptx else {})


_DST = Arg("dstMem", "mem", space="$dst")
_SRC = Arg("srcMem", "mem", space="$src")
_SIZE = Arg("size", "src", "u32")
_MBAR = Arg("mbar", "mem", space="shared")

_UNDEFINED = (
    "size is not a multiple of 16",
    "an address is not aligned to 16 bytes",
    "the source or the destination leaves its state space",
    "the source modified, or the destination read, before completion",
)


def _copy(match: Match) -> Op:
    q, args = match.q, match.args
    return BulkCopy(
        dst=address(args["dstMem"]),
        src=address(args["srcMem"]),
        size=value(args["size"]),
        dst_space=q["dst"],
        src_space=q["src"],
        mbar=address(args["mbar"]) if "mbar" in args else None,
        cta_mask=optional_value(match, "ctaMask"),
        byte_mask=optional_value(match, "byteMask"),
        reduce=q.get("redOp"),
        type=q.get("type"),
        noftz="noftz" in q,
        **match.common,
    )


BULK = Family(
    name="cp.async.bulk",
    section="9.7.9.25.4.1",
    title="bulk copy",
    ptx="8.0",
    needs=SM_90,
    proxy="async",
    undefined=_UNDEFINED,
    variants=(
        Variant(
            name="global to shared::cta",
            slots=(space("dst", "shared::cta", "8.6"), space("src", "global"), MBARRIER, CACHE_HINT),
            args=(_DST, _SRC, _SIZE, _MBAR, CACHE_POLICY),
            lower=_copy,
            completion="mbarrier",
            ptx="8.6",
            undefined=("the destination is not in the executing CTA",),
        ),
        Variant(
            name="global to shared::cluster",
            slots=(space("dst", "shared::cluster"), space("src", "global"), MBARRIER, MULTICAST, CACHE_HINT),
            args=(_DST, _SRC, _SIZE, _MBAR, CTA_MASK, CACHE_POLICY),
            lower=_copy,
            completion="mbarrier",
        ),
        Variant(
            name="shared::cta to shared::cluster",
            slots=(space("dst", "shared::cluster"), space("src", "shared::cta"), MBARRIER),
            args=(_DST, _SRC, _SIZE, _MBAR),
            lower=_copy,
            completion="mbarrier",
            undefined=("the destination is in the executing CTA",),
        ),
        Variant(
            name="shared::cta to global",
            slots=(
                space("dst", "global"),
                space("src", "shared::cta"),
                GROUP,
                CACHE_HINT,
                Slot("cp_mask", ("cp_mask",), optional=True, needs={"cp_mask": SM_100}, ptx={"cp_mask": "8.6"}),
            ),
            args=(_DST, _SRC, _SIZE, CACHE_POLICY, Arg("byteMask", "src", "u16", when=is_given("cp_mask"))),
            lower=_copy,
            completion="bulk async-group",
        ),
    ),
)

CLUSTER_REDUCTIONS: dict[str, tuple[str, ...]] = {
    "add": ("u32", "s32", "u64"),
    "min": ("u32", "s32"),
    "max": ("u32", "s32"),
    "inc": ("u32",),
    "dec": ("u32",),
    "and": ("b32",),
    "or": ("b32",),
    "xor": ("b32",),
}
GLOBAL_REDUCTIONS: dict[str, tuple[str, ...]] = {
    "add": ("u32", "s32", "u64", "f32", "f64", "f16", "bf16"),
    "min": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "max": ("u32", "s32", "u64", "s64", "f16", "bf16"),
    "inc": ("u32",),
    "dec": ("u32",),
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
}
"""The tables of ``cp.reduce.async.bulk`` (PTX ISA 9.7.9.25.4.2)."""


def _types(table: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(type_name for row in table.values() for type_name in row))


REDUCE = Family(
    name="cp.reduce.async.bulk",
    section="9.7.9.25.4.2",
    title="bulk reduction",
    ptx="8.0",
    needs=SM_90,
    proxy="async",
    undefined=_UNDEFINED,
    variants=(
        Variant(
            name="shared::cta to shared::cluster",
            slots=(
                space("dst", "shared::cluster"),
                space("src", "shared::cta"),
                MBARRIER,
                Slot("redOp", tuple(CLUSTER_REDUCTIONS)),
                Slot("type", ("b32", "u32", "s32", "b64", "u64"), kind="type"),
            ),
            args=(_DST, _SRC, _SIZE, _MBAR),
            rules=(pairs("redOp", "type", CLUSTER_REDUCTIONS),),
            lower=_copy,
            completion="mbarrier",
        ),
        Variant(
            name="shared::cta to global",
            slots=(
                space("dst", "global"),
                space("src", "shared::cta"),
                GROUP,
                CACHE_HINT,
                Slot("redOp", tuple(GLOBAL_REDUCTIONS)),
                Slot("noftz", ("noftz",), optional=True),
                Slot("type", _types(GLOBAL_REDUCTIONS), kind="type"),
            ),
            args=(_DST, _SRC, _SIZE, CACHE_POLICY),
            rules=(
                pairs("redOp", "type", GLOBAL_REDUCTIONS),
                Rule(
                    lambda q: ("noftz" in q) == (q["redOp"] == "add" and q["type"] in ("f16", "bf16")),
                    "noftz",
                    "'.noftz' goes with '.add' of '.f16' and '.bf16', and only with those",
                    lambda q: ".add.noftz" if q["type"] in ("f16", "bf16") and q["redOp"] == "add" else "no .noftz",
                ),
            ),
            lower=_copy,
            completion="bulk async-group",
        ),
    ),
)


def _prefetch(match: Match) -> Op:
    return Prefetch(src=address(match.args["srcMem"]), size=value(match.args["size"]), **match.common)


PREFETCH = Family(
    name="cp.async.bulk.prefetch",
    section="9.7.9.25.4.3",
    title="bulk prefetch into the L2 cache",
    ptx="8.0",
    needs=SM_90,
    proxy="async",
    undefined=("size is not a multiple of 16",),
    variants=(
        Variant(
            slots=(Slot("level", ("L2",)), space("src", "global"), CACHE_HINT),
            args=(_SRC, _SIZE, CACHE_POLICY),
            lower=_prefetch,
        ),
    ),
)


def _commit(match: Match) -> Op:
    return Commit(family="bulk", **match.common)


def _wait(match: Match) -> Op:
    return WaitGroup(family="bulk", pending=value(match.args["N"]), read="read" in match.q, **match.common)


COMMIT = Family(
    name="cp.async.bulk.commit_group",
    section="9.7.9.27.2.1",
    title="close a group of bulk operations",
    ptx="8.0",
    needs=SM_90,
    variants=(Variant(lower=_commit),),
)
WAIT = Family(
    name="cp.async.bulk.wait_group",
    section="9.7.9.27.2.2",
    title="wait until at most N bulk groups are pending",
    ptx="8.0",
    needs=SM_90,
    variants=(
        Variant(
            slots=(Slot("read", ("read",), optional=True),),
            args=(Arg("N", "imm", low=0, high=2**31 - 1),),
            lower=_wait,
        ),
    ),
)

FAMILIES = (BULK, REDUCE, PREFETCH, COMMIT, WAIT)

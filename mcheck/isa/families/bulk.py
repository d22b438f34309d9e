"""Bulk asynchronous copies, reductions and prefetches, and their groups (PTX ISA 9.7.9.25.4, 9.7.9.27.2)."""

from __future__ import annotations

from mcheck.ir.expr import Const
from mcheck.ir.ops import BulkCopy, Commit, Multimem, Op, Prefetch, WaitGroup
from mcheck.isa.families.common import (
    CACHE_HINT,
    CACHE_POLICY,
    SM_90,
    SM_100,
    address,
    is_given,
    one_of,
    optional_value,
    pairs,
    require_scope_with_order,
    scope_slot,
    unsupported,
    value,
)
from mcheck.isa.kinds import Kind
from mcheck.isa.schema import Arg, Family, Match, Qualifiers, Rule, Slot, Variant

MBARRIER = Slot("completion_mechanism", ("mbarrier::complete_tx::bytes",))
GROUP = Slot("completion_mechanism", ("bulk_group",))
MULTICAST = Slot(
    "multicast",
    ("multicast::cluster", "multicast::cluster::16b", "multicast::cluster::32b"),
    optional=True,
    needs={"multicast::cluster::32b": ("sm_107f",)},
    ptx={"multicast::cluster::16b": "9.4", "multicast::cluster::32b": "9.4"},
    unmodelled=("multicast::cluster::32b",),
)
CTA_MASK = Arg("ctaMask", "src", "u16", when=lambda q: q.get("multicast", "multicast::cluster::32b")[-3:] != "32b")
WIDE_CTA_MASK = Arg("ctaMask32", "src", "u32", when=one_of("multicast", "multicast::cluster::32b"))
"""``.multicast::cluster`` is ``::16b``: the mask has a bit per CTA of the cluster (PTX ISA 9.4, 9.7.10.28.4.1)."""


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


_WEAK = Slot("sem", ("weak",), optional=True, ptx={"weak": "9.3"})
_RELAXED = Slot("sem", ("relaxed",), ptx={"relaxed": "9.3"})
_B128 = Slot("type", ("b128",), kind="type", ptx={"b128": "9.3"})
"""The elements of a strong copy."""
_STRONG_TARGETS = ("sm_90a", "sm_100f", "sm_110f")
"""Where strong copies are (PTX ISA 9.4, 9.7.10.28.4.1). The assembler, and so the table, holds only those to it that go
from global memory to another CTA."""

_REPORTS = (
    "mbarrier::report::disabled",
    *(f"mbarrier::report::validity::per_16bytes::{pattern}" for pattern in ("80000000", "8000", "80", "8")),
    "mbarrier::report::validity::per_element::ff",
)
REPORT = Slot(
    "report_mechanism",
    _REPORTS,
    optional=True,
    needs=dict.fromkeys(_REPORTS, ("sm_107f",)),
    ptx=dict.fromkeys(_REPORTS, "9.4"),
    unmodelled=_REPORTS[1:],
)
"""What a copy reports to an mbarrier of layout v1 (PTX ISA 9.4, 9.7.15.16.10)."""

_CP_MASK = Slot("cp_mask", ("cp_mask",), optional=True, needs={"cp_mask": SM_100}, ptx={"cp_mask": "8.6"})
_BYTE_MASK = Arg("byteMask", "src", "u16", when=is_given("cp_mask"))
_IGNORE_OOB = Slot("ignore_oob", ("ignore_oob",), optional=True, ptx={"ignore_oob": "9.2"})
_IGNORED = tuple(Arg(f"ignoreBytes{side}", "src", "u32", when=is_given("ignore_oob")) for side in ("Left", "Right"))


def _is_modelled(match: Match) -> bool:
    """Copies of bytes that all have a value; strong ones of whole elements (Q40). Reductions of gpu and sys scope,
    which are the scopes that they have by default, and of ``.f32`` those that flush subnormals.
    """
    q = match.q
    ignored = [value(match.args[arg.name]) for arg in _IGNORED if arg.name in match.args]
    return (
        not ("noftz" in q and q["type"] == "f32")
        and all(expr == Const(0) for expr in ignored)
        and not (q.get("sem") == "relaxed" and "cp_mask" in q)
        and ("redOp" not in q or q.get("scope", "gpu") in ("gpu", "sys"))
    )


def _copy(match: Match) -> Op:
    q, args = match.q, match.args
    if not _is_modelled(match):
        return unsupported(match)
    at_copies = match.family.kind is Kind.MULTIMEM_COPY
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
        scope=q.get("scope", "sys" if at_copies and "redOp" in q else None),
        multimem=Multimem() if at_copies else None,
        **match.common,
    )


def _directions(strong: bool) -> tuple[Variant, ...]:
    """The four directions of a copy, weak or strong."""
    kind = "strong, " if strong else ""

    def slots(scopes: tuple[str, ...], *rest: Slot) -> tuple[Slot, ...]:
        return (_RELAXED, scope_slot(*scopes), *rest, _B128) if strong else (_WEAK, *rest)

    return (
        Variant(
            name=f"{kind}global to shared::cta",
            slots=slots(
                (),
                space("dst", "shared::cta", "8.6"),
                space("src", "global"),
                MBARRIER,
                REPORT,
                CACHE_HINT,
                _IGNORE_OOB,
            ),
            args=(_DST, _SRC, _SIZE, *_IGNORED, _MBAR, CACHE_POLICY),
            rules=(
                Rule(
                    lambda q: "ignore_oob" not in q or q.get("report_mechanism") not in REPORT.unmodelled,
                    "report_mechanism",
                    "'.{report_mechanism}' does not go with '.ignore_oob'",
                    ".mbarrier::report::disabled",
                ),
            ),
            lower=_copy,
            completion="mbarrier",
            ptx="8.6",
            undefined=("the destination is not in the executing CTA",),
        ),
        Variant(
            name=f"{kind}global to shared::cluster",
            slots=slots(
                (), space("dst", "shared::cluster"), space("src", "global"), MBARRIER, REPORT, MULTICAST, CACHE_HINT
            ),
            args=(_DST, _SRC, _SIZE, _MBAR, CTA_MASK, WIDE_CTA_MASK, CACHE_POLICY),
            lower=_copy,
            completion="mbarrier",
            needs=_STRONG_TARGETS if strong else (),
        ),
        Variant(
            name=f"{kind}shared::cta to shared::cluster",
            slots=slots(("cta", "cluster"), space("dst", "shared::cluster"), space("src", "shared::cta"), MBARRIER),
            args=(_DST, _SRC, _SIZE, _MBAR),
            lower=_copy,
            completion="mbarrier",
            undefined=("the destination is in the executing CTA",),
        ),
        Variant(
            name=f"{kind}shared::cta to global",
            slots=slots(
                (),
                space("dst", "global"),
                space("src", "shared::cta"),
                GROUP,
                CACHE_HINT,
                _CP_MASK,
            ),
            args=(_DST, _SRC, _SIZE, CACHE_POLICY, _BYTE_MASK),
            lower=_copy,
            completion="bulk async-group",
        ),
    )


BULK = Family(
    name="cp.async.bulk",
    kind=Kind.BULK_COPY,
    section="9.7.9.25.4.1",
    title="bulk copy",
    ptx="8.0",
    needs=SM_90,
    proxy="async",
    undefined=_UNDEFINED,
    variants=(*_directions(strong=False), *_directions(strong=True)),
)

_ADDRESSES = ("the destination is not a multimem address", *_UNDEFINED)

MULTIMEM_BULK = Family(
    name="multimem.cp.async.bulk",
    kind=Kind.MULTIMEM_COPY,
    section="9.7.9.25.4.4",
    title="bulk copy to the copies on several GPUs",
    ptx="9.1",
    needs=SM_90,
    proxy="async",
    completion="bulk async-group",
    undefined=_ADDRESSES,
    variants=tuple(
        Variant(
            name="strong, shared::cta to global" if rest else "shared::cta to global",
            slots=(*order, space("dst", "global"), space("src", "shared::cta"), GROUP, _CP_MASK, *rest),
            args=(_DST, _SRC, _SIZE, _BYTE_MASK),
            lower=_copy,
        )
        for order, rest in (((_WEAK,), ()), ((_RELAXED, scope_slot()), (_B128,)))
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


_OPTIONAL_RELAXED = Slot("sem", ("relaxed",), optional=True, ptx={"relaxed": "9.3"})
_ANY_SCOPE = scope_slot(optional=True)
_CLUSTER_SCOPE = scope_slot("cta", "cluster", optional=True)


def _keeps_subnormals(q: Qualifiers) -> bool:
    """May ``.noftz`` be written (of ``.f32`` from PTX 9.4 on)?"""
    return q["redOp"] == "add" and q["type"] in ("f16", "bf16", "f32")


_GLOBAL_REDUCTION = (
    Slot("redOp", tuple(GLOBAL_REDUCTIONS)),
    Slot("noftz", ("noftz",), optional=True),
    Slot("type", _types(GLOBAL_REDUCTIONS), kind="type"),
)
_GLOBAL_RULES = (
    pairs("redOp", "type", GLOBAL_REDUCTIONS),
    *require_scope_with_order(_OPTIONAL_RELAXED, _ANY_SCOPE),
    Rule(
        lambda q: _keeps_subnormals(q) or "noftz" not in q,
        "noftz",
        "'.noftz' goes with '.add' of '.f16', '.bf16' and '.f32', and only with those",
        "no .noftz",
    ),
    Rule(
        lambda q: "noftz" in q or q["type"] == "f32" or not _keeps_subnormals(q),
        "noftz",
        "'.add' of '.{type}' needs '.noftz'",
        ".add.noftz",
    ),
)

REDUCE = Family(
    name="cp.reduce.async.bulk",
    kind=Kind.BULK_REDUCTION,
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
                _OPTIONAL_RELAXED,
                _CLUSTER_SCOPE,
                space("dst", "shared::cluster"),
                space("src", "shared::cta"),
                MBARRIER,
                Slot("redOp", tuple(CLUSTER_REDUCTIONS)),
                Slot("type", ("b32", "u32", "s32", "b64", "u64"), kind="type"),
            ),
            args=(_DST, _SRC, _SIZE, _MBAR),
            rules=(
                pairs("redOp", "type", CLUSTER_REDUCTIONS),
                *require_scope_with_order(_OPTIONAL_RELAXED, _CLUSTER_SCOPE),
            ),
            lower=_copy,
            completion="mbarrier",
        ),
        Variant(
            name="shared::cta to global",
            slots=(
                _OPTIONAL_RELAXED,
                _ANY_SCOPE,
                space("dst", "global"),
                space("src", "shared::cta"),
                GROUP,
                CACHE_HINT,
                *_GLOBAL_REDUCTION,
            ),
            args=(_DST, _SRC, _SIZE, CACHE_POLICY),
            rules=_GLOBAL_RULES,
            lower=_copy,
            completion="bulk async-group",
        ),
    ),
)


MULTIMEM_REDUCE = Family(
    name="multimem.cp.reduce.async.bulk",
    kind=Kind.MULTIMEM_COPY,
    section="9.7.9.25.4.5",
    title="bulk reduction at the copies on several GPUs",
    ptx="9.1",
    needs=SM_90,
    proxy="async",
    completion="bulk async-group",
    undefined=_ADDRESSES,
    variants=(
        Variant(
            slots=(
                _OPTIONAL_RELAXED,
                _ANY_SCOPE,
                space("dst", "global"),
                space("src", "shared::cta"),
                GROUP,
                *_GLOBAL_REDUCTION,
            ),
            args=(_DST, _SRC, _SIZE),
            rules=_GLOBAL_RULES,
            lower=_copy,
        ),
    ),
)


KEPT_OR_HINT = Slot(
    "cache_hint",
    ("L2::cache_hint", "L2::evict_last"),
    optional=True,
    needs={"L2::evict_last": ("sm_107f",)},
    ptx={"L2::evict_last": "9.4"},
)
KEPT_POLICY = Arg("cache-policy", "src", "u64", when=one_of("cache_hint", "L2::cache_hint"))


def _prefetch(match: Match) -> Op:
    return Prefetch(src=address(match.args["srcMem"]), size=value(match.args["size"]), **match.common)


PREFETCH = Family(
    name="cp.async.bulk.prefetch",
    kind=Kind.BULK_PREFETCH,
    section="9.7.9.25.4.3",
    title="bulk prefetch into the L2 cache",
    ptx="8.0",
    needs=SM_90,
    proxy="async",
    undefined=("size is not a multiple of 16",),
    variants=(
        Variant(
            slots=(Slot("level", ("L2",)), space("src", "global"), KEPT_OR_HINT),
            args=(_SRC, _SIZE, KEPT_POLICY),
            lower=_prefetch,
        ),
    ),
)


def _commit(match: Match) -> Op:
    return Commit(family="bulk", **match.common)


_RESTRICTIONS = ("sync_restrict::proxy::async", "sync_restrict::shared::cta", "sync_restrict::shared::cluster")
"""What a wait for one of the spaces orders has no text that we know (open question Q38)."""


def _wait(match: Match) -> Op:
    restrict = match.q.get("restrict", "").removeprefix("sync_restrict::")
    pending, read = value(match.args["N"]), "read" in match.q
    return WaitGroup(family="bulk", pending=pending, read=read, restrict=restrict or None, **match.common)


COMMIT = Family(
    name="cp.async.bulk.commit_group",
    kind=Kind.COPY_GROUP,
    section="9.7.9.27.2.1",
    title="close a group of bulk operations",
    ptx="8.0",
    needs=SM_90,
    variants=(Variant(lower=_commit),),
)
WAIT = Family(
    name="cp.async.bulk.wait_group",
    kind=Kind.COPY_GROUP,
    section="9.7.9.27.2.2",
    title="wait until at most N bulk groups are pending",
    ptx="8.0",
    needs=SM_90,
    variants=(
        Variant(
            slots=(
                Slot("read", ("read",), optional=True),
                Slot(
                    "restrict",
                    _RESTRICTIONS,
                    optional=True,
                    ptx=dict.fromkeys(_RESTRICTIONS, "9.5"),
                    unmodelled=_RESTRICTIONS[1:],
                ),
            ),
            rules=(
                Rule(
                    lambda q: "read" not in q or q.get("restrict") != "sync_restrict::proxy::async",
                    "restrict",
                    "'.{restrict}' does not go with '.read'",
                    "no .read",
                ),
            ),
            args=(Arg("N", "imm", low=0, high=2**31 - 1),),
            lower=_wait,
        ),
    ),
)

FAMILIES = (BULK, MULTIMEM_BULK, REDUCE, MULTIMEM_REDUCE, PREFETCH, COMMIT, WAIT)

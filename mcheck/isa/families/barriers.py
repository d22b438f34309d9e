"""Barriers of the CTA, the cluster and the warp (PTX ISA 9.7.13.1 to 9.7.13.3)."""

from __future__ import annotations

from collections.abc import Callable

from mcheck.ir.ops import Barrier, ClusterBarrier, Op, WarpSync
from mcheck.isa.families.common import SM_90, optional_value, register, value
from mcheck.isa.kinds import Kind
from mcheck.isa.schema import Arg, Family, Match, Slot, Variant

_A = Arg("a", "src", "u32", low=0, high=15)
_B = Arg("b", "src", "u32", optional=True)
_CTA = Slot("cta", ("cta",), optional=True, kind="name", ptx={"cta": "7.8"})
_ALIGNED = Slot("aligned", ("aligned",), optional=True)


def _barrier(always_aligned: bool) -> Callable[[Match], Op]:
    def lower(match: Match) -> Op:
        q, args = match.q, match.args
        kind = q["kind"]
        return Barrier(
            kind=kind,
            barrier=value(args["a"]),
            count=optional_value(match, "b"),
            aligned=always_aligned or "aligned" in q,
            red_op=q.get("op"),
            dst=register(args.get("d")),
            src=optional_value(match, "c"),
            **match.common,
        )

    return lower


def _family(name: str, always_aligned: bool) -> Family:
    lower = _barrier(always_aligned)
    aligned = () if always_aligned else (_ALIGNED,)
    needs = () if always_aligned else ("sm_30",)
    return Family(
        name=name,
        kind=Kind.BARRIER,
        section="9.7.13.1",
        title="barrier of the CTA",
        ptx="2.0" if always_aligned else "6.0",
        needs=needs,
        undefined=("a count that is not a multiple of the warp size", "red mixed with sync or arrive on one barrier"),
        variants=(
            Variant(name="sync", slots=(_CTA, Slot("kind", ("sync",)), *aligned), args=(_A, _B), lower=lower),
            Variant(
                name="arrive",
                kind=Kind.BARRIER_ARRIVAL,
                slots=(_CTA, Slot("kind", ("arrive",), kind="name"), *aligned),
                args=(_A, Arg("b", "src", "u32")),
                lower=lower,
            ),
            Variant(
                name="count",
                kind=Kind.BARRIER_REDUCTION,
                slots=(
                    _CTA,
                    Slot("kind", ("red",), kind="name"),
                    Slot("op", ("popc",)),
                    *aligned,
                    Slot("type", ("u32",), kind="type"),
                ),
                args=(Arg("d", "dst", "u32"), _A, _B, Arg("c", "pred")),
                lower=lower,
            ),
            Variant(
                name="vote",
                kind=Kind.BARRIER_REDUCTION,
                slots=(
                    _CTA,
                    Slot("kind", ("red",), kind="name"),
                    Slot("op", ("and", "or")),
                    *aligned,
                    Slot("type", ("pred",), kind="type"),
                ),
                args=(Arg("d", "dst", "pred"), _A, _B, Arg("c", "pred")),
                lower=lower,
            ),
        ),
    )


def _cluster(match: Match) -> Op:
    q = match.q
    kind = q["kind"]
    default = "release" if kind == "arrive" else "acquire"
    return ClusterBarrier(kind=kind, sem=q.get("sem", default), aligned="aligned" in q, **match.common)


CLUSTER = Family(
    name="barrier.cluster",
    kind=Kind.CLUSTER_WAIT,
    section="9.7.13.3",
    title="barrier of the cluster",
    ptx="7.8",
    needs=SM_90,
    undefined=("a thread arrives twice in one phase", "a thread waits without having arrived"),
    variants=(
        Variant(
            name="arrive",
            kind=Kind.CLUSTER_ARRIVAL,
            slots=(
                Slot("kind", ("arrive",), kind="name"),
                Slot("sem", ("release", "relaxed"), optional=True),
                _ALIGNED,
            ),
            lower=_cluster,
        ),
        Variant(
            name="wait",
            slots=(Slot("kind", ("wait",), kind="name"), Slot("sem", ("acquire",), optional=True), _ALIGNED),
            lower=_cluster,
        ),
    ),
)


def _warp(match: Match) -> Op:
    return WarpSync(mask=value(match.args["membermask"]), **match.common)


WARP = Family(
    name="bar.warp.sync",
    kind=Kind.WARP_BARRIER,
    section="9.7.13.2",
    title="barrier of the lanes of a warp",
    ptx="6.0",
    needs=("sm_30",),
    undefined=("the executing lane is not in the mask",),
    variants=(Variant(args=(Arg("membermask", "src", "u32"),), lower=_warp),),
)

FAMILIES = (_family("bar", True), _family("barrier", False), CLUSTER, WARP)

"""``fence``, ``membar`` and the proxy fences (PTX ISA 9.7.13.4)."""

from __future__ import annotations

from mcheck.ir.ops import Fence, Op, ProxyFence
from mcheck.isa.families.common import SM_90, SM_100, address, scope_slot, unsupported, value
from mcheck.isa.kinds import Kind
from mcheck.isa.schema import Arg, Family, Match, Slot, Variant

SECTION = "9.7.13.4"
SM_70 = ("sm_70",)


def _fence(match: Match) -> Op:
    q = match.q
    return Fence(sem=q.get("sem", "acq_rel"), scope=q["scope"], **match.common)


def _restricted(match: Match) -> Op:
    q = match.q
    restrict = q["restrict"].removeprefix("sync_restrict::")
    return Fence(sem=q["sem"], scope=q["scope"], restrict=restrict, **match.common)


FENCE = Family(
    name="fence",
    kind=Kind.FENCE,
    section=SECTION,
    title="memory fence",
    ptx="6.0",
    needs=SM_70,
    variants=(
        Variant(
            slots=(
                Slot(
                    "sem",
                    ("sc", "acq_rel", "acquire", "release"),
                    optional=True,
                    needs={"acquire": SM_90, "release": SM_90},
                    ptx={"acquire": "8.6", "release": "8.6"},
                ),
                scope_slot(),
            ),
            lower=_fence,
        ),
        Variant(
            name="mbarrier_init",
            slots=(Slot("restrict", ("mbarrier_init",)), Slot("sem", ("release",)), Slot("scope", ("cluster",))),
            lower=_restricted,
            needs=SM_90,
            ptx="8.0",
        ),
        Variant(
            name="release of shared::cta objects",
            slots=(
                Slot("sem", ("release",)),
                Slot("restrict", ("sync_restrict::shared::cta",)),
                Slot("scope", ("cluster",)),
            ),
            lower=_restricted,
            needs=SM_90,
            ptx="8.6",
        ),
        Variant(
            name="acquire of shared::cluster objects",
            slots=(
                Slot("sem", ("acquire",)),
                Slot("restrict", ("sync_restrict::shared::cluster",)),
                Slot("scope", ("cluster",)),
            ),
            lower=_restricted,
            needs=SM_90,
            ptx="8.6",
        ),
        Variant(
            name="release of reads of aliases",
            slots=(
                Slot("kind", ("alias",)),
                Slot("sem", ("release",)),
                Slot("restrict", ("sync_restrict::read",)),
                Slot("scope", ("sys",)),
            ),
            lower=unsupported,
            needs=SM_90,
            ptx="9.5",
        ),
    ),
)

_MEMBAR = {"cta": "cta", "gl": "gpu", "sys": "sys"}


def _membar(match: Match) -> Op:
    return Fence(sem="sc", scope=_MEMBAR[match.q["level"]], **match.common)


MEMBAR = Family(
    name="membar",
    kind=Kind.FENCE,
    section=SECTION,
    title="memory barrier, the older name of fence.sc",
    ptx="1.4",
    variants=(Variant(slots=(Slot("level", ("cta", "gl", "sys")),), lower=_membar),),
)


def _alias(match: Match) -> Op:
    return ProxyFence(kind="alias", **match.common)


def _async(match: Match) -> Op:
    space = match.q.get("space")
    return ProxyFence(kind="async", spaces=frozenset((space,) if space else ()), **match.common)


def _half(match: Match) -> Op:
    q, args = match.q, match.args
    restrict = q.get("restrict")
    return ProxyFence(
        kind=q["kind"].split("::")[0],
        half=q["half"],
        scope=q["scope"],
        restrict=restrict.removeprefix("sync_restrict::") if restrict else None,
        address=address(args["addr"]) if "addr" in args else None,
        size=value(args["size"]) if "size" in args else None,
        **match.common,
    )


def _proxy_variants(spaces: bool) -> tuple[Variant, ...]:
    return (
        Variant(name="alias", slots=(Slot("kind", ("alias",)),), lower=_alias, needs=SM_70, ptx="7.5"),
        Variant(
            name="async",
            slots=(
                Slot("kind", ("async",)),
                *((Slot("space", ("global", "shared::cta", "shared::cluster"), optional=True, kind="space"),) * spaces),
            ),
            lower=_async,
            needs=SM_90,
            ptx="8.0",
            proxy="async",
        ),
    )


_TENSORMAP = Slot("kind", ("tensormap::generic",))
_ASYNC_HALF = Slot("kind", ("async::generic",))

PROXY = Family(
    name="fence.proxy",
    kind=Kind.PROXY_FENCE,
    section=SECTION,
    title="proxy fence",
    ptx="7.5",
    needs=SM_70,
    undefined=("the address of a tensormap acquire is not in global memory",),
    variants=(
        *_proxy_variants(spaces=True),
        Variant(
            name="tensormap release",
            slots=(_TENSORMAP, Slot("half", ("release",)), scope_slot()),
            lower=_half,
            needs=SM_90,
            ptx="8.3",
            proxy="tensormap",
        ),
        Variant(
            name="tensormap acquire",
            slots=(_TENSORMAP, Slot("half", ("acquire",)), scope_slot()),
            args=(Arg("addr", "mem"), Arg("size", "imm", values=(128,))),
            lower=_half,
            needs=SM_90,
            ptx="8.3",
            proxy="tensormap",
        ),
        Variant(
            name="one-way alias",
            slots=(Slot("kind", ("alias",)), Slot("half", ("acquire", "release")), Slot("scope", ("sys",))),
            lower=_half,
            needs=SM_90,
            ptx="9.4",
        ),
        Variant(
            name="fabric",
            slots=(
                Slot("kind", ("generic::fabric", "fabric::generic", "fabric::fabric")),
                Slot("alias", ("alias",)),
                Slot("half", ("acquire", "release")),
                Slot("scope", ("sys",)),
            ),
            lower=unsupported,
            needs=SM_100,
            ptx="9.3",
            proxy="fabric",
        ),
        Variant(
            name="async release of reads",
            slots=(
                _ASYNC_HALF,
                Slot("half", ("release",)),
                Slot("restrict", ("sync_restrict::shared::cluster::read",)),
                Slot("scope", ("cta", "cluster"), unmodelled=("cta",)),  # no text says what a narrower one is for
            ),
            lower=_half,
            needs=SM_90,
            ptx="9.4",
            proxy="async",
        ),
        Variant(
            name="async acquire",
            slots=(
                _ASYNC_HALF,
                Slot("half", ("acquire",)),
                Slot("restrict", ("sync_restrict::shared::cluster",)),
                Slot("scope", ("cluster",)),
            ),
            lower=_half,
            needs=SM_90,
            ptx="8.6",
            proxy="async",
        ),
        Variant(
            name="async release",
            slots=(
                _ASYNC_HALF,
                Slot("half", ("release",)),
                Slot("restrict", ("sync_restrict::shared::cta",)),
                Slot("scope", ("cluster",)),
            ),
            lower=_half,
            needs=SM_90,
            ptx="8.6",
            proxy="async",
        ),
    ),
)

MEMBAR_PROXY = Family(
    name="membar.proxy",
    kind=Kind.PROXY_FENCE,
    section=SECTION,
    title="proxy fence, the older name",
    ptx="7.5",
    needs=SM_70,
    variants=_proxy_variants(spaces=False),
)

FAMILIES = (FENCE, MEMBAR, PROXY, MEMBAR_PROXY)

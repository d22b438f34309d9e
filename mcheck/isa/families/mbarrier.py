"""The mbarrier instructions (PTX ISA 9.7.13.15).

Defaults: an arrive is ``.release.cta``, a wait ``.acquire.cta``, expect_tx and complete_tx are ``.relaxed``.
``.shared`` without a sub-qualifier is ``.shared::cta``; with no space at all the address is generic.
"""

from __future__ import annotations

from collections.abc import Callable

from mcheck.base.records import replace
from mcheck.ir.ops import (
    CpAsyncArrive,
    MbarrierArrive,
    MbarrierInit,
    MbarrierInval,
    MbarrierPending,
    MbarrierTx,
    MbarrierWait,
    Op,
)
from mcheck.isa.families.common import (
    SM_80,
    SM_90,
    address,
    optional_value,
    register,
    require_scope_with_order,
    unsupported,
    value,
)
from mcheck.isa.kinds import Kind
from mcheck.isa.schema import Arg, Family, Match, Qualifiers, Rule, Slot, Variant

_OWN = Slot("space", ("shared", "shared::cta"), optional=True, kind="space", ptx={"shared::cta": "7.8"})
_REMOTE = Slot(
    "space", ("shared::cluster",), kind="space", needs={"shared::cluster": SM_90}, ptx={"shared::cluster": "8.0"}
)
_ANY = Slot(
    "space", ("shared", "shared::cta", "shared::cluster"), optional=True, kind="space", needs={"shared::cluster": SM_90}
)
_B64 = Slot("type", ("b64",), kind="type")
_ADDR = Arg("addr", "mem", space="shared")
_SCOPE = Slot("scope", ("cta", "cluster"), optional=True, needs={"cluster": SM_90})

_LAYOUTS = ("layout::v0", "layout::v1")
_LAYOUT = Slot(
    "layout", _LAYOUTS, optional=True, needs=dict.fromkeys(_LAYOUTS, SM_90), ptx=dict.fromkeys(_LAYOUTS, "9.3")
)
"""Objects of layout v0 complete their primary and their conditional phase at once, and report nothing (PTX ISA 9.4,
9.7.15.16.5). One of v1 is not modelled, so what is asked of phases is asked of v0."""
_PHASES = ("phase_type::primary", "phase_type::conditional")

_RELAXED = Slot("sem", ("relaxed",), optional=True)

_NOT_VALID = "the address does not hold a valid mbarrier object"


def _space(q: Qualifiers) -> str:
    return "shared::cluster" if q.get("space") == "shared::cluster" else "shared::cta"


def _init(match: Match) -> Op:
    if match.q.get("layout") == "layout::v1":  # phases that reports hold back
        return unsupported(match)
    return MbarrierInit(address=address(match.args["addr"]), count=value(match.args["count"]), **match.common)


def _inval(match: Match) -> Op:
    return MbarrierInval(address=address(match.args["addr"]), **match.common)


def _tx(kind: str) -> Callable[[Match], Op]:
    def lower(match: Match) -> Op:
        return MbarrierTx(
            kind=kind,
            address=address(match.args["addr"]),
            tx=value(match.args["txCount"]),
            scope=match.q.get("scope", "cta"),
            space=_space(match.q),
            **match.common,
        )

    return lower


_MULTICAST = Slot(
    "multicast",
    ("multicast::cluster::32b",),
    needs={"multicast::cluster::32b": ("sm_107f",)},
    ptx={"multicast::cluster::32b": "9.4"},
)
_ANYWHERE = replace(_REMOTE, optional=True)
_MASK = Arg("ctaMask", "src", "u32")


def _transaction(kind: str, section: str) -> Family:
    return Family(
        name=f"mbarrier.{kind}_tx",
        kind=Kind.MBARRIER,
        section=section,
        title=f"{kind} transactions on the current phase",
        ptx="8.0",
        needs=SM_90,
        undefined=(_NOT_VALID, "the tx-count leaves its range"),
        variants=(
            Variant(
                slots=(_RELAXED, _SCOPE, _ANY, _B64),
                args=(_ADDR, Arg("txCount", "src", "u32")),
                rules=require_scope_with_order(_RELAXED, _SCOPE),
                lower=_tx(kind),
            ),
            Variant(
                name="multicast",
                slots=(_RELAXED, _SCOPE, _ANYWHERE, _MULTICAST, _B64),
                args=(_ADDR, Arg("txCount", "src", "u32"), _MASK),
                rules=require_scope_with_order(_RELAXED, _SCOPE),
                lower=unsupported,
            ),
        ),
    )


def _arrive(drop: bool) -> Callable[[Match], Op]:
    def lower(match: Match) -> Op:
        q, args = match.q, match.args
        return MbarrierArrive(
            address=address(args["addr"]),
            count=optional_value(match, "count"),
            tx=optional_value(match, "txCount"),
            drop=drop,
            no_complete="noComplete" in q,
            state=register(args.get("state")),
            sem=q.get("sem", "release"),
            scope=q.get("scope", "cta"),
            space=_space(q),
            **match.common,
        )

    return lower


def _arrivals(name: str, section: str) -> tuple[Family, Family]:
    """The plain family and the one with ``.expect_tx``, which the assembler takes for a part of the name."""
    drop = name == "arrive_drop"
    lower = _arrive(drop)
    sem = Slot("sem", ("release", "relaxed"), optional=True, needs={"relaxed": SM_90}, ptx={"relaxed": "8.6"})
    state, sink = Arg("state", "dst", "u64", sinkable=True), Arg("state", "sink")
    rules = require_scope_with_order(sem, _SCOPE)

    def forms(operand: Arg) -> tuple[Variant, ...]:
        """An arrival at an mbarrier of the CTA, of another one, of several."""
        order = sem, _SCOPE
        own = Variant(
            name="own barrier", slots=(*order, _OWN, _B64), args=(state, _ADDR, operand), rules=rules, lower=lower
        )
        remote = replace(
            own,
            name="remote barrier",
            slots=(*order, _REMOTE, _B64),
            args=(sink, _ADDR, operand),
            needs=SM_90,
            ptx="8.0",
        )
        multicast = Variant(
            name="multicast",
            slots=(*order, _ANYWHERE, _MULTICAST, _B64),
            args=(sink, _ADDR, operand, _MASK),
            rules=rules,
            lower=unsupported,
        )
        return own, remote, multicast

    not_completing = Variant(
        name="noComplete",
        slots=(
            Slot("noComplete", ("noComplete",)),
            Slot("sem", ("release",), optional=True),
            Slot("scope", ("cta",), optional=True),
            _OWN,
            _B64,
        ),
        args=(state, _ADDR, Arg("count", "src", "u32")),
        rules=rules,
        lower=lower,
    )
    plain = Family(
        name=f"mbarrier.{name}",
        kind=Kind.MBARRIER_ARRIVAL,
        section=section,
        title="arrive" + (" and leave the barrier" if drop else ""),
        ptx="7.0",
        needs=SM_80,
        undefined=(_NOT_VALID, "the pending count underflows", "noComplete completes the phase"),
        variants=(*forms(Arg("count", "src", "u32", optional=True, needs=SM_90)), not_completing),
    )
    expecting = replace(
        plain,
        name=f"{plain.name}.expect_tx",
        title="expect transactions, then " + plain.title,
        ptx="8.0",
        needs=SM_90,
        variants=forms(Arg("txCount", "src", "u32")),
    )
    return plain, expecting


def _wait(blocking: bool) -> Callable[[Match], Op]:
    def lower(match: Match) -> Op:
        q, args = match.q, match.args
        return MbarrierWait(
            address=address(args["addr"]),
            dst=register(args["waitComplete"]),
            state=optional_value(match, "state"),
            parity=optional_value(match, "phaseParity"),
            blocking=blocking,
            sem=q.get("sem", "acquire"),
            scope=q.get("scope", "cta"),
            space="shared::cta",
            **match.common,
        )

    return lower


def _waits(name: str) -> tuple[Family, Family]:
    blocking = name == "try_wait"
    sem = Slot("sem", ("acquire", "relaxed"), optional=True, needs={"relaxed": SM_90}, ptx={"relaxed": "8.6"})
    hint = (Arg("suspendTimeHint", "src", "u32", optional=True),) if blocking else ()
    done = Arg("waitComplete", "wait", "pred")
    report = Arg("waitComplete|reportPredicate", "pair", "pred")
    rules: tuple[Rule, ...] = require_scope_with_order(sem, _SCOPE)
    lower = _wait(blocking)

    def phase(*legal: str, optional: bool = True) -> Slot:
        needs = dict.fromkeys(legal, SM_90)
        return Slot("phase_type", legal, optional=optional, needs=needs, ptx=dict.fromkeys(legal, "9.3"))

    def family(suffix: str, ptx: str, operand: Arg) -> Family:
        return Family(
            name=f"mbarrier.{name}{suffix}",
            kind=Kind.MBARRIER_WAIT,
            section="9.7.13.15.16",
            title=("wait for" if blocking else "test") + " the completion of a phase",
            ptx="7.8" if blocking else ptx,
            needs=SM_90 if blocking else SM_80,
            undefined=(_NOT_VALID, "the phase is neither the current one nor the one before"),
            variants=(
                Variant(
                    slots=(phase(*(_PHASES if suffix else _PHASES[:1])), sem, _SCOPE, _OWN, _B64),
                    args=(done, _ADDR, operand, *hint),
                    rules=rules,
                    lower=lower,
                ),
                Variant(
                    name="with its report",
                    slots=(phase(_PHASES[0], optional=False), sem, _SCOPE, _OWN, _B64),
                    args=(report, _ADDR, operand, *hint),
                    rules=rules,
                    lower=unsupported,
                ),
            ),
        )

    return family("", "7.0", Arg("state", "src", "u64")), family(".parity", "7.1", Arg("phaseParity", "src", "u32"))


def _pending(match: Match) -> Op:
    dst = register(match.args["count"])
    assert dst is not None
    return MbarrierPending(dst=dst, state=value(match.args["state"]), **match.common)


def _async_arrive(match: Match) -> Op:
    return CpAsyncArrive(address=address(match.args["addr"]), noinc="noinc" in match.q, **match.common)


FAMILIES = (
    Family(
        name="mbarrier.init",
        kind=Kind.MBARRIER,
        section="9.7.13.15.9",
        title="make an mbarrier object",
        ptx="7.0",
        needs=SM_80,
        undefined=("the location holds a valid mbarrier object", "count outside 1 to 2^20 - 1"),
        variants=(Variant(slots=(_LAYOUT, _OWN, _B64), args=(_ADDR, Arg("count", "src", "u32")), lower=_init),),
    ),
    Family(
        name="mbarrier.inval",
        kind=Kind.MBARRIER,
        section="9.7.13.15.10",
        title="end the life of an mbarrier object",
        ptx="7.0",
        needs=SM_80,
        undefined=(_NOT_VALID,),
        variants=(Variant(slots=(_OWN, _B64), args=(_ADDR,), lower=_inval),),
    ),
    _transaction("expect", "9.7.13.15.11"),
    _transaction("complete", "9.7.13.15.12"),
    *_arrivals("arrive", "9.7.13.15.13"),
    *_arrivals("arrive_drop", "9.7.13.15.14"),
    Family(
        name="cp.async.mbarrier.arrive",
        kind=Kind.COPY_ARRIVAL,
        section="9.7.13.15.15",
        title="arrive when all earlier cp.async of the thread are done",
        ptx="7.0",
        needs=SM_80,
        completion="mbarrier",
        undefined=(_NOT_VALID, "the pending count exceeds its maximum"),
        variants=(
            Variant(
                slots=(Slot("noinc", ("noinc",), optional=True), _OWN, _B64),
                args=(Arg("addr", "mem", space="$space", generic=("global", "shared")),),
                lower=_async_arrive,
            ),
        ),
    ),
    *_waits("test_wait"),
    *_waits("try_wait"),
    Family(
        name="mbarrier.pending_count",
        kind=Kind.MBARRIER,
        section="9.7.13.15.17",
        title="the pending count inside a state",
        ptx="7.0",
        needs=SM_80,
        undefined=("the state does not come from a noComplete arrive",),
        variants=(
            Variant(
                slots=(replace(_LAYOUT, values=("layout::v0",)), _B64),
                args=(Arg("count", "dst", "u32"), Arg("state", "src", "u64")),
                lower=_pending,
            ),
        ),
    ),
    Family(
        name="mbarrier.check_layout",
        kind=Kind.MBARRIER,
        section="9.7.13.15",
        title="ask for the layout of an mbarrier object",
        ptx="9.3",
        needs=SM_90,
        undefined=(_NOT_VALID,),
        variants=(
            Variant(
                slots=(replace(_LAYOUT, optional=False), _OWN, _B64),
                args=(Arg("p", "dst", "pred"), _ADDR),
                lower=unsupported,
            ),
        ),
    ),
)

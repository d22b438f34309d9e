"""``clusterlaunchcontrol``: a request to cancel a cluster that has not started, and what its response says (PTX ISA
9.7.13.17).

A response is four words here: the indices of the first CTA of the cluster, and whether there is one. The request copies
one from an object that holds all of them; ``mcheck.frontend.litmus.cancel_requests`` says which.
"""

from __future__ import annotations

from mcheck.ir.expr import Binary, Const, Expr, Name, Special
from mcheck.ir.memory import CANCEL_RESPONSES
from mcheck.ir.ops import Alu, BulkCopy, Op
from mcheck.isa.families.common import SM_100, address, registers, value
from mcheck.isa.instruction import Vector
from mcheck.isa.kinds import Kind
from mcheck.isa.schema import Arg, Family, Match, Slot, Variant

RESPONSE_BYTES = 16
_MULTICAST = ("sm_100a", "sm_110a", "sm_120a", "sm_100f", "sm_110f", "sm_120f")


def _request(match: Match) -> Op:
    everyone: Expr | None = None
    if "multicast" in match.q:
        everyone = Binary("-", Binary("<<", Const(1), Special("cluster_nctarank")), Const(1))
    return BulkCopy(
        dst=address(match.args["addr"]),
        src=Name(CANCEL_RESPONSES),
        size=Const(RESPONSE_BYTES),
        dst_space="shared::cluster" if everyone is not None else "shared::cta",
        src_space="global",
        mbar=address(match.args["mbar"]),
        cta_mask=everyone,
        **match.common,
    )


def _is_canceled(match: Match) -> Op:
    (found,) = registers(match.args["p"])
    return _words(match, None, None, None, found)


def _first_cta(match: Match) -> Op:
    assert isinstance(match.args["d"], Vector)
    x, y, z, _ = registers(match.args["d"])
    return _words(match, x, y, z, None)


def _one_index(match: Match) -> Op:
    (found,) = registers(match.args["d"])
    at = "xyz".index(match.q["index"][-1])
    return _words(match, *(found if k == at else None for k in range(4)))


def _words(match: Match, *found: object) -> Op:
    return Alu(op="unpack", type="b128", dsts=found, srcs=(value(match.args["response"]),), **match.common)  # type: ignore[arg-type]


_RESPONSE = Arg("response", "src", "b128")
_B32, _B128 = Slot("type", ("b32",), kind="type"), Slot("of", ("b128",), kind="type")

FAMILIES = (
    Family(
        name="clusterlaunchcontrol.try_cancel.async",
        kind=Kind.CANCEL_REQUEST,
        section="9.7.13.17.1",
        title="ask for a cluster that has not started, whose launch is cancelled then",
        ptx="8.6",
        needs=SM_100,
        completion="mbarrier",
        proxy="async",
        undefined=("a request after one that was seen to fail",),
        variants=(
            Variant(
                slots=(
                    Slot("space", ("shared::cta",), optional=True, kind="space"),
                    Slot("completion", ("mbarrier::complete_tx::bytes",)),
                    Slot(
                        "multicast",
                        ("multicast::cluster::all",),
                        optional=True,
                        needs={"multicast::cluster::all": _MULTICAST},
                    ),
                    Slot("type", ("b128",), kind="type"),
                ),
                args=(
                    Arg("addr", "mem", space="$space", generic=("shared",)),
                    Arg("mbar", "mem", space="$space", generic=("shared",)),
                ),
                lower=_request,
            ),
        ),
    ),
    Family(
        name="clusterlaunchcontrol.query_cancel",
        kind=Kind.CANCEL_QUERY,
        section="9.7.13.17.2",
        title="what the response to a request says",
        ptx="8.6",
        needs=SM_100,
        undefined=("the first CTA of a request that failed",),
        variants=(
            Variant(
                name="success",
                slots=(
                    Slot("asks", ("is_canceled",), kind="name"),
                    Slot("type", ("pred",), kind="type"),
                    _B128,
                ),
                args=(Arg("p", "dst", "pred"), _RESPONSE),
                lower=_is_canceled,
            ),
            Variant(
                name="first CTA",
                slots=(Slot("asks", ("get_first_ctaid",), kind="name"), Slot("vec", ("v4",)), _B32, _B128),
                args=(Arg("d", "dst", "b32", count=lambda _: 4, sinkable=True), _RESPONSE),
                lower=_first_cta,
            ),
            Variant(
                name="one index of the first CTA",
                slots=(
                    Slot("index", tuple(f"get_first_ctaid::{axis}" for axis in "xyz"), kind="name"),
                    _B32,
                    _B128,
                ),
                args=(Arg("d", "dst", "b32"), _RESPONSE),
                lower=_one_index,
            ),
        ),
    ),
)

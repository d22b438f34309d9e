"""``createpolicy``: a hint for the caches, without an effect on memory (PTX ISA 9.7.9.18)."""

from __future__ import annotations

from mcheck.ir.ops import Alu, Op
from mcheck.isa.families.common import SM_80, registers
from mcheck.isa.kinds import Kind
from mcheck.isa.schema import Arg, Family, Match, Slot, Variant

_PRIMARY = Slot("primary_priority", ("L2::evict_last", "L2::evict_normal", "L2::evict_first", "L2::evict_unchanged"))
_SECONDARY = Slot("secondary_priority", ("L2::evict_first", "L2::evict_unchanged"), optional=True)
_B64 = Slot("type", ("b64",), kind="type")
_POLICY = Arg("cache-policy", "dst", "u64")


def _policy(match: Match) -> Op:
    return Alu(op="opaque", type="b64", dsts=registers(match.args["cache-policy"]), srcs=(), **match.common)


FAMILIES = (
    Family(
        name="createpolicy",
        kind=Kind.QUERY,
        section="9.7.9.18",
        title="create a cache policy; no effect on memory",
        ptx="7.4",
        needs=SM_80,
        variants=(
            Variant(
                name="range",
                slots=(
                    Slot("range", ("range",), kind="name"),
                    Slot("space", ("global",), optional=True, kind="space"),
                    _PRIMARY,
                    _SECONDARY,
                    _B64,
                ),
                args=(
                    _POLICY,
                    Arg("a", "mem", space="$space", generic=("global",)),
                    Arg("primary-size", "src", "u32"),
                    Arg("total-size", "src", "u32"),
                ),
                lower=_policy,
            ),
            Variant(
                name="fraction",
                slots=(Slot("fractional", ("fractional",), kind="name"), _PRIMARY, _SECONDARY, _B64),
                args=(_POLICY, Arg("fraction", "src", "f32", optional=True)),
                lower=_policy,
            ),
            Variant(
                name="conversion",
                slots=(Slot("cvt", ("cvt",), kind="name"), Slot("cache", ("L2",), kind="name"), _B64),
                args=(_POLICY, Arg("access-property", "src", "u64")),
                lower=_policy,
            ),
        ),
    ),
)

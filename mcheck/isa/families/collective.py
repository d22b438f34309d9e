"""Instructions at which the lanes of a mask meet (PTX ISA 9.7.9.6, 9.7.13.9 to 9.7.13.14), and activemask."""

from __future__ import annotations

from collections.abc import Callable

from mcheck.ir.ops import Alu, Collective, Op
from mcheck.isa.families.common import SM_90, registers, unsupported, value
from mcheck.isa.kinds import Kind
from mcheck.isa.schema import Arg, Family, Match, Slot, Variant

_SYNC = Slot("sync", ("sync",))
_MASK = Arg("membermask", "src", "u32")
_A = Arg("a", "src", "$type")
OUTSIDE = ("the executing lane is not in the mask", "a lane of the mask executes another instruction or another mask")


def _lower(name: str, *sources: str) -> Callable[[Match], Op]:
    def lower(match: Match) -> Op:
        q = match.q
        found = registers(match.args["d|p"] if "d|p" in match.args else match.args["d"])
        return Collective(
            op=name + (f".{q['mode']}" if "mode" in q else ""),
            type=q.get("type", "b32"),
            dsts=(found[0], found[1] if len(found) > 1 else None),
            srcs=tuple(value(match.args[s]) for s in sources),
            mask=value(match.args["membermask"]),
            **match.common,
        )

    return lower


def _type(*values: str) -> Slot:
    return Slot("type", values, kind="type")


ELECT = Family(
    name="elect.sync",
    kind=Kind.ELECTION,
    section="9.7.13.14",
    title="elect one lane of the warp",
    ptx="8.0",
    needs=SM_90,
    undefined=OUTSIDE,
    variants=(Variant(args=(Arg("d|p", "elect", "b32"), _MASK), lower=_lower("elect")),),
)

SHFL = Family(
    name="shfl.sync",
    kind=Kind.SHUFFLE,
    section="9.7.9.6",
    title="take a value from another lane of the warp",
    ptx="6.0",
    needs=("sm_30",),
    undefined=OUTSIDE,
    variants=(
        Variant(
            slots=(Slot("mode", ("up", "down", "bfly", "idx")), _type("b32")),
            args=(
                Arg("d|p", "result", "b32"),
                _A,
                Arg("b", "src", "b32"),
                Arg("c", "src", "b32"),
                _MASK,
            ),
            lower=_lower("shfl", "a", "b", "c"),
        ),
    ),
)

VOTE = Family(
    name="vote.sync",
    kind=Kind.VOTE,
    section="9.7.13.9",
    title="vote of the lanes of the warp",
    ptx="6.0",
    needs=("sm_30",),
    undefined=OUTSIDE,
    variants=(
        Variant(
            name="predicate",
            slots=(Slot("mode", ("all", "any", "uni")), _type("pred")),
            args=(Arg("d", "dst", "pred"), Arg("a", "pred"), _MASK),
            lower=_lower("vote", "a"),
        ),
        Variant(
            name="ballot",
            slots=(Slot("mode", ("ballot",)), _type("b32")),
            args=(Arg("d", "dst", "b32"), Arg("a", "pred"), _MASK),
            lower=_lower("vote", "a"),
        ),
    ),
)

MATCH = Family(
    name="match",
    kind=Kind.MATCH,
    section="9.7.13.10",
    title="find the lanes of the warp with the same value",
    ptx="6.0",
    needs=("sm_70",),
    undefined=OUTSIDE,
    variants=(
        Variant(
            name="any",
            slots=(Slot("mode", ("any",)), _SYNC, _type("b32", "b64")),
            args=(Arg("d", "dst", "u32"), _A, _MASK),
            lower=_lower("match", "a"),
        ),
        Variant(
            name="all",
            slots=(Slot("mode", ("all",)), _SYNC, _type("b32", "b64")),
            args=(Arg("d|p", "result", "u32", sinkable=True), _A, _MASK),
            lower=_lower("match", "a"),
        ),
    ),
)

REDUX = Family(
    name="redux.sync",
    kind=Kind.WARP_REDUCTION,
    section="9.7.13.12",
    title="combine the values of the lanes of the warp",
    ptx="7.0",
    needs=("sm_80",),
    undefined=OUTSIDE,
    variants=(
        Variant(
            name="arithmetic",
            slots=(Slot("mode", ("add", "min", "max")), _type("u32", "s32")),
            args=(Arg("d", "dst", "$type"), _A, _MASK),
            lower=_lower("redux", "a"),
        ),
        Variant(
            name="bitwise",
            slots=(Slot("mode", ("and", "or", "xor")), _type("b32")),
            args=(Arg("d", "dst", "u32"), Arg("a", "src", "u32"), _MASK),
            lower=_lower("redux", "a"),
        ),
        Variant(
            name="floating point",
            slots=(
                Slot("mode", ("min", "max")),
                Slot("abs", ("abs",), optional=True),
                Slot("nan", ("NaN",), optional=True),
                _type("f32"),
            ),
            args=(Arg("d", "dst", "f32"), _A, _MASK),
            lower=unsupported,
            needs=("sm_100f",),
            ptx="8.6",
        ),
    ),
)


def _activemask(match: Match) -> Op:
    return Alu(op="activemask", type="b32", dsts=registers(match.args["d"]), srcs=(), **match.common)


ACTIVEMASK = Family(
    name="activemask",
    kind=Kind.ACTIVE_MASK,
    section="9.7.13.11",
    title="the lanes of the warp that happen to execute together; waits for none",
    ptx="6.2",
    needs=("sm_30",),
    variants=(Variant(slots=(_type("b32"),), args=(Arg("d", "dst", "b32"),), lower=_activemask),),
)

FAMILIES = (ELECT, SHFL, VOTE, MATCH, REDUX, ACTIVEMASK)

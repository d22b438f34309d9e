"""Integer arithmetic, logic, comparison, selection and moves (PTX ISA 9.7.1, 9.7.6, 9.7.8, 9.7.9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcheck.ir.alu import bounds, width
from mcheck.ir.ops import Alu, Op
from mcheck.isa.families.common import SM_90, SM_100, pairs, registers, uncomputed, unsupported, values
from mcheck.isa.kinds import Kind
from mcheck.isa.schema import Arg, Family, Match, Qualifiers, Rule, Slot, Variant

INT = ("u16", "u32", "u64", "s16", "s32", "s64")
SIGNED = ("s16", "s32", "s64")
BITS = ("b16", "b32", "b64")


def type_slot(*values: str, name: str = "type") -> Slot:
    return Slot(name, values, kind="type")


def _alu(op: str) -> Callable[[Match], Op]:
    """The lowering of an instruction that computes; its qualifiers for what it computes are part of the operation."""

    def lower(match: Match) -> Op:
        q, args = match.q, match.args
        modes = [q[slot] for slot in ("mode", "compare", "bool", "sat") if slot in q]
        return Alu(
            op=".".join((op, *modes)),
            type=q["type"],
            src_type=q.get("src_type"),
            dsts=registers(args["d" if "d" in args else "p"]),
            srcs=tuple(expr for name in ("a", "b", "c") if name in args for expr in values(args[name])),
            **match.common,
        )

    return lower


D = Arg("d", "dst", "$type")
A = Arg("a", "src", "$type")
B = Arg("b", "src", "$type")
C = Arg("c", "src", "$type")


def _binary(name: str, section: str, types: tuple[str, ...], *, sat: bool = False, floats: bool = True) -> Family:
    slots: tuple[Slot, ...] = (type_slot(*types),)
    rules: tuple[Rule, ...] = ()
    if sat:
        slots = (Slot("sat", ("sat",), optional=True), *slots)
        rules = (
            Rule(lambda q: "sat" not in q or q["type"] == "s32", "sat", "'.sat' does not go with '.{type}'", ".s32"),
        )
    variants = [Variant(slots=slots, args=(D, A, B), rules=rules, lower=_alu(name))]
    if name in ("add", "sub"):
        variants.append(_carries(D, A, B))
    if floats:
        variants.extend(_float(name, D, A, B))
    if name == "div":
        full = (Slot("rounding", ("full",), kind="name"), _FTZ, type_slot("f32"))
        variants.append(Variant(name="full range", slots=full, args=(D, A, B), lower=unsupported))
    if name in ("min", "max"):
        three = (*_FLOAT[name][0], type_slot("f32"))
        variants.append(
            Variant(name="three inputs", slots=three, args=(D, A, B, C), lower=unsupported, needs=SM_100, ptx="8.8")
        )
    return Family(name=name, kind=Kind.ARITHMETIC, section=section, title=f"integer {name}", variants=tuple(variants))


_ROUND = Slot("rounding", ("rn", "rz", "rm", "rp"))
_ROUNDING = Slot("rounding", _ROUND.values, optional=True)
_APPROX = Slot("rounding", ("rn", "rz", "rm", "rp", "approx"))
_FTZ = Slot("ftz", ("ftz",), optional=True)
_SAT = Slot("sat", ("sat",), optional=True)
_NAN = Slot("nan", ("NaN",), optional=True)

_FLOAT: dict[str, tuple[tuple[Slot, ...], tuple[Slot, ...]]] = {
    "add": ((_ROUNDING, _FTZ, _SAT), (_ROUNDING,)),
    "sub": ((_ROUNDING, _FTZ, _SAT), (_ROUNDING,)),
    "mul": ((_ROUNDING, _FTZ, _SAT), (_ROUNDING,)),
    "mad": ((_ROUND, _FTZ, _SAT), (_ROUND,)),
    "div": ((_APPROX, _FTZ), (_ROUND,)),
    "min": ((_FTZ, _NAN), ()),
    "max": ((_FTZ, _NAN), ()),
    "abs": ((_FTZ,), ()),
    "neg": ((_FTZ,), ()),
}
"""The qualifiers of the single and the double precision forms."""


def _float(name: str, *args: Arg) -> tuple[Variant, Variant]:
    """Floating point: recognised, so that the message is that it is not modelled."""
    single, double = _FLOAT[name]
    return (
        Variant(name="single precision", slots=(*single, type_slot("f32")), args=args, lower=uncomputed),
        Variant(name="double precision", slots=(*double, type_slot("f64")), args=args, lower=uncomputed),
    )


def _carries(*args: Arg, mode: tuple[Slot, ...] = ()) -> Variant:
    """What writes the carry flag (9.7.2): recognised, so that the message is that it is not modelled."""
    slots = (*mode, Slot("carry", ("cc",)), type_slot("u32", "s32", "u64", "s64"))
    return Variant(name="with a carry", slots=slots, args=args, lower=unsupported)


_WIDER = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}


def _multiply(name: str, section: str, args: tuple[Arg, ...]) -> Family:
    lower = _alu(name)
    mode = Slot("mode", ("hi", "lo"), kind="name")
    wide = tuple(
        Variant(
            name=f"wide {narrow}",
            slots=(Slot("mode", ("wide",), kind="name"), type_slot(narrow)),
            args=tuple(Arg(a.name, a.kind, _WIDER[narrow] if a.name in "dc" else narrow) for a in args),
            lower=lower,
        )
        for narrow in _WIDER
    )
    variants = [Variant(slots=(mode, type_slot(*INT)), args=args, lower=lower), *wide]
    if name == "mad":
        sat = Variant(
            name="saturating",
            slots=(Slot("mode", ("hi",), kind="name"), Slot("sat", ("sat",)), type_slot("s32")),
            args=args,
            lower=lower,
        )
        variants += sat, _carries(*args, mode=(mode,))
    variants.extend(_float(name, *args))
    return Family(name=name, kind=Kind.ARITHMETIC, section=section, title=f"integer {name}", variants=tuple(variants))


def _unary(name: str, section: str, types: tuple[str, ...], floats: bool) -> Family:
    variants = [Variant(slots=(type_slot(*types),), args=(D, A), lower=_alu(name))]
    if floats:
        variants.extend(_float(name, D, A))
    return Family(name=name, kind=Kind.ARITHMETIC, section=section, title=f"integer {name}", variants=tuple(variants))


_COMPARE = ("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs")
_BOOL = ("and", "or", "xor")
_COMPARE_TYPES = dict.fromkeys(("lt", "le", "gt", "ge"), INT) | dict.fromkeys(
    ("lo", "ls", "hi", "hs"), ("u16", "u32", "u64")
)


SETP = Family(
    name="setp",
    kind=Kind.COMPARISON,
    section="9.7.6.2",
    title="compare and set predicates",
    variants=(
        Variant(
            slots=(Slot("compare", _COMPARE), type_slot(*BITS, *INT)),
            args=(Arg("p", "pair"), A, B),
            rules=(pairs("compare", "type", _COMPARE_TYPES),),
            lower=_alu("setp"),
        ),
        Variant(
            name="combined with a predicate",
            slots=(Slot("compare", _COMPARE), Slot("bool", _BOOL), type_slot(*BITS, *INT)),
            args=(Arg("p", "pair"), A, B, Arg("c", "pred")),
            rules=(pairs("compare", "type", _COMPARE_TYPES),),
            lower=_alu("setp"),
        ),
        *(
            Variant(
                name="floating point",
                slots=(
                    Slot("compare", (*_COMPARE[:6], "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")),
                    *ftz,
                    type_slot(type_name),
                ),
                args=(Arg("p", "pair"), A, B),
                lower=unsupported,
            )
            for type_name, ftz in (("f32", (_FTZ,)), ("f64", ()))
        ),
    ),
)


SELP = Family(
    name="selp",
    kind=Kind.SELECTION,
    section="9.7.6.3",
    title="select by a predicate",
    variants=(
        Variant(
            slots=(type_slot(*BITS, *INT, "f32", "f64"),),
            args=(D, A, B, Arg("c", "pred")),
            lower=_alu("selp"),
        ),
    ),
)

SHL = Family(
    name="shl",
    kind=Kind.ARITHMETIC,
    section="9.7.8.8",
    title="shift left",
    variants=(Variant(slots=(type_slot(*BITS),), args=(D, A, Arg("b", "src", "u32")), lower=_alu("shl")),),
)
SHR = Family(
    name="shr",
    kind=Kind.ARITHMETIC,
    section="9.7.8.9",
    title="shift right, arithmetic for signed types",
    variants=(Variant(slots=(type_slot(*BITS, *INT),), args=(D, A, Arg("b", "src", "u32")), lower=_alu("shr")),),
)


_PARTS = {"b16": ("b8",), "b32": ("b16", "b8"), "b64": ("b32", "b16"), "b128": ("b64", "b32")}
"""The types that ``mov`` packs and unpacks, and those of their elements (9.7.9.4)."""
_OF_128_BITS: dict[str, Any] = {"needs": ("sm_70",), "ptx": "8.3"}


def _of_elements(whole: str, part: str) -> tuple[Variant, Variant]:
    """Packing and unpacking of one type, the first element lowest."""
    count = width(whole) // width(part)

    def variant(op: str, d: Arg, a: Arg) -> Variant:
        more = _OF_128_BITS if whole == "b128" else {}
        return Variant(name=f"{op} {count}", slots=(type_slot(whole),), args=(d, a), lower=_alu(op), **more)

    return (
        variant("pack", D, Arg("a", "src", part, count=lambda _: count)),
        variant("unpack", Arg("d", "dst", part, count=lambda _: count, sinkable=True), Arg("a", "src", whole)),
    )


MOV = Family(
    name="mov",
    kind=Kind.MOVE,
    section="9.7.9.3",
    title="set a register to a register, a constant, a special register or an address; pack and unpack registers",
    variants=(
        Variant(slots=(type_slot(*BITS, *INT, "f32", "f64"),), args=(D, A), lower=_alu("mov")),
        Variant(name="predicate", slots=(type_slot("pred"),), args=(D, Arg("a", "src", "pred")), lower=_alu("mov")),
        Variant(name="128 bits", slots=(type_slot("b128"),), args=(D, A), lower=_alu("mov"), **_OF_128_BITS),
        *(variant for whole, parts in _PARTS.items() for part in parts for variant in _of_elements(whole, part)),
    ),
)

_CVT_INT = ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64")


def _narrows(q: Qualifiers) -> bool:
    """Does the source type have values that the result type lacks? Only then may ``.sat`` be given."""
    (low, high), (source_low, source_high) = bounds(q["type"]), bounds(q["src_type"])
    return source_low < low or source_high > high


CVT = Family(
    name="cvt",
    kind=Kind.ARITHMETIC,
    section="9.7.9.21",
    title="convert between integer types",
    variants=(
        Variant(
            slots=(_SAT, type_slot(*_CVT_INT), type_slot(*_CVT_INT, name="src_type")),
            args=(Arg("d", "dst", "$type", wide=True), Arg("a", "src", "$src_type", wide=True)),
            rules=(
                Rule(
                    lambda q: "sat" not in q or _narrows(q),
                    "sat",
                    "'.sat' is idle from '.{src_type}' to '.{type}'",
                    "no .sat where every value fits",
                ),
            ),
            lower=_alu("cvt"),
        ),
    ),
)

_CVTA_SPACES = ("const", "global", "local", "shared", "shared::cta", "shared::cluster", "param", "param::entry")


CVTA = Family(
    name="cvta",
    kind=Kind.ADDRESS_CONVERSION,
    section="9.7.9.20",
    title="convert an address to generic, or from it (the flat map makes both the identity)",
    ptx="2.0",
    variants=(
        Variant(
            slots=(
                Slot("to", ("to",), optional=True, kind="name"),
                Slot("space", _CVTA_SPACES, kind="space", needs={"shared::cluster": SM_90}),
                type_slot("u32", "u64"),
            ),
            args=(Arg("p", "dst", "$type"), Arg("a", "src", "$type")),
            lower=_alu("cvta"),
        ),
    ),
)


MAPA = Family(
    name="mapa",
    kind=Kind.ADDRESS_MAPPING,
    section="9.7.9.23",
    title="the same shared variable in another CTA of the cluster",
    ptx="7.8",
    needs=SM_90,
    variants=(
        Variant(
            slots=(Slot("space", ("shared::cluster",), optional=True, kind="space"), type_slot("u32", "u64")),
            args=(Arg("d", "dst", "$type"), Arg("a", "src", "$type"), Arg("b", "src", "u32")),
            lower=_alu("mapa"),
        ),
    ),
)


def _nop(match: Match) -> Op:
    return Alu(op="nop", type="b32", dsts=(), srcs=(), **match.common)


NANOSLEEP = Family(
    name="nanosleep",
    kind=Kind.SLEEP,
    section="9.7.12",
    title="suspend the thread for a while; no effect on memory",
    ptx="6.3",
    needs=("sm_70",),
    variants=(Variant(slots=(type_slot("u32"),), args=(Arg("t", "src", "u32"),), lower=_nop),),
)

FAMILIES = (
    _binary("add", "9.7.1.1", INT, sat=True),
    _binary("sub", "9.7.1.2", INT, sat=True),
    _multiply("mul", "9.7.1.3", (D, A, B)),
    _multiply("mad", "9.7.1.4", (D, A, B, C)),
    _binary("div", "9.7.1.8", INT),
    _binary("rem", "9.7.1.9", INT, floats=False),
    _unary("abs", "9.7.1.10", SIGNED, floats=True),
    _unary("neg", "9.7.1.11", SIGNED, floats=True),
    _binary("min", "9.7.1.12", INT),
    _binary("max", "9.7.1.13", INT),
    _binary("and", "9.7.8.1", ("pred", *BITS), floats=False),
    _binary("or", "9.7.8.2", ("pred", *BITS), floats=False),
    _binary("xor", "9.7.8.3", ("pred", *BITS), floats=False),
    _unary("not", "9.7.8.4", ("pred", *BITS), floats=False),
    SETP,
    SELP,
    SHL,
    SHR,
    MOV,
    CVT,
    CVTA,
    MAPA,
    NANOSLEEP,
)

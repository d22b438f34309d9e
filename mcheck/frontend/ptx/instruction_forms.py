"""The syntactic form that an instruction must have: parts of its name, a type, operands (PTX ISA 9.7).

Only instructions that are executed without the instruction table are listed here; the table checks the others itself.
"""

from __future__ import annotations

from mcheck.base.errors import InputError, Unsupported
from mcheck.base.records import dataclass
from mcheck.frontend.litmus.codes import find_nearest
from mcheck.frontend.ptx.lane_arithmetic import is_floating
from mcheck.frontend.ptx.module import Address, Label, Pair, Part, Register, Sink, Statement, Vector
from mcheck.frontend.ptx.types import SIZES
from mcheck.isa.decode import ILLEGAL
from mcheck.isa.kinds import BRANCHES, TMEM, Kind
from mcheck.isa.matcher import Failure, Matched, match_qualifiers
from mcheck.isa.opcode import READONLY, find_row
from mcheck.isa.schema import Family, Variant

TABLES_VERSION = (9, 5)
"""The PTX ISA version of the instruction tables: they lack what later versions add."""


@dataclass(frozen=True, slots=True)
class Form:
    """At least so many ``parts`` of the name, its first included, between ``least`` and ``most`` operands, and whether
    the last part is a type.
    """

    parts: int
    least: int
    most: int
    typed: bool = True


ANY_COUNT = 99
"""Any number of operands."""
_MODES = frozenset(("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"))
BEHIND_TYPE = {"prmt": _MODES, "wgmma": frozenset(("satfinite", "popc"))}
"""The qualifiers that may stand behind the type of an instruction (PTX ISA 9.7.9.7, 9.7.15.5.2)."""
_COMBINING = frozenset(("and", "or", "xor"))
_MAX_LISTED = 24
"""With more legal words than this, only the nearest is named."""
FORMS = {
    **dict.fromkeys(("and", "or", "xor", "div", "rem", "shl", "shr", "add", "sub", "mul", "mul24"), Form(2, 3, 3)),
    **dict.fromkeys(("min", "max"), Form(2, 3, 4)),
    **dict.fromkeys(("mov", "not", "neg", "cnot", "abs", "popc", "clz", "brev", "bfind", "cvta"), Form(2, 2, 2)),
    **dict.fromkeys(("bfe", "prmt", "selp", "sad", "mad", "mad24", "fma"), Form(2, 4, 4)),
    **dict.fromkeys(("ld", "ldu", "st"), Form(2, 2, ANY_COUNT)),
    **dict.fromkeys(("ldmatrix", "stmatrix"), Form(2, 2, 2, typed=False)),
    **dict.fromkeys(("wgmma", "tcgen05"), Form(2, 0, ANY_COUNT, typed=False)),
    "activemask": Form(2, 1, 1),
    "bfi": Form(2, 5, 5),
    "bra": Form(1, 1, 1, typed=False),
    "brx": Form(2, 2, 2, typed=False),
    "call": Form(1, 1, ANY_COUNT, typed=False),
    "cvt": Form(3, 2, ANY_COUNT, typed=False),
    "getctarank": Form(2, 2, 2),
    "isspacep": Form(2, 2, 2, typed=False),
    "lop3": Form(2, 5, 6),
    "mapa": Form(2, 3, 3),
    "setp": Form(3, 3, 4),
    "shf": Form(4, 4, 4),
}
WORDS: dict[tuple[str, ...], Form] = {
    ("wgmma", "mma_async"): Form(7, 3, ANY_COUNT),
    ("tcgen05", "alloc"): Form(3, 2, 2),
    ("tcgen05", "dealloc"): Form(3, 2, 2),
    ("tcgen05", "mma"): Form(3, 5, ANY_COUNT, typed=False),
    ("tcgen05", "cp"): Form(3, 2, 2, typed=False),
    ("tcgen05", "ld"): Form(5, 2, 4, typed=False),
    ("tcgen05", "st"): Form(5, 2, 3, typed=False),
    ("tcgen05", "commit"): Form(3, 1, 2),
    ("tcgen05", "shift"): Form(3, 1, 1, typed=False),
    ("clusterlaunchcontrol", "try_cancel"): Form(3, 2, 2),
    ("clusterlaunchcontrol", "query_cancel"): Form(4, 2, 2),
}
"""The same for instructions named by their first two words."""


_ROUNDED = frozenset(("rn", "rz", "rm", "rp", "ftz", "sat"))
_ORDERED = ("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu")
_TESTS = frozenset((*_ORDERED, "num", "nan", "and", "or", "xor", "ftz"))
_BITS = ("and", "or", "xor", "not", "cnot", "shl", "shr", "rem", "popc", "clz", "brev", "selp", "bfe", "bfi", "sad")
QUALIFIERS: dict[str, frozenset[str]] = {
    **dict.fromkeys(_BITS, frozenset[str]()),
    **dict.fromkeys(("setp", "set"), _TESTS),
    **dict.fromkeys(("mul", "mad"), _ROUNDED | {"lo", "hi", "wide", "cc"}),
    **dict.fromkeys(("mul24", "mad24"), frozenset(("lo", "hi", "sat"))),
    **dict.fromkeys(("add", "sub"), _ROUNDED | {"cc"}),
    **dict.fromkeys(("min", "max"), frozenset(("ftz", "NaN", "xorsign", "abs", "relu"))),
    "div": _ROUNDED | {"approx", "full"},
    "shf": frozenset(("l", "r", "wrap", "clamp")),
    "bfind": frozenset(("shiftamt",)),
    "prmt": _MODES,
}  # fmt: skip
"""The qualifiers allowed between the name and the last type of an instruction, beside types (PTX ISA 9.7.1 to
9.7.8).
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a statement is not an instruction: the message, the part of its name at fault if it is one, what is legal
    there.
    """

    message: str
    part: int | None = None
    legal: tuple[str, ...] = ()

    def to_error(self, statement: Statement) -> InputError:
        """The error at the statement."""
        spans = statement.parts()
        span = spans[self.part] if self.part is not None and self.part < len(spans) else statement.span
        word = statement.opcode.parts[self.part] if self.part is not None else ""
        near = find_nearest(word, self.legal) if word else None
        return InputError(
            self.message,
            span,
            code=ILLEGAL,
            expected=", ".join(f".{name}" for name in self.legal) if len(self.legal) <= _MAX_LISTED else None,
            hint=f"did you mean '.{near}'?" if near is not None else None,
        )


def find_fault(statement: Statement) -> Fault | None:
    """The fault in the form of a statement, if any; instructions without a form here are checked by the instruction
    table.
    """
    opcode, operands = statement.opcode.parts, statement.operands
    name = opcode[0]
    form = WORDS.get(opcode[:2]) or FORMS.get(name)
    if form is None or statement.kind is Kind.FILL:
        return None
    if len(opcode) < form.parts:
        return Fault(f"'{statement.opcode.text}' lacks a part of its name, such as its type")
    if not form.least <= len(operands) <= form.most:
        wanted = f"{form.least}" + (
            "" if form.most == form.least else " or more" if form.most == ANY_COUNT else f" to {form.most}"
        )
        return Fault(f"'{statement.opcode.text}' takes {wanted} operands, {len(operands)} given")
    if statement.opcode.has(READONLY):  # not the type at the end: the instruction table checks it
        return None
    if form.typed and opcode[-1] not in SIZES and opcode[-1] not in BEHIND_TYPE.get(name, ()):
        return Fault(f"'.{opcode[-1]}' is not a type", len(opcode) - 1, tuple(SIZES))
    if statement.kind in TMEM and (fault := _find_wrong_qualifier(statement)) is not None:
        return fault
    legal = QUALIFIERS.get(name)
    for at, part in enumerate(opcode[1:], 1):
        if legal is not None and part not in legal and part not in SIZES:
            return Fault(f"'.{part}' is not a qualifier of '{name}'", at, tuple(sorted(legal)))
    if name == "setp" and opcode[1] not in _TESTS:
        return Fault(f"'.{opcode[1]}' is not a comparison", 1, _ORDERED)
    takes = _operand_count(opcode)
    if takes is not None and len(operands) != takes:
        return Fault(f"'{statement.opcode.text}' takes {takes} operands, {len(operands)} given")
    if opcode[:2] not in WORDS:
        for at in statement.opcode.addresses[:1]:
            if not isinstance(operands[at], Address):
                return Fault(f"operand {at + 1} of '{statement.opcode.text}' is not an address in brackets")
    if statement.only_computes and not isinstance(operands[0], Register | Pair | Vector | Sink | Part):
        return Fault(f"the first operand of '{statement.opcode.text}' is not a register")
    takes_label = statement.kind in BRANCHES or statement.kind is Kind.CALL
    if not takes_label and any(isinstance(o, Label) for o in operands):
        return Fault(f"'{statement.opcode.text}' takes no label")
    return None


def check_modelled(statement: Statement) -> None:
    """Raise ``Unsupported`` if an instruction of tensor memory, which is followed without ``decode``, has a qualifier
    that is not modelled.
    """
    if statement.kind not in TMEM:
        return
    for variant, found in _match_variants(statement.opcode.parts):
        if not isinstance(found, Failure):
            if not variant.is_modelled(found[0]):
                raise Unsupported(f"'{statement.text}' is legal but not modelled", statement.span)
            return


def _match_variants(opcode: tuple[str, ...]) -> list[tuple[Variant, Matched]]:
    row = find_row(opcode)
    assert isinstance(row, Family)
    return [(variant, match_qualifiers(opcode, row, variant)) for variant in row.variants]


def _find_wrong_qualifier(statement: Statement) -> Fault | None:
    """The fault in the qualifiers of an instruction whose operands are spelt otherwise in the instruction table."""
    found = [one for _, one in _match_variants(statement.opcode.parts)]
    failures = [one for one in found if isinstance(one, Failure)]
    if len(failures) < len(found):
        return None
    worst = max(failures, key=lambda failure: failure.rank)
    words = worst.words()
    return Fault(words.message, worst.part, tuple(one.lstrip(".") for one in words.expected))


def _operand_count(opcode: tuple[str, ...]) -> int | None:
    """The number of operands of an instruction whose form leaves it open; ``None`` where its name does not
    decide it.
    """
    name, kind = opcode[0], opcode[-1]
    match name:
        case "setp":
            return 4 if _COMBINING.intersection(opcode) else 3
        case "min" | "max" if not is_floating(kind):  # only .f32 has a form with three inputs (9.7.3.11, 9.7.3.12)
            return 3
        case "cvt" if "pack" not in opcode and not any(is_floating(part) for part in opcode[-2:]):
            return 2
        case "lop3":  # the form with a predicate names the combination (9.7.8.6)
            return 6 if _COMBINING.intersection(opcode) else 5
    return None

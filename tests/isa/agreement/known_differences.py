"""The disagreements with the assembler that are meant, each with its reason.

Two kinds: the assembler refuses a constant that PTX calls undefined behaviour when executed, which is a finding here
and no error; and the assembler takes spellings that the PTX ISA does not have.
"""

from __future__ import annotations

import re

from mcheck.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Meant:
    """``accepts`` is the side that takes the line, ``table`` or ``ptxas``.

    ``line`` is searched in the instruction, ``words`` in what the side that refuses it says.
    """

    accepts: str
    line: str
    words: str
    reason: str

    def covers(self, accepts: str, line: str, words: str) -> bool:
        return accepts == self.accepts and bool(re.search(self.line, line) and re.search(self.words, words))


_RUN_TIME = "undefined when executed, hence a finding and not an error: "
_LENIENT = "not in the PTX ISA: "

MEANT: tuple[Meant, ...] = (
    Meant("table", r"^mbarrier\.(test|try)_wait\.parity", r"expected to be 0 or 1", _RUN_TIME + "a parity above 1"),
    Meant("table", r"^mbarrier\.init", r"value '\d+' out of range", _RUN_TIME + "a count outside 1 to 2^20 - 1"),
    Meant(
        "table",
        r"^bar(rier)?\.",
        r"multiple of warp size|multiples? of|non-zero thread count",
        _RUN_TIME + "a thread count of zero or no multiple of the warp size",
    ),
    Meant(
        "table",
        r"^(multimem\.)?cp\.(reduce\.)?async\.bulk",
        r"unexpected value '\d+', expected to be (a )?multiple of 16",
        _RUN_TIME + "a size that is not a multiple of 16",
    ),
    Meant(
        "table",
        r"^st\.bulk",
        r"unexpected value '\d+', expected to be (a )?multiple of 8",
        _RUN_TIME + "a size that is not a multiple of 8",
    ),
    Meant(
        "table",
        r"^st\.bulk.*\[shr\], rd",
        r"Argument 1 of instruction 'add'",
        "the assembler has no code for the name of a variable beside a size in a register, which the PTX ISA allows",
    ),
    Meant(
        "table",
        r"\.(f16|bf16|f16x2|bf16x2|f32|f64)\b",
        r"Arguments mismatch",
        "a floating-point literal is held as its bits, so that a constant operand of a floating-point type may be one",
    ),
    Meant(
        "table",
        r"^multimem\.st\.async",
        r"for( instruction)? 'cvt'",
        "the assembler narrows a wider register by code that it does not have for all types",
    ),
    Meant(
        "table",
        r"^createpolicy\.fractional.*, \d+$",
        r"Arguments mismatch",
        "the fraction, too, may be a floating-point literal, held as its bits",
    ),
    Meant(
        "ptxas",
        r"^clusterlaunchcontrol\.query_cancel\.\w+\.",
        r"'\.(is_canceled|get_first_ctaid\S*)' is not legal|must come before",
        _LENIENT + "what is asked behind the type",
    ),
    Meant(
        "table",
        r"^tcgen05\.(de)?alloc\.",
        r"unexpected value '\d+', expected to be",
        _RUN_TIME + "a number of columns that is not a power of two from 32 to 512",
    ),
    Meant("ptxas", r"^createpolicy\.cvt\.", r"'\.L2' must come before", _LENIENT + "the level behind the type"),
    Meant(
        "ptxas",
        r"^cp\.(reduce\.)?async\.bulk",
        r"cannot be the operand '(dstMem|srcMem|mbar)'",
        _LENIENT + "an address without brackets",
    ),
    Meant(
        "table",
        r"^cp\.(reduce\.)?async\.bulk.*\[cst, ",
        r"State space mismatch",
        "the name of a tensor map in .const stands for its generic address, which the PTX ISA allows there",
    ),
    Meant("ptxas", r"^red\.", r"'_' cannot be the operand 'a'", _LENIENT + "a sink for an address"),
    Meant(
        "ptxas",
        r"\.(sat|NaN|uni|sync|aligned|approx|cc)\b.*\.\1\b",
        r"is given twice",
        _LENIENT + "the same flag a second time",
    ),
    Meant(
        "ptxas", r"^redux\.sync\..*\.sync\b", r"'\.sync' is not a qualifier", _LENIENT + "the same flag a second time"
    ),
    Meant(
        "ptxas",
        r"^cp\.(reduce\.)?async\.bulk\.tensor.*\.(cta|cluster|gpu|sys)\b",
        r"'\.(cta|cluster|gpu|sys)' is not",
        _LENIENT + "a scope on a tensor copy",
    ),
    Meant(
        "ptxas",
        r"^fence\.proxy\.(async|tensormap)::generic",
        r"'\.(shared::\w+|global)' is not legal",
        _LENIENT + "a state space beside .sync_restrict",
    ),
    Meant(
        "ptxas",
        r"^(atom|mbarrier)\.",
        r"takes \d( to \d)? operands?, \d given",
        _LENIENT + "an operand too many",
    ),
    Meant(
        "ptxas",
        r"^mbarrier\.arrive",
        r"a vector cannot be the operand 'count'",
        _LENIENT + "a vector for a scalar",
    ),
    Meant(
        "ptxas",
        r"^st\.async\.",
        r"cannot be the operand 'b'",
        _LENIENT + "a vector for a scalar, or a scalar for a vector",
    ),
    Meant(
        "ptxas",
        r"^st\.async.*\.(cta|cluster|gpu|sys|shared::cta|global)\b",
        r"'\.[\w:]+' is not a qualifier|is missing its sem",
        _LENIENT + "a scope without .release, or the state space .shared::cta",
    ),
    Meant("ptxas", r"^(st|red)\.async\..*mbarrier::", r"takes 3 operands, 2 given", _LENIENT + "no mbarrier operand"),
    Meant(
        "ptxas",
        r".*\[gbl[],]",
        r"'gbl' is in \.global, but the operand '\w+' must be in \.shared",
        _LENIENT + "the name of a global variable for a generic address that must be one of shared memory",
    ),
    Meant("ptxas", r"^mbarrier\.check_layout", r"is not a qualifier", _LENIENT + "a scope where nothing is ordered"),
    Meant("ptxas", r"^fence\.proxy\..*fabric", r"is not legal in", _LENIENT + "a state space on a fence of the fabric"),
    Meant("ptxas", r"^cp\.async\.bulk.*\.b128", r"'\.b128' is not", _LENIENT + "the size of elements of a weak copy"),
    Meant(
        "ptxas",
        r"^mbarrier\.arrive.*\.multicast::cluster::32b",
        r"a register cannot be the operand 'state'",
        _LENIENT + "the state of the phase of several CTAs",
    ),
    Meant("ptxas", r"^add\.sat\.u32", r"'\.sat' does not go with '\.u32'", _LENIENT + "saturated unsigned addition"),
    Meant(
        "ptxas",
        r"^(atom|red)\..*\.noftz.*\.f32\b",
        r"'\.f32' is not legal|'\.noftz'",
        "values of floating-point atomics are opaque here, so that .noftz of .f32 (PTX 9.4) is still missing",
    ),
    Meant("ptxas", r"^st\.bulk", r"cannot be the u64 operand 'size'", _LENIENT + "a size of 32 bits"),
    Meant("ptxas", r"^wgmma\.", r"is missing its aligned", _LENIENT + "the mandatory .aligned left out"),
    Meant("ptxas", r"^wgmma\.wait_group", r"'N' cannot be", _LENIENT + "a count of groups above 7"),
)


def find(accepts: str, line: str, words: str) -> Meant | None:
    """The entry that covers a disagreement, or ``None``."""
    return next((entry for entry in MEANT if entry.covers(accepts, line, words)), None)

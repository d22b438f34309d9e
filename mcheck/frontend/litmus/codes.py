"""Every complaint that the containers can make, under its stable code.

A code is never reused for another complaint. ``tests/frontend/litmus/malformed`` holds at least one file per code that
a file can provoke. Complaints about an instruction itself come from ``mcheck.isa`` under codes of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcheck.base.errors import InputError, Span

MESSAGES: dict[str, str] = {
    # the file
    "LIT001": "cannot read {path}: {reason}",
    "LIT002": "the file is empty",
    "LIT003": "this is a binary file, not a litmus test",
    "LIT004": "the file is not valid UTF-8",
    "LIT005": "{path} is too large: it has more than {limit} bytes",
    "LIT006": "a litmus test starts with PTX and its name",
    "LIT007": "no init block",
    "LIT008": "unterminated comment",
    "LIT009": "unterminated string",
    "LIT010": "the character {found} does not belong here",
    "LIT011": "unexpected {found}",
    "LIT012": "the file ends too early",
    "LIT013": "malformed number {found}",
    "LIT014": "number out of range",
    "LIT015": "the expression is too deep or too long",
    "LIT016": "{what} must be a constant",
    "LIT017": "{reason} in a constant expression",
    "LIT018": "{name} is not declared",
    "LIT019": "unknown word {found} in the header",
    "LIT083": "unknown target {found}",
    "LIT086": "this is a litmus test for {language}, not for PTX",
    "LIT087": "{other} is any number already, and one constant of a file can be",
    "LIT084": "a semicolon is missing",
    "LIT085": "a file is a table or has roles, not both",
    # declarations
    "LIT020": "{name} is declared twice",
    "LIT021": "{name} is the name of a register",
    "LIT022": "unknown type {found}",
    "LIT023": "unknown state space {found}",
    "LIT024": "an alignment must be a power of two from 1 to 4096",
    "LIT025": "{size} is not an array size",
    "LIT026": "{what} too large: {size} bytes, the limit is {limit}",
    "LIT027": "a {space} variable cannot have an initialiser",
    "LIT028": "the initialiser does not fit the shape of {name}",
    "LIT029": "{value} does not fit in {type}",
    "LIT030": "{name} must be declared before it is aliased",
    "LIT031": "unknown proxy {found}",
    "LIT032": "{name} is no thread of this test",
    # tensor maps
    "LIT033": "unknown tensor map field {found}",
    "LIT034": "the tensor map lacks {field}",
    "LIT035": "the tensor map gives {field} twice",
    "LIT036": "{found} is no value of {field}",
    "LIT037": "{field} has {found} entries, rank {rank} needs {wanted}",
    "LIT038": "{field} does not belong in {kind} tensor map",
    "LIT039": "global_address must lie in global memory",
    # definitions and files of them
    "LIT088": "{name} takes {takes}, but {given}",
    "LIT089": "{name} is a function and needs its arguments",
    "LIT090": "cannot include {name}: {reason}",
    "LIT091": "an included file holds const, def and .reg only",
    # placements
    "LIT040": "{name} needs a placement, e.g. {name}@cta 0",
    "LIT041": "unknown placement {found}",
    "LIT042": "{key} is given twice",
    "LIT043": "the range {low}..{high} is empty",
    "LIT044": "{key} {value} is out of range",
    "LIT045": "{name} is placed where {other} already is",
    "LIT046": "thread ids must be 0 to n-1 from left to right: {found} stands in column {column}",
    "LIT047": "role {name} is declared twice",
    "LIT048": "the test has no thread",
    "LIT049": "too many threads: {count}, the limit is {limit}",
    "LIT092": "the {key} numbers are too many, or one is given twice",
    # containers and statements
    "LIT050": "after the init block there is neither a row of threads nor a role",
    "LIT051": "the row has {found} cells, the test has {threads} threads",
    "LIT052": "the row is not ended by a semicolon",
    "LIT053": "label {name} is defined twice",
    "LIT054": "label {name} is not defined in {thread}",
    "LIT055": "a block is not closed",
    "LIT056": "the for loop runs backwards: {low}..{high}",
    "LIT057": "too many operations after unrolling: the limit is {limit}",
    "LIT058": "await cannot wait for {found}",
    "LIT059": "{name} has {dims} dimensions, not {found}",
    "LIT060": "@ selects the CTA of a shared object, and {name} is not shared",
    "LIT061": "the cluster has no CTA of rank {rank} with a thread",
    "LIT062": "blocks are nested too deep",
    "LIT063": "%{name} has no value here",
    "LIT064": "{name} is a constant, not an object",
    "LIT065": "a register cannot select a CTA",
    # the tail
    "LIT070": "{name} is no thread of this test",
    "LIT071": "role {name} has {count} threads, there is no {name}[{number}]",
    "LIT072": "{name} is neither declared nor used",
    "LIT073": "register {reg} of {thread} is neither written nor initialised",
    "LIT074": "{name} has no element {index}",
    "LIT075": "{name} is an array",
    "LIT076": "a test has one condition",
    "LIT077": "a comparison is missing",
    "LIT078": "{found} is no operator of a condition",
    "LIT079": "unknown expectation {found}",
    "LIT080": "the expectations contradict each other",
    "LIT081": "a condition cannot compute with registers or memory",
    "LIT082": "unexpected {found} after the condition",
}


def problem(
    code: str, span: Span | None, *, expected: str | None = None, hint: str | None = None, **fields: object
) -> InputError:
    """The error ``code`` at ``span``, its message filled with ``fields``."""
    return InputError(MESSAGES[code].format(**fields), span, code=code, expected=expected, hint=hint)


def nearest(word: str, words: Iterable[str]) -> str | None:
    """The one of ``words`` that ``word`` was most likely meant to be."""
    from difflib import get_close_matches  # only errors need it

    found = get_close_matches(word, sorted(words), n=1, cutoff=0.6)
    return found[0] if found else None


def did_you_mean(word: str, words: Iterable[str]) -> str | None:
    """A hint that names the nearest of ``words``, or ``None``."""
    found = nearest(word, words)
    return f"did you mean {found}?" if found is not None else None

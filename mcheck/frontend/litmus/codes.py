"""The error messages of litmus files, by stable code.

A code is never reused for another message. ``tests/frontend/litmus/malformed`` has at least one file for each code that
a file can trigger. Errors in an instruction itself come from ``mcheck.isa``, with codes of its own.
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
    "LIT006": "a litmus test starts with PTX and the name of the test",
    "LIT007": "the init block is missing",
    "LIT008": "unterminated comment",
    "LIT009": "unterminated string",
    "LIT010": "unexpected character {found}",
    "LIT011": "unexpected {found}",
    "LIT012": "unexpected end of file",
    "LIT013": "malformed number {found}",
    "LIT014": "number out of range",
    "LIT015": "the expression is nested too deeply or too long",
    "LIT016": "{what} must be a constant",
    "LIT017": "{reason} in a constant expression",
    "LIT018": "{name} is not declared",
    "LIT019": "unknown word {found} in the header",
    "LIT083": "unknown target {found}",
    "LIT086": "this is a litmus test for {language}, not for PTX",
    "LIT087": "only one constant of a file can be `any`, and {other} already is",
    "LIT084": "a semicolon is missing",
    "LIT085": "a file has either a table or roles, not both",
    # declarations
    "LIT020": "{name} is declared twice",
    "LIT021": "{name} is the name of a register",
    "LIT022": "unknown type {found}",
    "LIT023": "unknown state space {found}",
    "LIT024": "an alignment must be a power of two from 1 to 4096",
    "LIT025": "{size} is not a valid array size",
    "LIT026": "{what} too large: {size} bytes; the limit is {limit}",
    "LIT027": "a {space} variable cannot have an initialiser",
    "LIT028": "the initialiser does not fit the shape of {name}",
    "LIT029": "{value} does not fit in {type}",
    "LIT030": "{name} must be declared before an alias refers to it",
    "LIT031": "unknown proxy {found}",
    "LIT093": "{found} cannot be one of the copies that a multimem address stands for",
    "LIT032": "there is no thread {name}",
    # tensor maps
    "LIT033": "unknown tensor map field {found}",
    "LIT034": "the tensor map does not specify {field}",
    "LIT035": "the tensor map specifies {field} twice",
    "LIT036": "{found} is not a valid value of {field}",
    "LIT037": "{field} has {found} entries; rank {rank} needs {wanted}",
    "LIT038": "{field} is not a field of {kind} tensor map",
    "LIT039": "global_address must be in global memory",
    # definitions and included files
    "LIT088": "{name} takes {takes}, but {given}",
    "LIT089": "{name} is a function and needs its arguments",
    "LIT090": "cannot include {name}: {reason}",
    "LIT091": "an included file may contain const, def and .reg only",
    # placements
    "LIT040": "{name} needs a placement, e.g. {name}@cta 0",
    "LIT041": "unknown placement key {found}",
    "LIT042": "{key} is given twice",
    "LIT043": "the range {low}..{high} is empty",
    "LIT044": "{key} {value} is out of range",
    "LIT045": "{name} has the same place as {other}",
    "LIT046": "thread ids must be 0 to n-1 from left to right: {found} is in column {column}",
    "LIT047": "role {name} is declared twice",
    "LIT048": "the test has no threads",
    "LIT049": "too many threads: {count}; the limit is {limit}",
    "LIT092": "too many {key} numbers, or one of them twice",
    # containers and statements
    "LIT050": "the init block is not followed by a row of threads or a role",
    "LIT051": "the row has {found} cells, but the test has {threads} threads",
    "LIT052": "the row does not end with a semicolon",
    "LIT053": "label {name} is defined twice",
    "LIT054": "label {name} is not defined in {thread}",
    "LIT055": "a block is not closed",
    "LIT056": "the bounds of the for loop are reversed: {low}..{high}",
    "LIT057": "too many operations after unrolling; the limit is {limit}",
    "LIT058": "await cannot wait for {found}",
    "LIT059": "{name} has {dims} dimensions, not {found}",
    "LIT060": "@ selects the CTA of a shared object, but {name} is not in shared memory",
    "LIT061": "no thread is placed in a CTA of rank {rank} of the cluster",
    "LIT062": "blocks are nested too deeply",
    "LIT063": "%{name} has no known value",
    "LIT064": "{name} is a constant, not an object",
    "LIT065": "a register cannot select a CTA",
    # the condition and expectations
    "LIT070": "there is no thread {name}",
    "LIT071": "role {name} has {count} threads; there is no {name}[{number}]",
    "LIT072": "{name} is neither declared nor used",
    "LIT073": "register {reg} of {thread} is neither written nor initialised",
    "LIT074": "{name} has no element {index}",
    "LIT075": "{name} is an array",
    "LIT076": "a test can have only one condition",
    "LIT077": "a comparison operator is missing",
    "LIT078": "{found} is not an operator of conditions",
    "LIT079": "unknown expectation {found}",
    "LIT080": "the expectations contradict each other",
    "LIT081": "a condition can compare registers and memory, but not compute with them",
    "LIT082": "unexpected {found} after the condition",
}


def problem(
    code: str, span: Span | None, *, expected: str | None = None, hint: str | None = None, **fields: object
) -> InputError:
    """The ``InputError`` of a code at ``span``, its message formatted with ``fields``."""
    return InputError(MESSAGES[code].format(**fields), span, code=code, expected=expected, hint=hint)


def find_nearest(word: str, words: Iterable[str]) -> str | None:
    """The closest match of ``word`` among ``words``, if there is a close one."""
    from difflib import get_close_matches  # only errors need it

    found = get_close_matches(word, sorted(words), n=1, cutoff=0.6)
    return found[0] if found else None


def suggest(word: str, words: Iterable[str]) -> str | None:
    """A hint "did you mean ...?" with the closest match among ``words``, or ``None``."""
    found = find_nearest(word, words)
    return f"did you mean {found}?" if found is not None else None

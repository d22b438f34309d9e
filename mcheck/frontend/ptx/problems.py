"""Every error about a module or its launch, under its stable code; the meaning of a code never changes."""

from __future__ import annotations

from mcheck.base.errors import InputError, Span

MESSAGES: dict[str, str] = {
    # the file
    "PTX002": "the module is empty",
    "PTX003": "this is a binary file, not PTX text",
    "PTX006": "the module does not begin with .version",
    "PTX007": "the module has no .target",
    "PTX008": "unexpected end of file: {what}, which begins at line {line}, is incomplete",
    "PTX009": "unexpected end of file",
    "PTX010": "unexpected {found}",
    # words and numbers
    "PTX011": "malformed number {found}",
    "PTX012": "{found} does not fit in 64 bits",
    "PTX013": "{reason} in a constant expression",
    "PTX014": "the expression is nested too deeply",
    "PTX015": "a semicolon is missing",
    # declarations
    "PTX020": "{name} is declared twice",
    "PTX021": "unknown type .{found}",
    "PTX022": "the alignment {found} is not a power of two",
    "PTX023": "{found} is not a valid number of elements",
    "PTX024": "the initialiser has {found} elements, {name} has room for {room}",
    "PTX025": "unknown directive {found}",
    "PTX026": "function {name} is defined twice",
    "PTX027": "{name} is declared differently at line {line}",
    "PTX028": "blocks are nested too deeply",
    # statements
    "PTX030": "{name} is not declared",
    "PTX031": "label {name} is not defined in this function",
    "PTX032": "label {name} is defined twice",
    "PTX033": "{found} is not a valid operand",
    "PTX034": "the guard {name} is of type .{type}, not a predicate register",
    # the launch
    "PTX101": "the launch is not valid JSON: {reason}",
    "PTX102": "the launch gives {name} twice",
    "PTX103": "{where} is not a valid {what}",
    "PTX104": "the launch has no field {name}",
    "PTX105": "the launch does not give {missing}",
    "PTX106": "the module has no entry {name}",
    "PTX107": "{what} is {found}, but the entry requires {wanted}",
    "PTX108": "{what} is {found}, {limit}",
    "PTX109": "the grid of {grid} CTAs cannot be divided into clusters of {cluster}",
    "PTX110": "{entry} has no parameter {name}",
    "PTX111": "parameter {name} is given twice, by its name and by its index",
    "PTX112": "{where} does not fit in parameter {name}: {reason}",
    "PTX113": "{where} is not hexadecimal text",
    "PTX114": "{name} is not a buffer",
    "PTX115": "unknown assumption {found}",
    "PTX116": "the module has no entry with a body",
    "PTX117": "{name} takes {found} bytes, {limit}",
    "PTX121": "{options} would be of one launch, and the file has {count}",
    "PTX122": "the file has {count} launches, one can be taken here",
    "PTX123": "{name} is the name of a declared buffer and of memory of parameter {name} of {entry}",
    "PTX124": "{name} may be one of several entries of the module",
    # what is not modelled
    "PTX120": "mcheck does not model modules with {bits}-bit addresses",
}


def problem(
    code: str, span: Span | None, *, expected: str | None = None, hint: str | None = None, **fields: object
) -> InputError:
    """The error ``code`` at ``span``, its message filled with ``fields``."""
    return InputError(MESSAGES[code].format(**fields), span, code=code, expected=expected, hint=hint)

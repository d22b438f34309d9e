"""Every complaint about a module or its launch, under its stable code; a code never gets another meaning."""

from __future__ import annotations

from mcheck.base.errors import InputError, Span

MESSAGES: dict[str, str] = {
    # the file
    "PTX002": "the module is empty",
    "PTX003": "this is a binary file, not PTX text",
    "PTX006": "the module does not begin with .version",
    "PTX007": "the module has no .target",
    "PTX008": "the file ends too early: {what}, which begins in line {line}, is not complete",
    "PTX009": "the file ends too early",
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
    "PTX022": "an alignment is a power of two, not {found}",
    "PTX023": "{found} is no number of elements",
    "PTX024": "the initialiser has {found} elements, {name} has room for {room}",
    "PTX025": "unknown directive {found}",
    "PTX026": "function {name} is defined twice",
    "PTX027": "{name} is declared in another way in line {line}",
    "PTX028": "blocks are nested too deeply",
    # statements
    "PTX030": "{name} is not declared",
    "PTX031": "label {name} is not defined in this function",
    "PTX032": "label {name} is defined twice",
    "PTX033": "{found} is no operand",
    "PTX034": "a guard is a predicate register, {name} is of type .{type}",
    # the launch
    "PTX101": "the launch is not valid JSON: {reason}",
    "PTX102": "the launch says {name} twice",
    "PTX103": "{where} is no {what}",
    "PTX104": "the launch has no field {name}",
    "PTX105": "the launch lacks {missing}",
    "PTX106": "the module has no entry {name}",
    "PTX107": "{what} is {found}, the entry says {wanted}",
    "PTX108": "{what} is {found}, {limit}",
    "PTX109": "the grid of {grid} CTAs cannot be divided into clusters of {cluster}",
    "PTX110": "{entry} has no parameter {name}",
    "PTX111": "parameter {name} is given twice, by its name and by its index",
    "PTX112": "{where} does not fit in parameter {name}: {reason}",
    "PTX113": "{where} is no hexadecimal text",
    "PTX114": "{name} is no buffer",
    "PTX115": "unknown assumption {found}",
    "PTX116": "the module has no entry with a body",
    "PTX117": "{name} takes {found} bytes, {limit}",
    # what is not modelled
    "PTX120": "a module with addresses of {bits} bits is not modelled",
}


def problem(
    code: str, span: Span | None, *, expected: str | None = None, hint: str | None = None, **fields: object
) -> InputError:
    """The error ``code`` at ``span``, its message filled with ``fields``."""
    return InputError(MESSAGES[code].format(**fields), span, code=code, expected=expected, hint=hint)

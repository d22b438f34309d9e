"""Every error that a cat file can cause: one code, one sentence. Codes are stable and never reused.

``tests/cat`` holds at least one malformed file per code and compares code, message and place.
"""

from __future__ import annotations

from typing import Final

from mcheck.base.errors import InputError, Span

MESSAGES: Final[dict[str, str]] = {
    # the text
    "CAT001": "unexpected character {what}",
    "CAT002": "this comment is never closed",
    "CAT003": "this string is never closed",
    "CAT004": "cannot read the model {what}: {why}",
    "CAT005": "an option is written (* mcheck: key = value *)",
    "CAT006": "unknown option {what}",
    "CAT007": "option {what} cannot be {value}",
    # the grammar
    "CAT010": "expected {expected}, found {found}",
    "CAT011": "{what} is not a statement",
    "CAT012": "{what} is outside the part of cat that is supported here",
    "CAT013": "the inverse is written ^-1",
    "CAT014": "this {what} is never closed",
    "CAT015": "the expression is nested too deeply",
    # names
    "CAT016": "the model is empty",
    "CAT020": "unknown name {what}",
    "CAT021": "{what} needs a relation, but {operand} is a set",
    "CAT022": "{what} needs a set, but {operand} is a relation",
    "CAT023": "{what} needs operands of one kind, but {left} is a {left_kind} and {right} is a {right_kind}",
    "CAT024": "{what} is used under {where} in its own definition, which then has no least fixpoint",
    "CAT025": "{what} is a {kind}, not a {needed}",
    "CAT026": "{what} is a function and needs its arguments",
    "CAT027": "{what} takes {takes}, but {given} given",
    "CAT028": "{what} stands twice in one definition",
    "CAT029": "a function cannot be recursive: {what}",
    "CAT030": "the inlined definition grows beyond {limit} operators",
    "CAT044": "the model grows beyond {limit} statements and operators, with all that it includes and calls",
    # values that are neither sets nor relations
    "CAT045": "{what} is a {kind}, where a {needed} is needed",
    "CAT046": "{what} cannot be evaluated: {why}",
    "CAT047": "with {what} from …: an execution chooses the total orders of W by location, for co, and nothing else",
    # files
    "CAT040": "cannot find the included file {what}",
    "CAT041": "the file {what} includes itself",
    "CAT042": "unknown model {what}",
    "CAT048": "a test names a model that comes with mcheck, or a file in its own folder, and not {what}",
    "CAT049": "an included file lies in the folder of the model, or below it, or comes with mcheck, and not {what}",
    "CAT043": "a file is included at the top level only, not inside a procedure",
}


def error(
    code: str, span: Span | None, *, hint: str | None = None, expected: str | None = None, **words: object
) -> InputError:
    """The exception for ``code``; raise it."""
    message = MESSAGES[code].format(expected=expected, **words)
    return InputError(message, span, code=code, hint=hint, expected=expected)


def suggest(word: str, known: list[str]) -> str | None:
    """``did you mean …?`` or nothing. The import stays here: only errors pay for it."""
    import difflib

    close = difflib.get_close_matches(word, known, n=1, cutoff=0.65)
    if not close:
        folded = [name for name in known if name.lower().replace("_", "-") == word.lower().replace("_", "-")]
        close = folded[:1]
    return f"did you mean {close[0]}?" if close else None

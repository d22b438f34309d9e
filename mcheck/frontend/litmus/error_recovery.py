"""Error recovery: collecting several errors of one text, skipping the rest of each wrong statement.

At most one error per statement is reported. Errors that may follow from another one are not: an undeclared name after
a broken declaration, and any error in a statement with a name of such a declaration or with one already reported as
undeclared.
"""

from __future__ import annotations

from collections.abc import Collection

from mcheck.base.errors import InputError, Unsupported
from mcheck.frontend.litmus.lexer import END, NAME, Tokens

MAX_MISTAKES = 10
"""The maximum number of errors reported for one text."""
UNCLOSED = frozenset(("LIT012", "LIT055"))
"""The codes of an unclosed block: no statement ends here, and the role is over."""
_COMPOUND = frozenset(("for", "if"))
_WORDS = _COMPOUND | {"const", "else", "await", "exit", "ret"}


class _Enough(Exception):
    """The maximum number of errors has been found."""


class Mistakes:
    """The errors found in a text so far."""

    __slots__ = ("_blind", "_doubtful", "_found")

    def __init__(self) -> None:
        self._found: list[InputError] = []
        self._doubtful: set[str] = set()
        self._blind = False

    def __bool__(self) -> bool:
        return bool(self._found)

    def record(self, error: InputError, tokens: Tokens, first: int, known: Collection[str] | None = None) -> None:
        """Record an error in the tokens from ``first`` to the current one; ends parsing if there are many.

        ``known`` is given for a declaration: the names declared so far, so that other names in it are those that it
        was meant to declare.
        """
        tokens.depth = 0
        here = range(first, min(tokens.at, len(tokens.texts)))
        names = {tokens.texts[k] for k in here if tokens.kinds[k] == NAME and "." not in tokens.texts[k]} - _WORDS
        doubtful = not self._doubtful.isdisjoint(names) or (self._blind and error.code == "LIT018")
        function = tokens.texts[first] == "def"
        self._blind |= known is not None and not function
        if known is not None:
            self._doubtful |= {tokens.texts[first + 1]} if function else names.difference(known)
        if (known is not None and not function) or error.code == "LIT018":
            self._doubtful |= {tokens.texts[k] for k in here if tokens.span(k) == error.span}
        if not doubtful:
            self.add(error)
        lacks_block = tokens.texts[first] in _COMPOUND and tokens.texts[tokens.at - 1] != "}"
        if known is None and (lacks_block or tokens.text == "}") and tokens.texts.count("}") > tokens.texts.count("{"):
            raise _Enough  # it is not clear which block a brace closes

    def add(self, error: InputError) -> None:
        """Record an error; ends parsing if there are many."""
        self._found.append(error)
        if len(self._found) >= MAX_MISTAKES:
            raise _Enough

    def raise_all(self) -> None:
        """Raise the first error, if there is one, with the others attached."""
        if self._found:
            first, *others = sorted(self._found, key=position_of)
            first.others = tuple(others)
            raise first from None

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Raise the errors found, and one that parsing could not recover from. An unsupported construct is reported
        only if there are no errors.
        """
        if isinstance(error, InputError) and error not in self._found:
            self._found.append(error)
        if error is None or isinstance(error, InputError | Unsupported | _Enough):
            self.raise_all()


def position_of(error: InputError) -> tuple[int, int]:
    """The line and the column of an error; one without a location comes first."""
    return (error.span.line, error.span.column) if error.span is not None else (0, 0)


def begins_statement(tokens: Tokens) -> bool:
    """Whether the current token can only begin a statement or end a block, so that it is not an operand."""
    text = tokens.text
    if tokens.kind == END or text in ("@", "}") or text in _WORDS:
        return True
    return tokens.kind == NAME and ("." in text or tokens.texts[tokens.at + 1] == ":")


def skip_statement(tokens: Tokens, first: int) -> None:
    """Skip to the end of the statement that began at token ``first``: after its semicolon, after the blocks of a loop
    or a branch, before a line that begins another statement, or before the end of the enclosing block.
    """
    compound = tokens.texts[first] in _COMPOUND
    reached = max(tokens.at, first + 1)
    depth = 0
    tokens.at = first
    while tokens.kind != END:
        text = tokens.text
        if text == "}" and depth == 0:
            return
        if tokens.at >= reached and tokens.on_new_line() and not (compound and depth):
            assigns = depth == 0 and tokens.kind == NAME and tokens.texts[tokens.at + 1] == "="
            if assigns or begins_statement(tokens):
                return
        depth += (text == "{") - (text == "}")
        tokens.at += 1
        if text == ("}" if compound else ";") and depth == 0 and tokens.at > reached and tokens.text != "else":
            return


def skip_section(tokens: Tokens, first: int, words: frozenset[str]) -> None:
    """Skip what began at token ``first``, outside all blocks, up to a line that begins with one of ``words`` or with a
    role.
    """
    tokens.at = max(tokens.at - 1, first)
    while tokens.kind != END:
        tokens.at += 1
        negation = tokens.text in ("~", "not") and tokens.texts[tokens.at + 1] != "exists"
        if tokens.on_new_line() and not negation and (tokens.text in words or begins_role(tokens)):
            return


def begins_role(tokens: Tokens) -> bool:
    """Whether a role begins at the current token: a name with its placement or its block."""
    return (
        tokens.texts[tokens.at + 1] in ("@", "{")
        and tokens.kind == NAME
        and "." not in tokens.text
        and tokens.text not in _WORDS
        and (tokens.at == 0 or tokens.on_new_line())
    )

"""Several mistakes of one text: each is kept, reading goes on behind its statement, and all are told together.

A statement has at most one. What may follow from another is not told: that a name is undeclared, behind a broken
declaration, and what is wrong with a statement that has a name of such a declaration or one told to be undeclared.
"""

from __future__ import annotations

from collections.abc import Collection

from mcheck.base.errors import InputError, Unsupported
from mcheck.frontend.litmus.lexer import END, NAME, Tokens

MOST = 10
"""Mistakes that are told of one text."""
OPEN = frozenset(("LIT012", "LIT055"))
"""A block that nothing closes: no statement ends here, and the role is over."""
_COMPOUND = frozenset(("for", "if"))
_WORDS = _COMPOUND | {"const", "else", "await", "exit", "ret"}


class _Enough(Exception):
    """Nobody mends more at once."""


class Mistakes:
    """What was found wrong in a text so far."""

    __slots__ = ("_blind", "_doubtful", "_found")

    def __init__(self) -> None:
        self._found: list[InputError] = []
        self._doubtful: set[str] = set()
        self._blind = False

    def __bool__(self) -> bool:
        return bool(self._found)

    def keep(self, error: InputError, tokens: Tokens, first: int, known: Collection[str] | None = None) -> None:
        """``error`` of what stands from token ``first`` up to the current one; the last if there are many.

        ``known``, of what is to declare something: names that have been declared, so that others in it may be meant.
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
            raise _Enough  # nobody knows which block a brace closes

    def add(self, error: InputError) -> None:
        """A further mistake; the last one that is looked for if there are many."""
        self._found.append(error)
        if len(self._found) >= MOST:
            raise _Enough

    def tell(self) -> None:
        """Raises what was found, if anything, as the first with the others beside it."""
        if self._found:
            first, *others = sorted(self._found, key=place_of)
            first.others = tuple(others)
            raise first from None

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Tells what was found, with a mistake behind which reading cannot go on. What is not modelled is told of a
        text without mistakes only.
        """
        if isinstance(error, InputError) and error not in self._found:
            self._found.append(error)
        if error is None or isinstance(error, InputError | Unsupported | _Enough):
            self.tell()


def place_of(error: InputError) -> tuple[int, int]:
    """Where a mistake stands in its text; one without a place comes first."""
    return (error.span.line, error.span.column) if error.span is not None else (0, 0)


def begins_statement(tokens: Tokens) -> bool:
    """Whether the current token can only begin a statement, or end a block: no operand of an instruction."""
    text = tokens.text
    if tokens.kind == END or text in ("@", "}") or text in _WORDS:
        return True
    return tokens.kind == NAME and ("." in text or tokens.texts[tokens.at + 1] == ":")


def skip_statement(tokens: Tokens, first: int) -> None:
    """Goes on from a mistake to the end of the statement that began at token ``first``: behind its semicolon, behind
    the blocks of a loop or a branch, before a line that begins another, or before what closes the block around.
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
    """Goes on from a mistake in what began at token ``first``, outside all blocks, to a line that begins anew: with one
    of ``words``, or with a role.
    """
    tokens.at = max(tokens.at - 1, first)
    while tokens.kind != END:
        tokens.at += 1
        negation = tokens.text in ("~", "not") and tokens.texts[tokens.at + 1] != "exists"
        if tokens.on_new_line() and not negation and (tokens.text in words or begins_role(tokens)):
            return


def begins_role(tokens: Tokens) -> bool:
    """Whether a line begins with a role: a name with its place or its block."""
    return (
        tokens.texts[tokens.at + 1] in ("@", "{")
        and tokens.kind == NAME
        and "." not in tokens.text
        and tokens.text not in _WORDS
        and (tokens.at == 0 or tokens.on_new_line())
    )

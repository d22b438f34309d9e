"""The reader of litmus files: table form and block form to ``Program``."""

from __future__ import annotations

from mcheck.frontend.litmus.definitions import read_included_texts
from mcheck.frontend.litmus.header import Header, find_init_end, is_table, parse_header, strip_exec_comments
from mcheck.frontend.litmus.source import Source, read_source
from mcheck.frontend.litmus.statements import Written
from mcheck.frontend.litmus.table import parse_columns, parse_table
from mcheck.ir.program import Program

__all__ = ["load", "parse", "parse_written", "read_header", "read_included_texts"]


def load(path: str, *, every: bool = False) -> Program:
    """Read the program in the file at ``path``; raises ``McheckError``."""
    return parse(read_source(path), path, every=every)


def read_header(path: str, text: str | None = None) -> Header:
    """Read the header of the file at ``path``: its name, the model that it names; raises ``McheckError``.

    ``text``: the contents of the file, which is then not read.
    """
    return parse_header(Source(read_source(path) if text is None else text, path))


def parse(text: str, path: str, *, every: bool = False, size: int | None = None) -> Program:
    """Parse ``text`` to a program; ``path`` is for messages. Raises ``McheckError``.

    ``every``: a constant may be ``any`` (``Program.free``). ``size``: one that is ``any`` has this value.
    """
    top, end, table = _split(text, path)
    if table:
        return parse_table(top, end)
    from mcheck.frontend.litmus.blocks import parse_blocks  # a table needs none of it

    return parse_blocks(top, end, size, every=every)


def parse_written(text: str, path: str) -> Written:
    """The statements of each thread or role as they are written; raises ``McheckError``."""
    top, end, table = _split(text, path)
    if table:
        bodies = parse_columns(top, end)
    else:
        from mcheck.frontend.litmus.blocks import parse_role_bodies

        bodies = parse_role_bodies(top, end)
    return Written(bodies=bodies, source=top.source, table=table)


def _split(text: str, path: str) -> tuple[Header, int, bool]:
    """The header, the end of the init block, and whether a table follows it."""
    source = Source(text, path)
    top = parse_header(source)
    end = find_init_end(source, top.body)
    if "<<" in source.clean:
        original = source.clean
        source.clean = strip_exec_comments(original)
        if not is_table(source, find_init_end(source, top.body) + 1):
            source.clean = original
    return top, end, is_table(source, end + 1)

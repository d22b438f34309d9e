"""Litmus files: the table form and the block form, into a ``Program``."""

from __future__ import annotations

from mcheck.frontend.litmus.blocks import blocks
from mcheck.frontend.litmus.definitions import included
from mcheck.frontend.litmus.header import Header, header, init_end, is_table, without_exec_comments
from mcheck.frontend.litmus.source import Source, read
from mcheck.frontend.litmus.table import table
from mcheck.ir.program import Program

__all__ = ["head", "included", "load", "parse"]


def load(path: str, *, every: bool = False) -> Program:
    """The program in the file at ``path``; raises ``McheckError``."""
    return parse(read(path), path, every=every)


def head(path: str) -> Header:
    """The head of the file at ``path``: its name, the model that it names; raises ``McheckError``."""
    return header(Source(read(path), path))


def parse(text: str, path: str, *, every: bool = False) -> Program:
    """The program that ``text`` is; ``path`` is for messages. Raises ``McheckError``.

    ``every``: a constant may be any number (``Program.free``).
    """
    source = Source(text, path)
    top = header(source)
    end = init_end(source, top.body)
    if "<<" in source.clean:
        original = source.clean
        source.clean = without_exec_comments(original)
        if not is_table(source, init_end(source, top.body) + 1):
            source.clean = original
    if is_table(source, end + 1):
        return table(top, end)
    return blocks(top, end, every=every)

"""HTML fragments for notebooks; texts of tests are escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape


def paragraph(*lines: str) -> str:
    """A paragraph with the first line in bold; empty without lines."""
    if not lines:
        return ""
    first, *rest = (escape(line) for line in lines)
    return f"<p>{'<br>'.join([f'<b>{first}</b>', *rest])}</p>\n"


def table(rows: Sequence[Mapping[str, object]]) -> str:
    """A table with a row per mapping and a column per key; empty without rows or columns."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    if not columns:
        return ""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(_shown(row.get(column)))}</td>' for column in columns)}</tr>\n" for row in rows
    )
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n"


def _shown(value: object) -> str:
    return "" if value is None else str(value)

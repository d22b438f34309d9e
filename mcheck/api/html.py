"""Small pieces of HTML for notebooks; everything that comes from a test is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape


def paragraph(*lines: str) -> str:
    """Lines of text, the first of them bold; nothing if there are none."""
    if not lines:
        return ""
    first, *rest = (escape(line) for line in lines)
    return f"<p>{'<br>'.join([f'<b>{first}</b>', *rest])}</p>\n"


def table(rows: Sequence[Mapping[str, object]]) -> str:
    """A row for each mapping, a column for each key of any of them; nothing if there are no rows or columns."""
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

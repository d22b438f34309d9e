"""Parsing a page of the catalogue: a Markdown file with TOML front matter.

``+++`` lines enclose the TOML: ``name``, ``kind``, ``severity``, ``section``, and where they apply
``permissive``, ``continues``, ``grid`` and ``[fixes]``, the fixes of cases by their names.
Then the explanation, and the sections Fix, Incorrect and Correct; the last two hold one fenced program each.
"""

from __future__ import annotations

import re
import tomllib

from mcheck.base.errors import InternalError
from mcheck.findings.entry import Entry

_FORM = re.compile(
    r"\+\+\+\n(?P<facts>.*?)\n\+\+\+\n\n# (?P<title>[^\n]*)\n\n(?P<explanation>.*?)\n\n## Fix\n\n(?P<fix>.*?)\n\n"
    r"## Incorrect\n\n```ptx\n(?P<bad>.*?\n)```\n\n## Correct\n\n```ptx\n(?P<good>.*?\n)```\n",
    re.DOTALL,
)


def parse_page(text: str, code: str) -> Entry:
    """Parse the page of ``code``; raises ``InternalError`` if it is not well-formed."""
    form = _FORM.fullmatch(text)
    if form is None:
        raise InternalError(f"the page of {code} in the catalogue of findings is not well-formed")
    facts = tomllib.loads(form["facts"])
    if form["title"] != f"{code} {facts['name']}":
        raise InternalError(f"the title of the page of {code} is not its code and name")
    return Entry(
        code=code,
        name=facts["name"],
        kind=facts["kind"],
        explanation=form["explanation"],
        section=facts["section"],
        remedy=form["fix"],
        remedies=facts.get("fixes", {}),
        bad=form["bad"],
        good=form["good"],
        level=facts["severity"],
        permissive=facts.get("permissive"),
        continues=facts.get("continues", False),
        grid=facts.get("grid", 1),
    )

"""Writes the pages that are made from the code: every finding, every name of cat.

.venv/bin/python docs/generate.py            write them
.venv/bin/python docs/generate.py --check    say whether they are up to date
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent


def findings() -> str:
    """Every entry of the catalogue: what it means, how grave it is, a program that has it and one that has not."""
    from mcheck.findings import catalogue
    from mcheck.findings.entry import PROFILES

    parts = [
        "# Findings",
        "",
        "Made from the catalogue by `docs/generate.py`; `mcheck explain CODE` shows the same. A code is never given a",
        "second meaning. Severities depend on `--profile`.",
        "",
        "| code | finding | kind | strict | ptx | permissive |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for entry in catalogue.all():
        levels = " | ".join(entry.severity(profile) for profile in PROFILES)
        anchor = entry.code.lower() + "-" + entry.name
        parts.append(f"| [{entry.code}](#{anchor}) | {entry.name.replace('-', ' ')} | {entry.kind} | {levels} |")
    for entry in catalogue.all():
        parts += [
            "",
            f"## {entry.code} {entry.name}",
            "",
            f"*{entry.kind}, {entry.level}; {entry.section}*",
            "",
            _plain(entry.explanation.strip()),
            "",
            f"**What mends it:** {_plain(' '.join(entry.every_remedy.split()))}",
            "",
            f"**Afterwards** {entry.afterwards}.",
            "",
            "With this finding:",
            "",
            "```ptx",
            entry.bad.strip(),
            "```",
            "",
            "Without it:",
            "",
            "```ptx",
            entry.good.strip(),
            "```",
        ]
    return "\n".join(parts) + "\n"


def names() -> str:
    """The base sets and relations that a model may use."""
    from mcheck.cat.ast import Kind
    from mcheck.cat.names import BASE, OPTIONS

    parts = [
        "# Names of cat",
        "",
        "Made from `mcheck/cat/names.py` by `docs/generate.py`: what an execution supplies to a model. Sections are",
        "those of the PTX ISA. Operators: `|` `&` `\\` `;` `*` (product of sets), `~`, `?`, `+`, `*`, `^-1`, `[S]`,",
        "`domain`, `range`; `let`, `let rec`, functions, `include`, `show`. Follow herd's precedence, or write",
        "parentheses. `extending.md` says what holds of models that were written for herd or Dat3M.",
    ]
    for kind, title in ((Kind.SET, "Sets"), (Kind.REL, "Relations")):
        parts += ["", f"## {title}", "", "| name | meaning | section |", "| --- | --- | --- |"]
        parts += [f"| `{b.name}` | {_plain(b.doc)} | {b.section} |" for b in BASE.values() if b.kind is kind]
    parts += ["", "## Options", ""]
    for key, values in OPTIONS.items():
        parts.append(
            f"`(* mcheck: {key} = VALUE *)`, where VALUE is one of {', '.join(f'`{v}`' for v in sorted(values))}."
        )
    return "\n".join(parts) + "\n"


def _plain(text: str) -> str:
    """Text in which Markdown finds nothing to mark up."""
    return text.replace("\\", "\\\\").replace("*", "\\*").replace("_", "\\_").replace("<", "&lt;").replace("|", "\\|")


PAGES = {"findings.md": findings, "cat-names.md": names}


def main(arguments: list[str]) -> int:
    """Writes the pages, or compares them."""
    stale = [name for name, make in PAGES.items() if _read(HERE / name) != make()]
    if arguments == ["--check"]:
        for name in stale:
            print(f"docs/{name} is not up to date: run docs/generate.py")
        return 1 if stale else 0
    for name in stale:
        (HERE / name).write_text(PAGES[name](), encoding="utf-8")
    return 0


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

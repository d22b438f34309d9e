"""Dartagnan on its own tables of PTX tests: its verdicts, and what it takes.

A checkout of Dat3M that is built (``mvn install -DskipTests -pl dartagnan -am``; Java 17, Maven) has the tool, the
tests and the tables. Each table is one command, so that Java starts once for all of its rows, with the options that
Dat3M's own tests set.
"""

from __future__ import annotations

import csv
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import Finished, run_process

JAR = Path("dartagnan", "target", "dartagnan.jar")
RESOURCES = Path("dartagnan", "src", "test", "resources")
OPTIONS = (
    "--method=eager",
    "--solver=z3",
    "--bound=1",
    "--encoding.integers=true",
    "--encoding.initializeRegisters=true",
    "--solver.z3.usePhantomReferences=true",
)
RESULT = re.compile(r"^Test: (?P<test>.+)\n(?:.*\n)*?Result: (?P<result>\w+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Tests under a model, and which of them pass; ``name`` is that of mcheck's model and property."""

    name: str
    file: str
    cat: str
    property: str


TABLES = (
    Table(name="ptx-6.0-spec", file="PTXv6_0-expected.csv", cat="ptx-v6.0.cat", property="program_spec"),
    Table(name="ptx-6.0-liveness", file="PTXv6_0-Liveness-expected.csv", cat="ptx-v6.0.cat", property="termination"),
    Table(name="ptx-7.5-spec", file="PTXv7_5-expected.csv", cat="ptx-v7.5.cat", property="program_spec"),
    Table(name="ptx-7.5-liveness", file="PTXv7_5-Liveness-expected.csv", cat="ptx-v7.5.cat", property="termination"),
)


def missing(checkout: Path | None) -> str | None:
    """Why there is nothing to run, with what to do about it."""
    if checkout is None:
        return "--dartagnan CHECKOUT names a built checkout of github.com/hernanponcedeleon/Dat3M"
    if not (checkout / JAR).is_file():
        return f"no {JAR} in {checkout}: mvn install -DskipTests -pl dartagnan -am"
    return None


def rows(checkout: Path, table: Table) -> dict[str, str]:
    """The tests of a table, as the checkout names them, and what Dat3M expects of them."""
    with (checkout / RESOURCES / table.file).open(encoding="utf-8", newline="") as file:
        return {row[0]: "pass" if int(row[1]) else "fail" for row in csv.reader(file) if row}


def write_table(checkout: Path, table: Table, folder: Path) -> Path:
    """The table as mcheck reads it: with the tests where they are, and the name that says under which model."""
    written = folder / f"{table.name}.csv"
    lines = [f"{checkout / path},{int(known == 'pass')}\n" for path, known in rows(checkout, table).items()]
    written.write_text("".join(lines), encoding="utf-8")
    return written


def command(checkout: Path, table: Table) -> list[str]:
    """The command, but for the tests."""
    fixed = ["java", "-jar", str(checkout / JAR), str(checkout / "cat" / table.cat)]
    return [*fixed, f"--property={table.property}", *OPTIONS]


def ask_dartagnan(checkout: Path, table: Table, limit: float | None = None) -> tuple[dict[str, str], Finished]:
    """What Dartagnan says of each test of a table, and what that took."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "DAT3M_HOME": str(checkout), "DAT3M_OUTPUT": folder}
        asked = [*command(checkout, table), *rows(checkout, table)]
        done = run_process(asked, limit, folder=checkout, environment=environment)
    return read_results(done.output), done


def read_results(output: str) -> dict[str, str]:
    """The verdicts that Dartagnan prints, by test: ``pass``, ``fail``, or its other words."""
    return {found["test"]: found["result"].lower() for found in RESULT.finditer(output)}

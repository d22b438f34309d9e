#!/usr/bin/env python3
"""The wheel, built and installed in an empty environment, away from the checkout; there the command is tried.

    python -m benchmarks.installed [--python PYTHON] [--lowest] [--tests [PATH ...]]

``--lowest`` installs the lowest versions of what the project depends on (the bounds in pyproject.toml), else the newest
are taken. ``--tests`` goes on to run all tests of the checkout, or those at the paths, in that environment. Needs a
network, or the packages in pip's cache. Exit status 1 if anything of it fails.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

TRIED = (
    ("mcheck", "--version"),
    ("mcheck", "models", "ptx-9.0"),
    ("mcheck", "explain", "RACE004"),
    ("mcheck", "run", "-q", "{suites}/classic"),
    ("mcheck", "check", "-q", "{suites}/bulk"),
    ("mcheck", "outcomes", "{suites}/classic/2+2W+rels.litmus", "--graph", "1", "-o", "picture.svg"),
    ("mcheck", "doc", "{suites}/atomics", "-o", "site"),
)
"""Commands that need the models, the suites, the templates and every dependency."""

SUITES = "from mcheck.base.resources import litmus; print(litmus())"
TYPED = "import importlib.resources as r; assert r.files('mcheck').joinpath('py.typed').is_file()"


def lowest() -> str:
    """The lower bounds of the dependencies, as constraints of pip."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return "".join(f"{re.sub('>=', '==', bound)}\n" for bound in project["dependencies"])


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints; its output and an exit if it fails."""
    # the checkout must not be found in place of what is installed
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f"$ {' '.join(map(str, command))}\n{done.stdout}exit status {done.returncode}")
        raise SystemExit(1)
    return done.stdout


def main() -> int:
    """Prints what was installed and tried; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the environment (%(default)s)")
    parser.add_argument("--lowest", action="store_true", help="the lowest versions of the dependencies")
    parser.add_argument("--tests", nargs="*", metavar="PATH", help="tests of the checkout as well (all)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mcheck-installed-") as name:
        folder = Path(name)
        run(options.python, "-m", "venv", folder / "env", cwd=folder)
        binaries = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
        python = binaries / "python"
        run(python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder / "dist", ROOT, cwd=folder)
        (wheel,) = (folder / "dist").glob("mcheck_ptx-*.whl")
        constraints = folder / "constraints.txt"
        constraints.write_text(lowest() if options.lowest else "", encoding="utf-8")
        extra = "" if options.tests is None else "[dev]"
        run(python, "-m", "pip", "install", "--quiet", "--constraint", constraints, f"{wheel}{extra}", cwd=folder)
        run(python, "-m", "pip", "check", cwd=folder)
        print(run(python, "-V", cwd=folder) + run(python, "-m", "pip", "freeze", cwd=folder), end="", flush=True)
        run(python, "-c", TYPED, cwd=folder)
        suites = run(python, "-c", SUITES, cwd=folder).strip()
        for command in TRIED:
            program, *arguments = (part.format(suites=suites) for part in command)
            run(binaries / program, *arguments, cwd=folder)
            print("ok  ", " ".join(command), flush=True)
        if options.tests is not None:
            print(
                run(python, "-m", "pytest", "-q", "-n", "2", "--tier", "all", *options.tests, cwd=ROOT).splitlines()[-1]
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())

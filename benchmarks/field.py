#!/usr/bin/env python3
"""Models that others wrote: how many of a folder's load, and why the rest do not.

    python -m benchmarks.field FOLDER [--verbose]

Every file ``*.cat`` under FOLDER is read as a model of its own, with the includes that it finds beside it. A file that
is only a part of others (it uses names that they define) counts among those with an unknown name. Exit status 1 if one
fails in another way than by an error of the model.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from mcheck.base.errors import InputError
from mcheck.cat import load_model

WHY = {
    "CAT012": "parts of cat for bell files or over sets of sets",
    "CAT020": "a name that nothing binds",
    "CAT040": "an included file that is not there",
    "CAT045": "sets of sets where a relation is needed",
    "CAT046": "values that depend on the execution",
    "CAT047": "a choice that is not that of co",
}


def main() -> int:
    """Prints the table; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--verbose", action="store_true", help="a line for each file that does not load")
    options = parser.parse_args()
    files = sorted(options.folder.rglob("*.cat"))
    refused: Counter[str] = Counter()
    crashed = 0
    for path in files:
        try:
            load_model(str(path))
        except InputError as error:
            refused[error.code or ""] += 1
            if options.verbose:
                print(f"{path.relative_to(options.folder)}: {error.message}")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is to be counted and named
            crashed += 1
            print(f"{path.relative_to(options.folder)}: {type(error).__name__}: {error}")
    print(f"{len(files)} files: {len(files) - refused.total() - crashed} load")
    for code, count in refused.most_common():
        print(f"{count:>6}  {code}  {WHY.get(code, 'other errors of the model')}")
    return 1 if crashed else 0


if __name__ == "__main__":
    sys.exit(main())

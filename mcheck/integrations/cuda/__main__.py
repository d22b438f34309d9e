"""``python -m mcheck.integrations.cuda FILE`` compiles the launch recorder into the shared library FILE."""

from __future__ import annotations

import sys

from mcheck.base.errors import InputError
from mcheck.integrations.cuda import build


def main(arguments: list[str]) -> int:
    """Exit status: 0 if the library was built, 2 if not."""
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.stderr.write("usage: python -m mcheck.integrations.cuda FILE\n")
        return 2
    try:
        build(arguments[0])
    except InputError as error:
        sys.stderr.write(f"error: {error.message}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

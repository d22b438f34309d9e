"""``mcheck playground``."""

from __future__ import annotations

import click


@click.command("playground", short_help="Write a page that runs mcheck in a browser.")
@click.option("-o", "--output", "folder", required=True, metavar="DIR", help="Output folder, new or empty.")
@click.option(
    "--pyodide",
    default="node_modules/pyodide",
    show_default=True,
    metavar="DIR",
    help="Folder of the npm package pyodide.",
)
@click.option("--z3", metavar="WHEEL", help="A wheel of z3-solver for this Pyodide, to enable the z3 engine.")
@click.option("--home", default="", metavar="ADDRESS", help="Where the name at the top of the page leads.")
def command(folder: str, pyodide: str, z3: str | None, home: str) -> int:
    """Write a static page with an editor that runs mcheck in the browser: verdicts, outcomes, pictures, links.

    The page fetches nothing from other sites. Any server of static files will do; browsers do not run it from file://.

    \b
    npm install pyodide
    mcheck playground -o site/playground
    python -m http.server -d site
    """
    from mcheck.tools.playground.build import build

    build(folder, pyodide, z3, home)
    click.echo(f"{folder.rstrip('/')}/index.html")
    return 0

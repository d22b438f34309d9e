"""``mcheck cache``."""

from __future__ import annotations

import click


@click.command("cache", short_help="Show or prune the answers that --cache keeps.")
@click.argument("folder", metavar="DIR")
@click.option("--unused", type=click.IntRange(min=0), metavar="DAYS", help="Remove answers not used for DAYS.")
@click.option("--others", is_flag=True, help="Remove the answers of other versions of mcheck, which nobody asks for.")
@click.option("--clear", is_flag=True, help="Remove all answers.")
@click.option("--check", is_flag=True, help="Read everything, and say whether it is sound.")
def command(folder: str, unused: int | None, others: bool, clear: bool, check: bool) -> int:
    """Show what the cache in DIR holds, after removing what the options name.

    `--cache DIR` of run, check, doc and outcomes keeps answers there: by the text of program and model, the options and
    mcheck's own code. An answer that a limit of time or memory cut is not kept.

    \b
    mcheck cache ~/.cache/mcheck
    mcheck cache ~/.cache/mcheck --unused 30 --others
    """
    import os

    from mcheck.errors import InputError
    from mcheck.report.text import count
    from mcheck.store.database import FILE, opened

    if not os.path.exists(os.path.join(folder, FILE)):
        raise InputError(f"there is no cache in {folder}", hint="--cache of run, check, doc and outcomes makes one")
    with opened(folder) as store:
        assert store is not None
        if check:
            store.check()
        gone = store.prune(unused=0 if clear else unused, others=others)
        there = store.contents()
    removed = f", {gone} removed" if gone or clear or others or unused is not None else ""
    own = "" if there.own == there.answers else f" ({there.own} of this version)"
    click.echo(f"{there.path}: {count(there.answers, 'answer', 'answers')}{own}, {_size(there.bytes)}{removed}")
    if there.days:
        click.echo(f"the longest unused was used {count(there.days, 'day', 'days')} ago")
    if check:
        click.echo("sound")
    return 0


def _size(number: int) -> str:
    return f"{number / (1 << 20):.1f} MiB" if number >= 1 << 20 else f"{number / (1 << 10):.1f} KiB"

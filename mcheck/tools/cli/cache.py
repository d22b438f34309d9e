"""``mcheck cache``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mcheck.checking.cache.database import Store


@click.command("cache", short_help="Show or prune a cache of answers.")
@click.argument("folder", metavar="DIR")
@click.option("--unused", type=click.IntRange(min=0), metavar="DAYS", help="Remove answers not used for DAYS.")
@click.option("--others", is_flag=True, help="Remove the answers of other versions of mcheck.")
@click.option("--clear", is_flag=True, help="Remove all answers.")
@click.option("--check", is_flag=True, help="Verify every entry.")
def command(folder: str, unused: int | None, others: bool, clear: bool, check: bool) -> int:
    """Show the contents of the cache in DIR, after removing the answers that the options select.

    `--cache DIR` of run, check, doc and outcomes stores answers there, keyed by the texts of program and model, the
    options and the code of mcheck. Answers cut by a time or memory limit are not stored.

    \b
    mcheck cache ~/.cache/mcheck
    mcheck cache ~/.cache/mcheck --unused 30 --others
    """
    import os

    from mcheck.base.errors import InputError
    from mcheck.checking.cache.database import FILE, open_store
    from mcheck.report.text import count

    if not os.path.exists(os.path.join(folder, FILE)):
        raise InputError(
            f"there is no cache in {folder}", hint="run, check, doc and outcomes create one with --cache DIR"
        )
    with open_store(folder) as store:
        assert store is not None
        bad = _damaged(store) if check else 0
        gone = store.prune(unused=0 if clear else unused, others=others)
        there = store.statistics()
    removed = f", {gone} removed" if gone or clear or others or unused is not None else ""
    own = "" if there.own == there.answers else f" ({there.own} of this version)"
    click.echo(f"{there.path}: {count(there.answers, 'answer', 'answers')}{own}, {_size(there.bytes)}{removed}")
    if there.days:
        click.echo(f"least recently used: {count(there.days, 'day', 'days')} ago")
    if bad:
        message = f"{there.path}: {count(bad, 'answer', 'answers')} damaged, or stored under the key of other inputs"
        raise InputError(message, hint="runs ignore these answers; --clear removes all")
    if check:
        click.echo("all entries are valid")
    return 0


def _damaged(store: Store) -> int:
    """The number of entries that are damaged or do not answer the texts of their key. Entries of other versions, which
    no run reads, are only checked for being as they were written.
    """
    from mcheck.checking.cache.entries import unpack_entry
    from mcheck.checking.cache.packing import InvalidAnswer, unpack
    from mcheck.checking.result_cache import is_stopped_result
    from mcheck.checking.run.result import Result
    from mcheck.report.site.content import Page

    kinds: dict[str, type[Result | Page]] = {"run": Result, "check": Result, "doc": Page}

    def sound(key: bytes, data: bytes) -> bool:
        try:
            made, answer = unpack_entry(data)
            kind = kinds.get(made.command)
            found = None if kind is None else unpack(kind, answer, "", elsewhere=True)
        except InvalidAnswer:
            return False
        return found is not None and made.key() == key and (made.fits(found) or is_stopped_result(found))

    return store.count_damaged() + sum(not sound(key, data) for key, data in store.own_answers())


def _size(number: int) -> str:
    return f"{number / (1 << 20):.1f} MiB" if number >= 1 << 20 else f"{number / (1 << 10):.1f} KiB"

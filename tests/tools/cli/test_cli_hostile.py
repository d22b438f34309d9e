"""What a cache, a resume file or a machine adds loosens no limit, and what others wrote reads no files of ours."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from benchmarks.processes import spent
from mcheck.checking.cache.database import FILE, Store, open_store
from mcheck.checking.cache.keys import version

PATIENCE = 120
"""Seconds after which something waits that should not, however busy the machine is."""

MODEL = '"slow"\n' + "let a = po | rf | co\n" * 9000 + "acyclic a as Order\n"
RACY = """PTX racy
{ x=0; f=0; }
 P0@cta 0,gpu 0         | P1@cta 1,gpu 0        ;
 st.weak x, 1           | ld.weak r1, x         ;
"""
CLEAN = """PTX clean
{ x=0; f=0; }
 P0@cta 0,gpu 0         | P1@cta 1,gpu 0        ;
 st.relaxed.gpu x, 1    | ld.relaxed.gpu r1, x  ;
"""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    started = time.monotonic()
    yield
    assert time.monotonic() - started < seconds


# --- limits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", ["--cache", "--resume"])
@pytest.mark.parametrize("command", ["run", "check"])
def test_a_pipe_is_waited_for_as_long_as_a_test_may_take(
    mcheck: Callable, tmp_path: Path, store: str, command: str
) -> None:
    os.mkfifo(tmp_path / "pipe.litmus")
    with within(PATIENCE):
        done = mcheck(command, tmp_path / "pipe.litmus", "--timeout", 0.3, store, tmp_path / "c")
    assert done.status == 3
    assert "no answer within 0.3 s" in done.out


def test_a_module_that_is_a_pipe(mcheck: Callable, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.ptx")
    with within(PATIENCE):
        assert mcheck("check", tmp_path / "pipe.ptx", "--timeout", 0.3, "--cache", tmp_path / "c").status == 3


@pytest.mark.daily
@pytest.mark.parametrize("command", ["run", "check", "outcomes", "doc"])
def test_a_model_and_an_include_that_are_pipes(
    mcheck: Callable, litmus: Callable, tmp_path: Path, command: str
) -> None:
    os.mkfifo(tmp_path / "pipe.cat")
    os.mkfifo(tmp_path / "pipe.inc")
    named = litmus("named", text=CLEAN.replace("{ x", "model pipe.cat\n{ x"))
    including = litmus("including", text='PTX including\n{ .global .u32 x; }\ninclude "pipe.inc"\nP0@cta 0 { }\n')
    site = ("-o", tmp_path / "site") if command == "doc" else ()
    for path in (named, including):
        with within(PATIENCE):
            mcheck(command, path, "--timeout", 0.3, "--cache", tmp_path / "c", *site)


def test_a_pipe_is_read_once(mcheck: Callable, tmp_path: Path) -> None:
    """As the shell's ``<(...)`` is."""
    read, write = os.pipe()
    os.write(write, CLEAN.encode())
    os.close(write)
    done = mcheck("check", f"/dev/fd/{read}", "--cache", tmp_path / "c", "--jobs", 1)
    os.close(read)
    assert done.status == 0


@pytest.mark.daily(days=4, least=0)
def test_a_slow_model_takes_the_time_of_its_test(mcheck: Callable, litmus: Callable, tmp_path: Path) -> None:
    (tmp_path / "slow.cat").write_text(MODEL)
    path = litmus("slow", text=CLEAN.replace("{ x", "model slow.cat\n{ x"))
    seconds = []
    for more in ((), ("--cache", tmp_path / "c"), ("--resume", tmp_path / "r")):
        before = spent()
        mcheck("run", path, "--cpu-timeout", 0.5, *more)
        seconds.append(spent() - before)
    assert max(seconds[1:]) < seconds[0] + 2


@pytest.mark.daily
@pytest.mark.parametrize("command", ["run", "doc"])
def test_a_locked_cache_is_waited_for_within_the_limit(
    mcheck: Callable, litmus: Callable, tmp_path: Path, command: str
) -> None:
    path = litmus("a", text=CLEAN)
    with open_store(str(tmp_path / "c")):
        pass
    site = ("-o", tmp_path / "site") if command == "doc" else ()
    with closing(sqlite3.connect(tmp_path / "c" / FILE, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with within(PATIENCE):
            done = mcheck(command, path, "--timeout", 2, "--cache", tmp_path / "c", *site)
    assert done.status == 0
    assert "continuing without the cache" in done.err
    assert "locked" in done.err


def test_a_writer_that_stays(mcheck: Callable, litmus: Callable, tmp_path: Path) -> None:
    """What is there is read; what is new is not kept, and that is waited for once."""
    paths = [litmus(name, text=CLEAN + f"// {name}\n") for name in "abcdef"]
    first = mcheck("run", paths[0], "--cache", tmp_path / "c")
    with closing(sqlite3.connect(tmp_path / "c" / FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with within(PATIENCE):
            done = mcheck("run", *paths, "--timeout", 4, "--cache", tmp_path / "c")
    assert (first.status, done.status) == (0, 0)
    assert done.err.count("no more results are stored in the cache") == 1


# --- a full disk --------------------------------------------------------------------------------------------------


def _full(connection: sqlite3.Connection) -> None:
    """From now on the file cannot grow, as on a full disk."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")


@pytest.mark.parametrize("option", ["--cache", "--resume"])
def test_a_full_disk_costs_the_cache_alone(
    mcheck: Callable, tmp_path: Path, litmus: Callable, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    paths = [litmus(name, text=CLEAN + f"// {os.urandom(9000).hex()}\n") for name in "abc"]
    before = Store.__init__

    def small(self: Store, *given: object, **named: object) -> None:
        before(self, *given, **named)
        _full(self._file)

    monkeypatch.setattr(Store, "__init__", small)
    done = mcheck("run", *paths, option, tmp_path / "c", "--jobs", 1)
    assert done.status == 0
    assert done.err.count("warning") == 1
    assert "no more results are stored in the cache" in done.err
    assert "full" in done.err


def test_no_room_for_a_cache(
    mcheck: Callable, tmp_path: Path, litmus: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> object:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.mkstemp", full)
    done = mcheck("run", litmus("a", text=CLEAN), "--cache", tmp_path / "c", "--jobs", 1)
    assert done.status == 0
    assert "continuing without the cache" in done.err
    assert "No space left on device" in done.err


# --- answers under other keys -------------------------------------------------------------------------------------


def test_an_answer_copied_under_another_key(mcheck: Callable, litmus: Callable, tmp_path: Path) -> None:
    """Sealed anew, as whoever can write to the file may do."""
    clean, racy = litmus("clean", text=CLEAN), litmus("racy", text=RACY)
    cache = tmp_path / "c"
    assert mcheck("check", clean, "--cache", cache).status == 0
    fresh = mcheck("check", racy, "--cache", tmp_path / "other")
    assert fresh.status == 1
    mcheck("check", racy, "--cache", cache)
    with open_store(str(cache)) as store:
        assert store is not None
        entries = dict(store.own_answers())
        for key, other in zip(entries, reversed(entries.values()), strict=True):
            store.remove(key)
            store.put(key, other)
    assert mcheck("cache", cache, "--check").status == 2
    assert mcheck("check", racy, "--cache", cache) == fresh
    assert mcheck("check", clean, "--cache", cache).status == 0
    assert mcheck("cache", cache, "--check").status == 0


def test_what_the_key_was_made_of_is_compared_too(mcheck: Callable, litmus: Callable, tmp_path: Path) -> None:
    """The answer of the clean test behind what the key of the racy one was made of."""
    from mcheck.checking.cache.entries import pack_entry, unpack_entry

    cache = tmp_path / "c"
    for path in (litmus("clean", text=CLEAN), litmus("racy", text=RACY)):
        mcheck("check", path, "--cache", cache)
    with open_store(str(cache)) as store:
        assert store is not None
        entries = dict(store.own_answers())
        made = {key: unpack_entry(data) for key, data in entries.items()}
        (one, (its, own)), (two, (others, other)) = made.items()
        for key, head, answer in ((one, its, other), (two, others, own)):
            store.remove(key)
            store.put(key, pack_entry(head, answer))
    assert mcheck("cache", cache, "--check").status == 2
    assert mcheck("check", tmp_path / "racy.litmus", "--cache", cache).status == 1


@pytest.mark.daily(days=4)
@pytest.mark.parametrize("row", ["text", "null", "number", "long", "days"])
def test_rows_of_other_types(mcheck: Callable, litmus: Callable, tmp_path: Path, row: str) -> None:
    cache = tmp_path / "c"
    path = litmus("a", text=CLEAN)
    first = mcheck("run", path, "--cache", cache)
    changes = {
        "text": "answer = 'words'",
        "null": "seal = ''",
        "number": "answer = 7",
        "long": "answer = zeroblob(100000000)",
        "days": "day = 'today'",
    }
    with closing(sqlite3.connect(cache / FILE)) as other, other:
        other.execute(f"UPDATE answers SET {changes[row]}")
    assert mcheck("cache", cache).status == 0
    assert mcheck("cache", cache, "--check").status == 2
    assert mcheck("run", path, "--cache", cache) == first
    assert mcheck("cache", cache, "--check").status == 0


def test_a_long_row_is_not_read(tmp_path: Path) -> None:
    with closing(Store(str(tmp_path), version())) as store:
        store.put(b"k", bytes(40 << 20))
        assert store.get(b"k") is None


# --- files that are named -----------------------------------------------------------------------------------------

SECRET = "secret-word of somebody else\n"


@pytest.fixture
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("elsewhere") / "secret.cat"
    path.write_text(SECRET)
    return path


@pytest.mark.daily
@pytest.mark.parametrize("command", ["run", "check", "outcomes", "doc"])
@pytest.mark.parametrize("how", ["model", "include", "link", "linked include", "up", "definitions"])
def test_no_text_of_another_folder(
    mcheck: Callable, litmus: Callable, tmp_path: Path, secret: Path, how: str, command: str
) -> None:
    named = {
        "model": str(secret),
        "link": "link.cat",
        "up": os.path.relpath(secret, tmp_path),
    }.get(how, "mine.cat")
    (tmp_path / "link.cat").symlink_to(secret)
    (tmp_path / "mine.cat").write_text(
        f'"m"\ninclude "{"link.cat" if how == "linked include" else secret}"\nempty 0 as E\n'
    )
    text = CLEAN.replace("{ x", f"model {named}\n{{ x")
    if how == "definitions":
        text = 'PTX including\n{ .global .u32 x; }\ninclude "link.cat"\nP0@cta 0 { }\n'
    site = ("-o", tmp_path / "site") if command == "doc" else ()
    done = mcheck(command, litmus("a", text=text), *site)
    pages = "".join(p.read_text() for p in (tmp_path / "site").rglob("*.html")) if site else ""
    assert done.status == 2
    assert "secret-word" not in done.out + done.err + pages


def test_a_launch_that_is_a_link(mcheck: Callable, tmp_path: Path, secret: Path) -> None:
    (tmp_path / "k.ptx").write_text(".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() { ret; }\n")
    (tmp_path / "k.json").symlink_to(secret)
    done = mcheck("check", tmp_path / "k.ptx")
    assert "secret-word" not in done.out + done.err


def test_a_model_in_the_folder_of_the_test(mcheck: Callable, litmus: Callable, tmp_path: Path) -> None:
    """Wherever the command is run; the option takes one from anywhere."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "m.cat").write_text('"m"\ninclude "parts.cat"\nacyclic po | com as Order\n')
    (tmp_path / "sub" / "parts.cat").write_text("let com = rf | co | (rf^-1; co)\n")
    for path in (
        litmus("sub/a", text=CLEAN.replace("{ x", "model m.cat\n{ x")),
        litmus("b", text=CLEAN.replace("{ x", "model sub/m.cat\n{ x")),
    ):
        assert mcheck("run", path).status == 0
    done = mcheck("run", litmus("other/a", text=CLEAN.replace("{ x", "model ../sub/m.cat\n{ x")))
    assert done.status == 2
    assert "--model FILE.cat takes one from anywhere" in done.err
    assert mcheck("run", litmus("other/b", text=CLEAN), "--model", tmp_path / "sub" / "m.cat").status == 0


def test_two_models_of_one_name(mcheck: Callable, litmus: Callable, tmp_path: Path) -> None:
    """Each test has the one in its own folder, in one process and with a cache."""
    text = RACY.replace("{ x", "model m.cat\n{ x") + "exists (P1:r1 == 1)\n"
    one, two = litmus("one/a", text=text), litmus("two/a", text=text)
    (one.parent / "m.cat").write_text('"m"\nempty 0 as E\n')
    (two.parent / "m.cat").write_text('"m"\nempty rf as E\n')
    for more in ((), ("--cache", tmp_path / "c"), ("--cache", tmp_path / "c")):
        done = mcheck("run", one, two, "--format", "json", "--jobs", 1, *more)
        assert [row["verdict"] for row in json.loads(done.out)["tests"]] == ["pass", "fail"]


# --- what is written ----------------------------------------------------------------------------------------------


def test_nothing_is_written_through_a_link(mcheck: Callable, litmus: Callable, tmp_path: Path) -> None:
    path = litmus("a", text=CLEAN)
    (tmp_path / "theirs").write_text("theirs")
    for name, target in (("link", "theirs"), ("loose", "nowhere")):
        (tmp_path / name).symlink_to(target)
        done = mcheck("run", path, "-o", tmp_path / name)
        assert done.status == 2
        assert f"it is a link to {tmp_path / target}" in done.err
    assert (tmp_path / "theirs").read_text() == "theirs"
    assert not (tmp_path / "nowhere").exists()
    (tmp_path / "folder").mkdir()
    (tmp_path / "linked").symlink_to("folder")
    assert mcheck("run", path, "-o", tmp_path / "linked" / "report").status == 0, "a folder may be one"
    assert mcheck("run", path, "-o", tmp_path / "theirs").status == 0
    assert "theirs" not in (tmp_path / "theirs").read_text().split()


def test_annotations_hold_no_commands_of_terminals(mcheck: Callable, litmus: Callable) -> None:
    path = litmus("\x1b[2Jgone\x9b1m", text=RACY + "exists (P1:r1 == 5)\nexpect pass\n")
    done = mcheck("run", path, "--format", "github")
    assert done.status == 1
    assert "\\x1b[2Jgone\\x9b1m" in done.out
    assert not {"\x1b", "\x9b"} & set(done.out)

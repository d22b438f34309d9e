"""``--cache``: nothing twice, nothing wrong, and a store that says what is the matter with it."""

from __future__ import annotations

import importlib
import json
import os
import pickle
import sqlite3
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.cache import crowd
from mcheck.answers.result import Answer, Outcome
from mcheck.base.errors import Span
from mcheck.base.reasons import timeout_reason
from mcheck.checking.cache import packing
from mcheck.checking.cache.database import FILE, Store, open_store
from mcheck.checking.cache.keys import cache_key, options_text, version
from mcheck.checking.run.result import Result
from mcheck.findings.finding import Access, Finding

MINE = '"mine"\ninclude "parts.cat"\nacyclic (po | rf | co | fr) as Order\n'
PARTS = "let fr = (rf^-1; co)\n"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def called(engine_says: Callable) -> list[str]:
    """The names of the tests that an engine is asked about, as they come."""

    class Names(list):
        def __init__(self, calls: list) -> None:
            self.calls = calls

        def take(self) -> list[str]:
            names = [str(call["name"]) for call in self.calls]
            self.calls.clear()
            return names

    return Names(engine_says({"cut": Answer(verdict="unknown", complete=False, reasons=(timeout_reason(1),))}))


# --- nothing twice ------------------------------------------------------------------------------------------------


def test_a_second_run_asks_nobody(mcheck: Callable, litmus: Callable, cache: Path, called: list) -> None:
    paths = [litmus("a"), litmus("b")]
    first = mcheck("run", *paths, "--cache", cache, "--jobs", 1)
    assert called.take() == ["a", "b"]
    assert mcheck("run", *paths, "--cache", cache, "--jobs", 1) == first
    assert called.take() == []
    mcheck("run", *paths, "--jobs", 1)
    assert called.take() == ["a", "b"], "without --cache nothing is kept"


@pytest.mark.daily
@pytest.mark.parametrize("command", ["run", "check", "outcomes"])
@pytest.mark.parametrize("form", ["text", "json"])
def test_the_same_is_said(mcheck: Callable, litmus: Callable, cache: Path, command: str, form: str) -> None:
    """Also of findings with their places, where the same text lies elsewhere and a table expects something else."""
    text = litmus("MP").read_text().replace("st.release.gpu", "st.weak")
    path, other = litmus("here", text=text), litmus("sub/here", text=text)
    mcheck(command, path, "--cache", cache)
    fresh = mcheck(command, other, "--format", form)
    kept = mcheck(command, other, "--format", form, "--cache", cache)
    assert _without_seconds(kept.out, form) == _without_seconds(fresh.out, form)
    assert kept.status == fresh.status


def _without_seconds(text: str, form: str) -> object:
    if form == "text":
        return text

    def dropped(pairs: list) -> dict:
        return {key: value for key, value in pairs if key != "seconds"}

    return json.loads(text, object_pairs_hook=dropped)


def test_an_edit_computes_what_it_touches(mcheck: Callable, litmus: Callable, tmp_path: Path, called: list) -> None:
    paths = [litmus("a"), litmus("b")]
    mine = tmp_path / "mine.cat"
    mine.write_text(MINE)
    (tmp_path / "parts.cat").write_text(PARTS)

    def run(*more: object) -> list[str]:
        mcheck("run", *paths, "--cache", tmp_path / "cache", "--jobs", 1, *more)
        return called.take()

    assert (run(), run("--model", mine)) == (["a", "b"], ["a", "b"])
    litmus("b", "// edited")
    assert (run(), run("--model", mine)) == (["b"], ["b"])
    mine.write_text(MINE.replace("acyclic", "irreflexive"))
    os.utime(mine, ns=(1, 1))
    assert (run(), run("--model", mine)) == ([], ["a", "b"])
    (tmp_path / "parts.cat").write_text(f"{PARTS}let more = fr\n")
    os.utime(mine, ns=(2, 2))  # a process reads an include again when the model has changed
    assert (run(), run("--model", mine)) == ([], ["a", "b"])
    assert run("--unroll", 3) == ["a", "b"]
    assert run("--timeout", 60) == [], "an answer holds whatever time it has"


def test_a_model_that_the_file_names(mcheck: Callable, litmus: Callable, cache: Path, called: list) -> None:
    text = litmus("a").read_text().replace("{ x=0", "model sc\n{ x=0")
    for _ in range(2):
        mcheck("run", litmus("a", text=text), "--cache", cache)
    assert called.take() == ["a"]
    mcheck("run", litmus("a", text=text.replace("model sc", "model ptx-7.5")), "--cache", cache)
    assert called.take() == ["a"]


def test_what_time_has_cut_is_asked_again(mcheck: Callable, litmus: Callable, cache: Path, called: list) -> None:
    for _ in range(2):
        assert mcheck("run", litmus("cut"), "--cache", cache).status == 3
        assert "cut" in called.take()


def test_what_a_table_expects_is_not_kept(mcheck: Callable, litmus: Callable, tmp_path: Path, called: list) -> None:
    path = litmus("a")
    (tmp_path / "rows.csv").write_text("a.litmus,0\n")
    cache = tmp_path / "cache"
    assert mcheck("run", "--expect", tmp_path / "rows.csv", "--cache", cache).status == 1
    assert mcheck("run", path, "--cache", cache).status == 0
    assert mcheck("run", "--expect", tmp_path / "rows.csv", "--cache", cache).status == 1
    assert called.take() == ["a"]


def test_a_file_that_is_edited_meanwhile(
    mcheck: Callable, litmus: Callable, cache: Path, engine_says: Callable
) -> None:
    path = litmus("a")

    def edited() -> Answer:
        return Answer(verdict="fail")

    calls = engine_says({"a": edited})
    real = path.read_text()
    path.write_text(real + "// old\n")
    loader = importlib.import_module("mcheck.checking.run.single").load_program

    def late(path: str, assume: tuple[str, ...] = (), text: str | None = None) -> object:
        Path(path).write_text(real)
        return loader(path, assume, text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mcheck.checking.run.inquiry.load_program", late)
        mcheck("run", path, "--cache", cache)
    path.write_text(real + "// old\n")
    calls.clear()
    mcheck("run", path, "--cache", cache)
    assert len(calls) == 1, "the answer was about the new text and is not kept under the old one"


@pytest.mark.daily(days=4, least=0)
def test_pages_are_kept(mcheck: Callable, litmus: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = litmus("a")
    cache = tmp_path / "cache"
    mcheck("doc", path, "-o", tmp_path / "one", "--cache", cache)
    monkeypatch.setattr("mcheck.report.site.page.make_page", None)
    mcheck("doc", path, "-o", tmp_path / "two", "--cache", cache)
    one, two = ((tmp_path / name / "tests" / "a.html").read_text() for name in ("one", "two"))
    assert one == two


# --- a store that is no good --------------------------------------------------------------------------------------


def _garbage(file: Path) -> None:
    file.write_bytes(b"not a database at all" * 200)


def _foreign(file: Path) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as other:
        other.execute("CREATE TABLE notes(text)")


def _newer(file: Path) -> None:
    with closing(sqlite3.connect(file)) as other:
        other.execute("PRAGMA user_version = 99")


def _altered(file: Path) -> None:
    with closing(sqlite3.connect(file)) as other, other:
        other.execute("UPDATE answers SET answer = x'00'")


def _swapped(file: Path) -> None:
    with closing(sqlite3.connect(file)) as other, other:
        other.execute("UPDATE answers SET answer = (SELECT answer FROM answers b WHERE b.key != answers.key)")


def _letters(file: Path) -> None:
    with closing(sqlite3.connect(file)) as other, other:
        other.execute("CREATE TABLE others(text)")
    file.write_bytes(file.read_bytes().replace(b"others", b"\xff\xfe\xff\xfe\xff\xfe"))


def _trigger(file: Path) -> None:
    with closing(sqlite3.connect(file)) as other, other:
        other.execute("CREATE TRIGGER more AFTER INSERT ON answers BEGIN DELETE FROM answers; END")


def _view(file: Path) -> None:
    """A table that never ends."""
    with closing(sqlite3.connect(file)) as other, other:
        other.execute("DROP TABLE answers")
        other.execute(
            "CREATE VIEW answers AS WITH RECURSIVE n(key) AS (SELECT 1 UNION ALL SELECT key + 1 FROM n)"
            " SELECT key, key AS version, key AS day, key AS answer, key AS seal FROM n"
        )


def _overwritten(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[4096:] = b"\xff" * len(data[4096:])
    file.write_bytes(data)


@pytest.mark.daily
@pytest.mark.parametrize("damage", [_garbage, _foreign, _newer, _overwritten, _letters, _trigger, _view])
def test_damage_is_told(mcheck: Callable, litmus: Callable, cache: Path, damage: Callable) -> None:
    paths = [litmus("a"), litmus("b")]
    mcheck("run", *paths, "--cache", cache)
    damage(cache / FILE)
    done = mcheck("run", *paths, "--cache", cache)
    assert (done.status, done.out) == (2, "")
    assert f"cannot use the cache {cache / FILE}" in done.err
    assert "remove the file" in done.err
    (cache / FILE).unlink()
    assert mcheck("run", *paths, "--cache", cache).status == 0


@pytest.mark.parametrize("damage", [_altered, _swapped])
def test_a_damaged_answer_is_none(
    mcheck: Callable, litmus: Callable, cache: Path, called: list, damage: Callable
) -> None:
    paths = [litmus("a"), litmus("b")]
    first = mcheck("run", *paths, "--cache", cache, "--jobs", 1)
    called.take()
    damage(cache / FILE)
    assert mcheck("cache", cache, "--check").status == 2
    assert mcheck("run", *paths, "--cache", cache, "--jobs", 1) == first
    assert called.take(), "asked again"
    assert mcheck("run", *paths, "--cache", cache, "--jobs", 1) == first
    assert called.take() == [], "and kept in the place of what was damaged"
    assert mcheck("cache", cache, "--check").status == 0


def test_a_folder_that_cannot_be(mcheck: Callable, litmus: Callable, tmp_path: Path) -> None:
    path = litmus("a")
    done = mcheck("run", path, "--cache", path)
    assert done.status == 2
    assert "cannot use the cache" in done.err


class _Evil:
    def __reduce__(self) -> tuple:
        return os.mkdir, ("evil",)


def test_nothing_is_made_but_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for payload in (_Evil(), Path("x"), print):
        with pytest.raises(packing.InvalidAnswer):
            packing.unpack(Result, zlib.compress(pickle.dumps(payload)), "a")
    for data in (b"", zlib.compress(b""), zlib.compress(b"\x80\x05K\x01"), zlib.compress(b"[]")[:-1]):
        with pytest.raises(packing.InvalidAnswer):
            packing.unpack(Result, data, "a")
    assert not (tmp_path / "evil").exists()


RESULT = Result(path="a.litmus", name="a", verdict="pass", model="sc", source="PTX a", outcomes=(Outcome(state=()),))


OTHERS = (None, True, 7, 1.5, "x", [], [[]], [None], [["x", [1, 2]]], [[[["x", 1]], "y", []]], "deep", {"a": 1})


@pytest.mark.parametrize("value", OTHERS, ids=str)
def test_no_field_holds_what_it_cannot(value: object) -> None:
    """Each field with values of other types: an answer of the declared types, or none."""
    fields = json.loads(zlib.decompress(packing.pack(RESULT, "a.litmus")))
    for place in range(len(fields)):
        text = json.dumps([*fields[:place], "HERE", *fields[place + 1 :]])
        text = text.replace('"HERE"', "[" * 5000 + "]" * 5000 if value == "deep" else json.dumps(value))
        try:
            found = packing.unpack(Result, zlib.compress(text.encode()), "a.litmus")
        except packing.InvalidAnswer:
            continue
        assert packing.unpack(Result, packing.pack(found, "a.litmus"), "a.litmus") == found


@pytest.mark.daily(days=8, least=0)
@pytest.mark.parametrize(
    "text",
    [
        lambda: b'"' + b"x" * (1 << 30) + b'"',
        lambda: b"[" + b"[]," * (packing.MAX_SIZE // 3) + b"[]]",
        lambda: b"[" * (packing.MAX_SIZE - 1),
        lambda: b"9" * (packing.MAX_SIZE - 1),
        lambda: b"NaN",
    ],
    ids=["long", "lists", "deep", "digits", "constant"],
)
def test_a_small_row_takes_little_memory(text: Callable[[], bytes]) -> None:
    """The text of one has a gigabyte, which no other test is to have beside it."""
    data = zlib.compress(text(), 9)
    tracemalloc.start()
    try:
        with pytest.raises(packing.InvalidAnswer):
            packing.unpack(Result, data, "a")
        assert tracemalloc.get_traced_memory()[1] < 128 << 20
    finally:
        tracemalloc.stop()


def test_a_place_in_another_file_is_not_shown() -> None:
    """A row that somebody else wrote makes no report print a line of any file."""
    there = Span("/etc/passwd", 1, 1)
    warned = replace(RESULT, warnings=(("look", there),))
    for elsewhere in (False, True):
        with pytest.raises(packing.InvalidAnswer):
            packing.pack(warned, "a.litmus", elsewhere=elsewhere)
    told = Access(thread="P0", instruction="st", span=Span("a.litmus", 3, 4), source=(there,))
    finding = Finding(code="RACE001", kind="race", severity="error", said=("",), accesses=(told,))
    data = packing.pack(replace(RESULT, findings=(finding,)), "a.litmus", elsewhere=True)
    with pytest.raises(packing.InvalidAnswer):
        packing.unpack(Result, data, "a.litmus")
    assert packing.unpack(Result, data, "a.litmus", elsewhere=True).findings == (finding,)


def test_a_result_without_its_path() -> None:
    span = Span("a.litmus", 3, 4, 5)
    access = Access(thread="P0", instruction="st", span=span)
    finding = Finding(code="RACE001", kind="race", severity="error", said=("a.litmus",), accesses=(access,))
    outcome = Outcome(state=(("a.litmus", 1),))
    before = Result(path="a.litmus", name="a", verdict="pass", model="sc", findings=(finding,), outcomes=(outcome,))
    after = packing.unpack(Result, packing.pack(before, "a.litmus"), "b.litmus")
    assert after.findings[0].accesses[0].span == Span("b.litmus", 3, 4, 5)
    assert after.outcomes == before.outcomes, "a name that looks like the path is none"
    with pytest.raises(packing.InvalidAnswer):
        packing.pack(before, "b.litmus")


# --- the store ----------------------------------------------------------------------------------------------------


def test_what_a_store_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcheck.checking.cache.database._today", lambda: 20_000)
    with closing(Store(str(tmp_path), b"old")) as store:
        store.put(b"1", b"one")
    with open_store(str(tmp_path)) as store:
        assert store is not None
        assert (store.get(b"1"), store.get(b"2"), b"1" in store, b"2" in store) == (b"one", None, True, False)
        store.put(b"1", b"another")
        store.put(b"2", b"two")
        assert store.get(b"1") == b"one", "what is there stays"
        assert store.count_damaged() == 0
        there = store.statistics()
        assert (there.answers, there.own, there.bytes, there.days) == (2, 1, 6, 0)
        assert (store.prune(unused=1), store.prune(others=True), store.prune(unused=0)) == (0, 1, 1)
    with open_store(None) as none:
        assert none is None


def test_keys_tell_apart() -> None:
    keys = {
        cache_key(options_text({"unroll": 2}), (b"a", b"b")),
        cache_key(options_text({"unroll": 3}), (b"a", b"b")),
        cache_key(options_text({"unroll": 2}), (b"ab", b"")),
        cache_key(options_text({"unroll": 2}), (b"b", b"a")),
        cache_key(options_text({"unroll": 2}), (b"a",)),
    }
    assert len(keys) == 5
    assert len(version()) == 16


def test_the_command(mcheck: Callable, litmus: Callable, cache: Path) -> None:
    absent = mcheck("cache", cache)
    assert absent.status == 2
    assert not cache.exists()
    mcheck("run", litmus("a"), litmus("b"), "--cache", cache)
    assert mcheck("cache", cache).out.startswith(f"{cache / FILE}: 2 answers, ")
    assert mcheck("cache", cache, "--unused", 1).out.rstrip().endswith(", 0 removed")
    assert mcheck("cache", cache, "--check").out.splitlines()[-1] == "all entries are valid"
    assert ": 0 answers, 0.0 KiB, 2 removed" in mcheck("cache", cache, "--clear").out


@pytest.mark.daily(days=4, least=0)
def test_many_processes(tmp_path: Path, all_tests: bool) -> None:
    """The benchmark's crowd, for a moment."""
    assert crowd(tmp_path, processes=3, seconds=2.0 if all_tests else 1.0) == []

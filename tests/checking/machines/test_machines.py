"""Tests on other machines: by content, in batches, whatever dies on the way."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from mcheck.base.errors import InputError
from mcheck.cat.library import load_model, register_models
from mcheck.checking.cache.keys import version
from mcheck.checking.machines.batches import SECONDS, Batches
from mcheck.checking.machines.client import LOCAL, UNWATCHED, Job, _certificates, _Cluster, _Run
from mcheck.checking.machines.parcel import MAX_TESTS, Item, Parcel, Unpacked, pack_item
from mcheck.checking.machines.worker import Done, Dropped, VersionMismatch, end, work
from mcheck.checking.run.case import Case, Settings
from mcheck.checking.run.inquiry import run_case
from mcheck.checking.run.result import Result
from mcheck.checking.run.single import crashed_result
from tests.fuzz import crashing_tasks

ROOT = Path(__file__).parents[3]
TEXT = """\
PTX {name}
{{ x=0; f=0; }}
 P0@cta 0,gpu 0         | P1@cta 1,gpu 0        ;
 st.weak x, 1           | ld.acquire.gpu r0, f  ;
 st.release.gpu f, 1    | ld.weak r1, x         ;
~exists (P1:r0 == 1 /\\ P1:r1 == 0)
"""


@pytest.fixture
def litmus(tmp_path: Path) -> Callable[..., Path]:
    def write(name: str) -> Path:
        path = tmp_path / "tests" / f"{name}.litmus"
        path.parent.mkdir(exist_ok=True)
        path.write_text(TEXT.format(name=name))
        return path

    return write


def parcel(paths: list[Path], settings: Settings | None = None, task: Callable = run_case) -> Parcel:
    settings = settings or Settings()
    items = [pack_item(k, Case(str(path)), settings) for k, path in enumerate(paths)]
    assert all(isinstance(i, Item) for i in items)
    models = {name: texts for i in items if isinstance(i, Item) for name, texts in i.models}
    return Parcel(
        cases=tuple(i.case for i in items if isinstance(i, Item)),
        models=tuple(models.items()),
        settings=settings,
        task=task,
        lost=crashed_result,
        version=version(),
    )


def results(done: object) -> list[Result]:
    assert isinstance(done, Done)
    return [pickle.loads(data) for data in done.results]


def always() -> bool:
    return True


# --- what travels -------------------------------------------------------------------------------------------------


def test_tests_and_models_travel_by_content(litmus: Callable, tmp_path: Path) -> None:
    (tmp_path / "parts.cat").write_text("let fr = (rf^-1; co)\n")
    mine = tmp_path / "mine.cat"
    mine.write_text('"mine"\ninclude "parts.cat"\nacyclic (po | rf | co | fr) as Order\n')
    path = litmus("a")
    settings = Settings(model=str(mine))
    sent = parcel([path], settings)
    here = run_case(Case(str(path)), settings)
    for file in (path, mine, tmp_path / "parts.cat"):
        file.unlink()
    (there,) = results(work(pickle.dumps(sent), always))
    assert replace(there, seconds=0.0) == replace(here, seconds=0.0)
    assert there.digest == here.digest != ""


def test_a_model_from_its_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = load_model("ptx-9.3")
    assert before.texts is not None
    assert before.texts.included
    monkeypatch.setattr("mcheck.cat.model_reading._Includes._new", None)  # no file is looked for
    register_models({"elsewhere": before.texts})
    try:
        after = load_model("elsewhere")
    finally:
        register_models({})
    assert (after.statements, after.digest) == (before.statements, before.digest)
    with pytest.raises(InputError):
        load_model("elsewhere")


def test_what_cannot_be_read_does_not_travel(litmus: Callable, tmp_path: Path) -> None:
    assert pack_item(3, Case(str(tmp_path / "absent")), Settings()) == Unpacked(3)
    assert pack_item(4, Case(str(litmus("a"))), Settings(model="absent")) == Unpacked(4)


def test_another_version_is_told(litmus: Callable) -> None:
    sent = replace(parcel([litmus("a")]), version=b"another")
    assert work(pickle.dumps(sent), always) == VersionMismatch(version())


# --- what dies ----------------------------------------------------------------------------------------------------


@pytest.mark.daily(days=4, least=0)
def test_a_test_that_kills_twice_is_given_up(litmus: Callable, tmp_path: Path) -> None:
    paths = [litmus(name) for name in ("a", "falls", "b", "stumbles", "c")]
    said = results(work(pickle.dumps(parcel(paths, task=crashing_tasks.falls)), always))
    assert [r.verdict for r in said] == ["pass", "unknown", "pass", "pass", "pass"]
    assert said[1].reason == "2 processes died while running the test, the last one with signal 9; giving up"
    assert said[1].cut
    attempts = (tmp_path / "tests" / "attempts").read_text().split()
    assert attempts == ["a", "falls", "falls", "b", "stumbles", "stumbles", "c"]


def test_a_limit_holds_elsewhere(litmus: Callable) -> None:
    sent = parcel([litmus("a")], Settings(timeout=0.01), task=crashing_tasks.sleeps)
    (said,) = results(work(pickle.dumps(sent), always))
    assert said.verdict in ("pass", "unknown"), "its own process, which has its own time"


def test_what_nobody_waits_for_is_dropped(litmus: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcheck.checking.machines.worker.GLANCE", 0.01)
    with pytest.raises(Dropped):
        work(pickle.dumps(parcel([litmus("a")], task=crashing_tasks.sleeps)), lambda: False)


# --- batches ------------------------------------------------------------------------------------------------------


def items(count: int, length: int) -> list[Item]:
    return [Item(k, Case(str(k), text="x" * length), ()) for k in range(count)]


def test_batches_are_cut_by_cost() -> None:
    batches = Batches(iter([*items(40, 1000), *items(40, 2000), *items(1000, 10)]))
    first = batches.next_batch()
    assert 1 <= len(first) < 40
    batches.record_time(first, 0.1 * len(first))  # a text of 1,000 characters takes a tenth of a second
    sizes = [len(first)]
    while batch := batches.next_batch():
        batches.record_time(batch, sum(0.1 * (len(i.case.text or "") / 1000) ** 2 for i in batch))
        sizes.append(len(batch))
    assert sum(sizes) == 1080
    assert max(sizes) == MAX_TESTS
    assert sizes[1] == pytest.approx(SECONDS / 0.1, abs=1)
    assert min(sizes[4:-1]) >= 2, "a test of twice the length counts four times"


# --- a cluster ----------------------------------------------------------------------------------------------------


def mcheck(*arguments: object, wait: bool = True) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "mcheck", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    if wait:
        process.wait(120)
    return process


@pytest.fixture
def dask() -> None:
    pytest.importorskip("distributed", reason="Dask is not installed (the extra distributed)")


def test_without_dask_it_is_told(litmus: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    from mcheck.checking.machines.client import Job, run_remote

    job = Job(task=run_case, lost=crashed_result, settings=Settings())
    with pytest.raises(InputError, match="needs Dask"):
        next(run_remote([Case(str(litmus("a")))], job, "local", 1, print))


@pytest.mark.usefixtures("dask")
def test_a_local_cluster_says_the_same(litmus: Callable, tmp_path: Path) -> None:
    for k in range(12):
        litmus(f"t{k}")
    (tmp_path / "tests" / "broken.litmus").write_text("PTX broken\n{\n")
    plain = mcheck("run", tmp_path / "tests", "-j", 1)
    spread = mcheck("run", tmp_path / "tests", "--scheduler", "local", "-j", 1, "--resume", tmp_path / "kept")
    told = [(p.returncode, *p.communicate()) for p in (plain, spread)]
    assert told[0][:2] == told[1][:2]
    assert told[0][0] == 2
    assert all("broken.litmus" in err for _, _, err in told)
    again = mcheck("run", tmp_path / "tests", "--resume", tmp_path / "kept")
    assert (again.returncode, *again.communicate()) == told[0]


@pytest.mark.usefixtures("dask")
def test_a_local_cluster_does_not_watch_itself() -> None:
    """Its workers' settings are those of ``UNWATCHED``; this process has its own back."""
    import dask as library

    before = {name: library.config.get(name) for name in UNWATCHED}
    cluster = _Cluster(LOCAL, 1, lambda _: None)
    try:
        (there,) = cluster.client().run(_settings, list(UNWATCHED)).values()
    finally:
        cluster.close()
    assert there == UNWATCHED != before
    assert {name: library.config.get(name) for name in UNWATCHED} == before


def _settings(names: list[str]) -> dict[str, object]:
    import dask as library

    return {name: library.config.get(name) for name in names}


@pytest.mark.usefixtures("dask")
def test_a_worker_that_is_killed(litmus: Callable, tmp_path: Path) -> None:
    """Its tests are done again, by a client in a process of its own."""
    script = tmp_path / "run.py"
    script.write_text(
        "import sys\n"
        "from mcheck.checking.machines.client import Job, run_remote\n"
        "from mcheck.checking.run.case import Case, Settings\n"
        "from mcheck.checking.run.single import lost\n"
        "from tests.fuzz.crashing_tasks import sleeps\n"
        "if __name__ == '__main__':\n"
        "    job = Job(task=sleeps, lost=lost, settings=Settings())\n"
        "    for r in run_remote([Case(p) for p in sys.argv[1:]], job, 'local', 1, print):\n"
        "        print(r.name, r.verdict, flush=True)\n"
    )
    paths = [litmus(f"t{k:02}") for k in range(30)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, str(script), *map(str, paths)], stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment
    )
    assert process.stdout is not None
    lines = [process.stdout.readline()]  # some are done
    for pid in _descendants(process.pid):
        if "machines.runner" in _command(pid):
            os.kill(_parent(pid), signal.SIGKILL)  # the worker; its runner ends with it
    lines += list(process.stdout)
    assert process.wait(120) == 0
    process.stdout.close()
    assert lines == [f"t{k:02} pass\n" for k in range(30)]


def _descendants(pid: int) -> list[int]:
    pairs = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            pairs.append((int(place.name), _parent(int(place.name))))
    found = [pid]
    for known in found:
        found += [child for child, parent in pairs if parent == known]
    return found[1:]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_no_scheduler_there(litmus: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed (the extra distributed)")
    process = mcheck("run", litmus("a"), "--scheduler", "nonsense://x")
    out, err = process.communicate()
    assert (process.returncode, out) == (2, "")
    assert "is not a scheduler address" in err


def test_resume_keeps_what_limits_cut(litmus: Callable, tmp_path: Path) -> None:
    done = json.loads(
        mcheck("run", litmus("a"), "--resume", tmp_path / "r", "--timeout", 30, "--format", "json").communicate()[0]
    )
    assert done["summary"]["ok"] == 1
    both = mcheck("run", litmus("a"), "--resume", tmp_path / "r", "--cache", tmp_path / "r")
    assert both.returncode == 2
    assert "give only one of them" in both.communicate()[1]


# --- limits and rights --------------------------------------------------------------------------------------------


def test_what_does_not_travel_has_its_limits(litmus: Callable, tmp_path: Path) -> None:
    """A pipe that nobody writes to, where the client would read it."""
    os.mkfifo(tmp_path / "pipe.litmus")
    assert isinstance(pack_item(0, Case(str(tmp_path / "pipe.litmus")), Settings()), Unpacked)
    settings = Settings(timeout=1.0)
    job: Job = Job(task=run_case, lost=crashed_result, settings=settings)
    run: _Run = _Run([], job, _Cluster(LOCAL, 1, print))
    try:
        assert run._by_itself(Case(str(tmp_path / "pipe.litmus"))).verdict == "unknown"
    finally:
        run.stop()


def test_the_models_of_tests_in_two_folders(tmp_path: Path) -> None:
    """Each names ``m.cat``; together in a parcel each has its own."""
    paths = []
    for name, condition in (("one", "0"), ("two", "rf")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "m.cat").write_text(f'"m"\nempty {condition} as E\n')
        paths.append(tmp_path / name / "a.litmus")
        text = "PTX a\nmodel m.cat\n{ x=0; }\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n st.weak x, 1 | ld.weak r1, x ;\n"
        paths[-1].write_text(f"{text}exists (P1:r1 == 1)\n")
    sent = parcel(paths)
    assert len(dict(sent.models)) == 2
    for path in paths:
        (path.parent / "m.cat").unlink()
    try:
        assert [r.verdict for r in results(work(pickle.dumps(sent), always))] == ["pass", "fail"]
    finally:
        end()


def test_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("tcp://192.0.2.7:8786", LOCAL):
        with pytest.raises(InputError, match="--tls needs a scheduler at tls://"):
            _certificates(address, str(tmp_path))
    with pytest.raises(InputError, match=r"there is no .*ca\.pem"):
        _certificates("tls://192.0.2.7:8786", str(tmp_path))
    for name in ("ca", "cert", "key"):
        (tmp_path / f"{name}.pem").write_text("")
    given = _certificates("tls://192.0.2.7:8786", str(tmp_path))
    seen: list[dict] = []
    dask = ModuleType("distributed")
    dask.Client = lambda address, **more: seen.append({"address": address, **more})
    security = ModuleType("distributed.security")
    security.Security = dict
    monkeypatch.setitem(sys.modules, "distributed", dask)
    monkeypatch.setitem(sys.modules, "distributed.security", security)
    _Cluster("tls://192.0.2.7:8786", 1, print, given)._connected()
    _Cluster("tcp://192.0.2.7:8786", 1, print)._connected()
    assert seen[0]["security"] == {
        "require_encryption": True,
        "tls_ca_file": str(tmp_path / "ca.pem"),
        "tls_client_cert": str(tmp_path / "cert.pem"),
        "tls_client_key": str(tmp_path / "key.pem"),
    }
    assert "security" not in seen[1]

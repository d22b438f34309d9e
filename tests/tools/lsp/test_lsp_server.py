"""The language server, spoken to by a client: what is wrong comes as one types, the fix is an action away."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pygls", reason="pygls is not installed: pip install '.[lsp]'")

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from mcheck.base.errors import InputError, Span
from mcheck.checking.run.case import Settings
from mcheck.findings.repair import Edit
from mcheck.frontend.cuda.nvcc import find_compiler
from mcheck.tools.lsp.definition import find_definition
from mcheck.tools.lsp.note import Note
from mcheck.tools.lsp.server import PAUSE, OpenText, make_server
from mcheck.tools.lsp.symbols import find_symbols
from mcheck.tools.lsp.worker import Job

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
REFILL = re.search(r"```ptx title=refill.litmus\n(.*?)```", README, re.DOTALL)[1]
PATIENCE = 30
URI = "file:///somewhere/refill.litmus"


class Editor(LanguageClient):
    """What an editor does with one text, and what it is told."""

    def __init__(self) -> None:
        super().__init__("editor", "1")
        self.told: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()

        @self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            self.told.put_nowait(params)

    def shows(self, text: str, version: int = 1, uri: str = URI) -> None:
        document = types.TextDocumentItem(uri, "litmus", version, text)
        self.text_document_did_open(types.DidOpenTextDocumentParams(document))

    def types(self, text: str, version: int, uri: str = URI) -> None:
        document = types.VersionedTextDocumentIdentifier(version, uri)
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    async def diagnostics(self, version: int = 1) -> list[types.Diagnostic]:
        while True:
            told = await asyncio.wait_for(self.told.get(), PATIENCE)
            if told.version == version:
                return list(told.diagnostics)

    async def hover(self, line: int, column: int, uri: str = URI) -> str:
        at = types.HoverParams(types.TextDocumentIdentifier(uri), types.Position(line, column))
        found = await self.text_document_hover_async(at)
        return found.contents.value if found else ""

    async def completes(self, line: int, column: int, uri: str = URI) -> list[str]:
        at = types.CompletionParams(types.TextDocumentIdentifier(uri), types.Position(line, column))
        return [item.label for item in (await self.text_document_completion_async(at)).items]

    async def definition(self, line: int, column: int, uri: str = URI) -> types.Location | None:
        at = types.DefinitionParams(types.TextDocumentIdentifier(uri), types.Position(line, column))
        return await self.text_document_definition_async(at)


@asynccontextmanager
async def editor(*arguments: str) -> AsyncIterator[Editor]:
    client = Editor()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    await client.start_io(sys.executable, "-m", "mcheck", "lsp", *arguments, env=environment)
    try:
        folder = types.InitializeParams(capabilities=types.ClientCapabilities(), root_uri=None)
        await asyncio.wait_for(client.initialize_async(folder), PATIENCE)
        client.initialized(types.InitializedParams())
        yield client
        await asyncio.wait_for(client.shutdown_async(None), PATIENCE)
        client.exit(None)
    finally:
        if client._server.returncode is None:
            client._server.kill()
        await asyncio.wait_for(client.stop(), PATIENCE)


def talk(scenario: Callable[[Editor], Coroutine[Any, Any, None]], *arguments: str) -> None:
    async def whole() -> None:
        async with editor(*arguments) as client:
            await scenario(client)

    asyncio.run(whole())


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n")


def changed(text: str, edits: list[types.TextEdit]) -> str:
    lines = text.split("\n")
    for edit in sorted(edits, key=lambda e: (-e.range.start.line, -e.range.start.character)):
        at, line = edit.range.start, lines[edit.range.start.line]
        lines[at.line] = line[: at.character] + edit.new_text + line[edit.range.end.character :]
    return "\n".join(lines)


STUCK = """PTX stuck
{ .shared .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
"""


@pytest.mark.daily(one_of="a server")
def test_the_kind_of_a_finding_is_said_once() -> None:
    async def scenario(client: Editor) -> None:
        client.shows(STUCK)
        (note,) = await client.diagnostics()
        assert note.message.count("deadlock") == 1
        assert re.match(r"deadlock: line 5 \(\w+\) waits for phase 0 of `bar`", note.message)

    talk(scenario)


def test_a_race_is_shown_explained_and_mended() -> None:
    async def scenario(client: Editor) -> None:
        client.shows(REFILL)
        race, verdict = await client.diagnostics()
        assert (race.code, race.severity) == ("RACE004", types.DiagnosticSeverity.Error)
        store = line_of(REFILL, "st.shared")
        assert race.range.start.line == store
        (second,) = race.related_information
        assert (second.location.uri, second.location.range.start.line) == (URI, line_of(REFILL, "cp.async.bulk"))
        assert second.message == "a bulk copy of P starts here, writes buf[bytes 0..16]"
        assert (verdict.code, verdict.range.start.line) == ("mismatch", line_of(REFILL, "expect fail"))
        page = await client.hover(store, 4)
        assert "**st**" in page
        assert "**RACE004**" in page
        (fix,) = await client.text_document_code_action_async(
            types.CodeActionParams(
                types.TextDocumentIdentifier(URI), race.range, types.CodeActionContext(diagnostics=[race])
            )
        )
        assert fix.title == "Insert fence.proxy.async.shared::cta (RACE004)"
        mended = changed(REFILL, fix.edit.changes[URI])
        assert "\n  fence.proxy.async.shared::cta;\n  cp.async.bulk" in mended
        client.types(mended, 2)
        assert await client.diagnostics(2) == []

    talk(scenario)


ANY_CTAS = """PTX any-ctas
{ .global .u32 data, flag = 0; }
producer@cta 0 { st.global.u32 [data], 1; st.release.gpu.global.u32 [flag], 1; }
consumer@cta 1..any + 1 {
  await ld.acquire.gpu.u32 r0, [flag] == 1;
  ld.global.u32 r1, [data];
}
"""


@pytest.mark.daily(days=3, least=0)
def test_a_race_among_any_number_of_ctas_is_shown() -> None:
    async def scenario(client: Editor) -> None:
        client.shows(ANY_CTAS)
        assert await client.diagnostics() == []
        broken = ANY_CTAS.replace("st.release", "st.relaxed")
        client.types(broken, 2)
        notes = await client.diagnostics(2)
        assert {note.code for note in notes} == {"RACE001"}
        assert notes[0].range.start.line == line_of(broken, "st.global")

    talk(scenario)


@pytest.mark.daily(days=4, least=0)
def test_a_module_is_checked_with_the_launch_beside_it(tmp_path: Path) -> None:
    text = (ROOT / "tests" / "simt" / "hand_over.ptx").read_text(encoding="utf-8")
    racy = text.replace("\tfence.proxy.async.shared::cta;\n", "")
    uri = (tmp_path / "racy.ptx").as_uri()

    async def scenario(client: Editor) -> None:
        client.shows(racy, 1, uri)
        (bare,) = await client.diagnostics()
        assert (bare.code, bare.severity) == ("launch", types.DiagnosticSeverity.Hint)
        (tmp_path / "racy.json").write_text('{"grid": 1, "params": {"rows": 1, "out": {"buffer": 256}}}')
        client.types(racy + "\n", 2, uri)
        (race,) = await client.diagnostics(2)
        store = line_of(racy, "st.shared")
        assert (race.code, race.range.start.line) == ("RACE004", store)
        assert "**st**" in await client.hover(store, 3, uri)
        (fix,) = await client.text_document_code_action_async(
            types.CodeActionParams(
                types.TextDocumentIdentifier(uri), race.range, types.CodeActionContext(diagnostics=[race])
            )
        )
        assert fix.title == "Insert fence.proxy.async.shared::cta (RACE004)"
        mended = changed(racy, fix.edit.changes[uri])
        assert "\n\tfence.proxy.async.shared::cta;\n\tbar.sync" in mended
        client.types(mended, 3, uri)
        assert await client.diagnostics(3) == []
        client.types(racy.replace("st.shared", "st..shared"), 4, uri)
        (error,) = await client.diagnostics(4)
        assert (error.range.start.line, error.severity) == (store, types.DiagnosticSeverity.Error)

    talk(scenario)


def test_an_error_stands_where_it_is_in_the_units_of_the_client() -> None:
    text = REFILL.replace('"a buffer', '"\N{MUSICAL SYMBOL G CLEF} a buffer').replace(
        "  st.shared.u32 [buf]", "/* \N{MUSICAL SYMBOL G CLEF} */ st.shered.u32 [buf]"
    )

    async def scenario(client: Editor) -> None:
        client.shows(text)
        (error,) = await client.diagnostics()
        assert error.message.startswith("'.shered' is not a qualifier")
        line = text.split("\n")[error.range.start.line]
        units = line[: line.index("shered")].encode("utf-16-le")
        assert abs(error.range.start.character - len(units) // 2) <= 1

    talk(scenario)


def test_completion_knows_instructions_qualifiers_and_names() -> None:
    text = REFILL.replace(
        "  st.shared.u32 [buf], 1;", "  cp.async.bu\n  cp.async.bulk.shared::cta.\n  st.shared.u32 [bu"
    )

    async def scenario(client: Editor) -> None:
        client.shows(text)
        line = line_of(text, "  cp.async.bu\n")
        assert await client.completes(line, 13) == ["bulk"]
        qualifiers = await client.completes(line + 1, len("  cp.async.bulk.shared::cta."))
        assert "global" in qualifiers
        assert "shared::cta" not in qualifiers
        assert await client.completes(line + 2, len("  st.shared.u32 [bu")) == ["buf"]
        assert "race" in await client.completes(line_of(text, "expect clean"), 7)

    talk(scenario)


@pytest.mark.daily(one_of="a server")
def test_definitions_and_outlines() -> None:
    async def scenario(client: Editor) -> None:
        client.shows(REFILL)
        found = await client.definition(line_of(REFILL, "st.shared"), REFILL.split("\n")[9].index("buf") + 1)
        assert found.range.start.line == line_of(REFILL, ".shared .align")
        outline = await client.text_document_document_symbol_async(
            types.DocumentSymbolParams(types.TextDocumentIdentifier(URI))
        )
        assert [s.name for s in outline] == ["src", "buf", "full", "P", "exists", "expect fail", "expect clean"]
        model = "file:///somewhere/mine.cat"
        client.shows("let a = po\nacyclic a | fr | nothing as X\n", uri=model)
        found = await client.definition(1, 8, model)
        assert found.range.start.line == 0
        assert (await client.definition(1, 12, model)).uri.endswith("stdlib.cat")
        assert "program order" in await client.hover(0, 9, model)
        wrong = [d for d in await client.diagnostics() if d.code != "RACE004"]
        while not any("nothing" in d.message for d in wrong):
            wrong = await client.diagnostics()

    talk(scenario)


ADD = "  atom.relaxed.gpu.global.add.u32 r{0}, [x + 4 * {0}], 1;\n"
THREAD = "P{0}@cta {0} {{\n" + "".join(map(ADD.format, range(8))) + "}}\n"
RING = """PTX ring
include "ring.inc";
def stage(k) = k % S;
{ .shared .align 16 .b8 buf[16 * S]; }
P@cta 0, warp 1, 3 {
  const HERE = 4;
  again:
  st.shared.u32 [buf + 16 * stage(HERE)], 1;
  bra again;
}
"""


def test_names_of_common_definitions_are_found(tmp_path: Path) -> None:
    (tmp_path / "ring.inc").write_text("const T = 1;\nconst S = 4;\n")
    path = str(tmp_path / "ring.litmus")
    found = {s.name: s.kind for s in find_symbols(RING, path)}
    kinds = ["include", "function", "object", "thread", "constant", "label"]
    assert found == dict(zip(["ring.inc", "stage", "buf", "P", "HERE", "again"], kinds, strict=True))
    use = RING.split("\n")[7]
    for name, line in (("stage", 3), ("HERE", 6), ("buf", 4)):
        place = find_definition(RING, path, 7, use.index(name))
        assert place is not None
        assert (place.path, place.line) == (path, line)
    assert find_definition(RING, path, 2, RING.split("\n")[2].index("S;")) == Span(str(tmp_path / "ring.inc"), 2, 7)
    assert find_definition(RING, path, 1, 12) == Span(str(tmp_path / "ring.inc"), 1, 1)


SLOW = "PTX slow\n{ .global .u32 x[64]; }\n" + "".join(map(THREAD.format, range(6))) + "exists (P0:r0 == 1)\n"
"""Too many executions for any engine."""


@pytest.mark.daily(one_of="a server")
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="no /proc to see the processes in")
def test_newer_text_stops_a_check_and_nothing_outlives_the_server() -> None:
    async def scenario(client: Editor) -> None:
        client.shows(SLOW)
        await asyncio.sleep(1)
        client.types("PTX slow\n", 2)
        (error,) = await client.diagnostics(2)
        assert error.code == "LIT007"
        client.types(SLOW, 3)
        workers: list[int] = []
        while not workers:
            workers = descendants(client._server.pid)
            await asyncio.sleep(0.1)
        os.kill(client._server.pid, signal.SIGKILL)
        for _ in range(300):
            if not any(map(alive, workers)):
                raise Outlived
            await asyncio.sleep(0.1)

    with pytest.raises(Outlived):
        talk(scenario, "--timeout", "20")


class Outlived(Exception):
    """The client has seen the workers of a server that was killed end."""


def descendants(pid: int) -> list[int]:
    return [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def actions(client: Editor, uri: str, found: types.Diagnostic) -> list[types.CodeAction]:
    document, context = types.TextDocumentIdentifier(uri), types.CodeActionContext(diagnostics=[found])
    return await client.text_document_code_action_async(types.CodeActionParams(document, found.range, context))


MISSPELT = (
    ("litmus", "st.shared", "st.shered", "Change to shared"),
    ("litmus", "[buf], 1", "[bof], 1", "Change to buf"),
    ("litmus", "expect clean", "expect claen", "Change to clean"),
    ("litmus", "mbarrier.init", "mbarier.init", "Change to mbarrier"),
    ("cat", "fr as X", "frr as X", "Change to fr"),
)


@pytest.mark.daily(one_of="a server")
def test_a_misspelt_word_is_corrected_by_an_action() -> None:
    async def scenario(client: Editor) -> None:
        for number, (kind, right, wrong, title) in enumerate(MISSPELT):
            text = REFILL if kind == "litmus" else "let a = po\nacyclic a | fr as X\n"
            uri = f"file:///somewhere/{number}.{kind}"
            client.shows(text.replace(right, wrong), number, uri)
            error = next(d for d in await client.diagnostics(number) if "did you mean" in d.message)
            (action,) = await actions(client, uri, error)
            assert action.title == title, wrong
            (edit,) = action.edit.changes[uri]
            assert changed(text.replace(right, wrong), [edit]) == text, wrong

    talk(scenario)


def test_an_action_that_is_still_tried_is_waited_for(tmp_path: Path) -> None:
    """A finding is shown at once, and an editor may ask for its fix before a check has confirmed it."""
    shown = Note(
        span=Span(str(tmp_path / "k.cu"), 1, 1), severity="error", message="race", code="RACE001", remedy="bar.sync 0"
    )
    tried = replace(shown, edits=(Edit(1, 0, "__syncthreads();"),))

    async def whole() -> None:
        ls, may_end = make_server(Settings()), asyncio.Event()

        async def check(job: Job) -> tuple[Note, ...]:
            if not job.tries:
                return (shown,)
            await may_end.wait()
            return (tried,)

        uri = (tmp_path / "k.cu").as_uri()
        document = OpenText("k();", shown.span.path, checked="k();", notes=(shown,))
        ls.open[uri] = document
        ls.checker = SimpleNamespace(check=check)
        ls.text_document_publish_diagnostics = lambda _: None
        ls.to_diagnostic = lambda *_: None
        ls.to_range = lambda *_: types.Range(types.Position(0, 0), types.Position(0, 0))
        document.task = asyncio.create_task(ls._check(uri, document))
        asked = types.CodeActionParams(
            types.TextDocumentIdentifier(uri), types.Range(types.Position(0, 0), types.Position(0, 0)),
            types.CodeActionContext(diagnostics=[]),
        )  # fmt: skip
        answer = asyncio.create_task(ls.protocol.fm.features[types.TEXT_DOCUMENT_CODE_ACTION](asked))
        await asyncio.sleep(2 * PAUSE)
        assert not answer.done()
        may_end.set()
        assert [action.title for action in await answer] == ["Insert __syncthreads() (RACE001)"]

    asyncio.run(whole())


RING_LAUNCH = """{"entry": "ring", "grid": 1, "block": 128,
 "params": {"in": {"buffer": 16384}, "out": {"buffer": 512}, "tiles": 8}}"""
CUDA = re.search(r"```cpp title=ring.cu\n(.*?)```", README, re.DOTALL)[1]


@pytest.mark.daily(days=4, least=0)
def test_a_cuda_source_is_checked_where_it_lies_and_mended(tmp_path: Path) -> None:
    try:
        find_compiler()
    except InputError:
        pytest.skip("no nvcc")
    path = tmp_path / "ring.cu"
    path.write_text(CUDA)
    uri = path.as_uri()

    async def scenario(client: Editor) -> None:
        client.shows(CUDA, 1, uri)
        (bare,) = await client.diagnostics()
        assert (bare.code, bare.severity) == ("launch", types.DiagnosticSeverity.Hint)
        (tmp_path / "ring.launch.json").write_text(RING_LAUNCH)
        save = types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri))
        client.text_document_did_save(save)
        (race,) = await client.diagnostics()
        assert (race.code, race.range.start.line) == ("RACE003", line_of(CUDA, "sum += buf"))
        (second,) = race.related_information
        assert (second.location.uri, second.location.range.start.line) == (uri, line_of(CUDA, "if (k + 1"))
        assert "__syncthreads()" in race.message
        found = await actions(client, uri, race)
        assert found[0].title == "Insert __syncthreads() (RACE003)"
        mended = changed(CUDA, found[0].edit.changes[uri])
        assert "{\n    __syncthreads();\n    if (k + 1" in mended
        client.types(mended, 2, uri)
        path.write_text(mended)
        client.text_document_did_save(save)
        assert await client.diagnostics(2) == []

    talk(scenario, "--timeout", "60")


@pytest.mark.daily(days=4, least=0)
def test_a_python_source_has_the_findings_of_the_modules_beside_it(tmp_path: Path) -> None:
    text = (ROOT / "tests" / "simt" / "hand_over.ptx").read_text(encoding="utf-8")
    path = tmp_path / "hand_over.py"
    racy = text.replace("\tfence.proxy.async.shared::cta;\n", "").replace("hand_over.cu", str(path))
    (tmp_path / "kept").mkdir()
    for name in ("one", "two"):  # of two compilations
        (tmp_path / "kept" / f"{name}.ptx").write_text(racy)
        launch = '{"grid": 1, "params": {"rows": 1, "out": {"buffer": 256}}}'
        (tmp_path / "kept" / f"{name}.json").write_text(launch)
    known = "from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared"
    source = "\n".join([known, *(f"line_{number} = {number}" for number in range(2, 20))])
    path.write_text(source)
    (tmp_path / "other.py").write_text(source)

    async def scenario(client: Editor) -> None:
        client.shows(source, 1, path.as_uri())
        (race,) = await client.diagnostics()
        assert (race.code, race.severity) == ("RACE004", types.DiagnosticSeverity.Error)
        assert race.range.start.line == 8
        found: list[types.CodeAction] = []
        while not found:
            await asyncio.sleep(0.5)
            found = await actions(client, path.as_uri(), race)
        assert found[0].title == "Insert fence_async_shared() (RACE004)"
        assert "\nfence_async_shared()\n" in changed(source, found[0].edit.changes[path.as_uri()])
        client.shows(source, 1, (tmp_path / "other.py").as_uri())
        assert await client.diagnostics() == []

    talk(scenario, "--timeout", "60")

"""The language server: requests of the protocol, answered from the open texts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import field

from lsprotocol import types
from pygls import uris
from pygls.lsp.server import LanguageServer
from pygls.workspace import PositionCodec

from mcheck import __version__
from mcheck.base.errors import Span
from mcheck.base.files import with_unix_lines
from mcheck.base.records import dataclass
from mcheck.checking.run.case import Settings
from mcheck.findings.repair import Edit
from mcheck.tools.lsp import hover
from mcheck.tools.lsp.checking import Checker
from mcheck.tools.lsp.completion import complete
from mcheck.tools.lsp.definition import CAT_NAME, definition_line, find_definition
from mcheck.tools.lsp.note import Note
from mcheck.tools.lsp.notes import is_compiled, may_be_mended
from mcheck.tools.lsp.symbols import Symbol, find_symbols, word_at
from mcheck.tools.lsp.worker import Job

PAUSE = 0.15
"""Seconds without an edit after which a text is checked."""
CODE = r"\b[A-Z]{2,5}\d{3}\b"

_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "information": types.DiagnosticSeverity.Information,
    "hint": types.DiagnosticSeverity.Hint,
}
_SYMBOLS = {
    "object": types.SymbolKind.Variable,
    "constant": types.SymbolKind.Constant,
    "function": types.SymbolKind.Function,
    "register": types.SymbolKind.Field,
    "label": types.SymbolKind.Key,
    "loop": types.SymbolKind.Number,
    "thread": types.SymbolKind.Namespace,
    "condition": types.SymbolKind.Event,
    "let": types.SymbolKind.Variable,
    "check": types.SymbolKind.Event,
    "include": types.SymbolKind.File,
}
_ITEMS = {
    "instruction": types.CompletionItemKind.Function,
    "qualifier": types.CompletionItemKind.EnumMember,
    "word": types.CompletionItemKind.Keyword,
    "object": types.CompletionItemKind.Variable,
    "constant": types.CompletionItemKind.Constant,
    "function": types.CompletionItemKind.Function,
    "register": types.CompletionItemKind.Field,
    "label": types.CompletionItemKind.Reference,
    "thread": types.CompletionItemKind.Class,
    "relation": types.CompletionItemKind.Operator,
    "set": types.CompletionItemKind.Struct,
}


@dataclass(slots=True)
class OpenText:
    """An open text with the notes of its last check, and the running check."""

    text: str
    path: str
    version: int | None = None
    notes: tuple[Note, ...] = ()
    checked: str = ""
    """The text to which the notes belong."""
    task: asyncio.Task[None] | None = field(default=None, compare=False)


class Server(LanguageServer):
    """The server: the open texts and the process that checks them."""

    def __init__(self, settings: Settings) -> None:
        super().__init__("mcheck", f"v{__version__}", text_document_sync_kind=types.TextDocumentSyncKind.Full)
        self.settings = settings
        self.open: dict[str, OpenText] = {}
        self.checker: Checker | None = None

    def set_text(self, uri: str, text: str, version: int | None) -> None:
        """Set the text of a document and check it; a running check is stopped."""
        document = self.open.setdefault(uri, OpenText("", uris.to_fs_path(uri) or uri))
        document.text = with_unix_lines(text)
        document.version = version
        if document.task is not None:
            document.task.cancel()
        document.task = asyncio.get_running_loop().create_task(self._check(uri, document))

    def edit_text(self, uri: str, text: str, version: int | None) -> None:
        """Take an edit: what is compiled is checked when it is saved, all else at once."""
        document = self.open.get(uri)
        if document is None or not is_compiled(document.path):
            self.set_text(uri, text, version)
            return
        document.text, document.version = with_unix_lines(text), version

    def close_text(self, uri: str) -> None:
        """Forget a text that was closed."""
        document = self.open.pop(uri, None)
        if document is not None and document.task is not None:
            document.task.cancel()
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri=uri, diagnostics=[]))

    async def _check(self, uri: str, document: OpenText) -> None:
        await asyncio.sleep(PAUSE)
        self.checker = self.checker or Checker(self.settings.memory)
        version = document.version
        found = await self.checker.check(Job(document.text, document.path, self.settings))
        if self.open.get(uri) is not document or document.version != version:
            return
        document.notes, document.checked = found, document.text
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(
                uri=uri, version=version, diagnostics=[self.to_diagnostic(uri, document, note) for note in found]
            )
        )
        if may_be_mended(document.path, found):
            tried = await self.checker.check(Job(document.text, document.path, self.settings, tries=True))
            if self.open.get(uri) is document and document.version == version:
                document.notes = tried

    def to_diagnostic(self, uri: str, document: OpenText, note: Note) -> types.Diagnostic:
        """A note as a diagnostic of the protocol."""
        lines = document.text.split("\n")
        related = [
            types.DiagnosticRelatedInformation(
                location=types.Location(
                    uri=uri if span.path == document.path else uris.from_fs_path(span.path) or uri,
                    range=self.to_range(span, lines),
                ),
                message=text,
            )
            for span, text in note.related
        ]
        return types.Diagnostic(
            range=self.to_range(note.span, lines),
            severity=_SEVERITIES[note.severity],
            code=note.code or None,
            source="mcheck",
            message=note.message,
            related_information=related or None,
        )

    # --- places -------------------------------------------------------------------------------------------------

    @property
    def codec(self) -> PositionCodec:
        """The position encoding of the client."""
        return self.workspace.position_codec

    def to_range(self, span: Span, lines: Sequence[str]) -> types.Range:
        """A span as a range in the encoding of the client, clipped to the text."""
        row = min(max(span.line - 1, 0), len(lines) - 1)
        line = lines[row]
        start, end = min(span.column - 1, len(line)), min(span.column - 1 + span.length, len(line))
        return types.Range(self._position(row, line, start), self._position(row, line, end))

    def _position(self, row: int, line: str, column: int) -> types.Position:
        return types.Position(row, self.codec.client_num_units(line[:column]))

    def to_position(self, document: OpenText, position: types.Position) -> tuple[int, int]:
        """A position of the client as 0-based line and character."""
        lines = document.text.split("\n")
        line = lines[position.line] if position.line < len(lines) else ""
        column = 0
        while column < len(line) and self.codec.client_num_units(line[: column + 1]) <= position.character:
            column += 1
        return position.line, column


def serve(settings: Settings) -> None:
    """Serve on standard input and output until the editor ends the session."""
    orders, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of print must not disturb the protocol
    make_server(settings).start_io(orders, answers)


def make_server(settings: Settings) -> Server:
    """Make a server with all features registered."""
    ls = Server(settings)
    for add in (_texts, _hovers, _completions, _places, _actions):
        add(ls)
    return ls


def _texts(ls: Server) -> None:
    @ls.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        ls.set_text(params.text_document.uri, params.text_document.text, params.text_document.version)

    @ls.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        uri = params.text_document.uri
        ls.edit_text(uri, ls.workspace.get_text_document(uri).source, params.text_document.version)

    @ls.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: types.DidSaveTextDocumentParams) -> None:
        document = ls.open.get(params.text_document.uri)
        if document is not None and is_compiled(document.path):
            ls.set_text(params.text_document.uri, document.text, document.version)

    @ls.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        ls.close_text(params.text_document.uri)

    @ls.feature(types.SHUTDOWN)
    async def ended(*_: object) -> None:
        for uri in list(ls.open):
            document = ls.open.pop(uri)
            if document.task is not None:
                document.task.cancel()
        if ls.checker is not None:
            await ls.checker.end()


def _hovers(ls: Server) -> None:
    @ls.feature(types.TEXT_DOCUMENT_HOVER)
    def hovered(params: types.HoverParams) -> types.Hover | None:
        document = ls.open.get(params.text_document.uri)
        if document is None:
            return None
        line, column = ls.to_position(document, params.position)
        parts = [text for text in (_page(document, line, column), *_finding_pages(document, line, column)) if text]
        if not parts:
            return None
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, "\n\n---\n\n".join(parts)))


def _page(document: OpenText, line: int, column: int) -> str | None:
    """The hover text of the word at a position."""
    if code := word_at(document.text, line, column, CODE):
        return hover.describe_code(code[0])
    cat = document.path.endswith(".cat")
    if not cat and (opcode := word_at(document.text, line, column, hover.OPCODE)):
        page = hover.describe_instruction(opcode[0])
        if page is not None:
            return page
    span = find_definition(document.text, document.path, line, column)
    if span is not None:
        return hover.quote_declaration(definition_line(document.text, span, document.path))
    name = word_at(document.text, line, column, CAT_NAME) if cat else None
    return hover.describe_cat_name(name[0]) if name else None


def _finding_pages(document: OpenText, line: int, column: int) -> list[str | None]:
    """The descriptions of the findings at a position."""
    places = ((note.code, span) for note in document.notes for span in (note.span, *(s for s, _ in note.related)))
    codes = dict.fromkeys(
        c for c, s in places if s.line == line + 1 and s.column - 1 <= column < s.column - 1 + s.length
    )
    return [hover.describe_code(code) for code in codes]


def _completions(ls: Server) -> None:
    options = types.CompletionOptions(trigger_characters=[".", ":", "%"])

    @ls.feature(types.TEXT_DOCUMENT_COMPLETION, options)
    def completed(params: types.CompletionParams) -> types.CompletionList:
        document = ls.open.get(params.text_document.uri)
        if document is None:
            return types.CompletionList(is_incomplete=False, items=[])
        line, column = ls.to_position(document, params.position)
        before = document.text.split("\n")[line][:column]
        items = []
        for item in complete(before, document.path, find_symbols(document.text, document.path)):
            start = ls.to_range(Span("", line + 1, column - item.length + 1, item.length), document.text.split("\n"))
            items.append(
                types.CompletionItem(
                    label=item.text,
                    kind=_ITEMS.get(item.kind, types.CompletionItemKind.Text),
                    detail=item.detail or None,
                    text_edit=types.TextEdit(
                        start if item.length else types.Range(params.position, params.position), item.text
                    ),
                )
            )
        return types.CompletionList(is_incomplete=False, items=items)


def _places(ls: Server) -> None:
    @ls.feature(types.TEXT_DOCUMENT_DEFINITION)
    def defined(params: types.DefinitionParams) -> types.Location | None:
        uri = params.text_document.uri
        document = ls.open.get(uri)
        span = (
            find_definition(document.text, document.path, *ls.to_position(document, params.position))
            if document
            else None
        )
        if document is None or span is None:
            return None
        if span.path == document.path:
            return types.Location(uri, ls.to_range(span, document.text.split("\n")))
        line = definition_line(document.text, span, document.path)
        target = uris.from_fs_path(span.path)
        found = ls.to_range(Span("", 1, span.column, span.length), [line])
        moved = types.Range(
            types.Position(span.line - 1, found.start.character), types.Position(span.line - 1, found.end.character)
        )
        return types.Location(target, moved) if target is not None else None

    @ls.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def outlined(params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        document = ls.open.get(params.text_document.uri)
        if document is None:
            return []
        lines = document.text.split("\n")
        return outline(find_symbols(document.text, document.path), lambda span: ls.to_range(span, lines))


def outline(found: tuple[Symbol, ...], range_of: Callable[[Span], types.Range]) -> list[types.DocumentSymbol]:
    """The outline: symbols, with those of a thread below it."""
    top: list[types.DocumentSymbol] = []
    threads: dict[str, list[types.DocumentSymbol]] = {}
    for symbol in found:
        name = range_of(symbol.span)
        whole = types.Range(name.start, types.Position(max(symbol.until - 1, name.end.line), name.end.character))
        inner: list[types.DocumentSymbol] = []
        item = types.DocumentSymbol(symbol.name, _SYMBOLS[symbol.kind], whole, name, children=inner)
        threads.get(symbol.owner, top).append(item)
        if symbol.kind == "thread":
            threads[symbol.name] = inner
    return top


def _actions(ls: Server) -> None:
    options = types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix])

    @ls.feature(types.TEXT_DOCUMENT_CODE_ACTION, options)
    async def acted(params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        document = ls.open.get(uri)
        if document is not None and document.checked == document.text and document.task is not None:
            await asyncio.wait({document.task})  # findings are shown before their edits have been tried
        if document is None or document.checked != document.text:
            return []
        asked = range(params.range.start.line + 1, params.range.end.line + 2)
        return [
            _action(ls, uri, document, note)
            for note in document.notes
            if note.edits and any(span.line in asked for span in (note.span, *(s for s, _ in note.related)))
        ]


def _action(ls: Server, uri: str, document: OpenText, note: Note) -> types.CodeAction:
    codes = " and ".join(dict.fromkeys(" ".join(edit.text.split()).strip(" |;") for edit in note.edits))
    corrects = any(edit.length for edit in note.edits)
    return types.CodeAction(
        title=f"Change to {codes}" if corrects else f"Insert {codes} ({note.code})",
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[ls.to_diagnostic(uri, document, note)],
        edit=types.WorkspaceEdit(changes={uri: [_change(ls, document, edit) for edit in note.edits]}),
        is_preferred=True,
    )


def _change(ls: Server, document: OpenText, edit: Edit) -> types.TextEdit:
    found = ls.to_range(Span("", edit.line, edit.column + 1, edit.length), document.text.split("\n"))
    return types.TextEdit(found, edit.text)

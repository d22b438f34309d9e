"""Repairs: edits that the fixes of findings name, kept only if a check of the edited program shows that they help.

Bug by bug, causes first, an edit is tried on the text that the edits before it left. It helps if the bug is gone and
nothing new is found. If bugs are left, the repairs of ``mcheck fences`` are searched for the text as it was given. The
program counts as fixed only if it is proved clean in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import unified_diff
from time import perf_counter

from mcheck.base.records import dataclass, replace
from mcheck.base.verdicts import Verdict
from mcheck.checking.check.files import is_module, is_source
from mcheck.checking.run.result import Result
from mcheck.frontend.litmus.source import read_source
from mcheck.frontend.ptx.reader import read_text
from mcheck.report.bugs import ends_deadlocks, has_fewer_bugs
from mcheck.report.source_edits import repair_edits
from mcheck.tools.serve.answers import Bug, FixAnswer, Reply, TextEdit, Tried
from mcheck.tools.serve.bugs import find_bugs, is_same_file
from mcheck.tools.serve.checks import (
    MOST_BUGS,
    check_once,
    examine_within,
    is_clean,
    is_decided,
    summarize,
    why_not_decided,
    write_source,
)
from mcheck.tools.serve.memory_store import MemoryStore
from mcheck.tools.serve.refusals import refuse
from mcheck.tools.serve.requests import Request

NO_EDIT = "the fix is a choice to make, not an edit"
OTHER_FILE = "the edit is of another file"
NO_TIME = "not tried for lack of time"
MOST_EDITS = 8
"""The maximum number of bugs for which an edit is kept."""


def repair(request: Request, store: MemoryStore) -> Reply:
    """The edits after which the program is proved clean, as far as the fixes of its findings lead."""
    return _Repair(request, store).run()


class _Repair:
    def __init__(self, request: Request, store: MemoryStore) -> None:
        self._request = request
        self._store = store
        self._started = perf_counter()
        self.checks = 0
        self._tried: list[Tried] = []

    def run(self) -> Reply:
        """Edit and check in turns until nothing is left, nothing helps, or the time is over. An edit that only lets
        the program run on into other bugs counts if these are mended, too.
        """
        text = EditedText(_text_of(self._request))
        before = result = self._check(text)
        if before.verdict is Verdict.ERROR:
            assert before.problem is not None
            return refuse(self._request, before.problem)
        found = text, result
        for _ in range(MOST_EDITS):
            better = self._improve(text, result) if result.verdict is Verdict.FINDING else None
            if better is None:
                break
            if has_fewer_bugs(found[1], better[1]):
                found = better
            text, result = better
        text, result = found
        edited = _Edited(str(text), text.edits(self._request.path), result)
        if result.verdict is Verdict.FINDING and not is_source(self._request.path):
            edited = self._search(text.original) or edited
        return self._reply(before, text.original, edited)

    def _search(self, text: str) -> _Edited | None:
        """The text with the cheapest repair of ``mcheck fences``, if it is proved clean under this request."""
        from mcheck.checking.fences.examination import Limits, examine_text

        request = self._request
        by_processor = request.settings.processor_time
        limits = Limits(timeout=request.settings.timeout if by_processor else self._left(), processor_time=by_processor)
        examined = examine_within(
            request, lambda: examine_text(request.path, text, None, limits, request.options, request.settings)
        )
        if examined.repairs is None:
            return None
        self.checks += examined.repairs.trials
        if not examined.repairs.found:
            return None
        cheapest = examined.repairs.found[0]
        result = self._check(EditedText(cheapest.text))
        if not is_clean(result):
            return None
        edits = _edits_between(text, cheapest.text, request.path)
        return _Edited(cheapest.text, edits, result, cheapest.changes)

    def _improve(self, text: EditedText, result: Result) -> tuple[EditedText, Result] | None:
        """The text with the first edit of a bug that helps, and its result."""
        for bug in find_bugs(result):
            if not bug.edits:
                self._note(bug, NO_EDIT)
            elif not all(is_same_file(edit.path, self._request.path) for edit in bug.edits):
                self._note(bug, OTHER_FILE)
            elif self._left() == 0:
                self._note(bug, NO_TIME)
            else:
                changed = text.with_edits(bug.edits)
                after = self._check(changed)
                helps = has_fewer_bugs(result, after) or ends_deadlocks(result, after)
                self._note(bug, _outcome(bug, after), helps=helps)
                if helps:
                    return changed, after
        return None

    def _note(self, bug: Bug, outcome: str, *, helps: bool = False) -> None:
        """Note what became of a fix; the same fix of a later turn says nothing new if it is not tried again."""
        noted = Tried(
            code=bug.code, message=bug.message, place=bug.place, fix=bug.fix, edits=bug.edits, helps=helps,
            outcome=outcome,
        )  # fmt: skip
        if noted not in self._tried:
            self._tried.append(noted)

    def _check(self, text: EditedText) -> Result:
        """The result for a text, within what is left of the time."""
        self.checks += 1
        request = self._request
        left = self._left()
        if left is not None:
            request = replace(request, settings=replace(request.settings, timeout=max(left, 0.001)))
        if is_source(request.path):
            write_source(request.path, str(text))
            request = replace(request, text=None)
        else:
            request = replace(request, text=str(text))
        return check_once(request, self._store)[0]

    def _left(self) -> float | None:
        limit = self._request.settings.timeout
        if limit is None or self._request.settings.processor_time:
            return None
        return max(limit - (perf_counter() - self._started), 0)

    def _reply(self, before: Result, original: str, edited: _Edited) -> Reply:
        request, result = self._request, edited.result
        fixed = is_clean(result)
        path = request.path.lstrip("/")
        files = f"a/{path}", f"b/{path}"
        diff = "\n".join(unified_diff(original.split("\n"), edited.text.split("\n"), *files, lineterm=""))
        summary = (
            "nothing to fix" if before.verdict is Verdict.PROVED
            else "fixed: the edited program is proved clean" if fixed
            else f"not fixed: {summarize(result)} remains" if fixed is False
            else f"not decided: the edited program is {result.verdict.value}"
        )  # fmt: skip
        answer = FixAnswer(
            path=request.path,
            before=before.verdict.value,
            after=result.verdict.value,
            decided=is_decided(result),
            fixed=fixed,
            summary=summary,
            edits=edited.edits,
            diff=diff,
            changes=list(edited.changes),
            checks=self.checks,
            tried=self._tried,
            remaining=find_bugs(result, MOST_BUGS),
            why_not_decided=why_not_decided(result),
        )
        remaining = [f"remaining: {bug.code}: {bug.message}" for bug in answer.remaining]
        if not fixed:
            remaining += [f"tried: {one.code}: {_said(one)}" for one in self._tried if not one.helps]
        changes = [f"not only the order changes: {change}" for change in answer.changes]
        return Reply(answer=answer, text="\n".join((summary, *changes, *([diff] if diff else []), *remaining)))


@dataclass(frozen=True, slots=True)
class _Edited:
    """An edited text, the edits that lead to it, its result, and what it computes otherwise than the text before."""

    text: str
    edits: list[TextEdit]
    result: Result
    changes: tuple[str, ...] = ()


def _edits_between(before: str, after: str, path: str) -> list[TextEdit]:
    lines = before.splitlines()
    return [
        TextEdit(
            path=path, line=edit.line, column=edit.column + 1, insert=edit.text,
            replaces=lines[edit.line - 1][edit.column : edit.column + edit.length] if edit.length else "",
        )
        for edit in repair_edits(before, after)
    ]  # fmt: skip


def _outcome(bug: Bug, after: Result) -> str:
    """What a check of the edited program found, beside the bug whose edit it is."""
    if after.verdict is Verdict.ERROR:
        return f"the edited program cannot be read: {after.problem.message if after.problem is not None else ''}"
    if after.verdict is not Verdict.FINDING:
        return f"the edited program is {after.verdict.value}"
    left = find_bugs(after)
    stays = any(one.code == bug.code and one.message == bug.message for one in left)
    others = ", ".join(dict.fromkeys(one.code for one in left))
    return f"the bug stays; the edited program has {others}" if stays else f"the edited program has {others}"


def _said(one: Tried) -> str:
    """A fix that was tried, for people."""
    made = "; ".join(f"line {e.line}: {e.insert.strip() or 'remove ' + e.replaces.strip()}" for e in one.edits)
    return f"{made or one.fix}: {one.outcome}"


def _text_of(request: Request) -> str:
    if request.text is not None:
        return request.text
    return read_text(request.path) if is_module(request.path) else read_source(request.path)


@dataclass(frozen=True, slots=True)
class _Replacement:
    """``text`` in place of the original from ``start`` to ``end``."""

    start: int
    end: int
    text: str


class EditedText:
    """A text with edits, in terms of the text as it was."""

    def __init__(self, original: str, edits: Sequence[_Replacement] = ()) -> None:
        self.original = original
        self._edits = tuple(edits)

    def __str__(self) -> str:
        parts, at = [], 0
        for edit in self._edits:
            parts += [self.original[at : edit.start], edit.text]
            at = edit.end
        return "".join((*parts, self.original[at:]))

    def with_edits(self, edits: Sequence[TextEdit]) -> EditedText:
        """The text with further edits, whose places are those in the text as it is now."""
        found = self
        starts = [0]
        for line in str(self).split("\n"):
            starts.append(starts[-1] + len(line) + 1)
        for edit in sorted(edits, key=lambda edit: (-edit.line, -edit.column)):
            at = starts[edit.line - 1] + edit.column - 1
            found = found._with_edit(at, at + len(edit.replaces), edit.insert)
        return found

    def _with_edit(self, start: int, end: int, text: str) -> EditedText:
        """With ``text`` from ``start`` to ``end`` of the text as it is now; edits that it touches are joined to it."""
        now, before, behind, touched, grown = str(self), [], [], [], 0
        first, last = start, end
        for edit in self._edits:
            left = edit.start + grown
            right = left + len(edit.text)
            grown = right - edit.end
            if right < start:
                before.append(edit)
                first, last = start - grown, end - grown
            elif left > end:
                behind.append(edit)
            else:
                touched.append((left, right, edit))
        if touched:
            (left, _, leftmost), (_, right, rightmost) = touched[0], touched[-1]
            text = now[left:start] + text + now[end:right]
            first, last = leftmost.start - max(left - start, 0), rightmost.end + max(end - right, 0)
        return EditedText(self.original, (*before, _Replacement(first, last, text), *behind))

    def edits(self, path: str) -> list[TextEdit]:
        """The edits of the text as it was."""
        found = []
        for edit in self._edits:
            head = self.original[: edit.start]
            line, column = head.count("\n") + 1, edit.start - (head.rfind("\n") + 1) + 1
            replaced = self.original[edit.start : edit.end]
            found.append(TextEdit(path=path, line=line, column=column, insert=edit.text, replaces=replaced))
        return found

"""Questions to a language server: where a name is defined and used, and what a file contains."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from swecli.core.permissions.paths import is_secret
from swecli.core.permissions.rules import ReadRules
from swecli.core.permissions.types import Effects
from swecli.core.protocol.blocks import FileEntry, FileListBlock
from swecli.core.tools.base import Params, Positive, Tool, ToolContext, ToolError, ToolOutcome, explained
from swecli.core.workspace.text_file import decode, read_bytes
from swecli.figures import plural
from swecli.lazy_pattern import lazy_pattern

if TYPE_CHECKING:
    from swecli.core.language_servers.definitions import CodePlace
    from swecli.core.language_servers.servers import LanguageServers

MOST: int = 100
"""Maximum number of listed places."""
_MAX_FILE = 1_000_000
_MOST_COLUMNS = 200
_WORD = lazy_pattern(r"\w")

Action = Literal["definition", "references", "outline", "search"]


class SymbolsParams(Params):
    action: Action
    path: Annotated[
        str | None, Meta(description="File with the name; for search any file of the language, or none")
    ] = None
    symbol: Annotated[str | None, Meta(description="The name; not for outline")] = None
    line: Annotated[Positive | None, Meta(description="Its line; default: the first in the file")] = None

    def problem(self) -> str:
        if self.action in ("definition", "references", "outline") and not self.path:
            return f"path is required for {self.action}"
        if self.action in ("definition", "references", "search") and not self.symbol:
            return f"symbol is required for {self.action}"
        return ""


class Symbols(Tool[SymbolsParams]):
    name = "symbols"
    verb = "Symbols"
    params = SymbolsParams

    def __init__(self, code: LanguageServers | None = None) -> None:
        self._code = code

    def description(self) -> str:
        return Path(__file__).with_name("symbols.md").read_text(encoding="utf-8").strip()

    def effects(self, params: SymbolsParams, ctx: ToolContext) -> Effects:
        paths = [str(ctx.resolve(params.path))] if params.path else []
        if params.action != "outline":
            paths.append(str(ctx.cwd))
        return Effects(reads=tuple(dict.fromkeys(paths)))

    def title(self, params: SymbolsParams, ctx: ToolContext) -> str:
        where = ctx.display(ctx.resolve(params.path)) if params.path else ""
        if params.action == "outline":
            return f"outline of {where}"
        suffix = f" in {where}" if where else ""
        return (
            f"{params.action} of {params.symbol}{suffix}" if params.action != "search" else f"{params.symbol}{suffix}"
        )

    async def run(self, params: SymbolsParams, ctx: ToolContext) -> ToolOutcome:
        if self._code is None:
            raise ToolError("No language server is available here. Use search.")
        from swecli.core.language_servers.definitions import CodeError  # not for the stand-in without servers

        try:
            places = await _asked(params, ctx, self._code)
        except CodeError as error:
            raise ToolError(f"No answer: {error}.") from error
        rules = ctx.read_rules() if params.action != "outline" else ReadRules()
        places = await asyncio.to_thread(_allowed, places, ctx, rules)
        note = f"\n({rules.note})" if rules.note else ""
        if not places:
            what = f"of {params.symbol!r}" if params.symbol else "in the file"
            return ToolOutcome(f"The language server found no {_NOUNS[params.action]} {what}.{note}", (), "nothing")
        if params.action == "outline":
            return _outline(places, ctx)
        outcome = await asyncio.to_thread(_listed, params.action, places, ctx)
        return replace(outcome, text=f"{outcome.text}{note}")


_NOUNS = {"definition": "definition", "references": "uses", "outline": "names", "search": "name like that"}


async def _asked(params: SymbolsParams, ctx: ToolContext, code: LanguageServers) -> Sequence[CodePlace]:
    path = ctx.resolve(params.path) if params.path else None
    if params.action == "search":
        return await code.search(params.symbol or "", path)
    assert path is not None  # the parameters were checked
    if params.action == "outline":
        return await code.ask("outline", path)
    text = await asyncio.to_thread(_text, path, ctx)
    line, column = _found(params.symbol or "", params.line, text, ctx.display(path))
    return await code.ask(params.action, path, line, column)


def _allowed(places: Sequence[CodePlace], ctx: ToolContext, rules: ReadRules) -> Sequence[CodePlace]:
    """The places without those in files that must not be shown; a rule counts for a link and for its target."""
    if not rules.rules:
        return places
    targets = {path: os.path.realpath(path) for path in {str(symbol.path) for symbol in places}}
    hidden = rules.hidden((*targets, *targets.values()), str(ctx.cwd))
    return [symbol for symbol in places if not hidden & {str(symbol.path), targets[str(symbol.path)]}]


def _text(path: Path, ctx: ToolContext) -> str:
    try:
        return decode(read_bytes(path, _MAX_FILE, exact=True)[0]).text
    except OSError as error:
        raise explained(error, path, ctx) from error


def _found(symbol: str, line: int | None, text: str, name: str) -> tuple[int, int]:
    """Line (from 1) and column (from 0) of a name: as a whole word on the given line, otherwise its first occurrence.

    Raises:
        ToolError: the name does not occur.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    # Of a dotted name the last part is meant.
    word = symbol.strip().removesuffix("()").rpartition(".")[2] or symbol.strip()
    begin, end = (r"\b" if _WORD.match(each) else "" for each in (word[0], word[-1])) if word else ("", "")
    expression = re.compile(f"{begin}{re.escape(word)}{end}")
    if line is not None and line > len(lines):
        raise ToolError(f"{name} has {plural(len(lines), 'line')}; line {line} does not exist.")
    numbers = range(len(lines)) if line is None else (line - 1,)
    for number in numbers:
        match = expression.search(lines[number]) if word else None
        if match is not None:
            return number + 1, match.start()
    where = f"on line {line} of {name}" if line is not None else f"in {name}"
    raise ToolError(f"{word!r} is not {where}. Give its line, or use search.")


def _outline(places: Sequence[CodePlace], ctx: ToolContext) -> ToolOutcome:
    shown = places[: MOST * 3]
    lines = [f"{symbol.line:>5} {'  ' * symbol.depth}{symbol.kind or 'name'} {_name(symbol)}" for symbol in shown]
    if len(places) > len(shown):
        lines.append(f"[{len(shown)} of {len(places):,} names]")
    entries = tuple(
        FileEntry(ctx.display(symbol.path), symbol.line, f"{symbol.kind} {symbol.name}") for symbol in shown
    )
    return ToolOutcome("\n".join(lines), (FileListBlock(entries, len(places)),), plural(len(places), "name"))


def _name(symbol: CodePlace) -> str:
    name = " ".join(symbol.name.split())
    return f"{name} (in {symbol.within})" if symbol.within else name


def _listed(action: Action, places: Sequence[CodePlace], ctx: ToolContext) -> ToolOutcome:
    """The places with their lines; without lines for files outside the workspace and files that may hold secrets."""
    shown = places[:MOST]
    texts: dict[Path, list[str]] = {}
    lines: list[str] = []
    entries: list[FileEntry] = []
    for symbol in shown:
        target = Path(os.path.realpath(symbol.path))
        inside = any(target.is_relative_to(root) for root in (ctx.cwd, *ctx.roots))
        about = f"{symbol.kind} {_name(symbol)}".strip() if action == "search" else ""
        if not about and inside and not any(is_secret(str(path), ctx.secret_names) for path in (symbol.path, target)):
            if symbol.path not in texts:
                texts[symbol.path] = _lines(target)
            known = texts[symbol.path]
            about = known[symbol.line - 1].strip()[:_MOST_COLUMNS] if symbol.line <= len(known) else ""
        name = ctx.display(symbol.path)
        lines.append(f"{name}:{symbol.line}: {about}".removesuffix(": "))
        entries.append(FileEntry(name, symbol.line, about))
    if len(places) > len(shown):
        lines.append(f"[{len(shown)} of {len(places):,}; narrow it with search and a glob]")
    files = len({symbol.path for symbol in places})
    count = f"{plural(len(places), 'place')} in {plural(files, 'file')}"
    return ToolOutcome("\n".join(lines), (FileListBlock(tuple(entries), len(places)),), count)


def _lines(path: Path) -> list[str]:
    try:
        text = decode(read_bytes(path, _MAX_FILE, exact=True)[0]).text
    except OSError:
        return []  # gone, or led elsewhere by a link, since the server saw it: then only the place is listed
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

"""Sessions of other agents with publicly known files.

Claude Code and Codex write one JSON object per line. Unknown lines are counted and left out, because these formats
change. Only messages and tool results are imported: no permissions, settings, commands to
run, or data that only its provider understands.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, cast

from swecli.core.protocol.blocks import TerminalBlock
from swecli.core.protocol.events import (
    Body,
    Event,
    ItemCheckpointed,
    ItemCompleted,
    ItemKind,
    ItemStarted,
    ModelResponded,
    SessionStarted,
    TurnEnded,
    TurnStarted,
)
from swecli.core.protocol.messages import (
    ImagePart,
    Origin,
    Part,
    ReasoningPart,
    Stop,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from swecli.core.sessions.portable import Portable, PortableError, bounded
from swecli.export.foreign_parts import (
    NOT_UNDERSTOOD,
    OF_BRANCHES,
    OF_SUBAGENTS,
    SUMMARIES,
    Foreign,
    Line,
    Said,
    image_of,
    object_of,
    string_in,
    texts_of,
    when,
)

NO_RESULT: Final = "The imported session has no result for this call."


def read_foreign(text: str) -> Foreign:
    """Parse a session file.

    Raises:
        PortableError: it belongs to none of these agents, or is an empty session.
    """
    lines, broken = _lines(text)
    kind = _kind(lines)
    if not kind:
        raise PortableError("it is neither swecli's own JSON export nor a session file of Claude Code or Codex")
    foreign = _READERS[kind](lines)
    if broken:
        foreign.left_out[NOT_UNDERSTOOD] += broken
    if not any(isinstance(entry.part, TextPart) for entry in foreign.said):
        raise PortableError(f"it is a session file of {foreign.agent}, but contains no messages")
    return foreign


def _lines(text: str) -> tuple[list[Line], int]:
    """The objects of a file with one per line, and the number of other lines."""
    lines: list[Line] = []
    broken = 0
    for raw in text.split("\n"):
        if not raw.strip():
            continue
        try:
            value: object = json.loads(raw)
            bounded(value)
        except (ValueError, RecursionError):
            broken += 1
            continue
        if isinstance(value, dict):
            lines.append(cast("Line", value))
        else:
            broken += 1
    return lines, broken


def _kind(lines: Sequence[Line]) -> str:
    """The agent behind a file, from its first lines; empty if unknown."""
    for line in lines[:200]:
        kind = line.get("type")
        if kind in ("session_meta", "response_item", "turn_context", "event_msg") and isinstance(
            line.get("payload"), dict
        ):
            return "codex"
        if kind in ("user", "assistant") and isinstance(line.get("message"), dict):
            return "claude"
        if kind == "message" and isinstance(line.get("content"), list) and "role" in line:
            return "codex"  # first versions, without an envelope
    return ""


def portable_of(found: Foreign, identifier: str) -> Portable:
    """The session in swecli's form, with the id ``identifier``."""
    builder = _Builder(found, identifier)
    builder.build()
    first, last = builder.events[0].ts, builder.events[-1].ts
    counts = [f"{count:,} {why}" for why, count in found.left_out.most_common() if count]
    left_out = (f"Skipped lines of the file: {', '.join(counts)}.",) if counts else ()
    return Portable(
        identifier, found.title[:80], found.cwd, "", first, last, "", tuple(builder.events), left_out=left_out
    )


class _Builder:
    """Builds the events of a session from foreign parts, with swecli's ids and pairs."""

    def __init__(self, foreign: Foreign, session: str) -> None:
        self._found = foreign
        self._session = session
        self.events: list[Event] = []
        self._items = self._turn = self._calls = 0
        self._at = next((entry.at for entry in foreign.said if entry.at > 0), 0.0)
        self._open: dict[str, list[tuple[str, ToolCallPart]]] = {}
        """Items and new calls by the original id of the call, which several calls of an answer may share."""
        self._results = Counter(entry.part.call_id for entry in foreign.said if isinstance(entry.part, ToolResultPart))
        """The results still to come, by that id."""
        self._answer: list[tuple[str, Said]] = []
        self._outcome = False

    def build(self) -> None:
        self._emit(SessionStarted(self._found.cwd, "", "default", ""))
        for entry in self._found.said:
            self._at = max(self._at, entry.at)
            if self._answer and entry.answer != self._answer[0][1].answer:
                self._respond()
            match entry.part:
                case ToolResultPart() as result:
                    self._result(result)
                case TextPart() | ImagePart() if not entry.answer:
                    self._user(entry.part)
                case _:
                    if not self._answer:
                        self._settle([name for name in self._open if not self._results[name]])
                    self._part(entry)
        self._respond()
        self._settle(self._open)
        self._end_turn()

    def _emit(self, body: Body) -> None:
        self.events.append(Event(len(self.events) + 1, self._at, self._session, self._turn, body))

    def _item(self, prefix: str) -> str:
        self._items += 1
        return f"{prefix}{self._items}"

    def _user(self, part: Part) -> None:
        newest = self.events[-1].body
        if isinstance(newest, ItemCompleted) and newest.item.startswith("u"):  # one message of several parts
            self.events.pop()
            self._emit(ItemCompleted(newest.item, "ok", (*newest.parts, part)))
            return
        self._respond()
        self._settle(self._open)
        self._end_turn()
        self._turn += 1
        item = self._item("u")
        self._emit(TurnStarted(item))
        self._emit(ItemStarted(item, "user"))
        self._emit(ItemCompleted(item, "ok", (part,)))
        self._outcome = True

    def _part(self, entry: Said) -> None:
        kind, prefix = _item_kind(entry.part)
        item = self._item(prefix)
        if isinstance(entry.part, ToolCallPart):
            self._calls += 1
            old = entry.part.call_id
            name, arguments, title = translated(entry.part.name, entry.part.arguments)
            call = ToolCallPart(f"call_{self._calls}", name, arguments)
            self._emit(ItemStarted(item, kind, name))
            self._emit(ItemCheckpointed(item, call, title))
            self._open.setdefault(old, []).append((item, call))
        else:
            self._emit(ItemStarted(item, kind))
            self._emit(ItemCompleted(item, "ok", (entry.part,)))
        self._answer.append((item, entry))

    def _respond(self) -> None:
        """End an answer: its parts form one message. Its usage was the other agent's."""
        if not self._answer:
            return
        items = tuple(item for item, _ in self._answer)
        origin = Origin(f"imported-{self._found.agent.lower().replace(' ', '-')}", "", self._found.model)
        calls = any(isinstance(entry.part, ToolCallPart) for _, entry in self._answer)
        self._emit(ModelResponded(f"m{len(self.events) + 1}", items, origin, Stop("tool_use" if calls else "end")))
        self._answer.clear()

    def _result(self, result: ToolResultPart) -> None:
        self._respond()
        self._results[result.call_id] -= 1
        opened = self._open.get(result.call_id)
        if opened is None:
            self._found.left_out["results without a call"] += 1
            return
        item, call = opened.pop(0)
        if not opened:
            del self._open[result.call_id]
        part = ToolResultPart(call.call_id, call.name, result.text, result.is_error, result.images)
        blocks = (TerminalBlock(_command(call), result.text),) if call.name == "run_command" else ()
        self._emit(ItemCompleted(item, "error" if result.is_error else "ok", (part,), blocks))

    def _settle(self, calls: Collection[str]) -> None:
        """Close calls without a result in the file."""
        for item, call in [pair for name in list(self._open) if name in calls for pair in self._open.pop(name)]:
            part = ToolResultPart(call.call_id, call.name, NO_RESULT, is_error=True)
            self._emit(ItemCompleted(item, "interrupted", (part,), (), "no result"))

    def _end_turn(self) -> None:
        if self._outcome:
            self._emit(TurnEnded("done"))
        self._outcome = False


def _item_kind(part: Part) -> tuple[ItemKind, str]:
    match part:
        case ToolCallPart():
            return "tool", "t"
        case ReasoningPart():
            return "reasoning", "r"
        case _:
            return "text", "a"


def _command(call: ToolCallPart) -> str:
    return str(object_of(call.arguments).get("command", ""))


# --- tools by another name -------------------------------------------------------------------------------------

_PATHS: Final = dict.fromkeys(("file_path", "filePath", "absolute_path", "path"), "path")
_READ: Final = {**_PATHS, "offset": "offset", "limit": "limit"}
_WRITE: Final = {**_PATHS, "content": "content"}
_EDIT: Final = {
    **_PATHS,
    **dict.fromkeys(("old_string", "oldString", "oldText"), "old_string"),
    **dict.fromkeys(("new_string", "newString", "newText"), "new_string"),
    **dict.fromkeys(("replace_all", "replaceAll", "allow_multiple"), "replace_all"),
    "edits": "edits",
}
_SEARCH: Final = {
    "pattern": "pattern",
    **dict.fromkeys(("path", "dir_path"), "path"),
    **dict.fromkeys(("glob", "include", "include_pattern"), "glob"),
}
_LIST: Final = {"path": "path", "dir_path": "path"}
_TOOLS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "bash": ("run_command", {"command": "command", "cmd": "command", "timeout": ""}),
    "shell": ("run_command", {"command": "command", "cmd": "command"}),
    "shell_command": ("run_command", {"command": "command", "cmd": "command"}),
    "local_shell": ("run_command", {"command": "command"}),
    "exec_command": ("run_command", {"cmd": "command", "command": "command"}),
    "read": ("read_file", _READ),
    "read_file": ("read_file", _READ),
    "write": ("write_file", _WRITE),
    "write_file": ("write_file", _WRITE),
    "edit": ("edit_file", _EDIT),
    "replace": ("edit_file", _EDIT),
    "grep": ("search", _SEARCH),
    "ls": ("list_files", _LIST),
    "list": ("list_files", _LIST),
    "apply_patch": ("apply_patch", {"patch": "patch", "input": "patch", "patchText": "patch"}),
}
"""Equivalents of other agents' tools: swecli's name, and the names of arguments. A model repeats the names in a
conversation."""


def translated(name: str, arguments: str) -> tuple[str, str, str]:
    """Name and arguments of a call, converted to swecli's own tool if there is one; and its target."""
    known = _TOOLS.get(name.lower())
    given = object_of(arguments)
    if known is None:
        text = arguments if given else json.dumps({"input": arguments} if arguments else {}, ensure_ascii=False)
        target = given.get("description") or given.get("file_path") or given.get("path") or given.get("query") or ""
        return name or "unknown", text, " ".join(str(target).split())[:200]
    tool, names = known
    if not given and arguments:
        given = {"input": arguments}
    mapped = {names[key]: value for key, value in given.items() if names.get(key)}
    if tool == "run_command":
        mapped = {"command": _as_command(mapped.get("command", ""))}
    target = str(mapped.get("command") or mapped.get("path") or mapped.get("pattern") or "")
    return tool, json.dumps(mapped, ensure_ascii=False), target


def _as_command(value: object) -> str:
    """A command as one line for a shell; others also write ``["bash", "-lc", "..."]``."""
    if isinstance(value, list):
        words = [str(word) for word in cast("list[object]", value)]
        return words[2] if len(words) == 3 and words[1] in ("-c", "-lc") else " ".join(words)
    return str(value)


# --- Claude Code -----------------------------------------------------------------------------------------------

_CLAUDE_ASIDE: Final = frozenset(
    (
        "summary",
        "system",
        "progress",
        "file-history-snapshot",
        "queue-operation",
        "attachment",
        "ai-title",
        "custom-title",
        "agent-name",
        "agent-color",
        "mode",
        "permission-mode",
        "last-prompt",
        "pr-link",
        "tag",
        "todo",
    )
)
"""Lines without a part of the conversation."""


def _claude(lines: Sequence[Line]) -> Foreign:
    foreign = Foreign("Claude Code")
    turns: list[Line] = []
    for line in lines:
        kind = line.get("type")
        if kind == "summary":
            foreign.title = string_in(line, "summary") or foreign.title
        elif kind in ("custom-title", "ai-title"):
            foreign.title = string_in(line, "customTitle") or string_in(line, "aiTitle") or foreign.title
        if kind in ("user", "assistant") and isinstance(line.get("message"), dict):
            foreign.cwd = foreign.cwd or string_in(line, "cwd")
            if line.get("isSidechain") is True:
                foreign.left_out[OF_SUBAGENTS] += 1
            else:
                turns.append(line)
        elif string_in(line, "type") not in _CLAUDE_ASIDE:
            foreign.left_out[NOT_UNDERSTOOD] += 1
    on_way = _on_claude_way(turns)
    for number, line in enumerate(turns):
        if number not in on_way:
            foreign.left_out[OF_BRANCHES] += 1
            continue
        message, at = cast("Line", line["message"]), when(line.get("timestamp"))
        if line.get("type") == "assistant":
            _claude_answer(foreign, line, message, at)
        elif line.get("isCompactSummary") is True and foreign.said:
            foreign.left_out[SUMMARIES] += 1
        elif line.get("isMeta") is not True:
            _claude_user(foreign, message, at)
    return foreign


def _on_claude_way(turns: Sequence[Line]) -> set[int]:
    """Lines that lead to the last one: a rewind leaves other branches in the file. Includes results of calls and parts
    of answers on that path."""
    places = {str(line.get("uuid")): number for number, line in enumerate(turns) if line.get("uuid")}
    if not places or not turns:
        return set(range(len(turns)))
    way: set[int] = set()
    index: int | None = len(turns) - 1
    while index is not None and index not in way:
        way.add(index)
        above = turns[index].get("parentUuid") or turns[index].get("logicalParentUuid")
        if above is None:  # the first line, or the first one after a compaction: earlier lines count
            break
        index = places.get(str(above))
        if index is None:
            break
    first = min(way)
    way |= set(range(first))  # branches before a gap are unknown
    answers = {_answer_of(turns[number]) for number in way} - {""}
    way |= {number for number, line in enumerate(turns) if _answer_of(line) in answers}
    calls = {
        string_in(block, "id") for number in way for block in _blocks(turns[number]) if block.get("type") == "tool_use"
    }
    for number, line in enumerate(turns):
        results = [block for block in _blocks(line) if block.get("type") == "tool_result"]
        if results and all(string_in(block, "tool_use_id") in calls for block in results):
            way.add(number)
    return way


def _answer_of(line: Line) -> str:
    message = line.get("message")
    return (
        string_in(cast("Line", message), "id") if isinstance(message, dict) and line.get("type") == "assistant" else ""
    )


def _blocks(line: Line) -> list[Line]:
    message = line.get("message")
    content = cast("Line", message).get("content") if isinstance(message, dict) else None
    return (
        [cast("Line", block) for block in cast("list[object]", content) if isinstance(block, dict)]
        if isinstance(content, list)
        else []
    )


def _claude_answer(foreign: Foreign, line: Line, message: Line, at: float) -> None:
    model = string_in(message, "model")
    if model and not model.startswith("<"):  # "<synthetic>": written by the program
        foreign.model = model
    answer = string_in(message, "id") or string_in(line, "uuid") or f"a{len(foreign.said)}"
    content = message.get("content")
    if isinstance(content, str):
        foreign.add(TextPart(content), at, answer)
        return
    for block in _blocks(line):
        match block.get("type"):
            case "text":
                foreign.add(TextPart(string_in(block, "text")), at, answer)
            case "thinking":
                if text := string_in(block, "thinking"):
                    foreign.add(ReasoningPart(text), at, answer)
            case "redacted_thinking":
                pass
            case "tool_use":
                arguments = json.dumps(block.get("input", {}), ensure_ascii=False)
                foreign.add(ToolCallPart(string_in(block, "id"), string_in(block, "name"), arguments), at, answer)
            case _:
                foreign.left_out[NOT_UNDERSTOOD] += 1


_NOT_SAID: Final = ("<local-command-stdout>", "<local-command-caveat>", "<bash-stdout>", "[Request interrupted by user")


def _claude_user(foreign: Foreign, message: Line, at: float) -> None:
    content = message.get("content")
    if isinstance(content, str):
        if text := _claude_typed(content):
            foreign.add(TextPart(text), at)
        return
    for block in _blocks({"message": message}):
        match block.get("type"):
            case "text":
                if text := _claude_typed(string_in(block, "text")):
                    foreign.add(TextPart(text), at)
            case "tool_result":
                text, images = texts_of(block.get("content"))
                failed = block.get("is_error") is True
                foreign.add(ToolResultPart(string_in(block, "tool_use_id"), "", text, failed, images), at)
            case "image":
                if (image := image_of(block)) is not None:
                    foreign.add(image, at)
            case _:
                foreign.left_out[NOT_UNDERSTOOD] += 1


def _claude_typed(text: str) -> str:
    """The user's own text; empty for text that the program wrote in their name."""
    if text.startswith(_NOT_SAID):
        return ""
    if text.startswith(("<command-name>", "<command-message>")):
        name = _between(text, "command-name")
        return f"{name} {_between(text, 'command-args')}".strip()
    return text if text.strip() else ""


def _between(text: str, tag: str) -> str:
    return text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0].strip()


# --- Codex -----------------------------------------------------------------------------------------------------

_CODEX_INJECTED: Final = (
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<turn_aborted>",
    "<skill",
    "<INSTRUCTIONS>",
    "# AGENTS.md instructions",
    "<subagent_notification>",
    "<user_shell_command>",
)
"""Beginnings of messages that the program writes in the user's name."""


def _codex(lines: Sequence[Line]) -> Foreign:
    foreign = Foreign("Codex")
    items: list[tuple[Line, float]] = []
    spoken: list[tuple[Line, float]] = []
    """Lines that older versions wrote only as messages for the screen."""
    for line in lines:
        at, payload = when(line.get("timestamp")), line.get("payload")
        data = cast("Line", payload) if isinstance(payload, dict) else {}
        match line.get("type"):
            case "session_meta":
                foreign.cwd = foreign.cwd or string_in(data, "cwd")
            case "turn_context":
                foreign.cwd = foreign.cwd or string_in(data, "cwd")
                foreign.model = string_in(data, "model") or foreign.model
            case "response_item":
                items.append((data, at))
            case "event_msg":
                if data.get("type") in ("user_message", "agent_message", "agent_reasoning"):
                    spoken.append((data, at))
            case "compacted":
                if any(item.get("type") == "message" for item, _ in items):
                    foreign.left_out[SUMMARIES] += 1
                elif text := string_in(data, "message"):
                    items.append(({"type": "message", "role": "user", "content": text}, at))
            case "message" | "function_call" | "function_call_output" | "reasoning":
                items.append((line, at))  # first versions, without an envelope
            case None if "id" in line and "timestamp" in line:
                pass  # their first line
            case "state" | "world_state" | "ghost_snapshot":
                pass
            case _:
                if line.get("record_type") != "state":
                    foreign.left_out[NOT_UNDERSTOOD] += 1
    if any(item.get("type") == "message" and item.get("role") in ("user", "assistant") for item, _ in items):
        _codex_items(foreign, items)
    else:
        _codex_spoken(foreign, spoken)
    return foreign


def _codex_spoken(foreign: Foreign, spoken: Iterable[tuple[Line, float]]) -> None:
    for number, (data, at) in enumerate(spoken):
        text = string_in(data, "message") or string_in(data, "text")
        if data.get("type") == "user_message":
            foreign.add(TextPart(text), at)
        else:
            part = ReasoningPart(text, "summary") if data.get("type") == "agent_reasoning" else TextPart(text)
            foreign.add(part, at, f"a{number}")


def _codex_items(foreign: Foreign, items: Iterable[tuple[Line, float]]) -> None:
    answer = 0
    for data, at in items:
        name, call = f"a{answer}", string_in(data, "call_id") or string_in(data, "id")
        match data.get("type"):
            case "message" if data.get("role") == "assistant":
                foreign.add(TextPart(texts_of(data.get("content"))[0]), at, name)
            case "message" if data.get("role") == "user":
                answer += _codex_user(foreign, data.get("content"), at)
            case "message":
                pass  # system and developer: instructions of that program
            case "reasoning":
                text = texts_of(data.get("summary"))[0] or texts_of(data.get("content"))[0]
                if text:
                    foreign.add(ReasoningPart(text, "summary"), at, name)
            case "function_call":
                foreign.add(ToolCallPart(call, string_in(data, "name"), string_in(data, "arguments")), at, name)
            case "custom_tool_call":
                foreign.add(ToolCallPart(call, string_in(data, "name"), string_in(data, "input")), at, name)
            case "local_shell_call":
                action = json.dumps(data.get("action") or {})
                foreign.add(ToolCallPart(call, "local_shell", action), at, name)
            case "function_call_output" | "custom_tool_call_output" | "local_shell_call_output":
                text, failed, images = _codex_output(data.get("output"))
                foreign.add(ToolResultPart(call, "", text, failed, images), at)
                answer += 1
            case "web_search_call" | "ghost_snapshot" | "compaction" | "context_compaction" | "agent_message":
                pass
            case _:
                foreign.left_out[NOT_UNDERSTOOD] += 1


def _codex_user(foreign: Foreign, content: object, at: float) -> int:
    """Add a message of the user; returns 1, or 0 if the program wrote it."""
    pieces = [{"text": content}] if isinstance(content, str) else cast("list[object]", content)
    added = 0
    for piece in pieces if isinstance(pieces, list) else []:  # pyright: ignore[reportUnnecessaryIsInstance]
        block = cast("Line", piece) if isinstance(piece, dict) else {}
        text = string_in(block, "text")
        if text.strip() and not text.lstrip().startswith(_CODEX_INJECTED):
            foreign.add(TextPart(text), at)
            added = 1
        elif (image := image_of(block)) is not None:
            foreign.add(image, at)
            added = 1
    return added


def _codex_output(output: object) -> tuple[str, bool, tuple[ImagePart, ...]]:
    """The text of a result, whether it failed, and its images. Some are JSON within text."""
    if isinstance(output, str):
        data = object_of(output)
        if isinstance(inner := data.get("output"), str):
            about = data.get("metadata")
            status = cast("Line", about).get("exit_code") if isinstance(about, dict) else None
            return inner, status not in (0, None), ()
        return output, False, ()
    if isinstance(output, dict):
        data = cast("Line", output)
        text, images = texts_of(data.get("content") or data.get("output"))
        return text, data.get("success") is False, images
    text, images = texts_of(output)
    return text, False, images


_READERS: Final[Mapping[str, Callable[[Sequence[Line]], Foreign]]] = {
    "claude": _claude,
    "codex": _codex,
}

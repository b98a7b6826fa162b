"""Sessions of other agents with publicly known files: Claude Code, Codex and pi, one JSON object per line.

Unknown lines are counted and left out, because these formats change. Only messages and tool results are imported: no
permissions, settings, commands to run, or data that only its provider understands.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, cast

from msgspec import Struct, field

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
from swecli.core.sessions.store import LATEST

Line = Mapping[str, Any]

NO_RESULT: Final = "The imported session has no result for this call."


class Said(Struct, frozen=True):
    """Part of a foreign session, in order. ``answer`` groups the parts of one response."""

    part: Part
    at: float
    answer: str = ""
    """Empty for user messages and results."""


class Foreign(Struct):
    """Content of a file. ``left_out`` counts omitted lines by reason, without lines that carry no content."""

    agent: str
    cwd: str = ""
    model: str = ""
    title: str = ""
    said: list[Said] = field(default_factory=list[Said])
    left_out: Counter[str] = field(default_factory=Counter[str])

    def add(self, part: Part, at: float, answer: str = "") -> None:
        if not isinstance(part, TextPart) or part.text.strip():
            self.said.append(Said(part, at, answer))


NOT_UNDERSTOOD: Final = "not understood"
OF_SUBAGENTS: Final = "of subagents"
OF_BRANCHES: Final = "of abandoned branches"
SUMMARIES: Final = "summaries of existing entries"


def read_foreign(text: str) -> Foreign:
    """Parse a session file.

    Raises:
        PortableError: it belongs to none of these agents, or is an empty session.
    """
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
    kind = _kind(lines)
    if not kind:
        raise PortableError(
            "it is neither swecli's own JSON export nor a session file of Claude Code, Codex or pi (JSON lines)"
        )
    found = _READERS[kind](lines)
    if broken:
        found.left_out[NOT_UNDERSTOOD] += broken
    if not any(isinstance(one.part, TextPart) for one in found.said):
        raise PortableError(f"it is a session file of {found.agent}, but contains no messages")
    return found


def _kind(lines: Sequence[Line]) -> str:
    """The agent behind a file, from its first lines; empty if unknown."""
    for line in lines[:200]:
        kind = line.get("type")
        if kind == "session" and isinstance(line.get("cwd", ""), str) and "id" in line:
            return "pi"
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

    def __init__(self, found: Foreign, session: str) -> None:
        self._found = found
        self._session = session
        self.events: list[Event] = []
        self._items = self._turn = self._calls = 0
        self._at = next((one.at for one in found.said if one.at > 0), 0.0)
        self._open: dict[str, tuple[str, ToolCallPart]] = {}
        """Items and new calls by the original id of the call."""
        self._answer: list[tuple[str, Said]] = []
        self._outcome = False

    def build(self) -> None:
        self._emit(SessionStarted(self._found.cwd, "", "default", ""))
        for one in self._found.said:
            self._at = max(self._at, one.at)
            if self._answer and one.answer != self._answer[0][1].answer:
                self._respond()
            match one.part:
                case ToolResultPart() as result:
                    self._result(result)
                case TextPart() | ImagePart() if not one.answer:
                    self._user(one.part)
                case _:
                    self._part(one)
        self._respond()
        self._settle()
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
        self._settle()
        self._end_turn()
        self._turn += 1
        item = self._item("u")
        self._emit(TurnStarted(item))
        self._emit(ItemStarted(item, "user"))
        self._emit(ItemCompleted(item, "ok", (part,)))
        self._outcome = True

    def _part(self, one: Said) -> None:
        kind, prefix = _item_kind(one.part)
        item = self._item(prefix)
        if isinstance(one.part, ToolCallPart):
            self._calls += 1
            old = one.part.call_id
            name, arguments, title = translated(one.part.name, one.part.arguments)
            call = ToolCallPart(f"call_{self._calls}", name, arguments)
            self._emit(ItemStarted(item, kind, name))
            self._emit(ItemCheckpointed(item, call, title))
            self._open[old or call.call_id] = (item, call)
        else:
            self._emit(ItemStarted(item, kind))
            self._emit(ItemCompleted(item, "ok", (one.part,)))
        self._answer.append((item, one))

    def _respond(self) -> None:
        """End an answer: its parts form one message. Its usage was the other agent's."""
        if not self._answer:
            return
        items = tuple(item for item, _ in self._answer)
        origin = Origin(f"imported-{self._found.agent.lower().replace(' ', '-')}", "", self._found.model)
        calls = any(isinstance(one.part, ToolCallPart) for _, one in self._answer)
        self._emit(ModelResponded(f"m{len(self.events) + 1}", items, origin, Stop("tool_use" if calls else "end")))
        self._answer.clear()

    def _result(self, result: ToolResultPart) -> None:
        self._respond()
        opened = self._open.pop(result.call_id, None)
        if opened is None:
            self._found.left_out["results without a call"] += 1
            return
        item, call = opened
        part = ToolResultPart(call.call_id, call.name, result.text, result.is_error, result.images)
        blocks = (TerminalBlock(_command(call), result.text),) if call.name == "run_command" else ()
        self._emit(ItemCompleted(item, "error" if result.is_error else "ok", (part,), blocks))

    def _settle(self) -> None:
        """Close calls without a result in the file."""
        self._respond()
        for item, call in self._open.values():
            part = ToolResultPart(call.call_id, call.name, NO_RESULT, is_error=True)
            self._emit(ItemCompleted(item, "interrupted", (part,), (), "no result"))
        self._open.clear()

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
    return str(_object(call.arguments).get("command", ""))


# --- tools by another name -------------------------------------------------------------------------------------

_TOOLS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "bash": ("run_command", {"command": "command", "cmd": "command", "timeout": ""}),
    "shell": ("run_command", {"command": "command", "cmd": "command"}),
    "shell_command": ("run_command", {"command": "command", "cmd": "command"}),
    "local_shell": ("run_command", {"command": "command"}),
    "exec_command": ("run_command", {"cmd": "command", "command": "command"}),
    "read": ("read_file", {"file_path": "path", "path": "path", "offset": "offset", "limit": "limit"}),
    "write": ("write_file", {"file_path": "path", "path": "path", "content": "content"}),
    "edit": (
        "edit_file",
        {
            "file_path": "path",
            "path": "path",
            "old_string": "old_string",
            "new_string": "new_string",
            "oldText": "old_string",
            "newText": "new_string",
            "replace_all": "replace_all",
            "edits": "edits",
        },
    ),
    "grep": ("search", {"pattern": "pattern", "path": "path", "glob": "glob"}),
    "ls": ("list_files", {"path": "path"}),
    "apply_patch": ("apply_patch", {"patch": "patch", "input": "patch"}),
}
"""Equivalents of other agents' tools: swecli's name, and the names of arguments. A model repeats the names in a
conversation."""


def translated(name: str, arguments: str) -> tuple[str, str, str]:
    """Name and arguments of a call, converted to swecli's own tool if there is one; and its target."""
    known = _TOOLS.get(name.lower())
    given = _object(arguments)
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
    found = Foreign("Claude Code")
    turns: list[Line] = []
    for line in lines:
        kind = line.get("type")
        if kind == "summary":
            found.title = _string(line, "summary") or found.title
        elif kind in ("custom-title", "ai-title"):
            found.title = _string(line, "customTitle") or _string(line, "aiTitle") or found.title
        if kind in ("user", "assistant") and isinstance(line.get("message"), dict):
            found.cwd = found.cwd or _string(line, "cwd")
            if line.get("isSidechain") is True:
                found.left_out[OF_SUBAGENTS] += 1
            else:
                turns.append(line)
        elif _string(line, "type") not in _CLAUDE_ASIDE:
            found.left_out[NOT_UNDERSTOOD] += 1
    on_way = _on_claude_way(turns)
    for number, line in enumerate(turns):
        if number not in on_way:
            found.left_out[OF_BRANCHES] += 1
            continue
        message, at = cast("Line", line["message"]), _when(line.get("timestamp"))
        if line.get("type") == "assistant":
            _claude_answer(found, line, message, at)
        elif line.get("isCompactSummary") is True and found.said:
            found.left_out[SUMMARIES] += 1
        elif line.get("isMeta") is not True:
            _claude_user(found, message, at)
    return found


def _on_claude_way(turns: Sequence[Line]) -> set[int]:
    """Lines that lead to the last one: a rewind leaves other branches in the file. Includes results of calls and parts
    of answers on that path."""
    places = {str(line.get("uuid")): number for number, line in enumerate(turns) if line.get("uuid")}
    if not places or not turns:
        return set(range(len(turns)))
    way: set[int] = set()
    place: int | None = len(turns) - 1
    while place is not None and place not in way:
        way.add(place)
        above = turns[place].get("parentUuid") or turns[place].get("logicalParentUuid")
        if above is None:  # the first line, or the first one after a compaction: earlier lines count
            break
        place = places.get(str(above))
        if place is None:
            break
    first = min(way)
    way |= set(range(first))  # branches before a gap are unknown
    answers = {_answer_of(turns[number]) for number in way} - {""}
    way |= {number for number, line in enumerate(turns) if _answer_of(line) in answers}
    calls = {
        _string(block, "id") for number in way for block in _blocks(turns[number]) if block.get("type") == "tool_use"
    }
    for number, line in enumerate(turns):
        results = [block for block in _blocks(line) if block.get("type") == "tool_result"]
        if results and all(_string(block, "tool_use_id") in calls for block in results):
            way.add(number)
    return way


def _answer_of(line: Line) -> str:
    message = line.get("message")
    return _string(cast("Line", message), "id") if isinstance(message, dict) and line.get("type") == "assistant" else ""


def _blocks(line: Line) -> list[Line]:
    message = line.get("message")
    content = cast("Line", message).get("content") if isinstance(message, dict) else None
    return (
        [cast("Line", block) for block in cast("list[object]", content) if isinstance(block, dict)]
        if isinstance(content, list)
        else []
    )


def _claude_answer(found: Foreign, line: Line, message: Line, at: float) -> None:
    model = _string(message, "model")
    if model and not model.startswith("<"):  # "<synthetic>": written by the program
        found.model = model
    answer = _string(message, "id") or _string(line, "uuid") or f"a{len(found.said)}"
    content = message.get("content")
    if isinstance(content, str):
        found.add(TextPart(content), at, answer)
        return
    for block in _blocks(line):
        match block.get("type"):
            case "text":
                found.add(TextPart(_string(block, "text")), at, answer)
            case "thinking":
                if text := _string(block, "thinking"):
                    found.add(ReasoningPart(text), at, answer)
            case "redacted_thinking":
                pass
            case "tool_use":
                arguments = json.dumps(block.get("input", {}), ensure_ascii=False)
                found.add(ToolCallPart(_string(block, "id"), _string(block, "name"), arguments), at, answer)
            case _:
                found.left_out[NOT_UNDERSTOOD] += 1


_NOT_SAID: Final = ("<local-command-stdout>", "<local-command-caveat>", "<bash-stdout>", "[Request interrupted by user")


def _claude_user(found: Foreign, message: Line, at: float) -> None:
    content = message.get("content")
    if isinstance(content, str):
        if text := _claude_typed(content):
            found.add(TextPart(text), at)
        return
    for block in _blocks({"message": message}):
        match block.get("type"):
            case "text":
                if text := _claude_typed(_string(block, "text")):
                    found.add(TextPart(text), at)
            case "tool_result":
                text, images = _texts(block.get("content"))
                failed = block.get("is_error") is True
                found.add(ToolResultPart(_string(block, "tool_use_id"), "", text, failed, images), at)
            case "image":
                if (image := _image(block)) is not None:
                    found.add(image, at)
            case _:
                found.left_out[NOT_UNDERSTOOD] += 1


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
    found = Foreign("Codex")
    items: list[tuple[Line, float]] = []
    spoken: list[tuple[Line, float]] = []
    """Lines that older versions wrote only as messages for the screen."""
    for line in lines:
        at, payload = _when(line.get("timestamp")), line.get("payload")
        data = cast("Line", payload) if isinstance(payload, dict) else {}
        match line.get("type"):
            case "session_meta":
                found.cwd = found.cwd or _string(data, "cwd")
            case "turn_context":
                found.cwd = found.cwd or _string(data, "cwd")
                found.model = _string(data, "model") or found.model
            case "response_item":
                items.append((data, at))
            case "event_msg":
                if data.get("type") in ("user_message", "agent_message", "agent_reasoning"):
                    spoken.append((data, at))
            case "compacted":
                if any(one.get("type") == "message" for one, _ in items):
                    found.left_out[SUMMARIES] += 1
                elif text := _string(data, "message"):
                    items.append(({"type": "message", "role": "user", "content": text}, at))
            case "message" | "function_call" | "function_call_output" | "reasoning":
                items.append((line, at))  # first versions, without an envelope
            case None if "id" in line and "timestamp" in line:
                pass  # their first line
            case "state" | "world_state" | "ghost_snapshot":
                pass
            case _:
                if line.get("record_type") != "state":
                    found.left_out[NOT_UNDERSTOOD] += 1
    if any(one.get("type") == "message" and one.get("role") in ("user", "assistant") for one, _ in items):
        _codex_items(found, items)
    else:
        _codex_spoken(found, spoken)
    return found


def _codex_spoken(found: Foreign, spoken: Iterable[tuple[Line, float]]) -> None:
    for number, (data, at) in enumerate(spoken):
        text = _string(data, "message") or _string(data, "text")
        if data.get("type") == "user_message":
            found.add(TextPart(text), at)
        else:
            part = ReasoningPart(text, "summary") if data.get("type") == "agent_reasoning" else TextPart(text)
            found.add(part, at, f"a{number}")


def _codex_items(found: Foreign, items: Iterable[tuple[Line, float]]) -> None:
    answer = 0
    for data, at in items:
        name, call = f"a{answer}", _string(data, "call_id") or _string(data, "id")
        match data.get("type"):
            case "message" if data.get("role") == "assistant":
                found.add(TextPart(_texts(data.get("content"))[0]), at, name)
            case "message" if data.get("role") == "user":
                answer += _codex_user(found, data.get("content"), at)
            case "message":
                pass  # system and developer: instructions of that program
            case "reasoning":
                text = _texts(data.get("summary"))[0] or _texts(data.get("content"))[0]
                if text:
                    found.add(ReasoningPart(text, "summary"), at, name)
            case "function_call":
                found.add(ToolCallPart(call, _string(data, "name"), _string(data, "arguments")), at, name)
            case "custom_tool_call":
                found.add(ToolCallPart(call, _string(data, "name"), _string(data, "input")), at, name)
            case "local_shell_call":
                action = json.dumps(data.get("action") or {})
                found.add(ToolCallPart(call, "local_shell", action), at, name)
            case "function_call_output" | "custom_tool_call_output" | "local_shell_call_output":
                text, failed, images = _codex_output(data.get("output"))
                found.add(ToolResultPart(call, "", text, failed, images), at)
                answer += 1
            case "web_search_call" | "ghost_snapshot" | "compaction" | "context_compaction" | "agent_message":
                pass
            case _:
                found.left_out[NOT_UNDERSTOOD] += 1


def _codex_user(found: Foreign, content: object, at: float) -> int:
    """Add a message of the user; returns 1, or 0 if the program wrote it."""
    pieces = [{"text": content}] if isinstance(content, str) else cast("list[object]", content)
    added = 0
    for piece in pieces if isinstance(pieces, list) else []:  # pyright: ignore[reportUnnecessaryIsInstance]
        block = cast("Line", piece) if isinstance(piece, dict) else {}
        text = _string(block, "text")
        if text.strip() and not text.lstrip().startswith(_CODEX_INJECTED):
            found.add(TextPart(text), at)
            added = 1
        elif (image := _image(block)) is not None:
            found.add(image, at)
            added = 1
    return added


def _codex_output(output: object) -> tuple[str, bool, tuple[ImagePart, ...]]:
    """The text of a result, whether it failed, and its images. Some are JSON within text."""
    if isinstance(output, str):
        data = _object(output)
        if isinstance(inner := data.get("output"), str):
            about = data.get("metadata")
            status = cast("Line", about).get("exit_code") if isinstance(about, dict) else None
            return inner, status not in (0, None), ()
        return output, False, ()
    if isinstance(output, dict):
        data = cast("Line", output)
        text, images = _texts(data.get("content") or data.get("output"))
        return text, data.get("success") is False, images
    text, images = _texts(output)
    return text, False, images


# --- pi --------------------------------------------------------------------------------------------------------


def _pi(lines: Sequence[Line]) -> Foreign:
    found = Foreign("pi")
    header = next((line for line in lines if line.get("type") == "session"), {})
    found.cwd = _string(header, "cwd")
    if (model := _string(header, "modelId")) and (provider := _string(header, "provider")):
        found.model = f"{provider}/{model}"
    entries = [line for line in lines if line.get("type") != "session"]
    way = _on_pi_way(entries)
    for number, line in enumerate(entries):
        at = _when(line.get("timestamp"))
        if number not in way:
            found.left_out[OF_BRANCHES] += line.get("type") == "message"
            continue
        match line.get("type"):
            case "message" if isinstance(line.get("message"), dict):
                _pi_message(found, cast("Line", line["message"]), at, str(line.get("id") or f"a{number}"))
            case "model_change":
                found.model = f"{_string(line, 'provider')}/{_string(line, 'modelId')}".strip("/") or found.model
            case "compaction" if found.said:
                found.left_out[SUMMARIES] += 1
            case "compaction" | "branch_summary":
                if text := _string(line, "summary"):
                    found.add(TextPart(f"[Summary of the earlier conversation]\n{text}"), at)
            case "session_info":
                found.title = _string(line, "name") or found.title
            case "custom_message":
                if text := _texts(line.get("content"))[0]:
                    found.add(TextPart(text), at)
            case "thinking_level_change" | "custom" | "label" | "leaf":
                pass
            case _:
                found.left_out[NOT_UNDERSTOOD] += 1
    return found


def _on_pi_way(entries: Sequence[Line]) -> set[int]:
    """Entries from the newest one up to the root; all of them in files of version 1, which have no tree."""
    places = {str(line.get("id")): number for number, line in enumerate(entries) if line.get("id")}
    if not places or not any("parentId" in line for line in entries):
        return set(range(len(entries)))
    way: set[int] = set()
    place: int | None = max(places.values())
    while place is not None and place not in way:
        way.add(place)
        above = entries[place].get("parentId")
        place = places.get(str(above)) if above is not None else None
    return way


def _pi_message(found: Foreign, message: Line, at: float, name: str) -> None:
    content = message.get("content")
    match message.get("role"):
        case "user":
            for part in _pi_parts(found, content):
                found.add(part, at)
        case "assistant":
            provider, model = _string(message, "provider"), _string(message, "model")
            found.model = f"{provider}/{model}".strip("/") or found.model
            for part in _pi_parts(found, content):
                found.add(part, at, name)
        case "toolResult":
            text, images = _texts(content)
            failed = message.get("isError") is True
            found.add(ToolResultPart(_string(message, "toolCallId"), "", text, failed, images), at)
        case "bashExecution":
            command, output = _string(message, "command"), _string(message, "output")
            found.add(TextPart(f"I ran this command myself: {command}\n{output}"), at)
        case "branchSummary" | "compactionSummary":
            if found.said:
                found.left_out[SUMMARIES] += 1
            elif text := _string(message, "summary"):
                found.add(TextPart(f"[Summary of the earlier conversation]\n{text}"), at)
        case "custom" | "hookMessage":
            if text := _texts(content)[0]:
                found.add(TextPart(text), at)
        case _:
            found.left_out[NOT_UNDERSTOOD] += 1


def _pi_parts(found: Foreign, content: object) -> Iterator[Part]:
    if isinstance(content, str):
        if content.strip():
            yield TextPart(content)
        return
    for entry in cast("list[object]", content) if isinstance(content, list) else ():
        block = cast("Line", entry) if isinstance(entry, dict) else {}
        match block.get("type"):
            case "text":
                if text := _string(block, "text"):
                    yield TextPart(text)
            case "thinking":
                if text := _string(block, "thinking"):
                    yield ReasoningPart(text)
            case "toolCall":
                arguments = json.dumps(block.get("arguments", {}), ensure_ascii=False)
                yield ToolCallPart(_string(block, "id"), _string(block, "name"), arguments)
            case "image":
                if (image := _image(block)) is not None:
                    yield image
            case _:
                found.left_out[NOT_UNDERSTOOD] += 1


_READERS: Final = {"claude": _claude, "codex": _codex, "pi": _pi}


# --- values of any shape ---------------------------------------------------------------------------------------


def _object(text: str) -> dict[str, Any]:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _string(line: Line, name: str) -> str:
    value = line.get(name)
    return value if isinstance(value, str) else ""


def _texts(content: object) -> tuple[str, tuple[ImagePart, ...]]:
    """The texts of a content, which is one block or a list of blocks, and its images."""
    if isinstance(content, str):
        return content, ()
    texts: list[str] = []
    images: list[ImagePart] = []
    for entry in cast("list[object]", content) if isinstance(content, list) else ():
        block = cast("Line", entry) if isinstance(entry, dict) else {}
        if isinstance(entry, str):
            texts.append(entry)
        elif text := _string(block, "text"):
            texts.append(text)
        elif (image := _image(block)) is not None:
            images.append(image)
    return "\n".join(texts), tuple(images)


_IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")


def _image(block: Line) -> ImagePart | None:
    """The image of a block in any of the three forms; None without embedded data."""
    source = block.get("source")
    if isinstance(source, dict):
        kind, data = _string(cast("Line", source), "media_type"), _string(cast("Line", source), "data")
    elif (address := _string(block, "image_url")).startswith("data:"):
        head, _, data = address.partition(",")
        kind = head.removeprefix("data:").partition(";")[0]
    else:
        kind, data = _string(block, "mimeType"), _string(block, "data")
    return ImagePart(kind, data) if kind in _IMAGES and data else None


def _when(value: object) -> float:
    """Unix seconds of an ISO time, or of milliseconds; 0 for other values, and for times beyond the year 3000."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) / 1000 if 1e11 < value < LATEST * 1000 else 0.0
    try:
        seconds = datetime.fromisoformat(str(value)).timestamp() if value else 0.0
    except (ValueError, OverflowError):
        return 0.0
    return seconds if seconds < LATEST else 0.0

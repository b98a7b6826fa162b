"""swecli's tools for other agents: definitions, parsing of calls, and answers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, cast, get_args

from msgspec import Struct

from swecli.core.protocol.events import Mode, TurnEnded
from swecli.core.protocol.messages import Usage
from swecli.core.protocol.modes import TIGHTEST_FIRST

RUN_TASK, READ_RESULT, CANCEL_TASK, LIST_SESSIONS = "run_task", "read_result", "cancel_task", "list_sessions"
MOST_CHARACTERS: Final = 1_000_000
"""Most characters of a task."""
MOST_WAIT: Final = 600.0
"""Most seconds to wait for a result."""
INSTRUCTIONS: Final = """swecli is a coding agent with its own model, context and tools. Give it a whole task with \
`run_task`: it reads, edits and runs commands in a folder, and answers with what it did. It can't see your \
conversation, so say all that it needs. A `session` of an earlier result goes on with what it knows."""

State = Literal["working", "asking", "done", "interrupted", "blocked", "limit", "error", "idle"]


class BadArguments(Exception):
    """The call can't be carried out; the message describes the correction."""


class Wish(Struct, frozen=True):
    """A task. ``cwd`` empty: the server's own directory; ``mode`` None: from the user's settings; ``session`` empty: a
    new one."""

    prompt: str
    cwd: str = ""
    mode: Mode | None = None
    session: str = ""
    background: bool = False


class Report(Struct, frozen=True):
    """Report of a task. ``denials`` are calls that were not allowed to run, each with its reason; ``cost`` is US
    dollars, None if a price is unknown."""

    session: str
    state: State
    answer: str = ""
    reason: str = ""
    changed: tuple[str, ...] = ()
    denials: tuple[tuple[str, str], ...] = ()
    usage: Usage | None = None
    cost: str | None = None

    @property
    def failed(self) -> bool:
        return self.state in ("error", "blocked", "interrupted")


def definitions() -> list[dict[str, Any]]:
    """The tools in the protocol's form."""
    session = {"type": "string", "description": "Session id, from an earlier result or list_sessions"}
    return [
        {
            "name": RUN_TASK,
            "title": "Run a task",
            "description": "Give swecli, a coding agent, a task in a folder: it reads, searches, edits files and runs "
            "commands until it is done, and returns its answer, the files it changed and what it was not allowed to "
            "do. Takes seconds to many minutes; progress is reported, and cancelling stops it.",
            "inputSchema": _object(
                {
                    "prompt": {"type": "string", "description": "The whole task; swecli sees nothing else from you"},
                    "cwd": {"type": "string", "description": "Folder to work in; default: the server's own"},
                    "mode": {
                        "type": "string",
                        "enum": list(TIGHTEST_FIRST),
                        "description": "plan changes nothing; never exceeds the user's settings",
                    },
                    "session": {**session, "description": "Continue this session instead of a new one"},
                    "background": {
                        "type": "boolean",
                        "description": "Return at once; read_result has the answer. Approvals are rejected unasked",
                    },
                },
                ["prompt"],
            ),
            "outputSchema": _REPORT,
            "annotations": {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": True},
        },
        {
            "name": READ_RESULT,
            "title": "Read a result",
            "description": "Get the state of a task and its newest answer. Waits up to `wait` seconds for a "
            "running task to end.",
            "inputSchema": _object(
                {
                    "session": session,
                    "wait": {"type": "number", "minimum": 0, "maximum": MOST_WAIT, "description": "Seconds"},
                },
                ["session"],
            ),
            "outputSchema": _REPORT,
            "annotations": {"readOnlyHint": True, "openWorldHint": False},
        },
        {
            "name": CANCEL_TASK,
            "title": "Cancel a task",
            "description": "Stop a task in the background. Changes made until then remain.",
            "inputSchema": _object({"session": session}, ["session"]),
            "outputSchema": _REPORT,
            "annotations": {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False},
        },
        {
            "name": LIST_SESSIONS,
            "title": "List sessions",
            "description": "Stored sessions of a folder, newest first; transcripts are resources.",
            "inputSchema": _object({"cwd": {"type": "string", "description": "Folder; default: the server's own"}}),
            "annotations": {"readOnlyHint": True, "openWorldHint": False},
        },
    ]


def _object(properties: Mapping[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return {**schema, "required": required} if required else schema


_REPORT: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "session": {"type": "string"},
        "state": {"type": "string", "enum": list(get_args(State))},
        "answer": {"type": "string"},
        "reason": {"type": "string"},
        "changed_files": {"type": "array", "items": {"type": "string"}},
        "denied": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"call": {"type": "string"}, "reason": {"type": "string"}},
                "required": ["call", "reason"],
            },
        },
        "input_tokens": {"type": ["integer", "null"]},
        "output_tokens": {"type": ["integer", "null"]},
        "cost_usd": {"type": ["string", "null"]},
    },
    "required": ["session", "state", "answer"],
}


def wish_of(arguments: Mapping[str, Any]) -> Wish:
    """The task requested by a call.

    Raises:
        BadArguments: the arguments are invalid.
    """
    _only(arguments, ("prompt", "cwd", "mode", "session", "background"))
    prompt = text_of(arguments, "prompt")
    if not prompt.strip():
        raise BadArguments("prompt is empty; describe the task.")
    if len(prompt) > MOST_CHARACTERS:
        raise BadArguments(
            f"prompt has {len(prompt):,} characters, more than {MOST_CHARACTERS:,}. Put the rest in a file."
        )
    mode = text_of(arguments, "mode") or None
    if mode is not None and mode not in TIGHTEST_FIRST:
        raise BadArguments(f"mode {mode[:40]!r} is not one of {', '.join(TIGHTEST_FIRST)}.")
    background = arguments.get("background", False)
    if not isinstance(background, bool):
        raise BadArguments("background must be true or false.")
    return Wish(prompt, text_of(arguments, "cwd"), mode, text_of(arguments, "session"), background)


def session_of(arguments: Mapping[str, Any], *more: str) -> str:
    """The session of a call; ``more`` names other allowed arguments.

    Raises:
        BadArguments: there is none, or an unknown argument.
    """
    _only(arguments, ("session", *more))
    session = text_of(arguments, "session")
    if not session:
        raise BadArguments("session is missing; list_sessions has the ids.")
    return session


def seconds_of(arguments: Mapping[str, Any]) -> float:
    """Seconds to wait for a result.

    Raises:
        BadArguments: the value is not a number of seconds.
    """
    wait = arguments.get("wait", 0)
    if isinstance(wait, bool) or not isinstance(wait, int | float) or not 0 <= wait <= MOST_WAIT:
        raise BadArguments(f"wait must be a number of seconds from 0 to {MOST_WAIT:g}.")
    return float(wait)


def folder_of(arguments: Mapping[str, Any]) -> str:
    """The folder to list; empty: the server's own.

    Raises:
        BadArguments: it is not a text, or there is an unknown argument.
    """
    _only(arguments, ("cwd",))
    return text_of(arguments, "cwd")


def text_of(arguments: Mapping[str, Any], name: str) -> str:
    """A text among the arguments; empty without one. Raises ``BadArguments`` if it is not a text."""
    value = arguments.get(name, "")
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadArguments(f"{name} must be text.")
    if "\0" in value:
        raise BadArguments(f"{name} contains a NUL character.")
    return value.encode("utf-8", "replace").decode("utf-8")  # lone surrogates


def _only(arguments: Mapping[str, Any], known: tuple[str, ...]) -> None:
    unknown = sorted(str(name)[:40] for name in arguments if name not in known)
    if unknown:
        raise BadArguments(f"Unknown argument {', '.join(unknown[:5])}. Arguments: {', '.join(known)}.")


def allowed_mode(wanted: Mode | None, settings: Mode) -> Mode:
    """The mode of a task: never looser than the settings.

    Raises:
        BadArguments: it would be.
    """
    if wanted is None:
        return settings
    if TIGHTEST_FIRST.index(wanted) > TIGHTEST_FIRST.index(settings):
        allowed = ", ".join(TIGHTEST_FIRST[: TIGHTEST_FIRST.index(settings) + 1])
        raise BadArguments(f"mode {wanted} exceeds the user's settings, which allow: {allowed}. Nothing was started.")
    return wanted


def state_of(ended: TurnEnded) -> State:
    return cast("State", ended.outcome)


def report_text(report: Report) -> str:
    """Text for a model: the answer, and remarks on it."""
    lines: list[str] = []
    match report.state:
        case "working":
            lines.append(f"Session {report.session} is running. Read its result with {READ_RESULT}.")
        case "asking":
            lines.append(f"Session {report.session} is waiting for the user's answer.")
        case "done" | "idle":
            pass
        case state:
            lines.append(f"The task ended early: {state}{f', {report.reason}' if report.reason else ''}.")
    if report.answer:
        lines.append(report.answer)
    elif report.state in ("done", "idle"):
        lines.append("It gave no answer.")
    if report.changed:
        more = f" and {len(report.changed) - 20} more" if len(report.changed) > 20 else ""
        lines.append(f"Changed files: {', '.join(report.changed[:20])}{more}")
    if report.denials:
        lines.append("Not allowed to run:")
        lines += [f"- {call}: {reason}" for call, reason in report.denials[:20]]
    if report.state != "working":
        lines.append(f"(session {report.session})")
    return "\n\n".join(lines)


def report_document(report: Report) -> dict[str, Any]:
    """The report for programs."""
    usage = report.usage
    return {
        "session": report.session,
        "state": report.state,
        "answer": report.answer,
        "reason": report.reason,
        "changed_files": list(report.changed),
        "denied": [{"call": call, "reason": reason} for call, reason in report.denials],
        "input_tokens": usage.input_total if usage is not None else None,
        "output_tokens": usage.output_total if usage is not None else None,
        "cost_usd": report.cost,
    }

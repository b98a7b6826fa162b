"""What a tool is: parameters, declared effects, a preview bound to what was shown, and the run itself."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import threading
import time
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

from msgspec import Struct, field
from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

from swecli.core.permissions.rules import ReadRules
from swecli.core.permissions.types import Effects
from swecli.core.ports import Asker, BlobStore, CodeServers, EditorFiles, TranscriptSearch
from swecli.core.protocol.blocks import DisplayBlock, Todo
from swecli.core.protocol.events import EditedText, Hunk, ResultKind
from swecli.core.protocol.messages import ImagePart
from swecli.core.sandbox.sandbox import Sandbox
from swecli.core.workspace.atomic_write import READ_ONLY, StaleFileError
from swecli.core.workspace.jobs import Jobs
from swecli.core.workspace.text_file import NotRegularError
from swecli.core.workspace.walk import MOSTLY_BUILT, NOT_OWN


class Params(BaseModel):
    """Base of all tool parameters: unknown keys are errors that the model gets to read."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_as_number(cls, value: Any, info: ValidationInfo) -> Any:
        # To Python, true is 1: a limit of one second, or the first line.
        if isinstance(value, bool) and bool not in _types_in(cls.model_fields[info.field_name or ""].annotation):
            raise ValueError(f"must not be {str(value).lower()}")
        return value


def _types_in(annotation: Any) -> tuple[Any, ...]:
    return typing.get_args(annotation) or (annotation,)


P = TypeVar("P", bound=Params)


class SeenFile(Struct, frozen=True):
    """Lines ``first`` to ``last`` (from 1) of a file are in the result; the file's bytes have this SHA-256."""

    path: str
    sha256: str
    first: int
    last: int


class ToolError(Exception):
    """The call can't be done; the message goes to the model as an error result and says what to do next. ``seen``
    is what the message shows of files."""

    def __init__(self, message: str = "", seen: tuple[SeenFile, ...] = ()) -> None:
        super().__init__(message)
        self.seen = seen


class ChangedFile(Struct, frozen=True):
    """A file that a tool changed. Hashes are SHA-256 of the bytes; None = did or does not exist."""

    path: str
    before: str | None
    after: str | None


class Preview(Struct, frozen=True):
    """What the user is shown before consent. ``state`` describes the target as it was when shown (for
    example the file's hash); it is recomputed before execution and a difference means to ask again."""

    blocks: tuple[DisplayBlock, ...] = ()
    state: str = ""
    hunks: tuple[Hunk, ...] = ()
    """What of the blocks can be accepted singly."""
    facts: tuple[str, ...] = ()
    """Short phrases that are to be seen at once: "creates a file, 41 bytes"."""


class Choice(Struct, frozen=True):
    """What the user made of a change that was shown with this ``state``: the numbers, from 1, of the hunks that they
    accept (None: all), or other texts."""

    state: str
    hunks: tuple[int, ...] | None = None
    texts: tuple[EditedText, ...] = ()


class ToolOutcome(Struct, frozen=True):
    """Result of a run: ``text`` for the model, ``blocks`` and ``detail`` (one short phrase) for the user."""

    text: str
    blocks: tuple[DisplayBlock, ...] = ()
    detail: str = ""
    is_error: bool = False
    images: tuple[ImagePart, ...] = ()
    changed: tuple[ChangedFile, ...] = ()
    seen: tuple[SeenFile, ...] = ()
    """What of files is in ``text``."""
    exit_status: int | None = None
    blocked: str = ""
    """What the sandbox stopped, as a clause; empty where nothing points to it."""
    untrusted: str = ""
    """Whose words are in ``text``, where they came from outside: a host."""


class LastPlan(Struct):
    """What the preview of a call worked out, for its run. ``key`` is what it was worked out from."""

    key: object = None
    plan: Any = None


class AgentTask(Struct, frozen=True):
    """What a subagent is to do. ``agent`` names its profile; ``background``: the call ends when the work begins;
    ``worktree``: in a work tree of its own, also where the profile does not say so."""

    title: str
    prompt: str
    agent: str
    background: bool = False
    worktree: bool = False


class AgentRunner(Protocol):
    """Runs subagents."""

    def expect(self, item: str) -> None:
        """The call ``item`` may start one: their numbers follow the order of the calls, whichever begins first."""
        ...

    async def work(self, item: str, task: AgentTask, output: Callable[[str], None]) -> ToolOutcome:
        """Have the task done for the call ``item``. ``output`` takes what is known of it before it ends.

        Raises:
            ToolError: it can't begin.
        """
        ...


class ToolContext(Struct, frozen=True):
    """What a tool may use. ``cwd`` is the working directory of the session, ``roots`` the workspace
    directories (resolved). ``output`` takes live output text as it comes (any thread of the event loop)."""

    item: str
    cwd: Path
    roots: tuple[Path, ...]
    output: Callable[[str], None]
    asker: Asker
    set_todos: Callable[[tuple[Todo, ...]], object]
    """Replaces the session's todo list."""
    environment: dict[str, str] = field(default_factory=lambda: {})
    """Environment for child processes, already scrubbed."""
    blobs: BlobStore | None = None
    """Stored results; None where nothing is stored."""
    transcript: TranscriptSearch | None = None
    """What has left the context."""
    last_seen: Callable[[str], str | None] | None = None
    """SHA-256 of a file's bytes as the model last saw it, by absolute path; None when it never did."""
    request_compaction: Callable[[], str] | None = None
    """Asks for a compaction before the next model request. Returns one line that says what will happen. None where
    there is no conversation."""
    sandbox: Sandbox | None = None
    """Holds this call's command; None where it runs outside."""
    editor: EditorFiles | None = None
    """Where the user has files open; None where that is not known."""
    choices: tuple[Choice, ...] = ()
    """What the user made of this call's change, in order: each of what the one before left."""
    jobs: Jobs | None = None
    """Runs commands, also in the background; None where nothing may outlive its call."""
    agents: AgentRunner | None = None
    """Runs subagents; None where there are none, as in a subagent."""
    code: CodeServers | None = None
    """Knows where names are; None where no language server can be."""
    contained: bool = False
    """The user has not approved the command: it may run only in a full sandbox."""
    read_rules: Callable[[], ReadRules] = ReadRules
    """The rules of this moment about files that may not be shown."""
    set_scratchpad: Callable[[str], object] = lambda text: None
    """Replaces what the model noted for itself."""
    planned: LastPlan = field(default_factory=LastPlan)
    """Shared by all copies of this context."""

    def resolve(self, path: str) -> Path:
        """The absolute path of ``path`` as the model wrote it, links followed as far as they exist.

        Raises:
            ToolError: it is no path: NUL, an unpaired surrogate, an unknown user's home, a loop of links.
        """
        try:
            expanded = Path(path).expanduser()
            return (expanded if expanded.is_absolute() else self.cwd / expanded).resolve()
        except (ValueError, RuntimeError, OSError) as error:
            raise ToolError(f"{path[:200]!r} is not a usable path: {error}") from error

    def display(self, path: Path) -> str:
        """``path`` relative to the workspace where it is inside, else absolute."""
        for root in (self.cwd, *self.roots):
            if path.is_relative_to(root):
                return str(path.relative_to(root))
        return str(path)


class Tool(ABC, Generic[P]):
    """One tool. The description is the text file ``descriptions/<name>.md`` beside the tools."""

    name: str
    verb: str
    """What the transcript shows: Read, Edit, Search, Run."""
    params: ClassVar[type[Params]]
    source: str = ""
    """Whose tool it is, as the measure of the context names it; empty for swecli's own."""
    of_server: bool = False
    """Whether a server brings it: such tools are the first to be withheld where there are too many."""
    result_kind: ClassVar[ResultKind] = "page"
    """How results are kept at a size that a context can take. The text of ``output`` is given whole: what is too
    long is stored."""

    def description(self) -> str:
        return (Path(__file__).parent / "descriptions" / f"{self.name}.md").read_text(encoding="utf-8").strip()

    def schema(self) -> Mapping[str, Any]:
        """The parameters as the model sees them: a JSON Schema object, the same each time."""
        return compact_schema(self.params)

    @abstractmethod
    def effects(self, params: P, ctx: ToolContext) -> Effects:
        """What this call would touch. Pure besides resolving paths."""

    def title(self, params: P, ctx: ToolContext) -> str:
        """The target on one line: a path, a pattern, a command."""
        return ""

    async def preview(self, params: P, ctx: ToolContext) -> Preview:
        """What to show before consent. Raises ``ToolError`` when the call can't succeed anyway."""
        return Preview()

    async def target_state(self, params: P, ctx: ToolContext) -> str | None:
        """The ``state`` that a preview would have now, without planning the change anew; None where only a preview
        tells."""
        return None

    @abstractmethod
    async def run(self, params: P, ctx: ToolContext) -> ToolOutcome:
        """Do it. Cancellation must leave no process and no half-written file behind.

        Raises:
            ToolError: it can't be done.
        """


AnyTool = Tool[Any]


def binding(tool: str, params: Params, cwd: Path, state: str) -> str:
    """The hash that an approval is bound to."""
    shown = json.dumps([tool, params.model_dump(mode="json"), str(cwd), state], sort_keys=True)
    return hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()


_NOISE = frozenset(
    (
        "title",
        "default",
        "additionalProperties",
        "$defs",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
    )
)
"""Bounds are checked when a call comes; some providers refuse schemas that have them."""


@cache
def compact_schema(params: type[Params]) -> Mapping[str, Any]:
    """Deterministic: definitions inlined, titles and defaults left out, "or null" folded away. Made once for a class.

    Defaults belong in the descriptions, where they are words; parameters that are not required have one.
    """
    schema = params.model_json_schema()
    return _object(_compact(schema, _object(schema.get("$defs", {}))))


def _compact(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_compact(entry, definitions) for entry in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    found = _object(cast("Any", node))
    if "$ref" in found:
        target = _object(definitions[str(found.pop("$ref")).rpartition("/")[2]])
        # What stands beside the reference wins, a description for example.
        found = {**target, **found}
    variants = [entry for entry in found.get("anyOf", ()) if entry != {"type": "null"}]
    if len(variants) == 1:
        del found["anyOf"]
        found = {**variants[0], **found}
        return _compact(found, definitions)
    compact: dict[str, Any] = {}
    for key, value in found.items():
        if key == "properties":
            compact[key] = {name: _compact(entry, definitions) for name, entry in _object(value).items()}
        elif key not in _NOISE:
            compact[key] = _compact(value, definitions)
    if compact.get("type") == "object":
        # A model class's docstring is for people who read the code.
        compact.pop("description", None)
    return compact


def _object(value: Any) -> dict[str, Any]:
    return dict(cast("Mapping[str, Any]", value))


T = TypeVar("T")
_MAX_NAMES = 5_000
_FIND_SECONDS = 0.3


async def reading(work: Callable[[Callable[[], bool]], T]) -> T:
    """``work`` off the event loop. It gets a function that says whether to stop because nobody waits any more."""
    cancelled = threading.Event()
    try:
        return await asyncio.to_thread(work, cancelled.is_set)
    finally:
        cancelled.set()


def explained(error: OSError | StaleFileError, path: Path, ctx: ToolContext) -> ToolError:
    """The error as a sentence that names the path as the model knows it and says what to do."""
    name = ctx.display(path)
    if isinstance(error, StaleFileError):
        return ToolError(f"{name} changed on disk while it was being edited. Nothing was written; read it again.")
    if isinstance(error, FileNotFoundError):
        return ToolError(missing(path, ctx))
    if isinstance(error, NotRegularError):
        hint = " List it to see its contents." if error.kind == "a directory" else ""
        return ToolError(f"{name} is {error.kind}, not a regular file.{hint}")
    if isinstance(error, NotADirectoryError):
        return ToolError(f"{name}: part of the path is a file, not a directory.")
    if isinstance(error, PermissionError):
        reason = "it is read-only" if error.strerror == READ_ONLY else "permission denied"
        return ToolError(f"{name}: {reason}. Nothing was changed.")
    reason = error.strerror or str(error)
    return ToolError(f"{name}: {reason[:1].lower()}{reason[1:]}. Nothing was changed.")


def missing(path: Path, ctx: ToolContext) -> str:
    """That ``path`` does not exist, and what may have been meant."""
    near = _near_names(path, ctx)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"{ctx.display(path)} does not exist.{hint}"


def _near_names(path: Path, ctx: ToolContext) -> list[str]:
    found: list[Path] = []
    try:
        names = sorted(os.listdir(path.parent))[:_MAX_NAMES]
    except OSError:
        names = []
    found += [path.parent / name for name in get_close_matches(path.name, names, 3, 0.6)]
    if path.is_relative_to(ctx.cwd) or any(path.is_relative_to(root) for root in ctx.roots):
        found += _same_name(path.name, ctx.roots or (ctx.cwd,))
    return list(dict.fromkeys(ctx.display(one) for one in found))[:4]


def _same_name(name: str, roots: Sequence[Path]) -> list[Path]:
    """Files of that name elsewhere in the workspace; a short look only."""
    deadline = time.monotonic() + _FIND_SECONDS
    found: list[Path] = []
    for root in roots:
        for folder, folders, files in os.walk(root):
            folders[:] = sorted(one for one in folders if one not in NOT_OWN | MOSTLY_BUILT)
            if name in files:
                found.append(Path(folder) / name)
            if len(found) >= 3 or time.monotonic() > deadline:
                return found
    return found


def readable_size(size: int) -> str:
    """Bytes for people: 312 bytes, 4.2 KB, 3.0 MB."""
    if size < 1_000:
        return f"{size} bytes"
    amount, unit = size / 1_000, "KB"
    for larger in ("MB", "GB", "TB"):
        if amount < 1_000:
            break
        amount, unit = amount / 1_000, larger
    return f"{amount:.1f} {unit}"


def plural(count: int, word: str) -> str:
    """ "1 line", "1,200 lines", "2 matches"."""
    ending = "" if count == 1 else "es" if word.endswith(("ch", "s")) else "s"
    return f"{count:,} {word}{ending}"

"""The interface of a tool: parameters, declared effects, a preview to approve, and the run."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import stat
import threading
import time
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from msgspec import Meta, Struct, field, to_builtins

from swecli.core.permissions.rules import ReadRules
from swecli.core.permissions.types import Effects
from swecli.core.ports import Asker, BlobStore, EditorFiles, TranscriptSearch
from swecli.core.protocol.blocks import DisplayBlock, Todo
from swecli.core.protocol.events import ResultKind
from swecli.core.protocol.messages import DocumentPart, ImagePart
from swecli.core.protocol.request_events import EditedText, Hunk
from swecli.core.sandbox.sandbox import Sandbox
from swecli.core.secret_names import SecretNames, secret_names
from swecli.core.validation import Checked, changed, compact_schema
from swecli.core.workspace.atomic_write import READ_ONLY, StaleFileError
from swecli.core.workspace.jobs import Jobs
from swecli.core.workspace.text_file import NotRegularError
from swecli.core.workspace.walk import MOSTLY_BUILT, NOT_OWN
from swecli.figures import plural
from swecli.lazy_pattern import lazy_pattern


class Params(Checked):
    """Base of all tool parameters. Unknown keys are errors that the model can read."""

    def values(self) -> dict[str, Any]:
        """All parameters by name."""
        return to_builtins(self)

    def given(self) -> dict[str, Any]:
        """The parameters that differ from their defaults, as the model would write them."""
        return changed(self)


Positive = Annotated[int, Meta(ge=1)]

P = TypeVar("P", bound=Params)


class SeenFile(Struct, frozen=True):
    """Lines ``first`` to ``last`` (from 1) of a file that a result shows; ``sha256`` hashes the file's bytes."""

    path: str
    sha256: str
    first: int
    last: int


class ToolError(Exception):
    """The call failed. The message is the error result for the model and says what to do next; ``seen`` lists the file
    lines that it shows."""

    def __init__(self, message: str = "", seen: tuple[SeenFile, ...] = ()) -> None:
        super().__init__(message)
        self.seen = seen


class ChangedFile(Struct, frozen=True):
    """A file that a tool changed. Hashes are SHA-256 of the bytes; None = no such file before or after."""

    path: str
    before: str | None
    after: str | None


class Preview(Struct, frozen=True):
    """What the user sees before approving. ``state`` describes the target at that time (for example the file's hash);
    it is recomputed before execution, and a difference asks again."""

    blocks: tuple[DisplayBlock, ...] = ()
    state: str = ""
    hunks: tuple[Hunk, ...] = ()
    """Changes of the blocks that can be accepted one by one."""
    facts: tuple[str, ...] = ()
    """Short phrases to show prominently: "creates a file, 41 bytes"."""
    unchanged: bool = False
    """Whether every file already is as the call would leave it."""


class Choice(Struct, frozen=True):
    """The user's edit of a change shown with this ``state``: numbers, from 1, of the accepted hunks (None: all), or
    replacement texts."""

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
    documents: tuple[DocumentPart, ...] = ()
    changed: tuple[ChangedFile, ...] = ()
    seen: tuple[SeenFile, ...] = ()
    """File lines that ``text`` shows."""
    exit_status: int | None = None
    blocked: str = ""
    """A clause naming what the sandbox blocked; empty without a sign of that."""
    untrusted: str = ""
    """The host that wrote ``text``, if it came from outside."""
    added: str = ""
    """Text of others for the model, behind ``text`` in full, however much of that is stored elsewhere."""


class LastPlan(Struct):
    """A preview's plan, kept for the run. ``key`` identifies its inputs."""

    key: object = None
    plan: Any = None


class ToolContext(Struct, frozen=True):
    """Everything a tool may use. ``cwd`` is the session's working directory, ``roots`` the resolved workspace
    directories. ``output`` receives live output text, from any thread."""

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
    """Stored results; None if nothing is stored."""
    transcript: TranscriptSearch | None = None
    """Search over content that has left the context."""
    last_seen: Callable[[str], str | None] | None = None
    """SHA-256 of a file's bytes as the model last saw it, by absolute path; None if it never did."""
    request_compaction: Callable[[], str] | None = None
    """Requests a compaction before the next model request and returns one line about it; None without a
    conversation."""
    sandbox: Sandbox | None = None
    """Sandbox for this call's command; None runs it unsandboxed."""
    editor: EditorFiles | None = None
    """Files open in the user's editor; None if unknown."""
    choices: tuple[Choice, ...] = ()
    """The user's edits of this call's change, in order; each applies to the result of the previous one."""
    jobs: Jobs | None = None
    """Runs commands, also in the background; None if no command may outlive its call."""
    companion: Callable[[type[Any]], Any] = lambda kind: None
    """The session's companion of a class, if any."""
    turn: int = 0
    """Number of the turn."""
    reads_documents: bool = False
    """Whether the model reads PDF files."""
    contained: bool = False
    """The user did not approve the command, so it may run only in a full sandbox."""
    masked: bool = False
    """The command may run only where it can't read what rules keep from being read; nothing else restricts it."""
    own_names: tuple[str, ...] = ()
    """Patterns of the user's for names of files that may hold secrets."""
    read_rules: Callable[[], ReadRules] = ReadRules
    """Current rules about files that must not be shown."""
    set_scratchpad: Callable[[str], object] = lambda text: None
    """Replaces the model's scratchpad."""
    planned: LastPlan = field(default_factory=LastPlan)
    """Shared by all copies of this context."""
    resolved: dict[str, Path] = field(default_factory=lambda: {})
    """Paths resolved for this call, shared by all copies of this context: what is decided and what is done concern the
    same places, even if a link changes meanwhile."""

    @property
    def secret_names(self) -> SecretNames:
        """Names of files whose lines are shown only with consent."""
        return secret_names(self.own_names)

    def resolve(self, path: str) -> Path:
        """Absolute path for ``path`` as the model wrote it, or as ``meant_path`` reads it, with links resolved as they
        were when it was first named.

        Raises:
            ToolError: not a path: NUL, an unpaired surrogate, an unknown user's home, a loop of links.
        """
        known = self.resolved.get(path)
        if known is not None:
            return known
        try:
            absolute = self.cwd / Path(path).expanduser()
            absolute = (absolute if os.path.lexists(absolute) else meant_path(path, self.cwd)).resolve()
        except (ValueError, RuntimeError, OSError) as error:
            raise ToolError(f"{path[:200]!r} is not a usable path: {error}") from error
        self.resolved[path] = absolute
        return absolute

    def display(self, path: Path) -> str:
        """``path`` relative to the workspace if inside it, otherwise absolute."""
        for root in (self.cwd, *self.roots):
            if path.is_relative_to(root):
                return str(path.relative_to(root))
        return str(path)


_AROUND_PATH = (("`", "`"), ('"', '"'), ("'", "'"), ("<", ">"))
_PLACE = lazy_pattern(r"(?::\d+(?:[-:]\d+)?|#L\d+(?:-L?\d+)?)\Z")
"""A line or lines after a path."""


def meant_path(path: str, cwd: Path) -> Path:
    """What is meant by a ``path`` that does not exist, below ``cwd``: quotes, white space and ``file://`` around it are
    left out; so is a leading @ or a line number after it, and backslashes become slashes, if that names something that
    exists. Names that look the same in Unicode are the same: accents in one or two characters, any kind of space.

    Raises:
        ValueError, RuntimeError, OSError: it is not a usable path.
    """
    bare = path.strip()
    for begin, end in _AROUND_PATH:
        if len(bare) > 2 and bare.startswith(begin) and bare.endswith(end):
            bare = bare[1:-1].strip()
    bare = bare.removeprefix("file://") or path
    for other in (_PLACE.sub("", bare), bare.removeprefix("@"), bare.replace("\\", "/")):
        if other not in ("", bare) and os.path.lexists(existing := cwd / Path(other).expanduser()):
            return existing
    written = cwd / Path(bare).expanduser()
    return written if os.path.lexists(written) else _looking_alike(written)


def _looking_alike(path: Path) -> Path:
    """The path with each missing name replaced by the only one that looks like it; unchanged without such names."""
    result = Path(path.anchor)
    for index, name in enumerate(path.parts[1:], 2):
        if not os.path.lexists(result / name):
            look = _look_of(name)
            try:
                same = [other for other in os.listdir(result) if other != name and _look_of(other) == look]
            except OSError:
                same = []
            if len(same) != 1:
                return result.joinpath(*path.parts[index - 1 :])
            name = same[0]
        result /= name
    return result


def _look_of(name: str) -> str:
    return " ".join(unicodedata.normalize("NFC", name).split())


class Tool(ABC, Generic[P]):
    """One tool. Its description is the text file ``descriptions/<name>.md`` beside the tools."""

    name: str
    verb: str
    """The verb in the transcript: Read, Edit, Search, Run."""
    params: ClassVar[type[Params]]
    source: str = ""
    """Provider of the tool, as shown in the context budget; empty for swecli's own."""
    of_server: bool = False
    """Whether an MCP server provides it. Such tools are withheld first if there are too many."""
    result_kind: ClassVar[ResultKind] = "page"
    """How a result is bounded. A result of kind ``output`` is returned in full and stored if too long."""

    def description(self) -> str:
        return (Path(__file__).parent / "descriptions" / f"{self.name}.md").read_text(encoding="utf-8").strip()

    def schema(self) -> Mapping[str, Any]:
        """JSON Schema object of the parameters for the model; always the same."""
        return compact_schema(self.params)

    @abstractmethod
    def effects(self, params: P, ctx: ToolContext) -> Effects:
        """What this call would touch. Pure except for resolving paths."""

    def title(self, params: P, ctx: ToolContext) -> str:
        """The target on one line: a path, a pattern, a command."""
        return ""

    def announce(self, ctx: ToolContext) -> None:
        """This call is about to be decided. Called for the calls of a step in the model's order, before any runs."""

    async def preview(self, params: P, ctx: ToolContext) -> Preview:
        """What to show before approval. Raises ``ToolError`` if the call can't succeed."""
        return Preview()

    async def target_state(self, params: P, ctx: ToolContext) -> str | None:
        """The ``state`` that a preview would have now, without planning again; None if only a preview can tell."""
        return None

    @abstractmethod
    async def run(self, params: P, ctx: ToolContext) -> ToolOutcome:
        """Execute the call. Cancellation must leave no process and no half-written file behind.

        Raises:
            ToolError: the call failed.
        """


AnyTool = Tool[Any]


class SessionTool(Tool[P]):
    """A tool that changes nothing but the session itself."""

    def effects(self, params: P, ctx: ToolContext) -> Effects:
        return Effects(internal=True)


def binding(tool: str, params: Params, cwd: Path, state: str) -> str:
    """The hash that binds an approval."""
    shown = json.dumps([tool, params.values(), str(cwd), state], sort_keys=True)
    return hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()


T = TypeVar("T")
_MAX_NAMES = 5_000
_FIND_SECONDS = 0.3


async def reading(work: Callable[[Callable[[], bool]], T]) -> T:
    """Run ``work`` off the event loop. Its argument is a function that returns True once the caller was cancelled."""
    cancelled = threading.Event()
    try:
        return await asyncio.to_thread(work, cancelled.is_set)
    finally:
        cancelled.set()


def explained(error: OSError | StaleFileError, path: Path, ctx: ToolContext) -> ToolError:
    """The error as a sentence with the path as the model knows it and the next action."""
    name = ctx.display(path)
    if isinstance(error, StaleFileError):
        return ToolError(f"{name} changed on disk while it was being edited. Nothing was written; read it again.")
    if isinstance(error, FileNotFoundError):
        return ToolError(missing(path, ctx))
    if isinstance(error, NotRegularError):
        hint = " List it to see its contents." if error.kind == "a directory" else ""
        return ToolError(f"{name} is {error.kind}, not a regular file.{hint}")
    if isinstance(error, NotADirectoryError):
        return ToolError(f"{name}: {_no_folder(path)}.")
    if isinstance(error, PermissionError):
        reason = "it is read-only" if error.strerror == READ_ONLY else "permission denied"
        return ToolError(f"{name}: {reason}. Nothing was changed.")
    reason = error.strerror or str(error)
    return ToolError(f"{name}: {reason[:1].lower()}{reason[1:]}. Nothing was changed.")


def _no_folder(path: Path) -> str:
    """Which part of a resolved path is no folder, as a clause. A link came after the path was resolved."""
    for folder in reversed(path.parents):
        try:
            mode = os.lstat(folder).st_mode
        except OSError:
            break
        if stat.S_ISLNK(mode):
            return "a folder of the path has just become a link, which is not followed. Nothing was changed; try again"
        if not stat.S_ISDIR(mode):
            return "part of the path is a file, not a directory"
    return "a folder of the path has just been replaced. Nothing was changed; try again"


def missing(path: Path, ctx: ToolContext) -> str:
    """A sentence saying that ``path`` does not exist, with likely alternatives."""
    near = _near_names(path, ctx)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    if any(sign in path.name for sign in "*?"):
        hint = " A path has no wildcards; list_files and search take them as glob."
    return f"{ctx.display(path)} does not exist.{hint}"


def _near_names(path: Path, ctx: ToolContext) -> list[str]:
    candidates: list[Path] = []
    try:
        names = sorted(os.listdir(path.parent))[:_MAX_NAMES]
    except OSError:
        names = []
    candidates += [path.parent / name for name in get_close_matches(path.name, names, 3, 0.6)]
    if path.is_relative_to(ctx.cwd) or any(path.is_relative_to(root) for root in ctx.roots):
        candidates += _same_name(path.name, ctx.roots or (ctx.cwd,))
    else:  # perhaps of another machine
        ends = (ctx.cwd.joinpath(*path.parts[first:]) for first in range(1, len(path.parts)))
        candidates[:0] = [end for end in ends if os.path.lexists(end)][:1]
    return list(dict.fromkeys(ctx.display(candidate) for candidate in candidates))[:4]


def _same_name(name: str, roots: Sequence[Path]) -> list[Path]:
    """Files of that name elsewhere in the workspace, from a short search."""
    deadline = time.monotonic() + _FIND_SECONDS
    paths: list[Path] = []
    for root in roots:
        for folder, folders, files in os.walk(root):
            folders[:] = sorted(subfolder for subfolder in folders if subfolder not in NOT_OWN | MOSTLY_BUILT)
            if name in files:
                paths.append(Path(folder) / name)
            if len(paths) >= 3 or time.monotonic() > deadline:
                return paths
    return paths


def readable_size(size: int) -> str:
    """Bytes for people: 312 bytes, 4.2 KB, 3.0 MB."""
    if size < 1_000:
        return plural(size, "byte")
    amount, unit = size / 1_000, "KB"
    for larger in ("MB", "GB", "TB"):
        if amount < 1_000:
            break
        amount, unit = amount / 1_000, larger
    return f"{amount:.1f} {unit}"

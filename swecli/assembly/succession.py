"""The sessions of a run, one after another: each takes over from the one before."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from swecli.launch import LaunchOptions, StartError, folder_option, fresh_start

if TYPE_CHECKING:
    from swecli.core.engine.session import Session
    from swecli.core.llm.types import ModelInfo
    from swecli.core.protocol.result import Kept

OpenSession: TypeAlias = "Callable[[], Awaitable[Session]]"
"""Opens a session; raises ``StartError`` if it can't."""


class Succession:
    """Opens sessions with ``open_session`` and remembers the newest. ``options`` are those of the start."""

    def __init__(self, options: LaunchOptions, open_session: Callable[[LaunchOptions], Awaitable[Session]]) -> None:
        self._options = options
        self._open = open_session
        self._last: Session | None = None
        self._spoke = False
        self._added: tuple[Path, ...] = ()
        self._forks_picked = options.fork and options.pick_session
        """Whether to copy the session that is picked first."""

    def add_folder(self, folder: Path) -> None:
        """Include this folder in sessions opened from now on."""
        self._added = (*self._added, folder)

    @property
    def spoke(self) -> bool:
        """Whether there was a conversation to continue."""
        return self._spoke or (self._last is not None and self._last.view.totals.turns > 0)

    @property
    def resume_hint(self) -> str:
        """Command to continue the newest session; empty if it is not stored."""
        return "" if self.kept == "nothing" and self._options.script is None else resume_hint(self._options)

    @property
    def kept(self) -> Kept:
        """What of the newest session is stored."""
        return "all" if self._last is None else self._last.kept

    async def open(self, options: LaunchOptions) -> Session:
        """Open the session of the options.

        Raises:
            StartError: it can't start.
        """
        session = await self._open(replace(options, add_dirs=(*options.add_dirs, *self._added)))
        self._spoke = self.spoke
        self._last = session
        return session

    async def fork(self, options: LaunchOptions) -> Session:
        """A copy of the session to continue, in the mode of the newest."""
        mode = options.mode if self._last is None else self._last.view.mode
        return await self.open(replace(options, fork=True, mode=mode))

    def stored(self, session_id: str, *, fork: bool = False) -> OpenSession:
        """Opener of a stored session, or of a copy with a new id."""
        # Flags apply to the session of this start; a later one has its own model and its own address.
        fresh = fresh_start(self._options)
        other = fresh if self._options.pick_session else replace(fresh, model=None, base_url=None)

        def opened() -> Awaitable[Session]:
            copies, self._forks_picked = self._forks_picked, False
            wanted = replace(other, resume=session_id, fork=copies)
            return self.fork(wanted) if fork else self.open(wanted)

        return opened

    async def first(self) -> Session:
        return await self.open(self._options)

    async def next(self) -> Session:
        """A new session in place of the newest, with its model, effort and mode, but without the first message of the
        start and without continuing another session."""
        fresh = fresh_start(self._options)
        if self._last is None:
            return await self.open(fresh)
        view = self._last.view
        model, effort = view.model, view.effort
        fresh = replace(fresh, mode=view.mode)
        if model is None:
            return await self.open(fresh)
        if view.replaced:
            effort = view.own_effort
            session = await self.open(replace(fresh, model=view.replaced))
        else:
            address = _kept(self._options.base_url, model)
            session = await self.open(replace(fresh, model=model.ref, address=model.address, base_url=address))
        if session.view.effort != effort:
            from swecli.core.protocol.commands import SetEffort

            session.send(SetEffort(effort))
        return session


def _kept(given: str | None, model: ModelInfo) -> str | None:
    """``--base-url``, if it is the model's address: it may include a password, which no session stores."""
    from swecli.core.llm.addresses import normalise, origin_of

    same = given and model.address and origin_of(normalise(given, "openai-chat")) == origin_of(model.address)
    return given if same else None


def resume_hint(options: LaunchOptions) -> str:
    """Command to continue a session of these options; empty if they store none."""
    if options.script is not None:
        return "swecli demo"
    flags = folder_option(options.cwd)
    if options.worktree:  # its folder may be removed, and is created again
        from swecli.core.worktrees import repository_of_tree

        home = repository_of_tree(options.cwd)
        outside = home is not None and not Path.cwd().is_relative_to(home)
        flags = f"{f' -C {shlex.quote(str(home))}' if outside else ''} -w {options.worktree}"
    if options.settings is not None:  # they may define its model's provider
        flags += f" --settings {shlex.quote(str(options.settings))}"
    return f"swecli{flags} -c" if options.store else ""


def demo_options() -> LaunchOptions:
    """Options of the demonstration, on a fresh copy of the sample project.

    Raises:
        StartError: there is no room for the copy.
    """
    from swecli import demo as bundled

    try:
        folder = bundled.prepare()
    except OSError as error:
        raise StartError(f"The sample project cannot be copied to a temporary folder: {error}") from error
    return LaunchOptions(
        cwd=folder,
        prompt=bundled.PROMPT,
        script=bundled.SCRIPT,
        banner=bundled.banner(folder),
        store=False,
        mode="default",
        trust="session",
    )

"""The git work trees of subagents, in which they need no undo and their commands are contained."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from swecli.core.engine.services import Services, Workspace
from swecli.core.git import git_facts
from swecli.core.sandbox.sandbox import Sandbox
from swecli.core.tools.base import ToolError
from swecli.core.worktrees import WorkTree, WorkTreeError, add_worktree, keep_or_remove, place_of


class AgentTrees:
    """The work trees of the subagents of one session."""

    def __init__(
        self, base: Path | None, sandbox_for: Callable[[Path], Sandbox], workspace: Workspace, session: str
    ) -> None:
        """``base`` is the folder of work trees, without which none can be created; ``sandbox_for`` makes the sandbox
        for the commands in one of them."""
        self._base = base
        self._sandbox_for = sandbox_for
        self._workspace = workspace
        self._prefix = "".join(sign for sign in session if sign.isalnum())[-12:]

    def folder(self, agent: str) -> Path | None:
        """Path of a future work tree; None if none can be created."""
        git = git_facts(self._workspace.cwd)
        if git is None or self._base is None:
            return None
        return place_of(self._base, git, f"{self._prefix}-{agent}")

    async def create(self, agent: str) -> WorkTree:
        """A new work tree.

        Raises:
            ToolError: none can be created.
        """
        if self._base is None:
            raise ToolError("Worktrees are not available in this run. Give the task without worktree.")
        cwd, environment = self._workspace.cwd, self._workspace.environment
        try:
            return await asyncio.to_thread(add_worktree, cwd, self._base, f"{self._prefix}-{agent}", environment)
        except WorkTreeError as error:
            raise ToolError(str(error)) from error

    async def keep_or_remove(self, tree: WorkTree) -> bool:
        """Remove a work tree without work in it. True if it was kept."""
        return await asyncio.to_thread(keep_or_remove, tree, self._workspace.environment)

    def inside(self, tree: WorkTree, services: Services) -> Services:
        """Services of a subagent that works in this tree."""
        sandbox = self._sandbox_for(tree.root)
        workspace = replace(services.workspace, cwd=tree.folder, roots=(tree.root,), checkpoints=None, sandbox=sandbox)
        return replace(services, workspace=workspace)

"""The subagents of a run, with profiles from files, in git work trees of their own where these are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from swecli.features import Wiring

if TYPE_CHECKING:
    from swecli.core.engine.core import Core
    from swecli.core.engine.feature import Feature
    from swecli.core.sandbox.sandbox import Sandbox
    from swecli.features.subagents.companion import Subagents
    from swecli.features.subagents.profiles import AgentProfile
    from swecli.launch import Launch


def feature(
    profiles: Callable[[], Sequence[AgentProfile]] | None = None,
    worktrees: Path | None = None,
    sandbox_for: Callable[[Path], Sandbox] | None = None,
) -> Feature:
    """``profiles`` replaces those of files. ``worktrees`` is the folder of work trees, without which there are none;
    ``sandbox_for`` makes the sandbox of one."""
    from swecli.core.engine.feature import Feature

    def companions(core: Core) -> Sequence[Subagents]:
        from swecli.core.sandbox.sandbox import Sandbox
        from swecli.features.subagents.companion import Subagents
        from swecli.features.subagents.profiles import agent_profiles
        from swecli.features.subagents.work_trees import AgentTrees

        files, tools = core.services.extension_files, core.services.toolset.tools
        known = profiles or (lambda: agent_profiles(files, tools) if files is not None else ())
        sandboxes = sandbox_for or (lambda folder: Sandbox.none())
        trees = AgentTrees(worktrees, sandboxes, core.services.workspace, core.recorder.session)
        parts = core.services, core.recorder, core.companions, core.work, core.session
        return (Subagents(*parts, known, trees),)

    return Feature(companions)


def _build(launch: Launch) -> Feature:
    from swecli.core.worktrees import worktrees_folder

    made = feature(worktrees=worktrees_folder(launch.paths), sandbox_for=launch.sandbox_for)
    if not launch.loaded.settings.subagents.enabled:
        return made
    from swecli.features.subagents.tool import TaskTool, told_agents

    return replace(made, tools=(TaskTool(told_agents(launch.extension_files)),))


WIRING = Wiring(_build)

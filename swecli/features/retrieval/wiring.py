"""The index of a run's folder: whether there may be one, its file, and git for its history."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from swecli.features import Wiring

if TYPE_CHECKING:
    from swecli.commands.base import SlashCommand
    from swecli.core.config.paths import Paths
    from swecli.core.engine.core import Core
    from swecli.core.engine.feature import Feature
    from swecli.core.retrieval.project import ProjectIndex
    from swecli.core.retrieval.retrieve import Retrieval
    from swecli.features.retrieval.companion import PromptRetrieval
    from swecli.launch import Launch


def feature(project: ProjectIndex | None = None, *, retrieval_model: bool = False) -> Feature:
    """Without an index nothing is added. ``retrieval_model``: the small model suggests search words besides those of
    the message."""
    from swecli.core.engine.feature import Feature

    if project is None:
        return Feature()
    from swecli.features.retrieval.companion import PromptRetrieval

    def companions(core: Core) -> Sequence[PromptRetrieval]:
        ask = core.questions.ask_briefly if retrieval_model else None
        context, read_rules = core.services.toolset.context, core.decisions.read_rules
        parts = core.recorder, core.scheduler, core.connection
        return (PromptRetrieval(project, context, read_rules, *parts, ask),)

    return Feature(companions)


def _build(launch: Launch) -> Feature:
    """With the tool that asks the index. A session that began with it keeps it without one."""
    wishes = launch.loaded.settings.context
    project = project_index(launch)
    made = feature(project, retrieval_model=wishes.retrieval_model)
    if launch.options.safe_mode or not wishes.retrieval:
        return made
    from swecli.core.retrieval.project import TOOL_WAIT
    from swecli.features.retrieval.tool import Locate

    spare = (Locate(_no_index, lambda: "its files are no longer trusted"),)
    if project is None:
        return replace(made, spare=spare)
    return replace(
        made, tools=(Locate(partial(project.retrieval, first_wait=TOOL_WAIT), project.missing),), spare=spare
    )


async def _no_index(text: str) -> Retrieval | None:
    return None


def project_index(launch: Launch) -> ProjectIndex | None:
    """The index of the folder; None if disabled, or if its files are not trusted."""
    from swecli.core.config.trust import covered_by_trust
    from swecli.core.retrieval.project import ProjectIndex

    options, trust, environment = launch.options, launch.trust, launch.child_environment
    if not launch.loaded.settings.context.retrieval or options.safe_mode or options.compact_dry_run:
        return None
    if not (trust.trusts or (trust.state == "unknown" and not covered_by_trust(options.cwd))):
        return None
    root = Path(os.path.realpath(options.cwd))
    path = index_place(launch.paths, root) if options.store and not options.look_only else None
    return ProjectIndex(root, path, partial(git_program, root, environment), environment)


def index_place(paths: Paths, root: Path) -> Path:
    """The index file of a folder."""
    from swecli.core.config.paths import workspace_key

    return paths.cache / "retrieval" / f"{workspace_key(root)}.index"


def git_program(root: Path, environment: Mapping[str, str]) -> str:
    """The git for the history of a folder; empty if there is none, or it might run something chosen by the
    repository."""
    from swecli.core.git import repository_of
    from swecli.core.permissions.facts import OsFacts
    from swecli.core.permissions.git_facts import git_problem

    cwd, facts = str(root), OsFacts(environment)
    if repository_of(cwd) is None:
        return ""
    program = facts.program("git", cwd)
    problem = (
        not program
        or facts.program_problem("git", cwd, (cwd,))
        or git_problem(cwd, environment, (cwd,), submodules=False)
    )
    return "" if problem else str(program)


def _commands() -> Sequence[SlashCommand]:
    from swecli.features.retrieval.command import WHERE

    return (WHERE,)


WIRING = Wiring(_build, _commands, before="btw")

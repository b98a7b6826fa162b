"""The index of a folder: whether there may be one, its file, and git for its history."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from swecli.assembly.startup import Startup
from swecli.core.config.paths import Paths, workspace_key
from swecli.core.config.trust import covered_by_trust
from swecli.core.git import repository_of
from swecli.core.permissions.facts import OsFacts
from swecli.core.permissions.git_facts import git_problem
from swecli.core.retrieval.project import ProjectIndex
from swecli.launch import LaunchOptions


def project_index(options: LaunchOptions, startup: Startup, environment: Mapping[str, str]) -> ProjectIndex | None:
    """The index of the folder; None if disabled, or if its files are not trusted."""
    if not startup.loaded.settings.context.retrieval or options.safe_mode or options.compact_dry_run:
        return None
    if not (startup.trust.trusts or (startup.trust.state == "unknown" and not covered_by_trust(options.cwd))):
        return None
    root = Path(os.path.realpath(options.cwd))
    place = index_place(startup.paths, root) if options.store and not options.look_only else None
    return ProjectIndex(root, place, partial(git_program, root, environment), environment)


def index_place(paths: Paths, root: Path) -> Path:
    """The index file of a folder."""
    return paths.cache / "retrieval" / f"{workspace_key(root)}.index"


def git_program(root: Path, environment: Mapping[str, str]) -> str:
    """The git for the history of a folder; empty if there is none, or it might run something chosen by the
    repository."""
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

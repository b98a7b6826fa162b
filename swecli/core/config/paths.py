"""Places of swecli's files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

OWN_SERVERS = "mcp.json"
"""The user's own MCP servers, in the configuration directory."""
PROJECT_SERVERS = ".mcp.json"
"""A project's servers, in its folder."""
PASTES = "pastes"
"""Folder for large pastes as files, below that of a project."""
PROJECT_FOLDER = ".swecli"


class Paths(Struct, frozen=True):
    """Directories of the user, absolute. With ``SWECLI_HOME`` all of them are inside it."""

    config: Path
    data: Path
    cache: Path
    state: Path

    @property
    def all(self) -> tuple[Path, ...]:
        """Every directory once, resolved: no tool may write below any of them."""
        return tuple(dict.fromkeys(Path(os.path.realpath(path)) for path in self._fields()))

    def _fields(self) -> tuple[Path, ...]:
        return (self.config, self.data, self.cache, self.state)

    def workspace_data(self, workspace: Path) -> Path:
        return self.data / "workspaces" / workspace_key(workspace)


def user_paths(environment: Mapping[str, str]) -> Paths:
    """The directories by the rules of the platform, or all inside ``SWECLI_HOME``."""
    home = environment.get("SWECLI_HOME", "")
    if home:
        base = Path(os.path.expanduser(home)).absolute()
        return Paths(base, base / "data", base / "cache", base / "state")
    from platformdirs import PlatformDirs

    dirs = PlatformDirs("swecli", appauthor=False)
    return Paths(
        Path(dirs.user_config_dir).absolute(),
        Path(dirs.user_data_dir).absolute(),
        Path(dirs.user_cache_dir).absolute(),
        Path(dirs.user_state_dir).absolute(),
    )


def workspace_key(workspace: Path) -> str:
    """Short name of a workspace, independent of symbolic links: hex of a hash of its real path."""
    return hashlib.sha256(os.fsencode(os.path.realpath(workspace))).hexdigest()[:20]


def project_folder(workspace: Path) -> Path:
    return workspace / PROJECT_FOLDER

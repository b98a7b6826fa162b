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
IMPORTED_SERVERS = (
    *(".cursor/mcp.json", ".vscode/mcp.json", ".gemini/settings.json", ".codex/config.toml"),
    *("opencode.json", "opencode.jsonc"),
)
"""Other programs' files in a project's folder, whose servers are offered for import."""
PASTES = "pastes"
"""Folder for large pastes as files, below that of a project."""
PROJECT_FOLDER = ".swecli"


PROJECT_VARIABLES = ("CLAUDE_PROJECT_DIR", "SWECLI_PROJECT_DIR")
"""Variables that name the project's folder to hooks and servers."""


class Paths(Struct, frozen=True):
    """Directories of the user, absolute. With ``SWECLI_HOME`` all of them are inside it."""

    config: Path
    data: Path
    cache: Path
    state: Path

    @property
    def all(self) -> tuple[Path, ...]:
        """Every directory once, resolved: no tool may write below any of them."""
        return tuple(
            dict.fromkeys(Path(os.path.realpath(path)) for path in (self.config, self.data, self.cache, self.state))
        )

    @property
    def memories(self) -> Path:
        """The user's memories, the only folder of these that a tool may write to: that for memories."""
        return Path(os.path.realpath(self.data)) / "memories"

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


def user_file(environment: Mapping[str, str]) -> Path:
    """The user's settings file."""
    named = environment.get("SWECLI_CONFIG", "")
    return Path(os.path.expanduser(named)).absolute() if named else user_paths(environment).config / "config.toml"


def workspace_key(workspace: Path) -> str:
    """Short name of a workspace, independent of symbolic links: hex of a hash of its real path."""
    return hashlib.sha256(os.fsencode(os.path.realpath(workspace))).hexdigest()[:20]


def project_folder(workspace: Path) -> Path:
    return workspace / PROJECT_FOLDER


_UNSHARED = "logs/\nconfig.local.toml\n"
_IGNORED = f"# Local files of swecli. To share one: git add -f\n{_UNSHARED}playbook.jsonl\n.gitignore\n"


def keep_unshared(folder: Path) -> None:
    """Keep local settings and what swecli learns out of a repository, unless the project decides that by a file of its
    own; ``folder`` is the project's ``.swecli``.

    Raises:
        OSError: the file can't be written.
    """
    ignore = folder / ".gitignore"
    if os.path.lexists(ignore) and not _is_ours(ignore):
        return
    folder.mkdir(exist_ok=True)
    ignore.write_text(_IGNORED, encoding="utf-8")


def _is_ours(ignore: Path) -> bool:
    """Whether this is exactly the file that an earlier swecli wrote."""
    try:
        return not ignore.is_symlink() and ignore.read_bytes() == _UNSHARED.encode()
    except OSError:
        return False

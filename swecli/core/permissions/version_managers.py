"""Whether a file of the workspace chooses which program a name starts: by a version manager's stand-in for it, or by
the program itself, which may start another version of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from swecli.lazy_pattern import lazy_pattern

_FILES = (
    *(".tool-versions", ".mise.toml", "mise.toml", ".mise", ".config/mise", ".config/mise.toml", ".mise.local.toml"),
    *("mise.local.toml", "mise", ".rtx.toml", ".prototools"),
)
_OF_PYTHON = (".python-version",)
_OF_OTHERS = (
    *(".ruby-version", ".node-version", ".nvmrc", ".java-version", ".go-version", "package.json", ".npmrc"),
    *(".php-version", ".perl-version", ".lua-version"),
    *_OF_PYTHON,
)
"""Files by which version managers choose a program."""
_OF_RUST = ("rust-toolchain", "rust-toolchain.toml")
_OF_TERRAFORM = (".terraform-version", ".opentofu-version", ".terragrunt-version", ".tfswitchrc", ".tfswitch.toml")
_OF_GO = ("go.mod", "go.work")
_GO_PROGRAMS = frozenset(("go", "gofmt", "gopls"))
_GO_VERSION = lazy_pattern(r"(?:go)?([0-9]+)\.([0-9]+)(?:\.([0-9]+))?")
_FIRST_THAT_SWITCHES = (1, 21, 0)
"""The first version of Go that starts the one which a module asks for."""


def chosen_version(
    name: str, path: str, real: str, folders: Callable[[], Sequence[str]], read: Callable[[str], bytes | None]
) -> str | None:
    """Why a file in one of the ``folders`` may choose what a program at ``path``, with links followed at ``real``,
    starts, as a clause; None if none does. ``read`` gives the content of a small file."""
    parts = {*path.split("/"), *real.split("/")}
    files: tuple[str, ...] = ()
    if not parts.isdisjoint(("shims", ".volta", "corepack")):
        of_python = ".pyenv" in parts or name.startswith(("python", "pip"))
        files = (*_FILES, *(_OF_PYTHON if of_python else _OF_OTHERS))
    elif os.path.lexists(os.path.join(os.path.dirname(path), "rustup")):
        files = _OF_RUST
    elif not parts.isdisjoint((".tfenv", "tfenv", ".tenv", "tenv", ".tgenv")):
        files = _OF_TERRAFORM
    for folder in folders() if files else ():
        for file in files:
            if os.path.lexists(os.path.join(folder, file)):
                return f"{file} in the workspace or above it chooses which {name} runs"
    return _other_go(name, real, folders, read) if name in _GO_PROGRAMS else None


def _other_go(
    name: str, real: str, folders: Callable[[], Sequence[str]], read: Callable[[str], bytes | None]
) -> str | None:
    """Why Go may fetch and start another version than the installed one."""
    installed = _installed_go(real, read)
    if installed is not None and installed < _FIRST_THAT_SWITCHES:
        return None
    for folder in folders():
        for file in _OF_GO:
            path = os.path.join(folder, file)
            if not os.path.lexists(path):
                continue
            asked = _asked_of_go(read(path))
            if installed is None or asked is None or any(version > installed for version in asked):
                return f"{file} in the workspace or above it may make {name} start another version of Go"
    return None


def _installed_go(real: str, read: Callable[[str], bytes | None]) -> tuple[int, int, int] | None:
    """The version beside a program of Go's, without which nothing is known about it."""
    text = read(os.path.join(os.path.dirname(os.path.dirname(real)), "VERSION"))
    return None if text is None else _go_version(text.decode("utf-8", "replace").partition("\n")[0].strip())


def _asked_of_go(text: bytes | None) -> list[tuple[int, int, int]] | None:
    """The versions that a module's file asks for; None if it is not understood."""
    if text is None:
        return None
    asked: list[tuple[int, int, int]] = []
    for line in text.decode("utf-8", "replace").split("\n"):
        words = line.partition("//")[0].split()
        if not words or words[0] not in ("go", "toolchain") or words[1:] in (["default"], ["local"]):
            continue
        version = _go_version(words[1]) if len(words) == 2 else None
        if version is None:
            return None
        asked.append(version)
    return asked


def _go_version(text: str) -> tuple[int, int, int] | None:
    """A released version; None for a candidate, or another name."""
    match = _GO_VERSION.fullmatch(text)
    return None if match is None else (int(match[1]), int(match[2]), int(match[3] or 0))

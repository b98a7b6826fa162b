"""Commands that can't do their work without the network, by their words. An approved one runs outside the sandbox at
once: inside, it would fail and ask again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from swecli.core.permissions.shell.offers import without_version
from swecli.core.permissions.shell.programs import CONNECTING
from swecli.core.permissions.shell.subcommands import without_global_options

_ALWAYS = CONNECTING | frozenset(("gh", "glab", "hub"))
_PACKAGES = "install update upgrade"
_NODE = "install i ci add update up upgrade publish outdated audit view info dlx create"
_FETCHING: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        name: frozenset(words.split())
        for names, words in {
            "pip": "install download wheel index",
            "uv": "add sync lock pip tool",
            "poetry pdm": "install add update lock",
            "npm pnpm bun": _NODE,
            "yarn": f"{_NODE} -",
            "cargo": "fetch install add update publish search",
            "go": "get mod",
            "git": "fetch pull push clone ls-remote submodule",
            "gem bundle composer brew apt apt-get apk dnf yum pacman": f"{_PACKAGES} require publish push",
            "docker podman": "pull push login search",
        }.items()
        for name in names.split()
    }
)
"""By program, the subcommands that connect; ``-`` stands for none."""


def needs_network(words: Sequence[str | None]) -> bool:
    """Whether a simple command exchanges data with other machines by its nature. Computed words (None) say nothing."""
    if not words or words[0] is None:
        return False
    name = without_version(words[0])
    if name == "python" and len(words) > 2 and words[1] == "-m" and words[2] is not None:
        words, name = words[2:], words[2]
    if name in _ALWAYS:
        return True
    rest = [word for word in words[1:] if word is not None]
    at = without_global_options(name, rest)
    return (rest[at] if at < len(rest) else "-") in _FETCHING.get(name, ())

"""Commands that can't do their work without the network, by their words. An approved one runs outside the sandbox at
once: inside, it would fail and ask again."""

from __future__ import annotations

from collections.abc import Sequence

from swecli.core.permissions.shell.offers import without_version
from swecli.core.permissions.shell.programs import CONNECTING
from swecli.core.permissions.shell.subcommands import without_global_options
from swecli.core.permissions.shell.tables import tables

_ALWAYS = CONNECTING | frozenset(("gh", "glab", "hub"))


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
    return (rest[at] if at < len(rest) else "-") in tables().connecting.get(name, ())

"""What files of a project may not set unless the user consented to exactly that."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from swecli.core.config.trust import item_digest

LOOSENING = frozenset(("providers", "keys", "hooks", "mcp", "sandbox", "environment", "checkpoints"))
"""Sections that name programs, addresses or variables, lift a question, or say what can be taken back."""

_LOOSENING_KEYS = frozenset((("approval", "allow"), ("ui", "status_line")))
"""Single keys that do."""

ProjectLayer = Literal["project", "local"]


@dataclass(frozen=True, slots=True)
class PendingItem:
    """A setting of the project that is left out until the user consents. ``value`` is all of it as text, ``digest``
    what consent is bound to."""

    key: str
    value: str
    origin: str
    digest: str


class Consent:
    """``accepted`` are the hashes of what the user consented to; ``pending`` collects what waits for it."""

    def __init__(self, accepted: frozenset[str]) -> None:
        self._accepted = accepted
        self.pending: list[PendingItem] = []

    def refuses(self, key: Sequence[str], value: object, origin: str) -> bool:
        """Whether this setting of a project's file has to be left out."""
        if not loosens(key, value):
            return False
        digest = item_digest(key, value)
        if digest in self._accepted:
            return False
        shown = json.dumps(value, ensure_ascii=False, default=str)
        self.pending.append(PendingItem(".".join(key), shown, origin, digest))
        return True


def loosens(key: Sequence[str], value: object) -> bool:
    """Whether a setting could make something run, go elsewhere or go unasked that did not before."""
    if tuple(key) == ("approval", "mode"):
        return value != "plan"
    return key[0] in LOOSENING or tuple(key) in _LOOSENING_KEYS


def without_links(
    files: Sequence[tuple[ProjectLayer, Path]], notices: list[str]
) -> Iterator[tuple[ProjectLayer, Path]]:
    """Files that are in the project themselves: a link could bring in any file of the user's."""
    for layer, path in files:
        if path.is_symlink() or path.parent.is_symlink():
            notices.append(f"{path} not read: it is a link, or in one.")
        else:
            yield layer, path

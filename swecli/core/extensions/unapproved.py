"""The files that trusting a folder would enable, and that the user did not approve one by one."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from swecli.core.config.trust import covered_by_trust, file_digest
from swecli.core.workspace.text_file import read_bytes

LARGEST_APPROVED = 1_000_000
"""Largest file that can be approved, in bytes."""


def unapproved(directory: Path, accepted: Collection[str]) -> tuple[str, ...]:
    """Files from ``covered_by_trust`` except those that the user approved in their present form, such as files written
    by /init."""
    names = covered_by_trust(directory)
    return tuple(name for name in names if not _is_approved(directory, name, accepted)) if accepted else names


def _is_approved(directory: Path, name: str, accepted: Collection[str]) -> bool:
    file = Path(os.path.realpath(directory)) / name
    try:
        sha256 = read_bytes(file, LARGEST_APPROVED)[1].sha256
    except OSError:
        return False
    return file_digest(directory, file, sha256) in accepted

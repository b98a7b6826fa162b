"""Values of manifests, whose types are whatever somebody wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


def table(value: Any, *keys: str) -> Mapping[str, Any]:
    """The table at ``keys``; an empty one when it is not there or no table."""
    for key in keys:
        if not isinstance(value, Mapping):
            return {}
        value = cast("Mapping[str, Any]", value).get(key)
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def text(value: Any) -> str:
    """A string on one line; empty for anything else."""
    return " ".join(value.split()) if isinstance(value, str) else ""


def texts(value: Any) -> list[str]:
    """The strings of a list; empty for anything else."""
    return [item for item in cast("list[Any]", value) if isinstance(item, str)] if isinstance(value, list) else []

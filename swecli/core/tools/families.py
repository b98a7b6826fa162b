"""Tools for certain families of models (``families.toml``)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files


def is_special(tool: str) -> bool:
    """Whether only certain models are told of the tool."""
    return tool in _families()


def is_offered(tool: str, model: str) -> bool:
    """Whether a model, given by its name with or without provider, is told of a special tool."""
    name = model.lower().rpartition("/")[2]
    return any(fnmatchcase(name, pattern) for pattern in _families().get(tool, ()))


@cache
def _families() -> Mapping[str, tuple[str, ...]]:
    text = files("swecli.core.tools").joinpath("families.toml").read_text(encoding="utf-8")
    return {tool: tuple(str(pattern) for pattern in table["models"]) for tool, table in tomllib.loads(text).items()}

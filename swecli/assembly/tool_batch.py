"""Single tool calls without a model, for external checks."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from swecli.assembly.services import build_services
from swecli.assembly.startup import startup_of
from swecli.core.engine.batch import run_lines
from swecli.core.engine.feature import Feature
from swecli.core.engine.model_access import ModelAccess, ModelUnavailable
from swecli.core.engine.services import Services, Store
from swecli.core.llm.types import ModelClient
from swecli.core.protocol.events import Mode
from swecli.launch import LaunchOptions


def tool_batch(lines: Iterable[str]) -> AsyncIterator[str]:
    """One result line of JSON for each line ``{id, name, arguments, cwd, mode, approve}``."""
    return run_lines(lines, _services)


def _services(cwd: Path, mode: Mode) -> tuple[Services, Sequence[Feature]]:
    options = LaunchOptions(cwd=cwd, headless=True, mode=mode, store=False)
    services, features = build_services(options, startup_of(options, dict(os.environ)), ModelAccess(_no_model), Store())
    permissions = services.permissions
    permissions = replace(permissions, policy=replace(permissions.policy, mode=mode))
    return replace(services, permissions=permissions), features


def _no_model(model: str) -> ModelClient:
    raise ModelUnavailable(f"a batch of tool calls uses no model, so drop {model}")

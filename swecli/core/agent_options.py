"""What a program's conversation with an agent is made of."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from swecli.core.context_management.prompt import PromptTexts
from swecli.core.engine.model_access import ModelAccess, ModelUnavailable
from swecli.core.engine.services import Permissions, Services, Toolset, Workspace
from swecli.core.engine.settings import Adjustable, Settings
from swecli.core.llm.types import ModelClient
from swecli.core.permissions.decide import decide
from swecli.core.permissions.types import Policy, Rule
from swecli.core.protocol.events import Mode, PermissionRequested
from swecli.core.tools.base import AnyTool, Tool
from swecli.core.tools.function import Function, FunctionTool
from swecli.core.tools.registry import ToolRegistry, builtin_tools
from swecli.core.workspace.process import scrubbed_environment
from swecli.library.context_manager import ContextConfig, ContextManager

SERVER = "server"
"""Name of the provider at ``base_url``."""

Approve = Callable[[PermissionRequested], Awaitable[bool]]
"""Answers a call that needs consent."""


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """``model`` is ``provider/name``, or a name alone for a server at ``base_url``; ``model_client`` replaces both.
    Without ``approve`` every call that needs consent is refused."""

    model: str = ""
    base_url: str = ""
    model_client: ModelClient | None = None
    system_prompt: str | None = None
    tools: Sequence[AnyTool | Function | str] = ()
    """The caller's functions, names of swecli's tools such as "read_file", or tools."""
    cwd: Path = field(default_factory=Path.cwd)
    mode: Mode = "default"
    approve: Approve | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    """Source of keys; commands get it without secrets."""
    context: ContextConfig | None = None


def services_of(options: AgentOptions) -> tuple[Services, ContextManager]:
    """The services of a conversation, and the context manager among them.

    Raises:
        ValueError: a name that no tool has, or one that two have.
        TypeError: a function that can't be a tool.
    """
    config = options.context or ContextConfig()
    tools, functions = tools_of(options.tools)
    registry = ToolRegistry(tools)
    texts = PromptTexts(base=options.system_prompt, headless=options.approve is None)
    context = ContextManager(config, tools=registry.schemas(), texts=texts, special_tools=registry.special)
    # Passing a function allows it; plan mode still refuses functions that may change something.
    allowed = tuple(Rule("allow", name, "flag", "tools") for name in functions)
    services = Services(
        workspace=Workspace(options.cwd, (options.cwd,), scrubbed_environment(options.environment)),
        toolset=Toolset(registry, context),
        access=ModelAccess(lambda model: _client(options, model)),
        permissions=Permissions(decide, Policy(mode=options.mode, rules=allowed)),
        settings=Settings(Adjustable(compaction=config.compaction())),
    )
    return services, context


def tools_of(given: Sequence[AnyTool | Function | str]) -> tuple[list[AnyTool], tuple[str, ...]]:
    """Resolve the given tools; also returns the names of the caller's functions.

    Raises:
        ValueError: a name that no tool has, or one that two have.
        TypeError: a function that can't be a tool.
    """
    known = {tool.name: tool for tool in builtin_tools()}
    tools: list[AnyTool] = []
    for item in given:
        if isinstance(item, str):
            if item not in known:
                raise ValueError(f"unknown tool {item!r}; tools: {', '.join(known)}")
            tools.append(known[item])
        elif isinstance(item, Tool):
            tools.append(cast("AnyTool", item))
        else:
            tools.append(FunctionTool(item))
    names = [tool.name for tool in tools]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"two tools are named {twice!r}")
    return tools, tuple(tool.name for tool in tools if isinstance(tool, FunctionTool))


def _client(options: AgentOptions, model: str) -> ModelClient:
    if options.model_client is not None:
        return options.model_client
    from swecli.core.llm.client import HttpModelClient
    from swecli.core.llm.providers import ProviderConfig, ProviderSetupError, resolve

    custom: list[ProviderConfig] = []
    reference = model
    if options.base_url:
        custom.append(ProviderConfig(SERVER, "", options.base_url, local=True))
        reference = f"{SERVER}/{model}"
    try:
        return HttpModelClient(resolve(reference, options.environment, custom))
    except ProviderSetupError as error:
        raise ModelUnavailable(str(error)) from error

"""Services of a session, from options and settings."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from swecli.assembly.context import prompt_conditions, prompt_texts, session_context, token_monitor
from swecli.assembly.extension_files import extension_files
from swecli.assembly.instructions import instruction_files, project_instructions
from swecli.assembly.live_settings import adjustable, provider_search
from swecli.assembly.policy import approved_file_saver, build_policy, grants_of, rule_saver, with_grants
from swecli.assembly.sandbox import build_sandbox
from swecli.assembly.startup import Startup
from swecli.assembly.tools import own_tools, spare_tools, unusable
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.engine.feature import Feature
from swecli.core.engine.model_access import ModelAccess
from swecli.core.engine.services import Permissions, Services, Store, Time, Toolset, Workspace
from swecli.core.engine.settings import Settings as LiveSettings
from swecli.core.tools.registry import ToolRegistry
from swecli.core.tools.web_fetch import WebFetch
from swecli.core.workspace.process_tree import PLACE, end_owned
from swecli.features import wirings
from swecli.launch import Launch, LaunchOptions


def launch_of(options: LaunchOptions, startup: Startup) -> Launch:
    """The run for its features."""
    mark = hashlib.sha256(os.fsencode(startup.paths.workspace_data(options.cwd))).hexdigest()[:16]
    environment = {**startup.child_environment, PLACE: mark}
    return Launch(
        options,
        startup.paths,
        startup.loaded,
        startup.trust,
        startup.environment,
        environment,
        build_sandbox(options, startup, environment),
        lambda folder: build_sandbox(replace(options, cwd=folder, add_dirs=()), startup, environment),
        extension_files(options, startup),
        startup.secrets,
        startup.hooks.hooks,
        startup.plugins,
    )


def _workspace(launch: Launch) -> Workspace:
    options = launch.options
    return Workspace(
        options.cwd,
        (options.cwd, *options.add_dirs),
        launch.child_environment,
        sandbox=launch.sandbox,
        sandbox_early=not options.headless,
        output_folder=launch.paths.state / "output" if options.store else None,
        end_processes=end_owned,
    )


def _permissions(launch: Launch, startup: Startup) -> Permissions:
    grants = grants_of(startup, launch.options.cwd)
    return Permissions(
        with_grants(grants),
        replace(build_policy(launch.options, startup, launch.child_environment), rules=()),
        keep_rule=rule_saver(grants),
        keep_file=approved_file_saver(launch.options, startup),
    )


def build_services(
    options: LaunchOptions, startup: Startup, access: ModelAccess, store: Store
) -> tuple[Services, Sequence[Feature]]:
    """The services of a session, and its features."""
    launch = launch_of(options, startup)
    features = tuple(wiring.build(launch) for wiring in wirings())
    instructions = project_instructions(options, startup)
    files = launch.extension_files
    own = own_tools(options, startup.loaded.settings, files)
    registry = ToolRegistry(
        (*own, *(tool for feature in features for tool in feature.tools)),
        (*spare_tools(options, files), *(tool for feature in features for tool in feature.spare)),
        unusable(options, startup),
    )
    texts = prompt_texts(options, instructions, files, features)
    extensions = tuple(extension for feature in features for extension in feature.extensions)
    monitor = token_monitor(options, startup)
    values = adjustable(options, startup)

    context = partial(session_context, values, monitor, provider_search(startup.loaded.settings.web_search))

    def context_for(tools: ToolRegistry, prompt: str) -> ContextManager:
        append = "\n\n".join(filter(None, (texts.append, prompt)))
        made = context(tools, replace(texts, append=append, headless=False))
        if WebFetch.name not in tools.names():
            made.web_search = None  # a profile without the web has no search either
        return made

    services = Services(
        workspace=_workspace(launch),
        toolset=Toolset(registry, context(registry, texts)),
        context_for=context_for,
        access=access,
        permissions=replace(_permissions(launch, startup), readable=lambda: files.readable),
        settings=LiveSettings(values, safe_mode=options.safe_mode),
        store=store,
        time=Time(jitter=random.random),
        instruction_files=instruction_files(options, startup, instructions),
        prompt_conditions=prompt_conditions(options, startup),
        extension_files=files,
        extensions=extensions,
    )
    return services, features

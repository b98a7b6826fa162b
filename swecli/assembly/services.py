"""From options and settings to the services of a session."""

from __future__ import annotations

import os
import platform
import random
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path

from swecli import __version__
from swecli.assembly.context import compaction_options, context_limits
from swecli.assembly.grants import grants_of, keeper, with_grants
from swecli.assembly.sandbox import build_sandbox
from swecli.assembly.startup import Startup
from swecli.core.context_management.calibration import FamilyRatios
from swecli.core.context_management.context_manager import ContextManager
from swecli.core.context_management.environment import environment_note
from swecli.core.context_management.gate import BLOCK_ADVICE, MANUAL_ADVICE
from swecli.core.context_management.hybrid_counter import HybridCounter
from swecli.core.context_management.instructions import Instructions, load_instructions
from swecli.core.context_management.learned_ratios import LearnedRatios
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.opening import PromptTexts
from swecli.core.engine.services import ModelFactory, Services, TurnLimits, Workspace
from swecli.core.permissions.decide import decide
from swecli.core.permissions.facts import OsFacts
from swecli.core.permissions.types import Policy, Rule
from swecli.core.ports import BlobStore
from swecli.core.tools.builtin import builtin_tools
from swecli.core.tools.lean import lean_schemas
from swecli.core.tools.registry import ToolRegistry
from swecli.core.tools.web_fetch import WebFetch
from swecli.core.workspace.environment import scrubbed_environment
from swecli.core.workspace.git_facts import git_facts
from swecli.core.workspace.process_tree import end_owned
from swecli.launch import LaunchOptions

TOKEN_RATIOS = "token-ratios.json"
"""In the data directory: how the models count tokens, as far as it is known."""


def project_instructions(options: LaunchOptions, startup: Startup) -> Instructions:
    """The instruction files that hold for the working directory. A folder that the user declined says nothing; where
    nobody was asked yet, what it says is quoted."""
    trust = startup.trust
    project = "trusted" if trust.trusts else "none" if trust.state == "declined" else "quoted"
    return load_instructions(options.cwd, user_directory=startup.paths.config, project=project)


def build_services(
    options: LaunchOptions,
    startup: Startup,
    instructions: Instructions,
    make_client: ModelFactory,
    report_defect: Callable[[BaseException], None],
    blobs: BlobStore | None = None,
) -> Services:
    """Everything that a session needs besides its history and its store; ``blobs`` is where large results go."""
    settings = startup.loaded.settings
    left_out = () if settings.tools.web_fetch else (WebFetch.name,)
    registry = ToolRegistry(tool for tool in builtin_tools() if tool.name not in left_out)
    texts = PromptTexts(
        base=options.system_prompt,
        append=options.append_system_prompt or "",
        instructions=instructions.render(),
        headless=options.headless and options.input_format == "text",
    )
    roots = (options.cwd, *options.add_dirs)
    environment = scrubbed_environment(startup.environment)
    grants = grants_of(startup, options.cwd)
    return Services(
        workspace=Workspace(options.cwd, roots, environment),
        tools=registry,
        context=ContextManager(
            registry.schemas(),
            texts,
            context_limits(settings),
            token_monitor(options, startup),
            BLOCK_ADVICE if settings.context.auto_compact else MANUAL_ADVICE,
            lean_schemas(registry),
            special_tools=registry.special,
        ),
        make_client=make_client,
        decide=with_grants(decide, grants),
        keep_rule=keeper(grants),
        policy=build_policy(options, startup, environment),
        compaction=compaction_options(settings.context),
        blobs=blobs,
        offload_threshold=settings.agent.result_offload_threshold,
        limits=TurnLimits(settings.agent.max_steps, options.max_tokens, options.max_price),
        version=__version__,
        sandbox=build_sandbox(options, startup, environment),
        sandbox_early=not options.headless,
        output_folder=startup.paths.state / "output" if options.store else None,
        end_processes=end_owned,
        jitter=random.random,
        report_defect=report_defect,
        instructions=tuple(str(path) for path in instructions.paths),
    )


def token_monitor(options: LaunchOptions, startup: Startup) -> TokenMonitor:
    """Counts exactly as soon as it can; a run that stores nothing keeps nothing of what it learns either."""
    ratios = LearnedRatios(startup.paths.data / TOKEN_RATIOS) if options.store else FamilyRatios()
    return TokenMonitor(HybridCounter(), ratios)


def build_policy(options: LaunchOptions, startup: Startup, environment: Mapping[str, str]) -> Policy:
    """Mode, rules and trust that the permission decision starts from. ``environment`` is what commands get: a
    command is judged by the programs that it would really find."""
    rules = [Rule(rule.effect, rule.text, rule.scope, rule.origin) for rule in startup.loaded.rules]
    rules += [Rule("allow", text, "flag", "--allowed-tools") for text in options.allowed_tools]
    rules += [Rule("deny", text, "flag", "--disallowed-tools") for text in options.disallowed_tools]
    return Policy(
        mode=startup.loaded.settings.approval.mode,
        rules=tuple(rules),
        trust=startup.trust.state,
        yolo=options.yolo,
        own_dirs=tuple(str(path) for path in startup.paths.all),
        home=os.path.realpath(Path.home()),
        facts=OsFacts(environment),
    )


def session_environment(options: LaunchOptions, startup: Startup) -> str:
    """What the model is told about date, place and platform when the session begins."""
    return environment_note(
        today=date.today(),
        cwd=str(options.cwd),
        platform=f"{platform.system()} {platform.release()}",
        shell=Path(startup.environment.get("SHELL", "")).name,
        git=git_facts(options.cwd) is not None,
    )

"""Services and budgets of a session, from options and settings."""

from __future__ import annotations

import hashlib
import os
import platform
import random
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from swecli import __version__
from swecli.assembly.extension_files import extension_files, skill_listing
from swecli.assembly.memory import instruction_files, is_on, memory_options, memory_places, memory_tools, remembered
from swecli.assembly.playbook import FILE as PLAYBOOK
from swecli.assembly.playbook import playbook_opener, proven_bullets
from swecli.assembly.startup import Startup
from swecli.core.checkpoints.checkpoints import Checkpoints
from swecli.core.checkpoints.history import CheckpointOptions, FileHistory
from swecli.core.checkpoints.journal import broken, half_written, inherit, move
from swecli.core.checkpoints.restore import settle_broken
from swecli.core.checkpoints.store import SCHEMA
from swecli.core.config.paths import (
    OWN_SERVERS,
    PASTES,
    PROJECT_FOLDER,
    PROJECT_SERVERS,
    Paths,
    workspace_key,
)
from swecli.core.config.settings import (
    ContextSettings,
    SandboxSettings,
    Settings,
    SubagentSettings,
    WebSearchSettings,
    fallback_models,
    side_models,
)
from swecli.core.config.trust import GRANTS_FILE, GrantStore, Span, accept_items, covered_by_trust, file_digest
from swecli.core.context_management.budget import BLOCK_ADVICE, COMPACT_ADVICE, MANUAL_ADVICE, ComponentLimits, Limits
from swecli.core.context_management.calibration import FamilyRatios, LearnedRatios
from swecli.core.context_management.compaction.options import CompactionOptions, ImportanceStrategy, TruncationStrategy
from swecli.core.context_management.context_manager import COMPACT_TOOL, ContextManager
from swecli.core.context_management.counter import HybridCounter
from swecli.core.context_management.instructions import Instructions
from swecli.core.context_management.monitor import TokenMonitor
from swecli.core.context_management.prompt import PromptTexts, environment_note
from swecli.core.context_management.stored_prompt import Conditions, sources_of
from swecli.core.engine.feature import Feature
from swecli.core.engine.services import AgentProfile, Extension, ModelFactory, Services, Workspace
from swecli.core.engine.settings import Adjustable, SentinelOptions, SubagentOptions, TurnLimits
from swecli.core.engine.settings import Settings as LiveSettings
from swecli.core.extensions.watch import ExtensionFiles
from swecli.core.git import git_facts, repository_of
from swecli.core.llm.types import ServerClearing
from swecli.core.llm.types import WebSearch as ProviderSearch
from swecli.core.memory.places import NOTES
from swecli.core.permissions.facts import OsFacts
from swecli.core.permissions.git_facts import git_problem
from swecli.core.permissions.types import MEMORY_TOOL, Call, Decision, Policy, Rule
from swecli.core.ports import BlobStore
from swecli.core.protocol.blocks import TextBlock
from swecli.core.retrieval.project import TOOL_WAIT, ProjectIndex
from swecli.core.sandbox.plan import SandboxOptions, SandboxState
from swecli.core.sandbox.probe import Folders, SandboxWorkspace
from swecli.core.sandbox.sandbox import Sandbox, own_code
from swecli.core.sessions.database import (
    Database,
    Purpose,
    open_database,
    open_in_memory,
)
from swecli.core.tools.base import AnyTool
from swecli.core.tools.registry import ToolRegistry, builtin_tools, small_schemas
from swecli.core.tools.search import Locate
from swecli.core.tools.session_tools import AskUser, SkillTool, TaskTool
from swecli.core.tools.web_fetch import WebFetch
from swecli.core.tools.web_search import SearchEngine, WebSearch
from swecli.core.workspace.atomic_write import sweep_temporary
from swecli.core.workspace.process_tree import PLACE, end_owned
from swecli.core.workspace.walk import left_out_by_ripgrep
from swecli.core.worktrees import worktrees_folder
from swecli.exit_codes import ExitCode
from swecli.launch import Launch, LaunchOptions, StartError

if TYPE_CHECKING:
    from swecli.core.retrieval.retrieve import Retrieval


def context_limits(settings: Settings) -> Limits:
    agent, context = settings.agent, settings.context
    return Limits(
        context.warn,
        agent.compact_trigger,
        agent.hard_block,
        agent.context_budget,
        agent.max_output_tokens,
        context.target_tokens,
        ComponentLimits(**asdict(context.limits)),
        _server_clearing(context),
    )


def _web_search(wish: WebSearchSettings) -> ProviderSearch | None:
    """The provider's search, unless the user has a search engine."""
    if not wish.enabled or wish.url is not None:
        return None
    return ProviderSearch(wish.allowed_domains, wish.blocked_domains, wish.max_per_turn, wish.max_per_turn)


def _server_clearing(context: ContextSettings) -> ServerClearing | None:
    wish = context.server_clearing
    exclude = tuple(dict.fromkeys((*wish.exclude_tools, MEMORY_TOOL)))
    return ServerClearing(wish.trigger_tokens, wish.keep_tool_uses, exclude) if wish.enabled else None


def compaction_options(context: ContextSettings) -> CompactionOptions:
    return CompactionOptions(
        strategy=context.strategy,
        auto=context.auto_compact,
        keep_recent=context.keep_recent,
        keep_recent_tokens=context.keep_recent_tokens,
        max_summary_tokens=context.max_summary_tokens,
        provider_summary=context.provider_summary,
        retention=context.retention,
        truncation=TruncationStrategy(keep_recent=context.keep_recent),
        importance=ImportanceStrategy(
            context.keep_recent,
            context.user_message_score,
            context.assistant_message_score,
            context.tool_use_score,
            context.min_score_threshold,
        ),
    )


FILE = "checkpoints.db"
IN_MEMORY = 64_000_000
"""Bytes to keep in memory if nothing may be stored."""
_WRITTEN_BY_SWECLI = ("logs", PASTES, PLAYBOOK, *(f"memory/{name}" for name in (NOTES, f".{NOTES}.lock", ".gitignore")))
"""Files and folders of a project that swecli writes by itself, also while a command runs."""

_PURPOSE = Purpose(
    "checkpoint store",
    "File changes can be undone only until swecli exits, and fewer of them",
    lambda damaged, fresh: "Earlier changes can't be undone",
)


_UNSETTLED = (
    "swecli was killed while it restored files, and can't bring them back to before that ({error}). "
    "The next start tries again."
)


def open_checkpoints(options: LaunchOptions, startup: Startup, session: str) -> Checkpoints | None:
    """The record of the session's changes, opened on first use; None if disabled."""
    settings = startup.loaded.settings.checkpoints
    if not settings.enabled:
        return None
    path = startup.paths.state / "checkpoints" / workspace_key(options.cwd) / FILE
    own_names = startup.loaded.settings.approval.secret_names
    roots = tuple(os.path.realpath(root) for root in (options.cwd, *options.add_dirs))
    own = (
        *(str(one) for one in startup.paths.all),
        *(f"{root}/{PROJECT_FOLDER}/{name}" for root in roots for name in _WRITTEN_BY_SWECLI),
    )

    def open_history() -> FileHistory:
        rows = _open(path if options.store else None)
        total = settings.max_total_bytes if rows.durable else min(settings.max_total_bytes, IN_MEMORY)
        limits = CheckpointOptions(settings.max_file_bytes, total, settings.keep_days, settings.max_files, own_names)
        return FileHistory(rows, session, roots, limits, own)

    return Checkpoints(open_history, os.path.realpath(options.cwd), roots, os.path.realpath(Path.home()))


def inherit_changes(options: LaunchOptions, startup: Startup, parent: str, child: str) -> None:
    """Let a fork undo its parent session's changes of files."""
    path = startup.paths.state / "checkpoints" / workspace_key(options.cwd) / FILE
    if not path.exists() or not startup.loaded.settings.checkpoints.enabled:
        return
    with closing(_open(path)) as rows, suppress(sqlite3.Error), rows.write() as connection:
        inherit(connection, parent, child)


def move_changes(paths: Paths, old: Path, new: Path, sessions: Sequence[str]) -> None:
    """Let sessions of a moved folder undo their changes of files at its new place.

    Raises:
        sqlite3.Error: one of the stores fails; nothing was moved.
    """
    source, target = (paths.state / "checkpoints" / workspace_key(folder) / FILE for folder in (old, new))
    if not source.exists():
        return
    folders = (str(old), os.path.realpath(old))
    with closing(_open(source)) as before, closing(_open(target)) as after:
        for one in (before, after):
            if not one.durable:
                raise sqlite3.OperationalError(one.why_in_memory)
        with before.read() as reading, after.write(power_safe=True) as writing:
            for session in sessions:
                move(reading, writing, session, folders, os.path.realpath(new))


def settle_files(options: LaunchOptions, startup: Startup) -> tuple[str, ...]:
    """Settle what killed runs left in the folder: temporary files of edits go, and an undo, redo or rewind that was cut
    off is taken back, whatever this session stores. The record is opened only if there is one. Returns sentences for
    the user."""
    path = startup.paths.state / "checkpoints" / workspace_key(options.cwd) / FILE
    if options.look_only or options.compact_dry_run or not path.exists():
        return ()
    is_cut_off = False
    with suppress(sqlite3.Error, OSError), closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        for folder, writer in half_written(connection):
            sweep_temporary(Path(folder), writer)
        is_cut_off = any(one.kind in ("undo", "redo") for one in broken(connection, frozenset()))
    if not is_cut_off:
        return ()
    with closing(_open(path)) as rows:
        try:
            return (*rows.problems, *settle_broken(rows))
        except (sqlite3.Error, OSError) as error:
            return (*rows.problems, _UNSETTLED.format(error=error))


def _open(path: Path | None) -> Database:
    if path is None:
        return open_in_memory(SCHEMA)
    return open_database(path, migrations=SCHEMA, purpose=_PURPOSE)


def build_sandbox(options: LaunchOptions, startup: Startup, environment: Mapping[str, str]) -> Sandbox:
    """The sandbox from the settings. ``environment`` is that of commands."""
    home = os.path.realpath(Path.home())
    workspace = SandboxWorkspace(
        roots=tuple(os.path.realpath(root) for root in (options.cwd, *options.add_dirs)),
        home=home,
        environment=environment,
        own_dirs=tuple(str(path) for path in startup.paths.all),
        own_code=tuple(own_code()),
        key=workspace_key(options.cwd),
        own_names=startup.loaded.settings.approval.secret_names,
    )
    folders = Folders(startup.paths.state, startup.paths.cache if options.store else None)
    ways = sandbox_options(startup.loaded.settings.sandbox, home, ask=not options.headless)
    sandbox = Sandbox(ways, workspace, folders)
    sandbox.settled = options.settled
    return sandbox


def sandbox_options(settings: SandboxSettings, home: str, *, ask: bool) -> SandboxOptions:
    """The settings in the sandbox's form. ``ask``: whether somebody can be asked."""
    return SandboxOptions(
        mode=settings.mode,
        network=settings.network,
        unix_sockets=settings.unix_sockets,
        writable=tuple(_expanded(path, home) for path in settings.writable),
        hide=tuple(_expanded(path, home) for path in settings.hide),
        ask_outside=settings.ask_outside and ask,
    )


def require_sandbox(options: LaunchOptions, startup: Startup) -> None:
    """Refuse to start if the user requires a full sandbox and there is none. Takes a moment, if so.

    Raises:
        StartError: it is off or only partial.
    """
    if not startup.loaded.settings.sandbox.required:
        return
    state = sandbox_state(options, startup)
    if state.level != "full":
        raise StartError(
            f"sandbox.required is set, and the sandbox is {state.text}. Nothing was started. `swecli doctor` shows "
            "details; docs/sandbox.md lists what each system needs.",
            ExitCode.SANDBOX,
        )


def examine_sandbox(options: LaunchOptions, startup: Startup) -> TextBlock:
    """One line about the sandbox of a folder; an error if it is required and not full."""
    state = sandbox_state(options, startup)
    if startup.loaded.settings.sandbox.required and state.level != "full":
        return TextBlock(
            f"Sandbox: {state.text}. swecli does not start here, because your settings require a full sandbox.", "error"
        )
    asks = "" if state.contains else ". Auto mode asks before every command that is not proven read-only."
    advice = f"{'' if asks else '.'} {state.advice}" if state.advice else ""
    return TextBlock(f"Sandbox: {state.text}{asks}{advice}", "plain" if state.contains else "warning")


def sandbox_state(options: LaunchOptions, startup: Startup) -> SandboxState:
    """Confinement of a session's commands in this folder. Takes a moment."""
    sandbox = build_sandbox(options, startup, startup.child_environment)
    state = sandbox.check()
    sandbox.close()
    return state


def _expanded(path: str, home: str) -> str:
    return os.path.normpath(home + path[1:] if path.startswith("~/") else path)


Decide = Callable[[Policy, Call], Decision]


def grants_of(startup: Startup, workspace: Path) -> GrantStore:
    return GrantStore(startup.paths.workspace_data(workspace) / GRANTS_FILE)


def grant_rules(store: GrantStore) -> tuple[Rule, ...]:
    return tuple(Rule("allow", grant.rule, "grant", grant.origin) for grant in store.active())


def with_grants(store: GrantStore) -> Decide:
    """``decide`` with the grants valid at each decision: a grant ends when it expires or is revoked."""

    def decided(policy: Policy, call: Call) -> Decision:
        # Only now: all that it knows of commands would be 1 MiB of an idle session.
        from swecli.core.permissions.decide import decide

        return decide(replace(policy, rules=(*policy.rules, *grant_rules(store))), call)

    return decided


def rule_saver(store: GrantStore) -> Callable[[str, Span], str]:
    """Stores a rule beyond the session. Returns a sentence if that failed."""

    def keep(rule: str, span: Span) -> str:
        try:
            store.add(rule, span)
        except OSError as error:
            return f"Could not store {rule} ({error.strerror or error}); only this call was allowed."
        return ""

    return keep


TOKEN_RATIOS = "token-ratios.json"
"""In the data directory: learned token ratios of models."""


def approved_file_saver(options: LaunchOptions, startup: Startup) -> Callable[[str, str], str]:
    """Approves the content of a project's file as the user's own words. Returns a sentence if that failed."""

    def keep(path: str, sha256: str) -> str:
        if not options.store:
            return ""
        try:
            return accept_items(startup.paths.data, options.cwd, (file_digest(options.cwd, Path(path), sha256),))
        except OSError as error:
            return f"Could not store your approval of {path} ({error}); swecli asks again at the next start."

    return keep


def workspace_mark(paths: Paths, cwd: Path) -> str:
    """Identifies the folder and the data home of a run, in the environment of its commands."""
    return hashlib.sha256(os.fsencode(paths.workspace_data(cwd))).hexdigest()[:16]


def _context(
    values: Adjustable, monitor: TokenMonitor, search: ProviderSearch | None, tools: ToolRegistry, texts: PromptTexts
) -> ContextManager:
    made = ContextManager(
        tools.schemas(),
        texts,
        values.context_limits,
        monitor,
        values.advice,
        small_schemas(tools),
        special_tools=tools.special,
    )
    made.web_search = search
    return made


def launch_of(options: LaunchOptions, startup: Startup) -> Launch:
    """The run for its features."""
    environment = {**startup.child_environment, PLACE: workspace_mark(startup.paths, options.cwd)}
    return Launch(
        options,
        startup.paths,
        startup.loaded,
        startup.trust,
        startup.environment,
        environment,
        build_sandbox(options, startup, environment),
        startup.secrets,
        startup.hooks.hooks,
        startup.plugins,
    )


def build_services(
    launch: Launch,
    startup: Startup,
    features: Sequence[Feature],
    instructions: Instructions,
    make_client: ModelFactory,
    report_defect: Callable[[BaseException], None],
    blobs: BlobStore | None = None,
) -> Services:
    """All services of a session except its history and its store; ``blobs`` stores large results."""
    options, environment, sandbox = launch.options, launch.child_environment, launch.sandbox
    files = extension_files(options, startup)
    project = project_index(options, startup, environment)
    own = own_tools(startup.loaded.settings, files, project)
    registry = ToolRegistry(
        (*own, *(tool for feature in features for tool in feature.tools), *memory_tools(options, startup)),
        (*spare_tools(options, startup, files), *(tool for feature in features for tool in feature.spare)),
        unusable(options, startup),
    )
    proven = proven_bullets(options, startup)
    texts = _prompt_texts(options, startup, instructions, files, proven.text)
    extensions = (*build_extensions(options, startup), *(one for feature in features for one in feature.extensions))
    grants = grants_of(startup, options.cwd)
    monitor = token_monitor(options, startup)
    values = adjustable(options, startup)

    context = partial(_context, values, monitor, _web_search(startup.loaded.settings.web_search))

    def context_for(tools: ToolRegistry, prompt: str) -> ContextManager:
        append = "\n\n".join(filter(None, (texts.append, prompt)))
        made = context(tools, replace(texts, append=append, headless=False))
        if WebFetch.name not in tools.names():
            made.web_search = None  # a profile without the web has no search either
        return made

    return Services(
        workspace=Workspace(options.cwd, (options.cwd, *options.add_dirs), environment),
        tools=registry,
        context=context(registry, texts),
        context_for=context_for,
        worktrees=worktrees_folder(startup.paths),
        profiles=lambda: agent_profiles(files, registry),
        sandbox_for=lambda folder: build_sandbox(replace(options, cwd=folder, add_dirs=()), startup, environment),
        make_client=make_client,
        decide=with_grants(grants),
        keep_rule=rule_saver(grants),
        keep_file=approved_file_saver(options, startup),
        policy=replace(build_policy(options, startup, environment), rules=()),
        settings=LiveSettings(values, safe_mode=options.safe_mode),
        blobs=blobs,
        version=__version__,
        sandbox=sandbox,
        sandbox_early=not options.headless,
        output_folder=startup.paths.state / "output" if options.store else None,
        end_processes=end_owned,
        jitter=random.random,
        report_defect=report_defect,
        instruction_files=instruction_files(options, startup, instructions),
        memory=memory_options(options, startup),
        prompt_conditions=_prompt_conditions(options, startup),
        playbook=playbook_opener(options, startup, instructions.paths, proven.ids),
        project=project,
        retrieval_model=startup.loaded.settings.context.retrieval_model,
        extension_files=files,
        extensions=extensions,
    )


def _prompt_texts(
    options: LaunchOptions, startup: Startup, instructions: Instructions, files: ExtensionFiles, playbook: str
) -> PromptTexts:
    memory, skills = remembered(options, startup), tuple(files.now.skills.values())
    listed = [(skill.name, skill.origin.digest) for skill in skills if skill.for_model]
    return PromptTexts(
        base=options.system_prompt,
        append=options.append_system_prompt or "",
        files=instructions,
        memory=memory,
        headless=is_unattended(options),
        playbook=playbook,
        skills=partial(skill_listing, skills),
        sources=sources_of(instructions, memory, listed),
    )


def _prompt_conditions(options: LaunchOptions, startup: Startup) -> Conditions:
    return Conditions(
        folder=str(options.cwd),
        trusted=startup.trust.trusts,
        safe_mode=options.safe_mode,
        memory=is_on(options, startup),
        base=options.system_prompt,
        append=options.append_system_prompt,
    )


def adjustable(options: LaunchOptions, startup: Startup) -> Adjustable:
    """Settings that a running session applies when they change."""
    settings = startup.loaded.settings
    agent, tools = settings.agent, settings.tools
    return Adjustable(
        context_limits=context_limits(settings),
        advice=(COMPACT_ADVICE, *BLOCK_ADVICE) if settings.context.auto_compact else MANUAL_ADVICE,
        compaction=compaction_options(settings.context),
        limits=turn_limits(options, startup),
        offload_threshold=agent.result_offload_threshold,
        process_limit=tools.process_limit,
        command_timeout=tools.command_timeout,
        tool_deferral=tools.tool_deferral_threshold,
        subagents=subagent_options(settings.subagents),
        attribution=tools.attribution,
        rules=policy_rules(options, startup),
        fallback=fallback_models(settings),
        side_models=side_models(settings),
        sentinel=SentinelOptions(settings.context.sentinel, settings.context.sentinel_silenced),
    )


def project_index(options: LaunchOptions, startup: Startup, environment: Mapping[str, str]) -> ProjectIndex | None:
    """The index of the folder; None if disabled, or if its files are not trusted."""
    if not startup.loaded.settings.context.retrieval or options.safe_mode or options.compact_dry_run:
        return None
    if not (startup.trust.trusts or (startup.trust.state == "unknown" and not covered_by_trust(options.cwd))):
        return None
    root = Path(os.path.realpath(options.cwd))
    place = index_place(startup.paths, root) if options.store and not options.look_only else None
    return ProjectIndex(root, place, partial(git_program, root, environment), environment)


def index_place(paths: Paths, root: Path) -> Path:
    """The index file of a folder."""
    return paths.cache / "retrieval" / f"{workspace_key(root)}.index"


def git_program(root: Path, environment: Mapping[str, str]) -> str:
    """The git for the history of a folder; empty if there is none, or it might run something chosen by the
    repository."""
    cwd, facts = str(root), OsFacts(environment)
    if repository_of(cwd) is None:
        return ""
    program = facts.program("git", cwd)
    problem = (
        not program
        or facts.program_problem("git", cwd, (cwd,))
        or git_problem(cwd, environment, (cwd,), submodules=False)
    )
    return "" if problem else str(program)


def own_tools(settings: Settings, files: ExtensionFiles, project: ProjectIndex | None = None) -> list[AnyTool]:
    """swecli's tools, as enabled in the settings."""
    left_out = {
        *(() if settings.tools.web_fetch else (WebFetch.name,)),
        *(
            () if settings.context.auto_compact else (COMPACT_TOOL,)
        ),  # without automatic compaction only the user compacts
    }
    own: list[AnyTool] = [tool for tool in builtin_tools(settings.tools.command_timeout) if tool.name not in left_out]
    search = settings.web_search
    if search.enabled and search.url is not None:
        engine = SearchEngine(search.url, search.allowed_domains, search.blocked_domains, search.max_per_turn)
        own.append(WebSearch(engine))
    if any(skill.for_model for skill in files.now.skills.values()):
        own.append(SkillTool(lambda: files.now.skills))
    if project is not None:
        own.append(Locate(partial(project.retrieval, first_wait=TOOL_WAIT), project.missing))
    if settings.subagents.enabled:
        own.append(TaskTool(told_agents(files)))
    return own


def spare_tools(options: LaunchOptions, startup: Startup, files: ExtensionFiles) -> list[AnyTool]:
    """Stand-ins for tools that depend on the folder's content and trust, for a session that began with them: they
    answer that they have no source. Excludes tools that the user turned off."""
    settings, spare = startup.loaded.settings, list[AnyTool]()
    if options.safe_mode:
        return spare
    spare.append(SkillTool(lambda: files.now.skills))
    if settings.context.retrieval:
        spare.append(Locate(_no_index, lambda: "its files are no longer trusted"))
    return spare


def told_agents(files: ExtensionFiles) -> Callable[[], Sequence[tuple[str, str]]]:
    """Names and descriptions of the agents at the start of the session, for the model; none while there are only those
    of swecli, which the tool names itself."""
    profiles = files.profiles.values() if files.now.profiles else ()
    listed = sorted((profile.name, profile.description) for profile in profiles)
    return lambda: listed


def is_unattended(options: LaunchOptions) -> bool:
    """Whether nobody can answer questions of the run."""
    return options.headless and options.input_format == "text"


def unusable(options: LaunchOptions, startup: Startup) -> tuple[str, ...]:
    """Tools that a new session does not offer to the model: questions that nobody can answer, and memories before the
    user trusts the folder."""
    return (
        *((AskUser.name,) if is_unattended(options) else ()),
        *((MEMORY_TOOL,) if not startup.trust.trusts else ()),
    )


async def _no_index(text: str) -> Retrieval | None:
    return None


def agent_profiles(files: ExtensionFiles, registry: ToolRegistry) -> list[AgentProfile]:
    """The present profiles, with the tools that each gets in this session."""
    from swecli.core.extensions.profiles import resolve_profile

    found: list[AgentProfile] = []
    for one in files.profiles.values():
        made = resolve_profile(one, tools=registry.names(), mode="auto")
        tools = (*made.tools, *made.missing) if one.tools is not None or one.disallowed else None
        given = AgentProfile(one.name, one.description, one.prompt, tools, model=one.model, mode=one.mode)
        found.append(replace(given, worktree=one.worktree))
    return found


def turn_limits(options: LaunchOptions, startup: Startup) -> TurnLimits:
    """Caps from flags and settings."""
    steps = startup.loaded.settings.agent.max_steps
    return TurnLimits(steps, max_tokens=options.max_tokens, max_price=options.max_price)


def subagent_options(settings: SubagentSettings) -> SubagentOptions:
    return SubagentOptions(
        settings.at_once,
        settings.max_steps,
        settings.max_tokens,
        Decimal(str(settings.max_price)) if settings.max_price is not None else None,
        settings.result_tokens,
        settings.model,
    )


def has_servers(options: LaunchOptions, startup: Startup) -> bool:
    """Whether MCP servers are configured."""
    return (
        bool(options.servers)
        or bool(startup.loaded.settings.mcp)
        or (startup.paths.config / OWN_SERVERS).exists()
        or (startup.trust.trusts and (options.cwd / PROJECT_SERVERS).exists())
        or any("MCP servers" in plugin.programs for plugin in startup.plugins)
    )


def build_extensions(options: LaunchOptions, startup: Startup) -> tuple[Extension, ...]:
    """Extensions that add tools to the session. Imports nothing if none is configured."""
    looks_only = options.look_only or options.compact_dry_run or options.dry_run
    if looks_only or not has_servers(options, startup):
        return ()
    from swecli.assembly.mcp import build_servers

    servers = build_servers(options, startup)
    return (servers,) if servers is not None else ()


def token_monitor(options: LaunchOptions, startup: Startup) -> TokenMonitor:
    """Counts exactly as soon as possible; a run that stores nothing does not store learned ratios either."""
    ratios = LearnedRatios(startup.paths.data / TOKEN_RATIOS) if options.store else FamilyRatios()
    return TokenMonitor(HybridCounter(), ratios)


def build_policy(options: LaunchOptions, startup: Startup, environment: Mapping[str, str]) -> Policy:
    """Mode, rules and trust at the start of permission decisions. ``environment`` is that of commands: a command is
    judged by the programs that it would really find."""
    return Policy(
        mode=startup.loaded.settings.approval.mode,
        rules=policy_rules(options, startup),
        trust=startup.trust.state,
        yolo=options.yolo,
        own_dirs=tuple(str(path) for path in startup.paths.all),
        memory=(str(folder),) if (folder := memory_places(options, startup).user) is not None else (),
        home=os.path.realpath(Path.home()),
        facts=OsFacts(environment, left_out_by_ripgrep, startup.loaded.settings.approval.secret_names),
    )


def policy_rules(options: LaunchOptions, startup: Startup) -> tuple[Rule, ...]:
    """The rules from files and flags."""
    rules = [Rule(rule.effect, rule.text, rule.scope, rule.origin) for rule in startup.loaded.rules]
    rules += [Rule("allow", text, "flag", "--allowed-tools") for text in options.allowed_tools]
    rules += [Rule("deny", text, "flag", "--disallowed-tools") for text in options.disallowed_tools]
    return tuple(rules)


def session_environment(options: LaunchOptions, startup: Startup) -> str:
    """Date, place and platform for the model at the start of the session."""
    return environment_note(
        today=date.today(),
        cwd=str(options.cwd),
        platform=f"{platform.system()} {platform.release()}",
        shell=Path(startup.environment.get("SHELL", "")).name,
        git=git_facts(options.cwd) is not None,
    )

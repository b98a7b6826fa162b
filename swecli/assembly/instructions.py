"""Instruction files of a run: which to read, and which to watch."""

from __future__ import annotations

from pathlib import Path

from swecli.assembly.startup import Startup
from swecli.core.config.trust import TrustState, file_digest, read_trust
from swecli.core.context_management.instructions import Instructions, Merge, instruction_folders, load_instructions
from swecli.core.engine.services import InstructionFiles
from swecli.launch import LaunchOptions

_OWN_ELSEWHERE = (".claude/CLAUDE.md", ".codex/AGENTS.md", ".gemini/GEMINI.md", ".config/opencode/AGENTS.md")


def project_instructions(
    options: LaunchOptions, startup: Startup, accepted: frozenset[str] = frozenset()
) -> Instructions:
    """The instruction files for the working directory. Those of a declined folder are ignored; before a decision they
    are quoted as information."""
    if options.safe_mode:
        return Instructions()
    trust, settings = startup.trust, startup.loaded.settings.instructions

    def approved(path: Path, digest: str) -> bool:
        return file_digest(options.cwd, path, digest) in trust.accepted | accepted

    return load_instructions(
        options.cwd,
        user_directory=startup.paths.config,
        other_agents=_own_elsewhere(startup) if settings.other_agents else (),
        project="trusted" if trust.trusts else "none" if trust.state == "declined" else "quoted",
        approved=approved,
        merge=settings.merge,
        imports=settings.imports,
        rules=settings.rules,
        own_names=startup.loaded.settings.approval.secret_names,
    )


def _own_elsewhere(startup: Startup) -> tuple[Path, ...]:
    """Where other agents keep their user's own instructions; nowhere if SWECLI_HOME keeps this run apart."""
    home = "" if startup.environment.get("SWECLI_HOME") else startup.environment.get("HOME", "")
    return tuple(Path(home, name) for name in _OWN_ELSEWHERE) if home else ()


def instruction_files(options: LaunchOptions, startup: Startup, loaded: Instructions) -> InstructionFiles:
    """The files of the prompt, and those to watch during the session."""
    settings, trust = startup.loaded.settings.instructions, startup.trust
    folders = instruction_folders(options.cwd)
    wanted = settings.nested and settings.merge != "none" and trust.state != "declined"
    return InstructionFiles(
        loaded,
        lambda: project_instructions(options, startup, read_trust(startup.paths.data, options.cwd).accepted),
        options.cwd,
        folders[0],
        (startup.paths.config, *folders),
        quoted=not trust.trusts,
        rules=settings.rules,
        watch=wanted and not options.safe_mode,
        off=_why_no_instructions(options, trust.state, settings.merge),
        own_names=startup.loaded.settings.approval.secret_names,
    )


def _why_no_instructions(options: LaunchOptions, trust: TrustState, merge: Merge) -> str:
    if options.safe_mode:
        return "off in safe mode"
    if trust == "declined":
        return "off until you trust this folder: /permissions trust"
    return "off by your settings (instructions.merge)" if merge == "none" else ""

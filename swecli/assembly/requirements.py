"""What a run requires before it begins: trust if the user demands it, rules that hold, the sandbox."""

from __future__ import annotations

from swecli.assembly.sandbox import sandbox_state
from swecli.assembly.startup import Startup
from swecli.core.permissions.rules import check_rules
from swecli.core.permissions.types import Rule
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError


def require_all(options: LaunchOptions, startup: Startup) -> None:
    """Refuse a run that lacks one of them. Takes a moment, if a sandbox is required.

    Raises:
        StartError: what is missing.
    """
    _require_trust(options, startup)
    require_rules(options, startup)
    _require_sandbox(options, startup)


def _require_trust(options: LaunchOptions, startup: Startup) -> None:
    """Refuse an unattended run if the user declined the folder, or requires trust for every folder."""
    state = startup.trust.state
    if startup.trust.trusts:
        return
    if options.yolo and state == "declined":
        raise StartError(
            f"You declined to trust {options.cwd}, so every change asks first. Leave out --yolo, or add "
            "--trust to trust it for this run.",
            ExitCode.UNTRUSTED,
        )
    if options.headless and startup.loaded.settings.approval.require_trust:
        raise StartError(
            f"{options.cwd} is not trusted, and approval.require_trust is set. Trust it with `swecli permissions "
            "trust`, or for this run with --trust.",
            ExitCode.UNTRUSTED,
        )


def require_rules(options: LaunchOptions, startup: Startup) -> None:
    """Refuse a run with an invalid deny or ask rule: calls that it should stop would pass.

    Raises:
        StartError: there is one; the message names each with its place.
    """
    rules = [Rule(rule.effect, rule.text, rule.scope, rule.origin) for rule in startup.loaded.rules]
    rules += [Rule("deny", text, "flag", "--disallowed-tools") for text in options.disallowed_tools]
    problems = check_rules(rule for rule in rules if rule.effect != "allow")
    if problems:
        messages = [f"{problem.rule.origin}: the {problem.rule.effect} rule {problem.message}" for problem in problems]
        raise StartError("\n".join(messages), ExitCode.CONFIG)


def _require_sandbox(options: LaunchOptions, startup: Startup) -> None:
    """Refuse to start if the user requires a full sandbox and it is off or only partial."""
    if not startup.loaded.settings.sandbox.required:
        return
    state = sandbox_state(options, startup)
    if state.level != "full":
        raise StartError(
            f"sandbox.required is set, and the sandbox is {state.text}. Nothing was started. `swecli doctor` shows "
            "details; docs/sandbox.md lists what each system needs.",
            ExitCode.SANDBOX,
        )

"""Verdicts about commands without running them: one JSON line in, one JSON line out."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast, get_args

from swecli.core.permissions.decide import decide
from swecli.core.permissions.types import Call, Decision, Effects, Policy, Rule
from swecli.core.protocol.events import Mode

COMMAND_TOOL = "run_command"


class BadCheck(ValueError):
    """Nothing can be judged; the message says why."""


PolicyOf = Callable[[Path], Policy]
"""The policy that a session started in this directory would have.

Raises:
    BadCheck: no session could start there.
"""


@dataclass(frozen=True, slots=True)
class CommandCheck:
    """A command, the directory that it would run in, and the mode; None is the mode of the settings."""

    command: str
    cwd: Path
    mode: Mode | None = None


def judge_command(check: CommandCheck, policy_of: PolicyOf) -> Decision:
    """The decision that a session would make.

    Raises:
        BadCheck: the directory can't be worked in.
    """
    policy = policy_of(check.cwd)
    if check.mode is not None:
        policy = replace(policy, mode=check.mode)
    return decide(policy, command_call(check.command, check.cwd))


def command_call(command: str, cwd: Path) -> Call:
    """The call of the shell tool for a command in a workspace."""
    return Call(COMMAND_TOOL, {"command": command}, Effects(command=command), str(cwd), (str(cwd),))


def decision_data(decision: Decision) -> dict[str, Any]:
    """A decision as plain data: ``verdict`` is allow, ask or deny, ``offer`` the rule that "always" would add."""
    return {
        "verdict": decision.outcome,
        "reason": decision.reason,
        "rule": None if decision.rule is None else rule_data(decision.rule),
        "offer": decision.offer,
        "evidence": list(decision.evidence),
    }


def rule_data(rule: Rule) -> dict[str, Any]:
    """A rule as plain data."""
    return {"effect": rule.effect, "rule": rule.text, "scope": rule.scope, "origin": rule.origin}


def judge_lines(lines: Iterable[str], policy_of: PolicyOf) -> Iterator[str]:
    """Each line ``{"command", "cwd", "mode"}`` gives one line with the verdict. ``cwd`` and ``mode`` may be left out,
    an ``id`` comes back as it is; a line that can't be judged gives ``error`` and no verdict."""
    for line in lines:
        if line.strip():
            yield json.dumps(_judged(line, policy_of))


def _judged(line: str, policy_of: PolicyOf) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    try:
        data = _object(line)
        if "id" in data:
            answer["id"] = data["id"]
        check = _check(data)
        return {**answer, "command": check.command, **decision_data(judge_command(check, policy_of))}
    except BadCheck as error:
        return {**answer, "verdict": None, "error": str(error)}


def _object(line: str) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadCheck(f"no JSON: {error}") from error
    if not isinstance(data, dict):
        raise BadCheck("no JSON object")
    return cast("dict[str, Any]", data)


def _check(data: dict[str, Any]) -> CommandCheck:
    command, cwd, mode = data.get("command"), data.get("cwd"), data.get("mode")
    if not isinstance(command, str):
        raise BadCheck("command: a text is missing")
    if cwd is not None and not isinstance(cwd, str):
        raise BadCheck("cwd: must be a text")
    if mode is not None and mode not in get_args(Mode):
        raise BadCheck(f"mode: {mode!r} is none of {', '.join(get_args(Mode))}")
    return CommandCheck(command, existing_directory(cwd or "."), mode)


def existing_directory(text: str) -> Path:
    """The resolved directory of this name.

    Raises:
        BadCheck: it is none.
    """
    try:
        path = Path(os.path.expanduser(text)).resolve()
        if path.is_dir():
            return path
    except (OSError, ValueError, RuntimeError):
        pass
    raise BadCheck(f"cwd: {text!r} is not a directory")

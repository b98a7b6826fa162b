"""Options and subcommands of other agents: equivalents are accepted, the rest gets an answer. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from swecli.lazy_pattern import lazy_pattern

SAME: Mapping[str, tuple[str, ...]] = {
    "--dangerously-skip-permissions": ("--yolo",),
    "--dangerously-bypass-approvals-and-sandbox": ("--yolo",),
    "--allow-dangerously-skip-permissions": (),
    "--full-auto": ("--permission-mode", "auto"),
    "--plan": ("--permission-mode", "plan"),
    "--allowedTools": ("--allowed-tools",),
    "--disallowedTools": ("--disallowed-tools",),
    "--allowed-tool": ("--allowed-tools",),
    "--approval-mode": ("--permission-mode",),
    "--mode": ("--permission-mode",),
    "--chat-mode": ("--permission-mode",),
    "--accept-edits": ("--permission-mode", "accept-edits"),
    "--auto-edit": ("--permission-mode", "accept-edits"),
    "--auto": ("--permission-mode", "auto"),
    "--allow-all-tools": ("--yolo",),
    "--trust-all-tools": ("--yolo",),
    "--allow-tool": ("--allowed-tools",),
    "--deny-tool": ("--disallowed-tools",),
    "--trust-tools": ("--allowed-tools",),
    "--prompt": ("--print",),
    "--message": ("--print",),
    "--msg": ("--print",),
    "--non-interactive": ("--print",),
    "--no-interactive": ("--print",),
    "--prompt-interactive": (),
    "--cd": ("--cwd",),
    "--dir": ("--cwd",),
    "--include-directories": ("--add-dir",),
    "--skip-git-repo-check": (),
    "--json": ("--output-format", "stream-json"),
    "--format": ("--output-format",),
    "--output-schema": ("--json-schema",),
    "--include-partial-messages": (),
    "--max-budget-usd": ("--max-price",),
    "--session": ("--resume",),
    "--last": ("--continue",),
    "--restore-chat-history": ("--continue",),
    "--fork-session": ("--fork",),
    "--ephemeral": ("--no-session",),
    "--no-session-persistence": ("--no-session",),
    "--openai-api-base": ("--base-url",),
    "--opus": ("--model", "opus"),
    "--sonnet": ("--model", "sonnet"),
    "--haiku": ("--model", "haiku"),
    "--variant": ("--effort",),
    "--thinking": ("--effort",),
    "--screen-reader": ("--plain",),
    "-V": ("--version",),
    "-v": ("--version",),
    "--reasoning-effort": ("--effort",),
}
"""Options, and their equivalents here."""

MODES: Mapping[str, tuple[str, ...]] = {
    "acceptEdits": ("--permission-mode", "accept-edits"),
    "auto_edit": ("--permission-mode", "accept-edits"),
    "accept_edits": ("--permission-mode", "accept-edits"),
    "bypassPermissions": ("--yolo",),
    "yolo": ("--yolo",),
    "auto-edit": ("--permission-mode", "accept-edits"),
    "ask": ("--permission-mode", "plan"),
    "architect": ("--permission-mode", "plan"),
    "code": ("--permission-mode", "default"),
    "dontAsk": ("--permission-mode", "default"),
    "manual": ("--permission-mode", "default"),
}
"""Values of ``--permission-mode``, and their equivalents here."""

ONE_SHOT = ("exec", "run", "e")
"""Subcommands of other agents that answer one message."""

_MODES = "use --permission-mode default, accept-edits, plan or auto"
_FEWER = "use --permission-mode accept-edits or auto; --yolo never asks"
_MENTION = "mention it in the message instead: @path"
_SANDBOX = "the sandbox is a setting (`swecli config get sandbox.mode`); --permission-mode auto relies on it"
_SETTINGS = "use --settings FILE, or `swecli config set KEY VALUE`"
_KEY = "keys come from the environment (OPENAI_API_KEY) or from `swecli login PROVIDER`"
_UNDO = "swecli never commits by itself; /undo reverts changes, /commit proposes a message"
_CHECKS = "name the check in your message or in AGENTS.md, or run it from a hook: [[hooks.PostToolUse]]"
_SERVERS = "add servers with swecli mcp add, [mcp.NAME] in the settings, or .mcp.json"
_THEME = "use `swecli config set ui.theme NAME`"
_FILES = "commands, skills, agents and hooks are files in folders such as .claude/skills; /skills and /agents list them"

ANSWERS: Mapping[str, str] = {
    "--session-id": "each session makes its own id, which stream-json and json report; -r ID continues it",
    "--ask-for-approval": _MODES,
    "-a": _MODES,
    "--auto-approve": _FEWER,
    "--yes": _FEWER,
    "--yes-always": _FEWER,
    "--yes-always-commands": _FEWER,
    "-y": _FEWER,
    "--architect": "--permission-mode plan plans before anything changes",
    "--sandbox": _SANDBOX,
    "-s": _SANDBOX,
    "--tools": "--allowed-tools and --disallowed-tools take rules, such as 'edit_file,run_command(git *)'",
    "--mcp-config": _SERVERS,
    "--strict-mcp-config": "swecli mcp list shows the servers; each project server needs your approval",
    "--allowed-mcp-server-names": "swecli mcp list shows the servers; each project server needs your approval",
    "--agent": "the model delegates to agents itself; name one in your message, /agents lists them",
    "--agents": "agents are Markdown files in .swecli/agents or .claude/agents; /agents lists them",
    "--extensions": _FILES,
    "--list-extensions": _FILES,
    "--plugin-dir": "`swecli plugin add DIR` adds the plugin in a folder",
    "--skill": _FILES,
    "--fallback-model": "fallback models are a setting: swecli config set model.fallback '[\"provider/name\"]'",
    "--weak-model": "use `swecli config set model.small provider/name`",
    "--editor-model": (
        "one model does everything; swecli config set model.small provider/name names one for small tasks"
    ),
    "--oss": "swecli finds running local servers: /model lists what they serve; -m ollama/NAME selects one",
    "--model-provider": "the provider is part of the model: -m PROVIDER/NAME",
    "--provider": "the provider is part of the model: -m PROVIDER/NAME",
    "--verbose": "-p with --output-format stream-json prints every event; --debug logs requests and responses",
    "-d": "--debug logs requests and responses",
    "--debug-file": "--debug logs requests and responses; swecli logs path names the file",
    "--log-file": "swecli logs path names the log of a session",
    "--quiet": "-p prints only the answer",
    "-q": "-p prints only the answer",
    "--output-last-message": "-p prints only the answer: swecli -p TEXT > FILE",
    "-o": "--output-format json or stream-json; swecli -p TEXT > FILE stores the answer",
    "--api-key": _KEY,
    "--openai-api-key": _KEY,
    "--anthropic-api-key": _KEY,
    "--setup-token": _KEY,
    "-i": "the message is the first argument: swecli TEXT; to attach an image, mention it: @picture.png",
    "--image": "mention the file in the message instead: @picture.png",
    "--file": _MENTION,
    "-f": _MENTION,
    "--files": _MENTION,
    "--read": _MENTION,
    "--all-files": "swecli finds files itself; @folder/ in the message names one",
    "--message-file": "use `swecli -p < FILE`",
    "--profile": _SETTINGS,
    "--config": _SETTINGS,
    "--setting-sources": "--safe-mode ignores the project's settings; --settings FILE adds some",
    "--bare": "--safe-mode ignores the project's settings",
    "--search": "set web_search.enabled in the settings",
    "--web-search": "set web_search.enabled in the settings",
    "--ide": "there is no IDE extension; editors with Agent Client Protocol support start `swecli acp`",
    "--acp": "use `swecli acp`",
    "--experimental-acp": "use `swecli acp`",
    "--permission-prompt-tool": "with --input-format stream-json, questions are answered on standard input",
    "--list-models": "use `swecli models`",
    "--list-sessions": "use `swecli sessions`",
    "--checkpointing": "swecli records every change: /undo, /rewind",
    "--no-git": _UNDO,
    "--auto-commits": _UNDO,
    "--no-auto-commits": _UNDO,
    "--commit": _UNDO,
    "--auto-lint": _CHECKS,
    "--lint-cmd": _CHECKS,
    "--test-cmd": _CHECKS,
    "--auto-test": _CHECKS,
    "--watch-files": "swecli notices changed files; tell it in a message what to do",
    "--tmux": "-w works in a worktree; start swecli inside tmux",
    "--init": "send /init",
    "--vim": "vim keys are a setting: `swecli config set ui.editing vim`",
    "--theme": _THEME,
    "--dark-mode": _THEME,
    "--light-mode": _THEME,
    "--no-color": "set NO_COLOR=1",
    "--no-pretty": "set NO_COLOR=1, or use --plain",
}
"""Options without an exact equivalent, and the alternative."""

WORDS: Mapping[str, str] = {
    "upgrade": "Use `swecli update`; it names the command for this installation.",
    "auth": "Use `swecli login PROVIDER` or `swecli logout`.",
    "setup-token": "Use `swecli login PROVIDER`.",
    "providers": "Use `swecli doctor` or `swecli models`.",
    "review": "Use `swecli -p /review`.",
    "init": "Use /init in a session; it asks before it writes.",
    "fork": "Use `swecli -c --fork`.",
    "features": "Use `swecli config`.",
    "stats": "Use `swecli sessions`, or /usage in a session.",
    "usage": "Use `swecli sessions`, or /usage in a session.",
    "export": "Use `swecli sessions export`.",
    "import": "Use `swecli sessions import`.",
    "apply": "Files change where you started it; /diff shows the changes.",
    "serve": "Use `swecli mcp serve` for other agents, `swecli acp` for an editor.",
    "app-server": "Use `swecli acp`.",
    "mcp-server": "Use `swecli mcp serve`.",
    "attach": "Use `swecli -c`, or `swecli -r` to pick a session.",
    "plugins": "Use `swecli plugin list`.",
    "extensions": f"Use `swecli plugin`; {_FILES}.",
    "skills": "Use /skills in a session, or `swecli -p /skills`.",
    "agents": "Use /agents in a session, or `swecli -p /agents`.",
    "hooks": "Use /hooks in a session, or `swecli -p /hooks`.",
    "memory": "Use /memory in a session, or `swecli -p /memory`.",
    "playbook": "Use /playbook in a session, or `swecli -p /playbook`.",
}
"""Subcommands of other agents or other versions, and a sentence about the alternative here. None is a message if it is
the only word."""

WITH_VALUE = frozenset(
    [
        "-p",
        "--print",
        "-m",
        "--model",
        "-C",
        "--cwd",
        "-r",
        "--resume",
        "-w",
        "--worktree",
        "--add-dir",
        "--effort",
        "--base-url",
        "--settings",
        "--from",
        "--output-format",
        "--input-format",
        "--json-schema",
        "--max-turns",
        "--max-tokens",
        "--max-price",
        "--permission-mode",
        "--allowed-tools",
        "--disallowed-tools",
        "--system-prompt",
        "--append-system-prompt",
        "--system-prompt-file",
        "--append-system-prompt-file",
    ]
)
"""Options that may take the next argument."""


def from_habit(arguments: Sequence[str]) -> list[str]:
    """The arguments with other agents' names replaced by ours. Texts, and everything after ``--``, stay unchanged."""
    rest = list(arguments)
    out: list[str] = []
    if (word := _first_word(rest)) is not None and rest[word] in ONE_SHOT:
        out.append("--print=")
        before, rest = rest[:word], [argument for argument in rest[word + 1 :] if argument != "-"]
        rest = [*before, *_resumed(rest)]
    elif rest:
        rest = _resumed(rest)
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    # Every event is printed, as --verbose of another agent requires and asks for.
    streams = any(word in ("stream-json", "--output-format=stream-json", "--json") for word in options)
    while rest:
        argument = rest.pop(0)
        if argument == "--":
            return [*out, argument, *rest]
        name, equals, value = argument.partition("=")
        known = () if argument == "--verbose" and streams else SAME.get(name)
        if known is None and name != "--permission-mode":
            out.append(argument)
            if argument in WITH_VALUE and rest and not rest[0].startswith("-"):
                out.append(rest.pop(0))
            continue
        ours = list((name,) if known is None else known)
        if ours == ["--permission-mode"]:
            given = value if equals else rest.pop(0) if rest else ""
            out += MODES.get(given, (ours[0], given) if given else ours)
        else:
            out += [f"{ours[0]}={value}"] if equals and len(ours) == 1 and ours[0] != "--yolo" else ours
            if name in _SEVERAL and rest and not equals:
                out.append(rest.pop(0))
            while name in _SEVERAL and rest and _RULE.fullmatch(rest[0]):
                out += [ours[0], rest.pop(0)]
    return out


_SEVERAL = ("--allowedTools", "--disallowedTools")
"""Options that take several arguments, each a rule."""
_RULE = lazy_pattern(r"[A-Z][A-Za-z]*(?:\(.*\))?|mcp__\S+", re.DOTALL)


def _first_word(arguments: Sequence[str]) -> int | None:
    """Index of the first argument that is no option or the value of one; None without one before ``--``."""
    at = 0
    while at < len(arguments) and arguments[at] != "--":
        if not arguments[at].startswith("-"):
            return at
        ours = SAME.get(arguments[at], (arguments[at],))
        at += 2 if len(ours) == 1 and ours[0] in WITH_VALUE else 1
    return None


def _resumed(arguments: list[str]) -> list[str]:
    """The arguments with a leading ``resume`` replaced."""
    if arguments[:1] != ["resume"]:
        return arguments
    return ["--continue", *arguments[2:]] if arguments[1:2] == ["--last"] else ["--resume", *arguments[1:]]


def answer_to(arguments: Sequence[str]) -> str:
    """Alternative to the first option of another agent; empty without one."""
    for argument in arguments:
        if argument == "--":
            break
        name = argument.partition("=")[0]
        if name in ANSWERS:
            return f"swecli has no {name}: {ANSWERS[name]}"
    return ""

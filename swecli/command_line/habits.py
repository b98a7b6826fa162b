"""Options and subcommands of other agents: what means the same here is taken so, the rest gets an answer. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    "--prompt": ("--print",),
    "--message": ("--print",),
    "--cd": ("--cwd",),
    "--dir": ("--cwd",),
    "--include-directories": ("--add-dir",),
    "--json": ("--output-format", "stream-json"),
    "--max-budget-usd": ("--max-price",),
    "--session": ("--resume",),
    "--fork-session": ("--fork",),
    "--session-id": ("--resume",),
    "--reasoning-effort": ("--effort",),
}
"""Options, and what they are here."""

MODES: Mapping[str, tuple[str, ...]] = {
    "acceptEdits": ("--permission-mode", "accept-edits"),
    "auto_edit": ("--permission-mode", "accept-edits"),
    "accept_edits": ("--permission-mode", "accept-edits"),
    "bypassPermissions": ("--yolo",),
    "yolo": ("--yolo",),
    "dontAsk": ("--permission-mode", "default"),
    "manual": ("--permission-mode", "default"),
}
"""Values of ``--permission-mode``, and what they are here."""

ONE_SHOT = ("exec", "run", "e")
"""Subcommands of others that answer one message."""

ANSWERS: Mapping[str, str] = {
    "--mcp-config": "servers come from swecli mcp add, [mcp.NAME] in the settings and .mcp.json",
    "--strict-mcp-config": "swecli mcp list shows the servers; each of a project needs your approval",
    "--agent": "the model gives work to agents itself; name one in your message, /agents lists them",
    "--agents": "agents are Markdown files in .swecli/agents or .claude/agents; /agents lists them",
    "--fallback-model": "fallback models are a setting: swecli config set model.fallback '[\"provider/name\"]'",
    "--verbose": "-p with --output-format stream-json prints every event; --debug logs requests and responses",
    "--sandbox": "the sandbox is a setting: swecli config get sandbox.mode; --permission-mode auto relies on it",
    "--ask-for-approval": "use --permission-mode default, accept-edits, plan or auto",
    "--auto-approve": "use --permission-mode accept-edits or auto; --yolo asks nothing",
    "--yes": "use --permission-mode accept-edits or auto; --yolo asks nothing",
    "--yes-always": "use --permission-mode accept-edits or auto; --yolo asks nothing",
    "--api-key": "keys come from the environment (OPENAI_API_KEY) or from: swecli login PROVIDER",
    "--image": "mention the file in the message instead: @picture.png",
    "--file": "mention the file in the message instead: @file",
    "--read": "mention the file in the message instead: @file",
    "--profile": "use --settings FILE",
    "--config": "use --settings FILE, or: swecli config set KEY VALUE",
    "--search": "the model fetches pages with web_fetch, if tools.web_fetch is set",
    "--ide": "there is no IDE extension",
    "--bare": "--safe-mode ignores the project's settings",
    "--permission-prompt-tool": "with --input-format stream-json, questions are answered on standard input",
    "--list-models": "/model list shows them, swecli doctor --online asks each provider",
    "--list-sessions": "use: swecli sessions",
    "--vim": "vim keys are a setting: swecli config set ui.editing vim",
    "--theme": "use: swecli config set ui.theme NAME",
}
"""Options that have no counterpart with the same effect, and what to do instead."""

_WITH_VALUE = frozenset(
    ("-m", "--model", "-C", "--cwd", "--add-dir", "--effort", "--base-url", "--settings", "--system-prompt")
) | {"--append-system-prompt", "--system-prompt-file", "--append-system-prompt-file", "--print", "-p"}


def from_habit(arguments: Sequence[str]) -> list[str]:
    """The arguments with what other agents call otherwise in our words. What follows ``--``, and texts, stay as they
    are."""
    rest = list(arguments)
    out: list[str] = []
    if len(rest) > 1 and rest[0] in ONE_SHOT:
        out.append("--print=")
        rest = [argument for argument in rest[1:] if argument != "-"]
    elif rest and rest[0] == "resume":
        rest = ["--continue", *rest[2:]] if rest[1:2] == ["--last"] else ["--resume", *rest[1:]]
    while rest:
        argument = rest.pop(0)
        if argument == "--":
            return [*out, argument, *rest]
        name, equals, value = argument.partition("=")
        known = SAME.get(name)
        if known is None and name != "--permission-mode":
            out.append(argument)
            if argument in _WITH_VALUE and rest and not rest[0].startswith("-"):
                out.append(rest.pop(0))
            continue
        ours = list((name,) if known is None else known)
        if ours == ["--permission-mode"]:
            given = value if equals else rest.pop(0) if rest else ""
            out += MODES.get(given, (ours[0], given) if given else ours)
        else:
            out += [f"{ours[0]}={value}"] if equals and len(ours) == 1 and ours[0] != "--yolo" else ours
    return out


def answer_to(arguments: Sequence[str]) -> str:
    """What to do instead of the first option of another agent; empty where there is none."""
    for argument in arguments:
        if argument == "--":
            break
        name = argument.partition("=")[0]
        if name in ANSWERS:
            return f"{name} is not an option here: {ANSWERS[name]}"
    return ""

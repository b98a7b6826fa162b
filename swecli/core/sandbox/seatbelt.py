"""Translation of a plan to a profile for the macOS sandbox (``sandbox-exec``).

Written from the documentation of the profile language and never run on a Mac, so its verdict is never full.
"""

from __future__ import annotations

from collections.abc import Iterable

from swecli.core.sandbox.plan import Plan

PROGRAM = "/usr/bin/sandbox-exec"
UNCOVERED = ("programs started through other services", "anything else (never tested on macOS)")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper")


def profile(plan: Plan) -> str:
    """The profile's text. Later rules override earlier ones, so parents come before their contents."""
    lines = ["(version 1)", "(allow default)", "(deny file-write*)"]
    lines += _rule("allow file-write*", "literal", _DEVICES)
    lines += _rule("allow file-write*", "subpath", (plan.private,))
    for mount in plan.mounts:
        how = "subpath" if mount.directory else "literal"
        match mount.access:
            case "write":
                lines += _rule("allow file-write*", how, (mount.path,))
            case "read":
                lines += _rule("deny file-write*", how, (mount.path,))
                lines += _rule("allow file-read*", how, (mount.path,))
            case "hidden" | "denied":
                lines += _rule("deny file-read* file-write*", how, (mount.path,))
            case "private":
                continue
    lines += _rule("deny file-write*", "subpath", (placeholder.path for placeholder in plan.placeholders))
    if not plan.network:
        lines.append("(deny network*)")
    lines += ["(deny appleevent-send)", "(deny signal)", "(allow signal (target same-sandbox))", "(deny job-creation)"]
    return "\n".join(lines) + "\n"


def seatbelt_argv(plan: Plan) -> list[str]:
    return [PROGRAM, "-p", profile(plan)]


def _rule(words: str, how: str, paths: Iterable[str]) -> list[str]:
    """One rule for each path, quoted for the profile language."""
    quoted = (path.replace("\\", "\\\\").replace('"', '\\"') for path in paths)
    return [f'({words} ({how} "{path}"))' for path in quoted]

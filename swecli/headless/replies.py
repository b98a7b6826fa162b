"""Answers to questions where no user is present."""

from __future__ import annotations

from swecli.core.engine.decisions import ASKED_BY_HOOK
from swecli.core.permissions.decide import NO_RULE_NOW, OUTSIDE, UNREAD
from swecli.core.protocol.commands import Answer, ReplyPermission
from swecli.core.protocol.events import PermissionRequested


def refusal(request: PermissionRequested) -> ReplyPermission:
    """Rejection with a note to the model: it can continue with work that needs no approval."""
    if UNREAD in request.reason:
        note = "No user is present in this run. Read the file first; then replacing it needs no approval."
        return ReplyPermission(request.request, "reject", note, by="headless")
    if request.rule_note == ASKED_BY_HOOK:
        note = f"No user is present in this run, and this call needs one: {request.reason} Continue without it."
        return ReplyPermission(request.request, "reject", note, by="headless")
    if request.rule_note == NO_RULE_NOW:
        note = (
            f"No user is present in this run. {request.reason} No rule of this run can allow it. Do not retry it; "
            "continue without it and report what you left undone."
        )
        return ReplyPermission(request.request, "reject", note, by="headless")
    foreign = OUTSIDE in request.reason and request.tool != "run_command"
    outside = " The path is outside the project, whose files have relative paths." if foreign else ""
    allow = f" (for example --allowed-tools {request.tool!r}, or another --permission-mode)"
    return ReplyPermission(
        request.request,
        "reject",
        f"No user is present in this run; {request.tool} needs an approval given at the start{allow}.{outside} Do not "
        "retry it; continue without it and report what you left undone.",
        by="headless",
    )


def consent(request: PermissionRequested) -> ReplyPermission:
    return ReplyPermission(request.request, "once", by="headless")


def dismissal(request: str) -> Answer:
    return Answer(request, (), by="headless")

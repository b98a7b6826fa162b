"""What a front-end without a person answers when the session asks for one."""

from __future__ import annotations

from swecli.core.protocol.commands import Answer, ReplyPermission
from swecli.core.protocol.events import PermissionRequested


def refusal(request: PermissionRequested) -> ReplyPermission:
    """No, with a word to the model: it can go on with what needs no approval."""
    allow = f" (for example --allowed-tools {request.tool!r}, or another --permission-mode)"
    return ReplyPermission(
        request.request,
        "reject",
        f"Nobody can be asked in this run; {request.tool} needs an approval that has to be given at the start{allow}. "
        "Do not try it again; go on without it and say what was left undone.",
        by="headless",
    )


def consent(request: PermissionRequested) -> ReplyPermission:
    """Yes, this once."""
    return ReplyPermission(request.request, "once", by="headless")


def dismissal(request: str) -> Answer:
    """No answer to the questions."""
    return Answer(request, (), by="headless")

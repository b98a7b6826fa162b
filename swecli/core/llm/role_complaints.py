"""Complaints of a server about the roles of messages, and the dialect that satisfies it."""

from __future__ import annotations

import re

from msgspec.structs import replace

from swecli.core.llm.dialects import Dialect
from swecli.core.llm.errors import WireError
from swecli.lazy_pattern import lazy_pattern

_NO_SYSTEM = lazy_pattern(
    r"(?:system|developer) (?:role|message|prompt|instruction)s?[^\n]{0,20}not (?:supported|enabled|allowed)"
    r"|(?:does not|doesn't) support (?:the )?['\"`]?(?:system|developer)['\"`]? (?:role|message|prompt|instruction)"
    r"|role['\"`]? does not support ['\"`](?:system|developer)"
    r"|(?:invalid|unexpected|unknown) role:? ['\"`]?(?:system|developer)",
    re.IGNORECASE,
)
_ONLY = lazy_pattern(r"only (?P<roles>(?:user|model|assistant|system|tool|developer|and|[, ])+)", re.IGNORECASE)
"""Names the roles that the template knows."""
_NOT_ALTERNATING = lazy_pattern(
    r"roles? must alternate|alternate between user and assistant|alternating user(?:/| and )assistant"
    r"|(?:consecutive|2 or more) (?:user|assistant) messages",
    re.IGNORECASE,
)
_USER_AFTER_TOOL = lazy_pattern(r"unexpected role ['\"`]?user['\"`]? after (?:role )?['\"`]?tool", re.IGNORECASE)


def suitable_dialect(error: WireError, dialect: Dialect) -> Dialect | None:
    """The dialect that this server accepts; None if the error is not about roles, or nothing is left to change."""
    if error.kind not in ("bad_request", "server", "unknown"):
        return None
    only = _ONLY.search(error.words)
    roles = only["roles"].lower() if only is not None else ""
    if "user" in roles and ("assistant" in roles or "model" in roles):
        system = "system" if "system" in roles else "user"
        changed = replace(dialect, system_role=system, tool_calls=dialect.tool_calls if "tool" in roles else "text")
    elif _NO_SYSTEM.search(error.words):
        changed = replace(dialect, system_role="user")
    elif _USER_AFTER_TOOL.search(error.words):
        changed = replace(dialect, assistant_after_tool=True)
    elif _NOT_ALTERNATING.search(error.words):
        # Templates of models without tools have no place for results either.
        tried = dialect.merge_roles and dialect.assistant_after_tool
        calls = "text" if tried else dialect.tool_calls
        changed = replace(dialect, merge_roles=True, assistant_after_tool=True, tool_calls=calls)
    else:
        return None
    return changed if changed != dialect else None

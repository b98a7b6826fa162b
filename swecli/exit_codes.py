"""Meanings of the process exit status."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit status of every form of the program."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    AUTH = 41
    BAD_INPUT = 42
    SANDBOX = 44
    """A full sandbox is required and there is none."""
    CONFIG = 52
    TURN_LIMIT = 53
    UNTRUSTED = 55
    """The workspace is not trusted, but the request requires it."""
    BUDGET = 60
    """A cap or a budget of tokens or money was reached."""
    CONTEXT_BLOCKED = 61
    APPROVAL_NEEDED = 62
    """Something was not done because the user could not be asked."""
    REFUSED = 63
    """The model refused to answer, or a content filter stopped the answer or refused the request."""
    ANSWER_CUT = 64
    """The last answer was cut at the output limit or the end of the window."""
    SCHEMA_MISMATCH = 65
    """The answer does not match the requested schema."""
    RETRYABLE = 75
    """Rate limit, overload or network: the same run may work later."""
    HANGUP = 129
    """The terminal was closed."""
    INTERRUPTED = 130
    TERMINATED = 143

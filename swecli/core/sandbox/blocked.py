"""Whether a failed command failed because of the sandbox, judged by what it wrote. Only a hint: it decides what is
said and asked, never what is allowed."""

from __future__ import annotations

import posixpath
import re

from swecli.core.sandbox.values import Layer, Plan

_TAIL = 20_000
"""Characters of output that are looked at."""
_READ_ONLY = re.compile(r"read-only file system|\bEROFS\b|errno 30\b", re.IGNORECASE)
_NETWORK = re.compile(
    r"network is unreachable|could not resolve host|temporary failure in name resolution|name or service not known|"
    r"\b(EAI_AGAIN|ENETUNREACH|ENOTFOUND|EAI_NONAME)\b|failed to resolve|name resolution|"
    r"no address associated with hostname|dial (tcp|udp)|unable to resolve|could not connect to server|"
    r"failed to lookup address|getaddrinfo|nodename nor servname",
    re.IGNORECASE,
)
_NOT_PERMITTED = re.compile(r"operation not permitted|\bEPERM\b|errno 1\]", re.IGNORECASE)
_DENIED = re.compile(r"permission denied|\bEACCES\b|errno 13\b|invalid cross-device link|\bEXDEV\b", re.IGNORECASE)
_BUSY = re.compile(r"device or resource busy|\bEBUSY\b|is a directory|\bEISDIR\b", re.IGNORECASE)


def blocked(output: str, status: int | None, plan: Plan, layer: Layer) -> str:
    """What was stopped, as a clause such as "it writes outside the workspace"; empty when the command ended well or
    failed in a way that the sandbox does not explain."""
    if not status:
        return ""
    text = output[-_TAIL:]
    if _READ_ONLY.search(text):
        return "it writes where only reading is allowed"
    if not plan.network and _NETWORK.search(text):
        return "it needs the network"
    lines = text.splitlines()
    names = {posixpath.basename(path) for path in plan.paths("read", "hidden", "denied")}
    names |= {posixpath.basename(one.path) for one in plan.placeholders}
    for line in lines:
        if (_DENIED.search(line) or _BUSY.search(line)) and any(name in line for name in names):
            return "it touches a protected or secret file"
    if _NOT_PERMITTED.search(text):
        return "it does something that is not permitted there"
    if layer != "bwrap" and _DENIED.search(text):
        return "it writes or connects where that is not allowed"
    return ""

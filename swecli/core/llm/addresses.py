"""Normalisation of base URLs, with or without version or endpoint. Pure."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit, urlunsplit

_ENDPOINTS = ("/chat/completions", "/responses", "/messages", "/api/chat")
_DEFAULT_PORT_OLLAMA = 11434


def normalise(url: str, protocol: str) -> str:
    """The base for a protocol's paths, without a trailing slash.

    ``http://host:8000`` and ``http://host:8000/v1`` are equivalent for every protocol; a whole endpoint is cut back to
    its base, and ``/v1/v1`` to ``/v1``.

    Raises:
        ValueError: not a server address; the message says why.
    """
    text = url.strip()
    if "://" not in text:
        text = f"http://{text}" if is_local(f"http://{text}") or protocol == "ollama-chat" else f"https://{text}"
    parts = urlsplit(text)
    shown = without_password(text) if "@" in url else url
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{shown!r} is not an http or https address")
    try:
        _ = parts.port  # reading it validates it
    except ValueError:
        raise ValueError(f"{shown!r} has an invalid port") from None
    path = parts.path.rstrip("/")
    for endpoint in _ENDPOINTS:
        path = path.removesuffix(endpoint)
    while path.endswith("/v1/v1"):
        path = path.removesuffix("/v1")
    location = parts.netloc
    if protocol == "ollama-chat":
        path = path.removesuffix("/v1").removesuffix("/api")
        location = _ollama_location(parts.hostname, parts.port, parts.scheme)
    elif protocol == "anthropic-messages":
        path = path.removesuffix("/v1")
    elif not path:
        path = "/v1beta" if protocol == "gemini-generate" else "/v1"
    return urlunsplit((parts.scheme, location, path, "", ""))


def host_of(url: str) -> str:
    return urlsplit(url).hostname or ""


def origin_of(url: str) -> str:
    """Scheme, host and port, the scope of a key, without any other part of the URL."""
    parts = urlsplit(url)
    return f"{parts.scheme.lower()}://{parts.netloc.rpartition('@')[2].lower()}"


def without_password(url: str) -> str:
    """The URL without user name and password, as messages show it."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, parts.query, parts.fragment))


def is_local(url: str) -> bool:
    """Whether the server is on this machine or in a private network, where a key is often unnecessary."""
    name = urlsplit(url).hostname or ""
    if name == "localhost" or name.endswith((".localhost", ".local", ".internal", ".lan")) or "." not in name:
        return True
    try:
        return ipaddress.ip_address(name).is_private
    except ValueError:
        return False


def is_loopback(url: str) -> bool:
    name = urlsplit(url).hostname or ""
    try:
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _ollama_location(host: str, port: int | None, scheme: str) -> str:
    """Ollama's address; ``0.0.0.0`` is for listening and can't be called."""
    name = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    bracketed = f"[{name}]" if ":" in name else name
    if port is None:
        return bracketed if scheme == "https" else f"{bracketed}:{_DEFAULT_PORT_OLLAMA}"
    return f"{bracketed}:{port}"

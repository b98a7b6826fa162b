"""The providers' own web search: the tool that requests offer, and what their answers say of each search."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from swecli.core.llm.errors import WireError
from swecli.core.llm.json_values import JsonObject, as_list, as_object, as_text
from swecli.core.llm.protocols.base import Target
from swecli.core.llm.types import WEB_SEARCH, ModelRequest, WebSearch, WebSource
from swecli.lazy_pattern import lazy_pattern

ANTHROPIC_TYPE: Final = "web_search_20250305"
"""The newest type whose results come directly; later ones filter them with code on the server, which needs Anthropic's
code execution."""
REFUSED: Final = "The server does not offer its web search; swecli no longer asks for it: {}"
MOST_SOURCES: Final = 20
_REFUSES = lazy_pattern(r"web[_ ]?search|google_?search|search_context|includeServerSideToolInvocations", re.IGNORECASE)


def obstacle(wish: WebSearch, target: Target, *, with_tools: bool) -> str:
    """Why this model can't search the web as wished, as a clause; empty if it can. A list of domains that a provider
    would ignore is an obstacle."""
    if not target.capabilities.web_search:
        return "this model has no web search of its own"
    protocol = target.origin.protocol
    if with_tools and not target.dialect.search_with_tools:
        return "this model can't search the web beside other tools"
    if protocol == "openai-responses" and wish.blocked_domains:
        return "OpenAI's web search has no blocked_domains"
    if protocol == "gemini-generate" and (wish.allowed_domains or wish.blocked_domains):
        return "Google's web search has no allowed_domains or blocked_domains"
    return ""


def possible_search(request: ModelRequest, target: Target) -> WebSearch | None:
    """The wish for web search, if this model can fulfil it."""
    wish = request.web_search
    return wish if wish is not None and not obstacle(wish, target, with_tools=bool(request.tools)) else None


def refuses_search(error: WireError) -> bool:
    """Whether a server rejects its web search, which an organisation or region may not have."""
    if error.kind not in ("bad_request", "not_found", "server", "unknown", "auth"):
        return False
    return _REFUSES.search(f"{error.parameter} {error.words}") is not None


def anthropic_tool(wish: WebSearch) -> JsonObject:
    """Always the same for the same wish: tools belong to the prefix that thoughts are signed with."""
    tool: JsonObject = {"type": ANTHROPIC_TYPE, "name": WEB_SEARCH, "max_uses": wish.max_uses}
    if wish.allowed_domains:
        tool["allowed_domains"] = list(wish.allowed_domains)
    elif wish.blocked_domains:
        tool["blocked_domains"] = list(wish.blocked_domains)
    return tool


def openai_tool(wish: WebSearch) -> JsonObject:
    tool: JsonObject = {"type": WEB_SEARCH}
    return {**tool, "filters": {"allowed_domains": list(wish.allowed_domains)}} if wish.allowed_domains else tool


def sources_of(items: Iterable[object], address: str = "url") -> tuple[WebSource, ...]:
    """The pages among some objects, each once; ``address`` is the key of the URL."""
    sources: dict[str, WebSource] = {}
    for item in map(as_object, items):
        if url := as_text(item.get(address)):
            sources.setdefault(url, WebSource(url, as_text(item.get("title"))))
    return tuple(sources.values())[:MOST_SOURCES]


def anthropic_result(content: object) -> tuple[tuple[WebSource, ...], str]:
    """Sources of a ``web_search_tool_result``, and the problem in their place."""
    problem = as_text(as_object(content).get("error_code"))
    return sources_of(as_list(content)), problem.replace("_", " ")


def openai_action(item: JsonObject) -> tuple[str, tuple[WebSource, ...]]:
    """The target of a ``web_search_call`` (a query, or a page that is opened), and its sources."""
    action = as_object(item.get("action"))
    queries = [as_text(query) for query in as_list(action.get("queries"))] or [as_text(action.get("query"))]
    match as_text(action.get("type")):
        case "open_page":
            return as_text(action.get("url")), ()
        case "find_in_page":
            return f"{as_text(action.get('pattern'))} in {as_text(action.get('url'))}", ()
        case _:
            return " · ".join(filter(None, queries)), sources_of(as_list(action.get("sources")))


def is_billed(item: JsonObject) -> bool:
    """Whether a ``web_search_call`` is a search, and not only a look at a page."""
    return as_text(as_object(item.get("action")).get("type")) in ("", "search")

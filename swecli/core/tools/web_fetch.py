"""Fetching a web page as text."""

from __future__ import annotations

import asyncio
import os
import re
from typing import Annotated

from msgspec import Meta

from swecli.core.permissions.types import Effects
from swecli.core.protocol.blocks import TextBlock
from swecli.core.tools.base import Params, Preview, Tool, ToolContext, ToolError, ToolOutcome, readable_size
from swecli.core.tools.outside_text import DATA, framed, seen_text
from swecli.core.web.fetch import FetchError, Limits, Page, fetch, host_of, parsed
from swecli.figures import cut
from swecli.lazy_pattern import lazy_pattern

_TEXT = lazy_pattern(
    r"text/|application/(json|xml|xhtml\+xml|javascript|toml|yaml|x-yaml|[\w.-]+\+(json|xml))", re.IGNORECASE
)
_CHARSET = lazy_pattern(rb"""charset=["']?\s*([\w.:-]+)""", re.IGNORECASE)
_SHOWN = 4_000


class WebFetchParams(Params):
    url: Annotated[str, Meta(min_length=1)]


class WebFetch(Tool[WebFetchParams]):
    """Returns the text of a page, marked as untrusted. ``limits`` apply to every page."""

    name = "web_fetch"
    verb = "Fetch"
    params = WebFetchParams
    result_kind = "output"

    def __init__(self, limits: Limits = Limits()) -> None:  # noqa: B008 - frozen
        self._limits = limits

    def effects(self, params: WebFetchParams, ctx: ToolContext) -> Effects:
        try:
            return Effects(network=host_of(parsed(params.url)))
        except FetchError as error:
            raise ToolError(f"{error} Nothing was fetched.") from error

    def title(self, params: WebFetchParams, ctx: ToolContext) -> str:
        return params.url

    async def preview(self, params: WebFetchParams, ctx: ToolContext) -> Preview:
        return Preview((TextBlock(f"GET {params.url}"),), params.url)

    async def run(self, params: WebFetchParams, ctx: ToolContext) -> ToolOutcome:
        try:
            page = await fetch(params.url, self._limits, os.environ)
        except FetchError as error:
            raise ToolError(str(error)) from error
        if page.moved:
            text = f"{params.url} redirects to {page.moved}\nFetch that address if it is what you need."
            host = host_of(parsed(page.url))
            return ToolOutcome(text, (TextBlock(text),), "redirects elsewhere", untrusted=host)
        if page.body and page.content_type and not _TEXT.match(page.content_type):
            raise ToolError(f"{page.url} is {page.content_type}, not text. It was discarded.")
        text = seen_text(await asyncio.to_thread(_text, page))
        failed = page.status >= 400
        missing = f", cut at {readable_size(len(page.body))}" if page.cut else ""
        state = f"{page.status}, {readable_size(len(page.body))}{missing}"
        told = f"Status {state}. {DATA}\n{framed(text or '(no text)', page.url)}"
        block = TextBlock(cut(text, _SHOWN))
        return ToolOutcome(told, (block,), state, is_error=failed, untrusted=host_of(parsed(page.url)))


def _text(page: Page) -> str:
    kind = page.content_type.lower()
    match = _CHARSET.search(kind.encode()) or (_CHARSET.search(page.body[:2_000]) if "html" in kind else None)
    charset = match[1].decode("ascii", "replace") if match else "utf-8"
    try:
        text = page.body.decode(charset, "replace")
    except (LookupError, UnicodeError):  # unknown, or a codec that is no charset ("undefined")
        text = page.body.decode("utf-8", "replace")
    looks_like = "html" in kind or (not kind and text.lstrip()[:15].lower().startswith(("<!doctype", "<html")))
    if not looks_like:
        return text
    from swecli.core.web.page_text import page_text  # its tables are not needed before there is a page

    return page_text(text, page.url)

"""One small JSON document from a server, within a moment and a bound, or the reason why not."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from swecli.core.llm.json_values import compact, parse_json
from swecli.core.llm.transport import HttpResponse, Timeouts, Transport
from swecli.core.llm.types import ProviderError

SECONDS = 2.0
"""For a whole answer."""
MAX_BYTES = 2_000_000


@dataclass(frozen=True, slots=True)
class Fetched:
    """``value`` is the decoded document where ``problem`` is empty. ``status`` is 0 where no answer came."""

    value: object = None
    problem: str = ""
    status: int = 0


class Fetcher:
    """Asks one server. ``headers`` may carry a key: they are sent to ``base_url`` and nowhere else, as redirects
    are not followed."""

    def __init__(self, base_url: str, headers: Mapping[str, str] | None = None, seconds: float = SECONDS) -> None:
        self._base_url = base_url.rstrip("/")
        self._seconds = seconds
        self._headers = {**(headers or {}), "accept": "application/json", "accept-encoding": "identity"}
        self._headers["user-agent"] = "swecli"
        self._transport = Transport(self._base_url, Timeouts(connect=seconds, write=seconds))

    async def get(self, path: str) -> Fetched:
        """The document at ``path``, which starts with a slash and comes after the base URL."""
        return await self._fetch(path, None)

    async def post(self, path: str, body: object) -> Fetched:
        """The document that ``path`` answers with to the JSON value ``body``."""
        return await self._fetch(path, compact(body).encode("utf-8", "replace"))

    async def close(self) -> None:
        """Release the connection."""
        await self._transport.close()

    async def _fetch(self, path: str, body: bytes | None) -> Fetched:
        response: HttpResponse | None = None
        url = self._base_url + path
        try:
            async with asyncio.timeout(self._seconds):
                if body is None:
                    response = await self._transport.get(url, self._headers)
                else:
                    headers = {**self._headers, "content-type": "application/json"}
                    response = await self._transport.post(url, headers, body)
                if response.status != 200:
                    return Fetched(None, f"{path}: status {response.status}", response.status)
                return await self._read(path, response)
        except TimeoutError:
            return Fetched(None, f"{path}: no answer within {self._seconds:g} s")
        except ProviderError as error:
            return Fetched(None, error.message)
        finally:
            if response is not None:
                await response.close()

    async def _read(self, path: str, response: HttpResponse) -> Fetched:
        data = bytearray()
        while (chunk := await response.read()) is not None:
            data += chunk
            if len(data) > MAX_BYTES:
                return Fetched(None, f"{path}: more than {MAX_BYTES // 1_000_000} MB", response.status)
        try:
            return Fetched(parse_json(data.decode("utf-8-sig")), "", response.status)
        except ValueError:
            return Fetched(None, f"{path}: no JSON", response.status)

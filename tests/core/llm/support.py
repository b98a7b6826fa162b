"""Errors of servers, as the client reads them."""

from __future__ import annotations

from collections.abc import Mapping

from swecli.core.llm.addresses import host_of
from swecli.core.llm.errors import read_body, to_provider_error
from swecli.core.llm.remedies import ErrorContext
from swecli.core.llm.types import ProviderError


def classify(
    status: int, headers: Mapping[str, str], body: bytes, context: ErrorContext | None = None
) -> ProviderError:
    """The error that a response with an error status means. ``headers`` may have names in any case."""
    lowered = {name.lower(): value for name, value in headers.items()}
    context = context or ErrorContext()
    return to_provider_error(read_body(status, lowered, body, host=host_of(context.base_url)), context)

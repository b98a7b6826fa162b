"""The protocols by name. Each is imported when it is first asked for."""

from __future__ import annotations

from swecli.core.llm.errors import ErrorContext
from swecli.core.llm.protocols.base import BuildRequest, Decoder
from swecli.core.llm.text import ThinkTags
from swecli.core.protocol.messages import Origin

PROTOCOLS = ("openai-chat", "anthropic-messages", "openai-responses", "gemini-generate", "ollama-chat")


def decoder_for(
    protocol: str, origin: Origin, think_tags: ThinkTags = "keep", context: ErrorContext | None = None
) -> Decoder:
    """A fresh decoder.

    Raises:
        ValueError: there is no such protocol.
    """
    if protocol == "openai-chat":
        from swecli.core.llm.protocols.openai_chat import ChatDecoder as Chosen
    elif protocol == "anthropic-messages":
        from swecli.core.llm.protocols.anthropic import AnthropicDecoder as Chosen
    elif protocol == "openai-responses":
        from swecli.core.llm.protocols.openai_responses import ResponsesDecoder as Chosen
    elif protocol == "gemini-generate":
        from swecli.core.llm.protocols.gemini import GeminiDecoder as Chosen
    elif protocol == "ollama-chat":
        from swecli.core.llm.protocols.ollama import OllamaDecoder as Chosen
    else:
        raise ValueError(_unknown(protocol))
    return Chosen(origin, think_tags=think_tags, context=context)


def request_builder(protocol: str) -> BuildRequest:
    """The function that builds requests of a protocol.

    Raises:
        ValueError: there is no such protocol.
    """
    if protocol == "openai-chat":
        from swecli.core.llm.protocols.openai_chat import build_request
    elif protocol == "anthropic-messages":
        from swecli.core.llm.protocols.anthropic import build_request
    elif protocol == "openai-responses":
        from swecli.core.llm.protocols.openai_responses import build_request
    elif protocol == "gemini-generate":
        from swecli.core.llm.protocols.gemini import build_request
    elif protocol == "ollama-chat":
        from swecli.core.llm.protocols.ollama import build_request
    else:
        raise ValueError(_unknown(protocol))
    return build_request


def _unknown(protocol: str) -> str:
    return f"unknown protocol {protocol!r}: known are {', '.join(PROTOCOLS)}"

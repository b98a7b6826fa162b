"""The protocols by name, each imported on first use."""

from __future__ import annotations

from swecli.core.llm.protocols.base import BuildRequest, Decoder
from swecli.core.llm.remedies import ErrorContext
from swecli.core.llm.text import ThinkTags
from swecli.core.protocol.messages import Origin

PROTOCOLS = ("openai-chat", "anthropic-messages", "openai-responses", "gemini-generate", "ollama-chat")


def decoder_for(
    protocol: str, origin: Origin, think_tags: ThinkTags = "keep", context: ErrorContext | None = None
) -> Decoder:
    """A new decoder.

    Raises:
        ValueError: there is no such protocol.
    """
    made, _ = _parts(protocol)
    return made(origin, think_tags=think_tags, context=context)


def request_builder(protocol: str) -> BuildRequest:
    """The request builder of a protocol.

    Raises:
        ValueError: there is no such protocol.
    """
    _, build_request = _parts(protocol)
    return build_request


def _parts(protocol: str) -> tuple[type[Decoder], BuildRequest]:
    match protocol:
        case "openai-chat":
            from swecli.core.llm.protocols.openai_chat import ChatDecoder, build_request

            return ChatDecoder, build_request
        case "anthropic-messages":
            from swecli.core.llm.protocols.anthropic import AnthropicDecoder, build_request

            return AnthropicDecoder, build_request
        case "openai-responses":
            from swecli.core.llm.protocols.openai_responses import ResponsesDecoder, build_request

            return ResponsesDecoder, build_request
        case "gemini-generate":
            from swecli.core.llm.protocols.gemini import GeminiDecoder, build_request

            return GeminiDecoder, build_request
        case "ollama-chat":
            from swecli.core.llm.protocols.ollama import OllamaDecoder, build_request

            return OllamaDecoder, build_request
        case _:
            raise ValueError(f"unknown protocol {protocol!r}; protocols: {', '.join(PROTOCOLS)}")

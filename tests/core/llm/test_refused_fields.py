"""Fields that a server refused: what a complaint means, and that later sessions know."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

from swecli.core.llm.client_config import ClientConfig
from swecli.core.llm.errors import read_body
from swecli.core.llm.json_values import JsonObject, compact
from swecli.core.llm.protocols.base import WireRequest
from swecli.core.llm.providers import resolve
from swecli.core.llm.refused_fields import KEPT_DAYS, RefusedFields, refusal_place, refused_field, without_field

TODAY = date(2026, 11, 28)
BODY: JsonObject = {
    "thinking": {"type": "adaptive", "display": "summarized", "block_binding": {}},
    "diagnostics": {"previous_message_id": None},
    "system": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
    "messages": [{"role": "user", "content": []}, {"role": "system", "content": [], "clear_at": "next_user_message"}],
}


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("thinking.adaptive.display: Extra inputs are not permitted", "display"),
        ("thinking: Extra inputs are not permitted", "display"),
        ("thinking.type: Input should be 'enabled' or 'disabled'", "display"),
        ("Unknown parameter: 'thinking'", "display"),
        ("thinking.adaptive.block_binding: Extra inputs are not permitted", "block_binding"),
        ("Unexpected value(s) `thinking-binding-controls-2026-08-01` for the `anthropic-beta` header", "block_binding"),
        ("diagnostics: Extra inputs are not permitted", "diagnostics"),
        ("system.0.cache_control.ephemeral.ttl: Extra inputs are not permitted", "ttl"),
        ("messages.1.clear_at: Extra inputs are not permitted", "clear_at"),
        ("messages.1.role: Input should be 'user' or 'assistant'", "system"),
        ("messages.1: role 'system' is not supported on this model", "system"),
        ("max_tokens: Input should be less than 8192", ""),
        ("messages.0.content.0.thinking: Input should be a valid string", ""),
        ("the service is overloaded; thinking is hard", ""),
    ],
)
def test_a_complaint_names_one_field(message: str, field: str) -> None:
    body = compact({"type": "error", "error": {"type": "invalid_request_error", "message": message}}).encode()
    assert refused_field(read_body(400, {}, body), WireRequest("/v1/messages", BODY)) == field


def test_a_field_that_was_not_sent_is_not_the_cause() -> None:
    message = "Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior`: not supported"
    body = compact({"error": {"message": message}}).encode()
    assert refused_field(read_body(400, {}, body), WireRequest("/v1/messages", {"messages": []})) == ""


def test_they_are_kept_for_a_month(tmp_path: Path) -> None:
    fields = RefusedFields(tmp_path / "data" / "refused_fields.json")
    assert fields.find("a:1", TODAY) == ()
    assert fields.learn("a:1", "display", TODAY) == ""
    assert fields.learn("a:1", "ttl", TODAY) == ""
    assert fields.learn("b:2", "ttl", TODAY) == ""
    assert RefusedFields(tmp_path / "data" / "refused_fields.json").find("a:1", TODAY) == ("display", "ttl")
    assert fields.find("a:1", TODAY + timedelta(days=KEPT_DAYS + 1)) == ()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 9}', '{"version": 1, "hosts": {"a:1": 3}}'])
def test_a_damaged_file_counts_as_empty_and_is_written_anew(tmp_path: Path, content: str) -> None:
    path = tmp_path / "refused_fields.json"
    path.write_text(content)
    fields = RefusedFields(path)
    assert fields.find("a:1", TODAY) == ()
    assert fields.learn("a:1", "display", TODAY) == ""
    assert fields.find("a:1", TODAY) == ("display",)


def test_a_file_that_can_not_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no folder")
    assert "Could not store that a:1 refuses display" in RefusedFields(tmp_path / "data" / "f").learn(
        "a:1", "display", TODAY
    )


def test_models_of_a_vendors_own_server_differ() -> None:
    assert refusal_place("https://api.anthropic.com", "claude-sonnet-5") == "api.anthropic.com claude-sonnet-5"
    assert refusal_place("http://me:secret@Proxy.local:8080/v1", "claude-sonnet-5") == "proxy.local:8080"


def test_a_target_without_a_field_can_do_without_it() -> None:
    config: ClientConfig = resolve("anthropic/claude-opus-5-5", {"ANTHROPIC_API_KEY": "k"})
    target = without_field(without_field(config.target, "system"), "display")
    assert not target.capabilities.system_messages
    assert not target.capabilities.clear_at
    assert target.capabilities.binding
    assert target.refused == ("system", "display")


def test_images_are_remembered_beside_fields_and_the_oldest_are_forgotten(tmp_path: Path) -> None:
    fields = RefusedFields(tmp_path / "refused_fields.json")
    assert fields.learn("a:1", "display", TODAY) == ""
    for number in range(102):
        assert fields.learn("a:1", f"image:{number}", TODAY) == ""
    found = fields.find("a:1", TODAY)
    assert found[:2] == ("display", "image:2")
    assert len(found) == 101
    assert fields.find("a:1", TODAY + timedelta(days=KEPT_DAYS + 1)) == ()

"""Keys stay out of stored events, results and snapshots; everything else is stored as it is."""

from __future__ import annotations

import pytest
from msgspec import json

from swecli.core.llm.secrets import Masker, is_unmistakable
from swecli.core.ports import BlobRef, Snapshot, SnapshotMeasure
from swecli.core.protocol.blocks import TerminalBlock
from swecli.core.protocol.events import Event, ItemCheckpointed, ItemCompleted, ModelResponded
from swecli.core.protocol.messages import (
    DocumentPart,
    ImagePart,
    Opaque,
    Origin,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from swecli.core.sessions.journal import MaskedBlobs, MaskedSnapshots, masked, masked_events

KEY = "sk-ant-0123456789abcdefghij"
LIVE = "live-value-0123456789"
COVER = Masker([LIVE]).cover


class Blobs:
    """Keeps what was put."""

    def __init__(self) -> None:
        self.kept: list[bytes] = []

    def put(self, tool: str, content: bytes) -> BlobRef:
        self.kept.append(content)
        return BlobRef("r1", tool, len(content))

    def get(self, ref: str) -> bytes | None:
        return self.kept[0] if ref == "r1" else None


def test_texts_arguments_and_blocks_are_covered_and_ids_are_not() -> None:
    call = ToolCallPart(KEY, "run_command", f'{{"command": "curl -H {LIVE}"}}')
    result = ToolResultPart(KEY, "run_command", f"token: {KEY}\nend")
    done = ItemCompleted("t1", "ok", (result,), (TerminalBlock("env", f"A={LIVE}"),), "exit 0")
    stored = masked_events([Event(1, 0.0, "s", 1, ItemCheckpointed("t1", call)), Event(2, 0.0, "s", 1, done)], COVER)
    text = repr([event.body for event in stored])
    assert LIVE not in text
    assert f"token: {'*' * len(KEY)}\\nend" in text
    assert text.count(KEY) == 2, "the call's id, which a provider gave, stays in both"


def test_what_has_no_key_is_the_same_object_and_what_must_be_exact_stays() -> None:
    plain = ItemCompleted("t1", "ok", (TextPart("a risk-free plan"),))
    assert masked(plain, COVER) is plain
    image = ImagePart("image/png", KEY, "x")
    assert masked((image,), COVER) == (image,)
    covered = masked((DocumentPart(KEY, "x.pdf", f"token: {KEY}", 1),), COVER)
    assert covered == (DocumentPart(KEY, "x.pdf", f"token: {'*' * len(KEY)}", 1),)
    opaque = Opaque(Origin("p", "h", "m"), {"signature": KEY})
    assert masked(opaque, COVER) is opaque
    responded = ModelResponded("m1", ("t1",), Origin("p", "h", "m"))
    assert masked(responded, COVER) is responded


def test_stored_results_keep_their_length_and_their_odd_bytes() -> None:
    inner = Blobs()
    raw = b"\xff\xfe" + KEY.encode() + b"\nrest"
    ref = MaskedBlobs(inner, COVER).put("run_command", raw)
    assert ref.size == len(raw)
    assert inner.kept == [b"\xff\xfe" + b"*" * len(KEY) + b"\nrest"]


def test_only_values_that_are_keys_beyond_doubt_are_covered_in_ordinary_text() -> None:
    assert is_unmistakable(LIVE)
    assert not is_unmistakable("production")
    assert not is_unmistakable("abc123")
    assert not is_unmistakable("developmentmode")
    assert is_unmistakable("k3y-9fZq")
    assert is_unmistakable("CANARY-SECRET-VALUE")
    assert is_unmistakable("correcthorsebatterystaple")


class Kept:
    """Keeps the newest snapshot."""

    def __init__(self) -> None:
        self.newest: Snapshot | None = None

    def save_snapshot(self, snapshot: Snapshot) -> str:
        self.newest = snapshot
        return ""

    def get_snapshot(self) -> Snapshot | None:
        return self.newest

    def get_measure(self) -> SnapshotMeasure | None:
        return None if self.newest is None else self.newest.measure


def test_what_events_come_to_is_written_without_keys() -> None:
    image = {"type": "image", "media_type": "image/png", "data": KEY}
    told = {
        "todos": [{"text": f'a "quoted"\n{LIVE}'}],
        "parts": [[1, True, [{"text": f"token {KEY}", "opaque": {"data": KEY}}, image]]],
        "call_id": KEY,
    }
    kept = Kept()
    masking = MaskedSnapshots(kept, COVER)
    masking.save_snapshot(Snapshot((), SnapshotMeasure(0, 1, "m"), state=json.encode(told)))
    assert kept.newest is not None
    stored = json.decode(kept.newest.state)
    stars = "*" * len(KEY)
    assert LIVE not in kept.newest.state.decode()
    assert stored["parts"] == [[1, True, [{"text": f"token {stars}", "opaque": {"data": KEY}}, image]]]
    assert stored["call_id"] == KEY
    plain = json.encode({"text": "nothing of the kind"})
    masking.save_snapshot(Snapshot((), SnapshotMeasure(0, 1, "m"), state=plain))
    assert kept.newest.state is plain
    masking.save_snapshot(Snapshot((), SnapshotMeasure(0, 1, "m")))
    assert kept.newest.state == b""


def test_events_without_keys_are_checked_together() -> None:
    asked: list[str] = []

    def cover(text: str) -> str:
        asked.append(text)
        return COVER(text)

    call = ToolCallPart("c1", "run_command", '{"command": "make"}')
    done = ItemCompleted("t1", "ok", (ToolResultPart("c1", "run_command", "built"),), (TerminalBlock("make", "built"),))
    events = [Event(number, 0.0, "s", 1, body) for number, body in enumerate((ItemCheckpointed("t1", call), done), 1)]
    assert masked_events(events, cover) == events
    assert len(asked) == 1
    assert all(text in asked[0] for text in ("make", "built", call.arguments))


@pytest.mark.parametrize("place", range(6))
def test_a_key_is_found_in_any_text_of_any_event(place: int) -> None:
    texts = [f"plain {number}" for number in range(6)]
    texts[place] = f"token: {KEY}"
    bodies = (
        ItemCheckpointed("t1", ToolCallPart("c1", "run_command", texts[0])),
        ItemCompleted("t1", "ok", (ToolResultPart("c1", "x", texts[1]),), (TerminalBlock(texts[2], texts[3]),)),
        ItemCompleted("t2", "ok", (DocumentPart("UERG", "x.pdf", texts[4], 1),), detail=texts[5]),
    )
    events = [Event(number, 0.0, "s", 1, body) for number, body in enumerate(bodies, 1)]
    stored = masked_events(events, COVER)
    assert [event.body for event in stored] == [masked(body, COVER) for body in bodies]
    assert KEY not in repr(stored)

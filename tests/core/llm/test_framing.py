from __future__ import annotations

import json
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.llm.framing import BodyParser, Framing, JsonParser, SseParser, WireEvent
from tests.support.thorough import examples


def feed(parser: Framing, *chunks: bytes) -> list[WireEvent]:
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return events + parser.end()


def data(events: list[WireEvent]) -> list[str]:
    return [event.data for event in events]


class TestSse:
    def test_fields(self) -> None:
        body = b"event: ping\ndata: a\ndata: b\nid: 1\nretry: 5\n\ndata:c\n\n"
        assert feed(SseParser(), body) == [WireEvent("a\nb", "ping"), WireEvent("c")]

    def test_only_one_blank_after_the_colon_goes(self) -> None:
        assert data(feed(SseParser(), b"data:  a \n\n")) == [" a "]

    def test_line_ends_in_any_mixture(self) -> None:
        assert data(feed(SseParser(), b"data: a\rdata: b\r\n\rdata: c\n\r\n")) == ["a\nb", "c"]

    def test_crlf_cut_between_chunks(self) -> None:
        assert data(feed(SseParser(), b"data: a\r", b"\n", b"\r", b"\ndata: b\r", b"\n\r\n")) == ["a", "b"]

    def test_event_without_blank_line_is_given_at_the_end(self) -> None:
        assert feed(SseParser(), b"data: a\n\ndata: b") == [WireEvent("a"), WireEvent("b", partial=True)]
        assert feed(SseParser(), b"data: b\n") == [WireEvent("b")]

    def test_byte_order_mark(self) -> None:
        assert data(feed(SseParser(), b"\xef", b"\xbb", b"\xbfdata: a\n\n")) == ["a"]

    def test_line_separators_of_unicode_are_text(self) -> None:
        text = "a\u2028b\u2029c\u0085d\x0be\x0c"
        assert data(feed(SseParser(), f"data: {text}\n\n".encode())) == [text]

    def test_comments_and_empty_events_say_nothing(self) -> None:
        parser = SseParser()
        assert feed(parser, b": hello\n\n:\n\ndata:\n\ndata: \n\nevent: x\n\n") == []
        assert parser.recognised

    def test_errors_in_forms_of_their_own(self) -> None:
        assert feed(SseParser(), b'error: {"a":1}\n\n') == [WireEvent('{"a":1}', "error")]
        assert feed(SseParser(), b'data: a\n\n{"error":"x"}\n') == [
            WireEvent("a"),
            WireEvent('{"error":"x"}', "error"),
        ]
        assert feed(SseParser(), b"event: error\n\n") == [WireEvent("", "error")]

    def test_bytes_that_are_no_text(self) -> None:
        assert data(feed(SseParser(), b"data: a\xff\xfeb\n\n")) == ["a\ufffd\ufffdb"]

    def test_name_does_not_outlive_its_event(self) -> None:
        assert feed(SseParser(), b"event: a\n\ndata: b\n\n") == [WireEvent("b")]


class TestJson:
    def test_lines(self) -> None:
        assert data(feed(JsonParser(), b'{"a":1}\n\n{"b":"}{"}\r\n{"c":[{}]}')) == [
            '{"a":1}',
            '{"b":"}{"}',
            '{"c":[{}]}',
        ]

    def test_one_array_over_the_whole_body(self) -> None:
        assert data(feed(JsonParser(), b'[{"a":1}\n,\n{"b":[1,2]}]')) == ['{"a":1}', '{"b":[1,2]}']

    def test_pretty_printed(self) -> None:
        text = json.dumps({"a": ["\\", '"', "{"]}, indent=2)
        assert data(feed(JsonParser(), text.encode())) == [text]

    def test_half_a_value_is_marked(self) -> None:
        assert feed(JsonParser(), b'{"a":1}\n{"b"') == [WireEvent('{"a":1}'), WireEvent('{"b"', partial=True)]

    def test_stray_text_is_kept_for_the_message(self) -> None:
        parser = JsonParser()
        assert data(feed(parser, b'oops {"a":1}')) == ['{"a":1}']
        assert parser.stray == "oops"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
documents = st.lists(st.dictionaries(st.text(), json_values, max_size=4), min_size=1, max_size=4)


@given(documents, st.booleans(), st.integers(1, 7))
@settings(max_examples=examples(30, 60), deadline=None)
def test_json_values_survive_any_chunking(values: list[dict[str, object]], array: bool, size: int) -> None:
    body = (json.dumps(values) if array else "\n".join(json.dumps(value) for value in values)).encode()
    chunks = [body[i : i + size] for i in range(0, len(body), size)]
    assert [json.loads(text) for text in data(feed(JsonParser(), *chunks))] == values


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=("Cs",))), max_size=5),
    st.integers(1, 5),
)
@settings(max_examples=60, deadline=None)
def test_event_data_survives_any_chunking(texts: list[str], size: int) -> None:
    body = "".join(f"data: {text}\r\n\r\n" for text in texts).encode()
    chunks = [body[i : i + size] for i in range(0, len(body), size)]
    assert data(feed(SseParser(), *chunks)) == [text for text in texts if text]


def test_cost_of_one_long_line_is_linear() -> None:
    def seconds(size: int, parser: Framing, head: bytes, tail: bytes) -> float:
        body = head + b"x" * size + tail
        start = time.process_time()
        assert len(feed(parser, *(body[i : i + 1] for i in range(len(body))))) == 1
        return time.process_time() - start

    for make, head, tail in ((SseParser, b"data: ", b"\n\n"), (JsonParser, b'{"a":"', b'"}')):
        small = min(seconds(30_000, make(), head, tail) for _ in range(3))
        assert seconds(300_000, make(), head, tail) < 40 * small


class TestBody:
    def kind(self, content_type: str, *chunks: bytes) -> str:
        parser = BodyParser(content_type)
        feed(parser, *chunks)
        return parser.kind

    def test_by_first_byte(self) -> None:
        assert self.kind("text/event-stream", b"data: a\n\n") == "sse"
        assert self.kind("text/event-stream", b'{"error":"x"}') == "json"
        assert self.kind("application/json", b" \n[", b"{}]") == "json"
        assert self.kind("text/event-stream", b"\xef", b"\xbb\xbf  <html>") == "html"
        assert self.kind("", b"") == "unknown"

    def test_events_behind_a_wrong_label(self) -> None:
        assert self.kind("text/plain", b"data: a\n\n") == "sse"
        assert self.kind("text/plain", b": comment\n") == "sse"
        assert self.kind("text/plain", b"upstream connect error") == "other"

    def test_excerpt(self) -> None:
        parser = BodyParser("text/html")
        assert feed(parser, b"<html>", b"<title>Login</title>", b"x" * 1000) == []
        assert parser.excerpt.startswith("<html><title>Login</title>xxx")
        assert len(parser.excerpt) == 300

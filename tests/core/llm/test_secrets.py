"""Keys stay out of what is written, wherever they stand and however they arrive."""

from __future__ import annotations

import itertools
import json
import re
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.llm import exchange_dump
from swecli.core.llm.exchange_dump import ExchangeDump
from swecli.core.llm.secrets import MASK, Masker, StreamMasker, key_values, masked_headers
from tests.support.thorough import examples

KEY = "canary-0123456789"


def test_known_secrets_and_what_looks_like_a_key_are_masked() -> None:
    masker = Masker([KEY, "ab", ""])
    for text in (
        f"x{KEY}y",
        "sk-proj-abcdefghijklmnop",
        "AIzaSyA-0123456789012345678901234567",
        "authorization: Bearer abcdefghijklmnopqrst",
        "ghp_0123456789abcdefghij",
    ):
        assert MASK in masker.mask(text), text
    for text in ("ab", "task-list", "sk-short", "a bearer of news", "an ordinary sentence"):
        assert masker.mask(text) == text


BLOCK = "\n".join(
    [
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        *("b3BlbnNzaC1rZXktdjEAAAAABG5vbmU" * 2,) * 4,
        "-----END OPENSSH PRIVATE KEY-----",
    ]
)


@pytest.mark.parametrize(
    "text",
    [
        f"before\n{BLOCK}\nafter",
        json.dumps({"output": f"before {BLOCK} after"}),
        "before\n" + "".join(f"{number}\t{line}\n" for number, line in enumerate(BLOCK.split("\n"), 1)) + "after",
        f"before\n{BLOCK.partition('-----END')[0]}after that it was cut",
        f"before\n{BLOCK.replace('OPENSSH ', '')}\nafter\n{BLOCK.replace('OPENSSH', 'RSA')}",
    ],
)
def test_private_keys_are_masked_whole(text: str) -> None:
    for found in (Masker().mask(text), Masker().cover(text), streamed(Masker(), text)):
        assert "b3Blbn" not in found
        assert "before" in found
        assert "after" in found
    assert len(Masker().cover(text)) == len(text)


def streamed(masker: Masker, text: str) -> str:
    stream = StreamMasker(masker)
    return "".join([*map(stream.feed, text), stream.end()])


@pytest.mark.parametrize(
    "text",
    [
        "password=canary7",
        "DB_PASSWORD=canary7\nNEXT=1",
        "https://h/?password=canary7&x=1",
        "prog --password=canary7 -v",
        'connect(password="canary7")',
        json.dumps('connect(password="canary7")'),
        '{"password": "canary7", "x": 1}',
        json.dumps('{"password": "canary7"}'),
        "passphrase='canary7'",
    ],
)
def test_values_of_passwords_are_masked(text: str) -> None:
    assert Masker().mask(text) == text.replace("canary7", MASK)
    assert Masker().cover(text) == text.replace("canary7", "*" * 7)


@pytest.mark.parametrize(
    "text",
    [
        *("password=None", "f(password=password, x=1)", "password=settings.DB_PASSWORD\n", "password=get(x)"),
        *("password=$SECRET", "if password == given:", "PWD=/home/me", "-----BEGIN CERTIFICATE-----\nabc\n"),
        *("password: str = field()", '"password": null', "the password is asked for"),
    ],
)
def test_program_text_about_passwords_stays(text: str) -> None:
    assert Masker().mask(text) == text


def test_a_secret_is_masked_where_a_text_was_cut() -> None:
    masker = Masker(["sk-proj-1234567890", "short"])
    assert masker.mask_cut("key sk-proj-1234567890 and sk-proj-12345") == f"key {MASK} and {MASK}"
    assert masker.mask_cut("keys begin with sk-proj-, not sk-proj-99") == "keys begin with sk-proj-, not sk-proj-99"
    assert masker.mask_cut("shor") == "shor"


def test_headers_are_masked_unless_they_are_known_to_be_harmless() -> None:
    headers = {"Authorization": f"Bearer {KEY}", "x-team": "blue-and-green", "content-type": "application/json"}
    assert masked_headers(headers) == {"Authorization": MASK, "x-team": MASK, "content-type": "application/json"}
    assert key_values(headers) == {KEY, "blue-and-green"}


@given(st.lists(st.sampled_from(["word ", KEY, KEY[:7], "\n", '{"a":1}', "x" * 50, "é"]), max_size=30), st.data())
@settings(max_examples=examples(60, 300), deadline=None)
def test_a_secret_is_masked_however_it_is_cut(pieces: list[str], data: st.DataObject) -> None:
    text = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=20)))
    stream = StreamMasker(Masker([KEY], shapes=False))
    places = [0, *cuts, len(text)]
    out = "".join(stream.feed(text[a:b]) for a, b in itertools.pairwise(places)) + stream.end()
    assert KEY not in out
    assert out == text.replace(KEY, MASK)


def test_a_long_text_without_blanks_is_masked_too() -> None:
    stream = StreamMasker(Masker([KEY]))
    text = ("y" * 700 + KEY) * 20
    out = "".join(stream.feed(text[at : at + 7]) for at in range(0, len(text), 7)) + stream.end()
    assert KEY not in out
    assert out.count("y") == 14_000


def exchange(dump: ExchangeDump) -> None:
    body = json.dumps({"messages": [f"the key is {KEY}"]}).encode()
    made = dump.begin("https://h/v1/chat", {"authorization": f"Bearer {KEY}", "accept": "text/event-stream"}, body)
    assert made is not None
    made.head(200, {"content-type": "text/event-stream", "set-cookie": "secret=1", "x-echo": KEY})
    for piece in (b"data: hello caf\xc3", b"\xa9 ", KEY[:5].encode(), KEY[5:].encode(), b"\n\n"):
        made.body(piece)
    made.close(f"cut at {KEY}")


def test_an_exchange_is_written_without_keys_and_for_the_user_alone(tmp_path: Path) -> None:
    told: list[str] = []
    dump = ExchangeDump(tmp_path / "debug", [], told.append)
    exchange(dump)
    exchange(dump)
    (folder,) = (tmp_path / "debug").iterdir()
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["0001-request.json", "0001-response.txt", "0002-request.json", "0002-response.txt"]
    request = json.loads((folder / "0001-request.json").read_text())
    assert request["headers"] == {"authorization": MASK, "accept": "text/event-stream"}
    assert request["body"] == {"messages": [f"the key is {MASK}"]}
    response = (folder / "0001-response.txt").read_text()
    assert "status: 200" in response
    assert f"data: hello café {MASK}" in response
    assert f"[cut at {MASK}]" in response
    assert "secret=1" not in response
    assert str(folder) in told[0]
    assert len(told) == 1
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in folder.iterdir())


def test_only_the_newest_runs_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange_dump, "FOLDERS", 3)
    for number in range(5):
        (tmp_path / f"2020010{number}-000000-1").mkdir()
    exchange(ExchangeDump(tmp_path, []))
    assert len(list(tmp_path.iterdir())) == 3
    assert (tmp_path / "20200104-000000-1").exists()


def test_a_dump_that_can_not_be_written_ends_with_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "debug").write_text("a file")
    told: list[str] = []
    dump = ExchangeDump(tmp_path / "debug", [], told.append)
    assert dump.begin("https://h", {}, b"{}") is None
    assert dump.begin("https://h", {}, b"{}") is None
    assert len(told) == 1
    assert "Cannot write" in told[0]


SPLIT = {
    "openai": ('data: {"id":"c","choices":[{"index":0,"delta":{"content":%s}}]}\n\n', "data: [DONE]\n\n"),
    "anthropic": (
        "event: content_block_delta\n"
        'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}\n\n',
        'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    ),
    "responses": (
        'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":%s}\n\n',
        'data: {"type":"response.completed"}\n\n',
    ),
    "ollama": ('{"model":"m","message":{"role":"assistant","content":%s},"done":false}\n', '{"done":true}\n'),
}


@pytest.mark.parametrize("protocol", SPLIT)
@pytest.mark.parametrize("size", [1, 3, 4, 11])
def test_a_secret_that_a_stream_brings_in_pieces_is_masked(tmp_path: Path, protocol: str, size: int) -> None:
    event, last = SPLIT[protocol]
    value, key = "gGMLNl0ybuRbNt8841", "ghp_" + "aB3dE5gH" * 4 + "Zz09"
    text = f"Settings:\npassword: {value}\nDB_URL=postgres://me:pW7xkq92LmZ@host/db and {key}\nThe end."
    dump = ExchangeDump(tmp_path, [])
    exchange = dump.begin("https://x", {}, b"{}")
    assert exchange is not None
    exchange.head(200, {})
    for at in range(0, len(text), size):
        exchange.body((event % json.dumps(text[at : at + size])).encode())
    exchange.body(last.encode())
    exchange.close()
    (written,) = tmp_path.rglob("*-response.txt")
    raw = written.read_text()
    pieces = re.findall(r'"(?:content|text|delta)":("(?:[^"\\]|\\.)*")', raw)
    said = "".join(json.loads(piece) for piece in pieces)
    assert len(said) == len(text)
    assert (said.startswith("Settings:\npassword: *"), said.endswith("\nThe end.")) == (True, True)
    assert [secret for secret in (value, key, "pW7xkq92LmZ") if secret[-8:] in said] == []
    assert raw.endswith(last)
    assert written.stat().st_mode & 0o777 == 0o600

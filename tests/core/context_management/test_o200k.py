"""Exact counts without a network, for texts of any shape."""

from __future__ import annotations

import base64
import hashlib
import importlib
import random
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from swecli.core.context_management import counter as module
from swecli.core.context_management import ranks as ranks_module
from swecli.core.context_management.counter import O200kTokenizer, encoding_arguments, o200k
from swecli.core.context_management.ranks import RanksError, read_ranks, unpack
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[3]
SAMPLE = "def load(path: Path) -> Settings:\n    return Settings(**parse(path.read_text()))  # 设置 😀\n"


def no_sockets(*_arguments: object, **_names: object) -> socket.socket:
    raise AssertionError("a socket was opened")


@pytest.fixture(scope="module")
def tokenizer() -> O200kTokenizer:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "socket", no_sockets)
        patch.setattr(socket, "create_connection", no_sockets)
        o200k.cache_clear()
        return o200k()


def test_the_ranks_are_those_that_tiktoken_would_download() -> None:
    asked: list[Mapping[str, object]] = []
    ranks = read_ranks()
    encoding_arguments(ranks, asked.append)
    lines = b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items())
    assert asked == [{"expected_hash": hashlib.sha256(lines).hexdigest()}]
    assert list(ranks.values()) == sorted(ranks.values())


def test_exact_counts_need_no_socket_and_go_both_ways(tokenizer: O200kTokenizer) -> None:
    assert tokenizer.count("hello world") == 2
    assert tokenizer.encode("hello world") == [24912, 2375]
    assert tokenizer.decode([24912, 2375]) == "hello world"
    assert tokenizer.count("") == 0
    assert tokenizer.decode(tokenizer.encode(SAMPLE * 1_000)) == SAMPLE * 1_000


def test_cutting_into_pieces_hardly_changes_the_count(tokenizer: O200kTokenizer) -> None:
    assert tokenizer.count(SAMPLE * 5_000) == pytest.approx(5_000 * tokenizer.count(SAMPLE), rel=1e-4)


def test_special_tokens_in_a_text_are_text(tokenizer: O200kTokenizer) -> None:
    assert tokenizer.count("<|endoftext|>") > 1
    assert tokenizer.count("a <|endofprompt|> b") > 3


ODD = {
    "blanks": " ",
    "tabs": "\t",
    "newlines": "\n",
    "letters": "a",
    "punctuation": "!",
    "digits": "7",
    "special": "<|endoftext|>",
    "surrogates": "\ud800",
    "zeros": "\0",
    "emoji": "👩‍👩‍👧",
    "combining": "é̂",
    "han": "上",
    "mixed blanks": " \n\t",
}


@pytest.mark.parametrize("name", ODD)
def test_much_of_anything_is_counted_quietly_and_soon(
    tokenizer: O200kTokenizer, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    def spent(size: int) -> float:
        start = time.process_time()
        assert tokenizer.count(ODD[name] * (size // len(ODD[name]))) > 0
        return time.process_time() - start

    # Ten times as much where the cost grows with the length, a hundred times where it grows with its square.
    small = max(min(spent(40_000) for _ in range(3)), 0.001)
    assert spent(400_000) < 40 * small
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


def test_random_text_never_raises(tokenizer: O200kTokenizer) -> None:
    source = random.Random(5)
    for _ in range(200):
        text = "".join(
            chr(source.choice([32, 10, source.randrange(0x3000), source.randrange(0x110000)])) for _ in "x" * 80
        )
        assert 0 < tokenizer.count(text) <= 8 * len(text)


class _Panic(BaseException):
    pass


_Panic.__name__ = "PanicException"


class _Broken:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def encode_ordinary(self, text: str) -> list[int]:
        raise self.error


def test_a_panic_of_the_native_encoder_becomes_an_estimate() -> None:
    broken = O200kTokenizer(_Broken(_Panic("backtrack limit")))  # type: ignore[arg-type]
    assert broken.count(" the" * 1_000) == 989
    with pytest.raises(ValueError, match="could not process"):
        broken.encode("x")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), MemoryError()])
def test_other_failures_are_not_hidden(error: BaseException) -> None:
    with pytest.raises(type(error)):
        O200kTokenizer(_Broken(error)).count("x")  # type: ignore[arg-type]


GOOD = b"RNK1" + struct.pack("<II", 2, 0)


@pytest.mark.parametrize("data", [b"", b"RNK1", b"RNK2" + b"\0" * 40, GOOD, GOOD + struct.pack("<I", 9) + b"123456789"])
def test_broken_ranks_are_refused(data: bytes) -> None:
    with pytest.raises(RanksError):
        unpack(data)


def test_ranks_that_are_cut_anywhere_are_refused() -> None:
    data = (Path(module.__file__).parent / "ranks" / "o200k_base.rnk").read_bytes()
    for length in (5, 11, 15, 400, 100_000, len(data) - 1):
        with pytest.raises(RanksError):
            unpack(data[:length])


def test_a_single_wrong_byte_anywhere_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = (Path(module.__file__).parent / "ranks" / "o200k_base.rnk").read_bytes()
    broken = tmp_path / "broken.rnk"
    monkeypatch.setattr(ranks_module, "_FILE", str(broken))
    for place in (5, 13, 400_000, len(data) - 1):  # of these the pairs in the head have no check of their own
        broken.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(RanksError, match="damaged"):
            read_ranks()


def test_another_definition_of_the_encoding_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    public = importlib.import_module("tiktoken_ext.openai_public")
    monkeypatch.setattr(public, "o200k_base", lambda: {"mergeable_ranks": {}})
    with pytest.raises(ImportError, match="unknown way"):
        encoding_arguments({b"a": 0})
    monkeypatch.delattr(public, "o200k_base")
    with pytest.raises(ImportError, match="no o200k_base"):
        encoding_arguments({b"a": 0})


def test_nothing_of_it_is_loaded_by_importing() -> None:
    code = "import swecli.core.context_management.counter, sys; print([m for m in sys.modules if 'tiktoken' in m])"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert run.stdout.strip() == "[]"

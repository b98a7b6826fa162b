"""``swecli retrieve``: text, JSON and batches, without a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from swecli.command_line.arguments import UsageError
from swecli.command_line.retrieve import batch, retrieve
from tests.core.retrieval.project import made


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SWECLI_HOME", str(tmp_path / "home"))
    return made(tmp_path / "shop")


def test_places_as_text_and_as_json(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert retrieve(["-C", str(shop), "revoke", "a", "token"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "src/auth/tokens.py:2 revoke_token"
    assert retrieve(["-C", str(shop), "--json", "coupon in smtp.py"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {one["path"]: one["mentioned"] for one in listed[:2]} == {
        "src/mail/smtp.py": True,
        "src/billing/discount.py": False,
    }
    assert set(listed[0]) == {"path", "symbol", "line", "score", "mentioned"}
    assert [one["score"] for one in listed] == sorted((one["score"] for one in listed), reverse=True)
    assert (shop.parent / "home" / "cache" / "retrieval").exists()
    assert retrieve(["-C", str(shop), "xylophone"]) == 0
    assert "no file in this folder" in capsys.readouterr().err


def test_a_batch_answers_each_line(shop: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    requests = [
        {"root": str(shop), "text": "deliver the envelope"},
        {"root": str(tmp_path / "empty"), "text": "deliver"},
        {"root": str(tmp_path / "none"), "text": "deliver"},
        {"root": 3, "text": "x"},
        {"root": str(shop), "text": ""},
        {"root": "~nobody-of-this-name/x", "text": "x"},
    ]
    answers = [json.loads(line) for line in batch([*map(json.dumps, requests), "", "no json"])]
    assert answers[0][0]["path"] == "src/mail/smtp.py"
    assert answers[1] == []
    assert answers[2] == {"error": f"{tmp_path / 'none'}: no such directory"}
    assert "expected a line such as" in answers[3]["error"]
    assert answers[4] == []
    assert "cannot use it" in answers[5]["error"]
    assert "expected a line such as" in answers[6]["error"]


def test_what_makes_no_sense_is_told() -> None:
    with pytest.raises(UsageError, match="needs a text"):
        retrieve([])
    with pytest.raises(UsageError, match="from standard input"):
        retrieve(["--batch", "words"])

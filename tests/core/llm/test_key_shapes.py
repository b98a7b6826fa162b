from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from swecli.core.llm import key_shapes
from swecli.core.llm.key_shapes import secret_spans
from swecli.core.llm.secrets import Masker, StreamMasker
from tests.support.keys import BODY, SHOWN

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(("text", "key"), SHOWN)
def test_keys_are_masked_in_plain_text_and_in_json(text: str, key: str) -> None:
    masker = Masker()
    for shown in (
        text,
        f"a\n{text}\nb",
        f"    11\ta\n    12\t{text}\n",
        json.dumps({"t": f"a\n{text}\nb"}),
        json.dumps(json.dumps({"t": text})),
    ):
        assert key not in masker.mask(shown)
        covered = masker.cover(shown)
        assert key not in covered
        assert len(covered) == len(shown)
        assert masker.cover(covered) == covered, "what is masked stays as it is"


@pytest.mark.parametrize(("text", "key"), SHOWN)
def test_keys_that_arrive_in_pieces_are_masked(text: str, key: str) -> None:
    stream = StreamMasker(Masker())
    assert key not in "".join([*map(stream.feed, f"a\n{text}\nb"), stream.end()])


@pytest.mark.parametrize(
    "text",
    [
        *(
            "token = request.token",
            "token_count = 4096",
            "max_tokens: 4096",
            "def token(self) -> str:",
            "getpass = win",
            "names = ('DB_PASSWORD', 'DB_HOST')",
            "fields('password', 'username')",
            "getenv('API_TOKEN', 'none')",
        ),
        *("self.password = password", "password: str = Field()", "password: SecretStr", "key: value", "key='name'"),
        *("sort_key = lambda pair: pair[1]", "api_key = os.environ['API_KEY']", "token=${TOKEN}", "SECRET=$(cat x)"),
        *("secretName: db-credentials", "aws_access_key_id_file = '/etc/x'", "https://user:password@host/x"),
        *("PWD=/home/me/work", "OLDPWD=/tmp", "basic understanding of Authentication", "an ordinary cookie: nice"),
        *(
            "author = 'abc123def456'",
            "git log --author me",
            "eyelids and keyboards",
            "tokens: 12,345",
            "a bearer of news",
        ),
        *("sha256:9f86d081884c7d659a2feaa0c55ad0159f86d081", "commit 9f86d081884c7d659a2feaa0c55ad015", "v1.2.3-rc1"),
        *(
            '"integrity": "sha512-abcDEF123abcDEF123abcDEF123=="',
            "the password is required",
            "the password is stored in the keyring",
            "password is base64-encoded",
            "the password is 8 characters long",
            "a password is required|no",
            "password for the user: see the wiki",
            "the token is valid for 1 hour",
            'the key is "name"',
            "the five largest keys in a sorted dict: d.keys()[-5:]",
            "key: Ed25519PrivateKey",
            "main.py:1010:foo:bar:baz",
            "root:x:1000:1000:Root:/root:/bin/bash",
            "2001:0db8:85a3:1234:abcd",
            "session.add(user)",
            "auth: required",
            "pass_fds=(1,)",
        ),
    ],
)
def test_program_text_and_prose_stay(text: str) -> None:
    assert Masker().mask(text) == text


def test_the_texts_of_this_project_have_next_to_nothing_to_mask() -> None:
    paths = [*(ROOT / "swecli" / "core").rglob("*.py"), *(ROOT / "docs").glob("*.md")]
    found = [
        (path.name, text[begin:end])
        for path in paths
        for text in [path.read_text("utf-8")]
        for begin, end in secret_spans(text)
    ]
    assert len(found) <= 2, found


@pytest.mark.parametrize(
    "piece",
    [
        "token=",
        "api_key: abc\n",
        "eyJ",
        "mysql ",
        "a://b:",
        "-----BEGIN ",
        "s. ",
        "x",
        "{",
        "a:5432:",
        "password for a ",
    ],
)
def test_masking_is_linear(piece: str) -> None:
    def cost(size: int) -> float:
        text = piece * (size // len(piece))
        began = time.process_time()
        secret_spans(text)
        return time.process_time() - began

    cost(1_000)
    small = min(cost(100_000) for _ in range(3))
    large = cost(1_600_000)
    assert large <= max(small, 0.002) * 16 * 4


def test_every_rule_is_a_valid_expression_with_words_in_lower_case() -> None:
    rules = key_shapes._rules()
    assert len(rules) > 200
    for rule in rules:
        key_shapes._compiled(rule.expression)
        assert "[:" not in rule.expression, "a class of characters that Python reads as something else"
        assert rule.words
        assert all(word == word.lower() for word in rule.words)
    licence = Path(key_shapes.__file__).with_name("key_shapes.LICENSE").read_text("utf-8")
    assert licence.startswith("MIT License")


def test_a_class_of_characters_of_another_dialect_is_translated() -> None:
    text = "the airtable token is patA1b2C3d4E5f6G7." + "0123456789abcdef" * 4
    assert [text[begin:end][:4] for begin, end in secret_spans(text)] == ["patA"]


def test_a_key_longer_than_its_surroundings_is_masked_whole() -> None:
    text = "ops_eyJ" + BODY * 60
    assert secret_spans(f"x {text} y") == [(2, 2 + len(text))]

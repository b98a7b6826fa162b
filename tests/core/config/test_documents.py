"""Files in JSON and TOML that others write: each problem has its file and line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swecli.core.config.documents import LARGEST, Form, read_document


def read(path: Path, content: str | bytes, form: Form = "json") -> tuple[object, tuple[str, ...]]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    document = read_document(path, form, "it is ignored")
    assert document is not None
    return document.content, document.problems


@pytest.mark.parametrize(
    ("content", "form", "problem"),
    [
        ("", "json", ": is empty"),
        (" \n", "jsonc", ": is empty"),
        (b"\xef\xbb\xbf", "json", ": is empty"),
        ("{\n 'a': 1}", "json", ":2: is not valid JSON (Expecting property name"),
        ('{"a": 1,}', "json", ":1: is not valid JSON"),
        ('{"a":\n // b\n 1}', "json", ":2: is not valid JSON"),
        ('{"a": 1}\n{', "jsonc", ":2: is not valid JSON (Extra data)"),
        ('{\n// x\n/* y\n*/ "a" 1}', "jsonc", ":4: is not valid JSON"),
        ("[1]", "json", ":1: holds no object"),
        ("null", "json", ":1: holds no object"),
        ("[" * 100_000, "json", ": is nested too deeply"),
        ("1" * 10_000, "json", ": is not valid JSON"),
        ('{"a": 1}'.encode("utf-16"), "json", ": is UTF-16 text; save it as UTF-8"),
        ('{"a": 1}'.encode("utf-16-be"), "json", ":1: is not valid JSON"),
        (b'{\n"a": "\xff"}', "json", ":2: is not UTF-8 text here"),
        (b" " * (LARGEST + 1), "json", ": is larger than 1,000,000 bytes"),
        ("a = 1\nb = \n", "toml", ":2: is not valid TOML"),
        ("a = 1\na = 2\n", "toml", ":2: is not valid TOML (Cannot overwrite a value)"),
    ],
)
def test_a_file_that_cannot_be_used(tmp_path: Path, content: str | bytes, form: Form, problem: str) -> None:
    found, problems = read(tmp_path / "f", content, form)
    assert found is None
    (told,) = problems
    assert told.startswith(f"{tmp_path / 'f'}{problem}")
    assert told.endswith("; it is ignored.")


@pytest.mark.parametrize(
    ("content", "form"),
    [
        ('{"a": 1}', "json"),
        ('\ufeff{"a": 1}', "json"),
        ('{"a": 1}\r\n', "json"),
        ('{// x\n"a": 1, /* , */ }', "jsonc"),
        ('{"a": 1}', "jsonc"),
        ("a = 1\n", "toml"),
        ("\ufeffa = 1\n", "toml"),
    ],
)
def test_a_file_that_can(tmp_path: Path, content: str, form: Form) -> None:
    assert read(tmp_path / "f", content, form) == ({"a": 1}, ())


def test_texts_are_no_comments(tmp_path: Path) -> None:
    text = '{"a": "http://x/*y*/,}", "b": "\\"//",}'
    assert read(tmp_path / "f", text, "jsonc") == ({"a": "http://x/*y*/,}", "b": '"//'}, ())
    assert read(tmp_path / "f", "", "toml") == ({}, ())


def test_a_key_that_an_object_has_twice(tmp_path: Path) -> None:
    text = '{\n"a": {"b": [1, {"c": 1,\n"c": 2}]},\n"b": {"c": 1},\n"a": {"b": 1}\n}'
    found, problems = read(tmp_path / "f", text)
    assert found == {"a": {"b": 1}, "b": {"c": 1}}
    place = tmp_path / "f"
    assert problems == (
        f"{place}:3: 'c' appears twice in one object; the last one counts.",
        f"{place}:5: 'a' appears twice in one object; the last one counts.",
    )


def test_the_line_of_a_value(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text('{\n"a": {\n "b": [\n  {"c": "x, ]"},\n  {"d":\n   2},\n 3]\n }}')
    document = read_document(path, "json", "")
    assert document is not None
    places = {("a",): 2, ("a", "b"): 3, ("a", "b", "0", "c"): 4, ("a", "b", "1"): 5, ("a", "b", "1", "d"): 5}
    for keys, line in places.items():
        assert document.at(*keys) == f"{path}:{line}"
    assert document.at("a", "none", "of", "it") == f"{path}:2"
    assert document.at("none") == str(path)


def test_what_is_no_file(tmp_path: Path) -> None:
    assert read_document(tmp_path / "none", "json", "") is None
    assert read_document(tmp_path / "none" / "deeper", "json", "") is None
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a").write_text("{}")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "loop").symlink_to("loop")
    for name, why in (("folder", "is a folder, not a file"), ("pipe", "is not a regular file"), ("loop", "is a link")):
        document = read_document(tmp_path / name, "json", "it is ignored")
        assert document is not None
        assert document.content is None
        assert why in document.problems[0]
    linked = read_document(tmp_path / "link", "json", "")
    assert linked is not None
    assert linked.content == {}
    forbidden = read_document(tmp_path / "link", "json", "", link=False)
    assert forbidden is not None
    assert "is a link, and swecli follows none here" in forbidden.problems[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_rights(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("{}")
    (tmp_path / "f").chmod(0)
    document = read_document(tmp_path / "f", "json", "it is ignored")
    assert document is not None
    assert document.problems == (f"{tmp_path / 'f'}: cannot be read (Permission denied); it is ignored.",)

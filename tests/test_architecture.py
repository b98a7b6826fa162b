"""docs/architecture.md names files and functions that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MOST_HOPS = 30
_FILE = re.compile(r"swecli/[\w./]+")
_HOP = re.compile(r"^ {4}(?P<file>swecli/\S+)?(?: +(?P<number>\d+)  (?P<name>[\w.]+))?", re.MULTILINE)


def thread() -> list[tuple[str, int, str]]:
    """File, number and function of each hop from Enter to the request and back."""
    drawn = TEXT.partition("## From Enter")[2].partition("\n## ")[0]
    hops: list[tuple[str, int, str]] = []
    file = ""
    for found in _HOP.finditer(drawn):
        file = found["file"] or file
        if found["number"]:
            hops.append((file, int(found["number"]), found["name"]))
    return hops


def test_every_file_that_is_named_exists() -> None:
    named = {name.rstrip(".") for name in _FILE.findall(TEXT)}
    assert len(named) > 40
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def test_the_way_of_a_message_is_short_and_each_hop_is_where_it_is_said_to_be() -> None:
    hops = thread()
    assert [number for _, number, _ in hops] == [*range(1, len(hops) + 1)]
    assert 20 <= len(hops) <= MOST_HOPS
    for file, _, name in hops:
        source = (ROOT / file).read_text(encoding="utf-8")
        *owner, last = name.split(".")
        assert re.search(rf"(?:def|class) {last}\b", source), (file, name)
        assert not owner or f"class {owner[0]}" in source, (file, name)


def test_what_the_map_names_is_in_a_file_that_it_names_beside_it() -> None:
    table = TEXT.partition("## Where to look")[2].partition("\n## ")[0]
    checked = 0
    for row in table.splitlines():
        places = [ROOT / name.rstrip(".") for name in _FILE.findall(row)]
        folders = [place if place.is_dir() else place.parent for place in places]
        beside = [folder / name for name in re.findall(r"`(\w+\.py)`", row) for folder in folders]
        text = "".join(file.read_text(encoding="utf-8") for file in (*places, *beside) if file.is_file())
        for name in re.findall(r"`([A-Za-z_]+\.[a-z_]+|[A-Z][a-z]\w+|[a-z_]+\(\))`", row):
            *owner, last = name.removesuffix("()").split(".")
            if last in ("py", "toml"):
                continue
            assert re.search(rf"(?:def|class) {last}\b|^    {last}: ", text, re.MULTILINE), (name, row)
            assert not owner or f"class {owner[0]}" in text, (name, row)
            checked += 1
    assert checked > 50


def test_what_a_newcomer_looks_for_is_answered_with_a_file() -> None:
    table = TEXT.partition("## Where to look")[2].partition("\n## ")[0]
    for topic in (
        "sending a request",
        "approving a tool call",
        "undoing a file change",
        "computing the meter",
        "what a compaction keeps",
        "binding a key",
        "adding a slash command",
        "adding a provider",
        "running hooks",
        "showing the model a bullet of the playbook",
        "forking a session",
        "enforcing a budget",
        "offering an MCP tool to the model",
        "retrying a failed request",
        "queueing messages, interrupting with Esc",
        "cutting or offloading a large result",
        "background jobs",
        "trusting a folder",
    ):
        (row,) = (line for line in table.splitlines() if f"| {topic} |" in line)
        assert _FILE.search(row.split("|")[2]), topic

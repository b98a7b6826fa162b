"""Definitions of servers, as they are written in settings and files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from swecli.core.config.settings import McpSettings
from swecli.core.mcp.definitions import (
    DefinitionError,
    ServerDefinition,
    as_json,
    bound,
    merged,
    of_settings,
    read_file,
)
from swecli.core.mcp.tools import described, tool_name


def servers(tmp_path: Path, content: Any) -> tuple[dict[str, ServerDefinition], tuple[str, ...]]:
    file = tmp_path / ".mcp.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    found, problems = read_file(file, "project")
    return {one.name: one for one in found}, problems


def test_the_formats_of_other_programs(tmp_path: Path) -> None:
    entry = {"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}}
    tables = (
        {"mcpServers": {"x": entry}},
        {"servers": {"x": entry}},
        {"x": entry},
        {"mcp": {"x": entry}, "model": "m"},
    )
    for content in (*tables, {"mcp": {"servers": {"x": entry}, "inputs": []}, "editor.tabSize": 2}):
        found, problems = servers(tmp_path, content)
        assert not problems
        assert (found["x"].words, found["x"].env, found["x"].transport) == (("npx", "-y", "x"), {"A": "b"}, "stdio")
    found, _ = servers(tmp_path, {"mcpServers": {"a": {"type": "http", "url": "https://x/mcp", "headers": {"H": "v"}}}})
    assert (found["a"].transport, found["a"].url, found["a"].headers) == ("http", "https://x/mcp", {"H": "v"})
    found, _ = servers(tmp_path, {"mcpServers": {"a": {"type": "sse", "url": "http://x"}, "b": {"url": "http://y"}}})
    assert [one.transport for one in found.values()] == ["sse", "http"]
    assert not servers(tmp_path, {"mcpServers": {"x": {**entry, "disabled": True}}})[0]["x"].enabled


def test_the_settings_of_codex(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        """
model = "x"
[mcp_servers.x]
command = "npx"
args = ["-y", "x"]
env = { A = "b" }
[mcp_servers.y]
url = "https://x/mcp"
bearer_token_env_var = "TOKEN"
http_headers = { H = "v" }
"""
    )
    (x, y), problems = read_file(file, "user")
    assert not problems
    assert (x.words, x.env) == (("npx", "-y", "x"), {"A": "b"})
    assert (y.transport, y.headers) == ("http", {"H": "v", "Authorization": "Bearer ${TOKEN}"})
    file.write_text("= 1")
    assert "is not valid TOML" in read_file(file, "user")[1][0]


def test_variables_of_other_programs_are_ours(tmp_path: Path) -> None:
    env = {"A": "${env:K}", "B": "{env:K}", "C": "${input:my-key}", "D": "${userHome}/x", "E": "{K}"}
    found, _ = servers(tmp_path, {"mcp": {"x": {"type": "local", "command": ["npx"], "environment": env}}})
    assert found["x"].env == {"A": "${K}", "B": "${K}", "C": "${my_key}", "D": "${HOME}/x", "E": "{K}"}


def test_a_server_may_be_called_like_a_table(tmp_path: Path) -> None:
    assert [*servers(tmp_path, {"mcp": {"command": "a"}, "servers": {"url": "https://x"}})[0]] == ["mcp", "servers"]
    assert [*servers(tmp_path, {"mcpServers": {"url": {"command": "a"}}})[0]] == ["url"]


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "streamable_http", "url": "https://x/mcp"},
        {"transportType": "streamable-http", "url": "https://x/mcp"},
        {"type": "streamableHttp", "url": "https://x/mcp"},
        {"httpUrl": "https://x/mcp"},
        {"type": "local", "command": ["npx", "-y", "x"], "environment": {"A": "b"}},
        {"command": "npx", "args": ["-y", "x"], "env": {"A": "b", "UNSET": None}},
    ],
)
def test_the_entries_of_other_programs(entry: Any, tmp_path: Path) -> None:
    found, problems = servers(tmp_path, {"mcpServers": {"x": entry}})
    assert not problems
    if found["x"].transport == "stdio":
        assert (found["x"].words, found["x"].env) == (("npx", "-y", "x"), {"A": "b"})
    else:
        assert (found["x"].transport, found["x"].url) == ("http", "https://x/mcp")


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("text", "must be an object"),
        ({}, "has no command"),
        ({"command": 5}, "command must be a string"),
        ({"command": "x", "args": "y"}, "args must be a list"),
        ({"command": "x", "env": {"A": ["b"]}}, "env must be an object of strings"),
        ({"command": "x\0y"}, "NUL"),
        ({"command": "x", "env": {"A=B": "c"}}, "is not a variable's name"),
        ({"url": "ftp://x"}, "must begin with http"),
        ({"type": "grpc", "url": "http://x"}, "must be stdio, http or sse"),
    ],
)
def test_a_server_that_can_not_be_used(entry: Any, told: str, tmp_path: Path) -> None:
    found, problems = servers(tmp_path, {"mcpServers": {"bad": entry, "good": {"command": "x"}}})
    assert list(found) == ["good"]
    assert told in problems[0]


@pytest.mark.parametrize(
    "content",
    ["", "{", "[" * 100_000, "[]", "null", '{"mcpServers": []}', "\udcff".encode("utf-8", "replace").decode()],
)
def test_files_that_hold_no_servers(content: str, tmp_path: Path) -> None:
    assert servers(tmp_path, content)[0] == {}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{\n"mcpServers": []}', ":2: mcpServers is not an object; the servers in it are ignored."),
        ('{\n"mcp": {\n"servers": 3}}', ": servers is not an object"),
        ('{"mcpserver": {}}', ": has no mcpServers; nothing in it is used."),
        ('{"mcpServers": {\n"x": {"command": "y",\n"timeout": "soon"}}}', ":2: server x: timeout is not a number"),
        ('{"mcpServers": {\n"x": {"command": "y", "disabled": "no"}}}', ":2: server x: disabled is neither true nor"),
        ('{"mcpServers": {\n\n"bad": {"command": 3}}}', ":3: ignored server 'bad': command must be a string."),
        ('{"mcpServers": {\n"x": {"command": "a"},\n"x": {"command": "b"}}}', ":3: 'x' appears twice in one object"),
    ],
)
def test_each_ignored_part_is_named_with_its_line(content: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / ".mcp.json"
    file.write_text(content)
    (problem,) = read_file(file, "project")[1]
    assert problem.startswith(f"{file}{told}")


def test_a_program_for_headers_is_reported_and_not_run(tmp_path: Path) -> None:
    entry = {"url": "https://x", "headersHelper": "touch ran"}
    found, problems = servers(tmp_path, {"mcpServers": {"x": entry}})
    assert found["x"].headers == {}
    assert "headersHelper is not run" in problems[0]


@pytest.mark.parametrize("name", ["", "ä", "***", "../"])
def test_names_that_no_server_may_have(name: str, tmp_path: Path) -> None:
    found, problems = servers(tmp_path, {"mcpServers": {name: {"command": "x"}}})
    assert not found
    assert "its name must use" in problems[0]


def test_no_file_is_no_problem(tmp_path: Path) -> None:
    assert read_file(tmp_path / "none.json", "user") == ((), ())


def test_variables_are_replaced_late() -> None:
    found = ServerDefinition(
        "x", "stdio", "${BIN:-npx}", ("--key=${KEY}",), env={"A": "${KEY}-${NONE:-}"}, headers={"H": "${KEY}"}
    )
    whole = found.expanded({"KEY": "secret"})
    assert (whole.words, whole.env, whole.headers) == (("npx", "--key=secret"), {"A": "secret-"}, {"H": "secret"})
    assert "secret" not in found.line
    assert found.expanded({"KEY": "other"}).name == "x"
    with pytest.raises(DefinitionError, match="KEY is not set"):
        found.expanded({})


def test_what_a_person_should_know_names_whose_values_go_there() -> None:
    found = ServerDefinition(
        "x", "stdio", "npx", env={"A": "${KEY}-${TOKEN:-}", "B": "1"}, headers={"H": "Bearer ${KEY}"}, cwd="sub"
    )
    assert found.given == (
        "in the folder sub",
        "with the variables A (your KEY, TOKEN), B",
        "with the headers H (your KEY)",
    )
    assert ServerDefinition("x", "stdio", "npx").given == ()


@pytest.mark.parametrize(
    ("words", "cwd", "programs"),
    [
        (("python3", "server.py", "data.db"), "", ["server.py"]),
        (("python3", "tools/run.py"), "", ["tools/run.py"]),
        (("./run.py", "--verbose"), "tools", ["tools/run.py"]),
        (("uv", "--directory", "tools", "run", "run.py"), "", ["tools/run.py"]),
        (("sh", "-c", "cd tools && exec python3 run.py"), "", ["tools/run.py"]),
        (("./tool", "server.py"), "", ["server.py", "tool"]),
        (("npx", "-y", "@x/server", "data.db", "."), "", []),
    ],
)
def test_programs_of_the_workspace_are_part_of_a_definition(
    words: tuple[str, ...], cwd: str, programs: list[str], tmp_path: Path
) -> None:
    (tmp_path / "tools").mkdir()
    for name in ("server.py", "tools/run.py", "tool", "data.db"):
        (tmp_path / name).write_text("one")
    one = ServerDefinition("x", "stdio", words[0], words[1:], cwd=cwd)
    known = bound(one, tmp_path)
    assert [name for name, _ in known.programs] == programs
    assert known.asks == bool(programs)
    for name in programs:
        (tmp_path / name).write_text("two")
    (tmp_path / "data.db").write_text("two")
    assert (bound(one, tmp_path).fingerprint == known.fingerprint) == (not programs)


def test_the_fingerprint_covers_what_runs() -> None:
    one = ServerDefinition("x", "stdio", "a", ("b",), env={"A": "1"})
    others = [
        ServerDefinition("x", "stdio", "a", ("c",), env={"A": "1"}),
        ServerDefinition("x", "stdio", "a", ("b",), env={"A": "2"}),
        ServerDefinition("x", "stdio", "a", ("b",), env={"A": "1"}, cwd="/"),
        ServerDefinition("y", "stdio", "a", ("b",), env={"A": "1"}),
    ]
    assert len({one.fingerprint, *(other.fingerprint for other in others)}) == 5
    assert ServerDefinition("x", "stdio", "a", ("b",), env={"A": "1"}, origin="z").fingerprint == one.fingerprint


def test_settings_and_the_first_of_a_name_wins() -> None:
    own = of_settings("x", McpSettings(command="a", args=("b",), trust=True), "config.toml:3")
    assert (own.words, own.trust, own.scope) == (("a", "b"), True, "user")
    with pytest.raises(DefinitionError, match="no url"):
        of_settings("x", McpSettings(), "config.toml:3")
    project = ServerDefinition("x", "stdio", "evil", origin=".mcp.json", scope="project")
    found, told = merged([own], [project])
    assert found == (own,)
    assert told == ("MCP server x: using config.toml:3, not .mcp.json.",)
    assert as_json(own) == {"command": "a", "args": ["b"]}


def test_names_of_tools() -> None:
    assert tool_name("hub", "say") == "mcp__hub__say"
    odd = [tool_name("hub", "a.b"), tool_name("hub", "a b"), tool_name("hub", "a_b")]
    assert len(set(odd)) == 3
    long = [tool_name("hub", "x" * 80), tool_name("hub", "x" * 81)]
    assert long[0] != long[1]
    assert all(len(name) <= 64 for name in (*odd, *long))


def test_descriptions_are_bounded_and_have_nothing_hidden() -> None:
    assert described(" Says\u200b it.\u202e\x1b[31m\U000e0041 ") == "Says it.[31m"
    assert len(described("é" * 5_000).encode()) <= 2_051


@pytest.mark.parametrize(
    ("name", "usable"),
    [
        ("My Files", "My_Files"),
        ("a__b", "a_b"),
        ("@scope/x (dev)", "scope_x_dev"),
        ("a.b-c", "a.b-c"),
        ("../x", "x"),
        ("x" * 65, "x" * 64),
    ],
)
def test_a_name_that_tools_cannot_have_is_adapted_and_told(tmp_path: Path, name: str, usable: str) -> None:
    found, problems = servers(tmp_path, {"mcpServers": {name: {"command": "x"}}})
    assert list(found) == [usable]
    assert [f"the server {name!r} is called {usable} here." in text for text in problems] == [True] * (name != usable)


def test_the_folder_of_a_plugin_is_known_in_its_own_file(tmp_path: Path) -> None:
    content = {"x": {"command": "${CLAUDE_PLUGIN_ROOT}/run", "args": ["${OTHER}"]}}
    found, _ = servers(tmp_path, content)
    assert found["x"].command == "${CLAUDE_PLUGIN_ROOT}/run"
    (tmp_path / ".claude-plugin").mkdir()
    found, _ = servers(tmp_path, content)
    assert (found["x"].command, found["x"].args) == (f"{tmp_path}/run", ("${OTHER}",))


def test_a_folder_in_place_of_the_file_counts_as_no_file(tmp_path: Path) -> None:
    """The sandbox puts one there while a command runs."""
    file = tmp_path / ".mcp.json"
    file.mkdir()
    assert read_file(file, "project", held=lambda path: path == file) == ((), ())
    assert read_file(file, "project")[1] == (f"{file}: is a folder, not a file; its servers are ignored.",)

"""Which server is for a file, and where it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.config.settings import LanguageServerSettings
from swecli.core.language_servers.definitions import (
    LanguageServer,
    defined,
    found_program,
    known,
    root_of,
    suited,
    usable,
)


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_known_ones() -> None:
    assert {"basedpyright", "typescript", "gopls", "rust-analyzer", "clangd"} <= set(known())
    assert known()["typescript"].language("/x/A.TSX") == "typescriptreact"
    assert known()["clangd"].language("Makefile") is None


def test_settings_come_first_and_change_known_ones() -> None:
    own = LanguageServerSettings(command="zls", extensions=("*.zig", "zon"), language="zig")
    more = LanguageServerSettings(args=("-v",), settings={"python": {"x": 1}, "python.analysis": {"y": 2}, "a.b": 3})
    servers, problems = defined({"zig": own, "pyright": more, "gopls": LanguageServerSettings(enabled=False)}, {})
    assert [server.name for server in servers][:2] == ["zig", "pyright"]
    assert servers[0].languages == {".zig": "zig", ".zon": "zig"}
    assert servers[1].command == ("pyright-langserver", "--stdio", "-v")
    assert servers[1].language("a.py") == "python"
    assert servers[1].settings == {"python": {"x": 1, "analysis": {"y": 2}}, "a": {"b": 3}}
    assert not any(server.name == "gopls" for server in servers)
    assert problems == ()


@pytest.mark.parametrize(
    ("section", "missing"),
    [(LanguageServerSettings(command="x"), "extensions"), (LanguageServerSettings(extensions=(".x",)), "command")],
)
def test_a_section_that_can_not_be_used(section: LanguageServerSettings, missing: str) -> None:
    servers, problems = defined({"mine": section}, {"mine": "config.toml:3"})
    assert problems == (f"config.toml:3: ignored language server 'mine': it has no {missing}.",)
    assert not any(server.name == "mine" for server in servers)


def test_programs_are_found_by_absolute_places_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    outer, inner = program(tmp_path / "bin" / "serve"), program(work / "bin" / "serve")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "serve").symlink_to(inner)
    monkeypatch.chdir(work)
    server = LanguageServer("s", ("serve",), {".x": "x"})

    def found(command: str, path: str) -> tuple[str, bool] | None:
        one = found_program(LanguageServer("s", (command,), server.languages), path, (work,))
        return (one.path, one.inside) if one is not None else None

    assert found("serve", f"bin:.::{tmp_path}/bin") == (str(outer), False)
    assert found("serve", f"{work}/bin") == (str(inner), True)
    assert found("serve", f"{tmp_path}/linked") == (f"{tmp_path}/linked/serve", True)
    assert found(str(outer), "") == (str(outer), False)
    assert found("bin/serve", "") is found("./bin/serve", str(work)) is found("none", str(tmp_path / "bin")) is None


def test_a_server_is_offered_where_the_workspace_has_its_files(tmp_path: Path) -> None:
    program(tmp_path / "bin" / "serve")
    work = tmp_path / "work"
    (work / "node_modules").mkdir(parents=True)
    (work / "node_modules" / "a.x").touch()
    servers = (LanguageServer("s", ("serve",), {".x": "x", ".y": "y"}),)
    assert usable(servers, "", (work,)) == ((), False)
    found, has_files = usable(servers, str(tmp_path / "bin"), (work,))
    assert [one.server.name for one in found] == ["s"]
    assert not has_files
    (work / "deep" / "er").mkdir(parents=True)
    (work / "deep" / "er" / "A.X").touch()
    assert usable(servers, str(tmp_path / "bin"), (work,))[1]


def test_the_outermost_mark_within_the_workspace_is_the_root(tmp_path: Path) -> None:
    work = tmp_path / "work"
    inner = work / "packages" / "one"
    inner.mkdir(parents=True)
    server = LanguageServer("s", ("serve",), {".x": "x"}, ("mark",))
    (tmp_path / "mark").touch()
    assert root_of(server, inner / "a.x", (work,)) == work
    (inner / "mark").touch()
    assert root_of(server, inner / "a.x", (work,)) == inner
    (work / "packages" / "mark").touch()
    assert root_of(server, inner / "a.x", (work,)) == work / "packages"
    assert root_of(server, tmp_path / "a.x", (work,)) is None


def test_the_servers_for_a_file_come_in_order(tmp_path: Path) -> None:
    program(tmp_path / "serve")
    servers = [LanguageServer(name, ("serve",), {ending: "x"}) for name, ending in (("a", ".d.ts"), ("b", ".ts"))]
    programs = [one for server in servers if (one := found_program(server, str(tmp_path), ())) is not None]
    named = {path: [one.server.name for one in suited(programs, path)] for path in ("x.d.ts", "x.ts", "x.js")}
    assert named == {"x.d.ts": ["a", "b"], "x.ts": ["b"], "x.js": []}

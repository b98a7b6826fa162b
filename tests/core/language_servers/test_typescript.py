"""Which TypeScript is found for a server, and what is said where there is none."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from swecli.core.config.settings import LanguageServerSettings
from swecli.core.language_servers.definitions import Program, defined, found_program, known
from swecli.core.language_servers.servers import LanguageServerOptions
from swecli.core.language_servers.typescript import LACKING, errors_of, is_too_old, tsserver_for
from tests.core.engine.support import until
from tests.core.language_servers.support import PATIENT, Served, messages, unkind

OWN = "node_modules/typescript/lib/tsserver.js"


def put(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def linked(prefix: Path, name: str, target: Path) -> Path:
    link = prefix / "node_modules" / ".bin" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)
    return link


def installed(prefix: Path, version: str) -> Path:
    """The ``tsc`` of a TypeScript in a folder, as npm puts it there."""
    package = prefix / "node_modules" / "typescript"
    put(package / "package.json", f'{{"name": "typescript", "version": "{version}"}}')
    if not version.startswith("7"):
        put(package / "lib" / "tsserver.js")
    return linked(prefix, "tsc", put(package / "bin" / "tsc"))


def server_in(prefix: Path) -> Path:
    """A typescript-language-server that runs Python in place of node."""
    script = f'#!/bin/sh\nexec {sys.executable} "$@"\n'
    program = put(prefix / "node_modules" / "typescript-language-server" / "lib" / "cli.mjs", script)
    return linked(prefix, "typescript-language-server", program)


def test_the_projects_own_comes_first_then_the_one_beside_then_that_on_path(tmp_path: Path) -> None:
    server, search = str(server_in(tmp_path / "a")), f".:{tmp_path}/b/node_modules/.bin"
    work = tmp_path / "work" / "packages" / "one"
    work.mkdir(parents=True)
    assert tsserver_for(work, server, search) == (None, False)
    installed(tmp_path / "b", "5.9.3")
    assert tsserver_for(work, server, search) == (tmp_path / "b" / OWN, True)
    installed(tmp_path / "a", "6.0.1")
    assert tsserver_for(work, server, search) == (tmp_path / "a" / OWN, True)
    sdk = put(tmp_path / "work" / ".yarn" / "sdks" / "typescript" / "lib" / "tsserver.js")
    assert tsserver_for(work, server, search) == (sdk, True)
    installed(work, "5.0.0")
    assert tsserver_for(work, server, search) == (work / OWN, True)


def test_version_7_has_no_tsserver(tmp_path: Path) -> None:
    server = str(server_in(tmp_path / "a"))
    installed(tmp_path, "7.0.2")
    assert tsserver_for(tmp_path, server, f"{tmp_path}/node_modules/.bin") == (None, False)


def test_a_wrapper_may_know_of_one(tmp_path: Path) -> None:
    wrapper = put(tmp_path / "bin" / "typescript-language-server", "#!/bin/sh\n")
    assert tsserver_for(tmp_path, str(wrapper), "") == (None, True)


def test_an_old_compiler_is_no_language_server(tmp_path: Path) -> None:
    assert is_too_old(str(installed(tmp_path / "five", "5.9.3")))
    assert not is_too_old(str(installed(tmp_path / "seven", "7.1.0-dev.20261021.1")))
    script = put(tmp_path / "pnpm" / "node_modules" / ".bin" / "tsc", "#!/bin/sh\n")
    assert not is_too_old(str(script))
    put(tmp_path / "pnpm" / "node_modules" / "typescript" / "package.json", '{"name": "typescript", "version": "6.0"}')
    assert is_too_old(str(script))
    put(tmp_path / "pnpm" / "node_modules" / "typescript" / "package.json", "{no")
    assert not is_too_old(str(script))


def test_programs_of_the_project_are_found_after_those_on_path(tmp_path: Path) -> None:
    work, seven = tmp_path / "work", installed(tmp_path / "work", "7.0.2")
    assert found_program(known()["tsc"], "", (work,)) == Program(known()["tsc"], str(seven), inside=True)
    installed(tmp_path / "old", "5.0.0")
    found = found_program(known()["tsc"], f"{tmp_path}/old/node_modules/.bin", (work,))
    assert found is not None
    assert found.path == str(seven)
    on_path = installed(tmp_path / "new", "7.0.0")
    found = found_program(known()["tsc"], str(on_path.parent), (work,))
    assert found is not None
    assert (found.path, found.inside) == (str(on_path), False)
    pylsp = put(work / ".venv" / "bin" / "pylsp", "#!/bin/sh\n")
    assert found_program(known()["pylsp"], "", (work,)) == Program(known()["pylsp"], str(pylsp), inside=True)


def test_a_command_of_the_settings_needs_nothing_else() -> None:
    servers, _ = defined({"typescript": LanguageServerSettings(command="/opt/serve")}, {})
    assert servers[0].needs == ""
    servers, _ = defined({"typescript": LanguageServerSettings(args=("--x",))}, {})
    assert servers[0].needs == "tsserver"


PLACE = {"line": 3, "offset": 5}


@pytest.mark.parametrize(
    ("one", "lines"),
    [
        ({"category": "error", "message": "m", "code": 2345, "startLocation": PLACE, "endLocation": PLACE}, [2]),
        ({"category": "error", "startLocation": PLACE}, [2]),
        ({"category": "suggestion", "startLocation": PLACE}, []),
        ({"category": "error", "startLocation": {"line": "x"}}, []),
        ({"category": "error"}, []),
        (7, []),
    ],
)
def test_errors_in_an_answer(one: Any, lines: list[int]) -> None:
    errors = errors_of({"body": [one]})
    assert errors is not None
    assert [error.range.start.line for error in errors] == lines


@pytest.mark.parametrize("answer", [None, {"type": "cancelled"}, {"body": 3}, "no"])
def test_an_answer_that_is_none(answer: Any) -> None:
    assert errors_of(answer) is None


def lacking(folder: Path, *ways: str) -> Program:
    """A server that needs TypeScript, with none beside it."""
    program = unkind("pull", *ways)
    server = replace(program.server, needs="tsserver", options={"tsserver": {"useSyntaxServer": "never"}})
    return Program(server, str(server_in(folder)), inside=False)


def in_work(folder: Path, program: Program, *others: Program) -> Served:
    work = folder / "work"
    work.mkdir()
    return Served(work, program, LanguageServerOptions(PATIENT), None, *others)


async def test_without_typescript_it_is_not_started_and_that_is_told_once(tmp_path: Path) -> None:
    made = in_work(tmp_path, lacking(tmp_path / "a"))
    made.file("a.txt", "fine\n")
    for count in range(3):
        assert await made.edit("a.txt", f"ERR {count}\n") == ""
    said = f"The language server unkind is not available: {LACKING}. Edits continue without its errors."
    assert made.host.notices == [said]
    assert (made.server.state, made.server.pid, made.server.error) == ("failed", None, LACKING)
    await made.servers.close()


async def test_another_server_for_the_same_files_is_used_without_a_word(tmp_path: Path) -> None:
    made = in_work(tmp_path, lacking(tmp_path / "a"), unkind("pull", name="second"))
    made.file("a.txt", "fine\n")
    assert (await made.edit("a.txt", "ERR\n")).startswith("second reports 1 new error")
    assert made.host.notices == []
    await made.servers.close()


async def test_where_none_can_be_started_the_first_is_told(tmp_path: Path) -> None:
    dead = unkind("dead", name="tsc")
    dead = replace(dead, server=replace(dead.server, quiet=True))
    made = in_work(tmp_path, lacking(tmp_path / "a"), dead)
    made.file("a.txt", "fine\n")
    assert await made.edit("a.txt", "ERR\n") == ""
    await until(lambda: bool(made.host.notices), "the notice")
    assert await made.edit("a.txt", "ERR 2\n") == ""
    (notice,) = made.host.notices
    assert notice.startswith("The language server unkind is not available: it needs TypeScript")
    await made.servers.close()


async def test_what_is_installed_meanwhile_is_used(tmp_path: Path) -> None:
    record = tmp_path / "record"
    made = in_work(tmp_path, lacking(tmp_path / "a", f"record={record}"))
    made.file("a.txt", "fine\n")
    assert await made.edit("a.txt", "ERR 1\n") == ""
    installed(made.folder, "5.9.3")
    assert await made.edit("a.txt", "ERR 1\nERR 2\n") == "unkind reports 1 new error:\na.txt:2: bad: ERR 2 [E1]"
    options = messages(record)[0]["params"]["initializationOptions"]
    assert options == {"tsserver": {"fallbackPath": str(made.folder / OWN), "useSyntaxServer": "never"}}
    assert (made.server.lacks, made.server.error) == ("", "")
    await made.servers.close()

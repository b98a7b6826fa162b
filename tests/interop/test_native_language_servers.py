"""clangd, gopls and rust-analyzer where they are installed: `make test-interop` runs them."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from swecli.core.language_servers.definitions import Program, found_program, known
from swecli.core.language_servers.servers import LanguageServerOptions
from swecli.core.workspace.process_tree import owned
from tests.core.engine.support import until
from tests.core.language_servers.support import PATIENT, Served

pytestmark = pytest.mark.skipif("SWECLI_INTEROP_LSP" not in os.environ, reason="make test-interop")


@dataclass(frozen=True)
class Project:
    """Two files, the second of which calls ``price`` of the first with ``good``, an argument for which ``bad`` is of
    the wrong type. ``place`` is where the name stands in the first: line from 1, column from 0."""

    others: dict[str, str]
    first: tuple[str, str]
    second: tuple[str, str]
    good: str
    bad: str
    words: str
    place: tuple[int, int]


PROJECTS = {
    "clangd": Project(
        {"compile_flags.txt": "-std=c++17\n"},
        ("prices.hpp", "#pragma once\ninline int price(int pens) { return pens * 2; }\n"),
        ("shop.cpp", '#include "prices.hpp"\n// 😀\nint main() { return price(3); }\n'),
        "price(3)",
        'price("3")',
        "shop.cpp:3: ",
        (2, 11),
    ),
    "gopls": Project(
        {"go.mod": "module shop\n\ngo 1.17\n"},
        ("prices.go", "package main\n\nfunc price(pens int) int { return pens * 2 }\n"),
        ("shop.go", "package main\n\n// 😀\nfunc main() { println(price(3)) }\n"),
        "price(3)",
        'price("3")',
        "shop.go:4: ",
        (3, 5),
    ),
    "rust-analyzer": Project(
        {"Cargo.toml": '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n'},
        ("src/prices.rs", "pub fn price(pens: u32) -> u32 {\n    pens * 2\n}\n"),
        ("src/main.rs", 'mod prices;\n// 😀\nfn main() { println!("{}", prices::price(3)); }\n'),
        "price(3)",
        'price("3")',
        "src/main.rs:3: ",
        (1, 7),
    ),
}


def installed(name: str) -> Program | None:
    """The server; None where there is none. Of rust-analyzer rustup has a program without the component."""
    found = found_program(known()[name], os.environ["PATH"], ())
    if found is not None and name == "rust-analyzer":
        asked = subprocess.run([found.path, "--version"], check=False, capture_output=True)
        return None if asked.returncode else found
    return found


@pytest.mark.parametrize("name", PROJECTS)
async def test_a_broken_type_is_told_and_a_clean_edit_is_not(tmp_path: Path, name: str) -> None:
    found = installed(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    home = {key: os.environ[key] for key in ("HOME", "TMPDIR") if key in os.environ}
    program = replace(found, server=replace(found.server, env={**home, "GO111MODULE": "on"}))
    project = PROJECTS[name]
    made = Served(tmp_path, program, LanguageServerOptions(PATIENT), None)
    try:
        for file, text in (*project.others.items(), project.first):
            made.file(file, text)
        file, text = project.second
        path = made.file(file, text)
        await made.servers.expect([str(path)])
        await until(lambda: made.server.open_files == 1 and made.server.state == "ready", "the first look")
        await made.servers.ask("outline", path)  # the checks before are done
        assert await made.edit(file, text + "// a remark\n") == ""
        broken = await made.edit(file, text.replace(project.good, project.bad))
        assert broken.startswith(f"{name} reports 1 new error:\n{project.words}"), broken
        assert await made.edit(file, text) == ""
        uses = await made.servers.ask("references", made.folder / project.first[0], *project.place)
        assert {one.path.name for one in uses} == {Path(project.first[0]).name, Path(file).name}
    finally:
        await made.servers.close()
    assert not owned()

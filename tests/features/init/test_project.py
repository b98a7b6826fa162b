"""Facts about projects of several kinds, read from files alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from swecli.features.init import scan as scan_module
from swecli.features.init.project import Project


def write(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return root


def commands(project: Project) -> dict[str, str]:
    return {command.purpose: command.command for command in project.commands}


PYTHON = {
    "pyproject.toml": """
[project]
name = "slugs"
description = "Makes slugs"
dependencies = ["text-unidecode>=1.3", "rich"]
optional-dependencies.dev = ["pytest"]
scripts.slugs = "slugs.cli:main"
[tool.pytest.ini_options]
testpaths = ["tests"]
[tool.ruff.format]
[tool.mypy]
""",
    "slugs/__init__.py": '"""Slugs from text."""\n',
    "slugs/cli.py": "def main(): ...\n",
    "tests/test_slugs.py": "def test_it(): ...\n",
    "README.md": "# Slugs\n\n[![ci](x)](y)\n\nTurns *titles* into\n[slugs](https://x).\n\nMore.\n",
    ".github/workflows/ci.yml": """
jobs:
  a:
    steps:
      - run: |
          pytest
          tox -e nothing
      - run: make gone
""",
}


def test_a_python_package(tmp_path: Path) -> None:
    project = Project(write(tmp_path, PYTHON))
    assert (project.name, project.description, project.languages) == ("slugs", "Makes slugs", ["Python"])
    assert commands(project) == {
        "install": 'pip install -e ".[dev]"',
        "test": "pytest",
        "test_one": "pytest tests/test_slugs.py",
        "lint": "ruff check .",
        "format": "ruff format .",
        "types": "mypy .",
        "run": "slugs",
    }
    assert dict(project.dependencies) == {"text-unidecode": ">=1.3", "rich": ""}
    assert set(project.key_files) == {
        "pyproject.toml",
        "slugs/cli.py",
        ".github/workflows/ci.yml",
        "README.md",
    }
    assert "tox" not in str(project.others)
    assert "make" not in str(project.others)
    assert "slugs/__init__.py: Slugs from text." in project.scan.outline()


def test_tasks_that_the_project_names_come_before_what_its_manifests_imply(tmp_path: Path) -> None:
    makefile = "VAR := 1\n.PHONY: test lint\ntest lint: deps ; x\n%.o: %.c\nunit-test::\n\tx\ninstall:\n\tx\n"
    project = Project(write(tmp_path, {**PYTHON, "Makefile": makefile}))
    found = commands(project)
    assert (found["test"], found["lint"], found["install"]) == ("make test", "make lint", "make install")
    assert "pytest" in [command.command for command in project.others]


@pytest.mark.parametrize(
    ("lock", "runner"), [("uv.lock", "uv run "), ("poetry.lock", "poetry run "), ("requirements.txt", "")]
)
def test_programs_of_the_environment_run_in_it(tmp_path: Path, lock: str, runner: str) -> None:
    manifest = """
[project]
name = "p"
scripts = { p = "p:main" }
[dependency-groups]
dev = ["pytest>=8", "mypy"]
[tool.pytest.ini_options]
[tool.ruff]
[tool.mypy]
"""
    files = {lock: "", "pyproject.toml": manifest, "src/p/__init__.py": "def main(): ...\n", "tests/test_p.py": ""}
    project = Project(write(tmp_path, files))
    found = commands(project)
    assert found["test_one"] == f"{runner}pytest tests/test_p.py"
    assert (found["types"], found["run"]) == (f"{runner}mypy .", f"{runner}p")
    assert found["lint"] == "ruff check ."  # not declared: it may be installed outside
    assert project.has_command("pytest tests/test_p.py")
    assert project.misnamed("Run `pytest` and `mypy .`.") == []


def test_a_workspace_is_built_and_tested_as_a_whole(tmp_path: Path) -> None:
    manifest = '[workspace]\nmembers = ["crates/*"]\n[package]\nname = "r"\n'
    project = Project(write(tmp_path, {"Cargo.toml": manifest, "src/main.rs": ""}))
    assert project.has_command("cargo test --workspace")
    assert commands(project)["build"] == "cargo build --workspace"
    assert project.misnamed("`cargo test`") == []


def test_plain_scripts_and_unittest(tmp_path: Path) -> None:
    script = write(tmp_path / "a", {"test_x.py": "if __name__ == '__main__':\n    run()\n", "x.py": "", "y.py": ""})
    assert commands(Project(script))["test"] == "python3 test_x.py"
    unit = write(tmp_path / "b", {"tests/test_x.py": "import unittest\n", "setup.py": ""})
    found = commands(Project(unit))
    assert found["test"] == "python3 -m unittest discover -s tests"
    assert found["test_one"] == "python3 -m unittest tests/test_x.py"


def test_a_node_package(tmp_path: Path) -> None:
    package = {
        "name": "web",
        "scripts": {"test": "vitest", "lint": "eslint .", "dev": "vite", "typecheck": "tsc", "weird": "x"},
        "bin": {"web": "./bin/web.js"},
        "dependencies": {"react": "^19"},
        "devDependencies": {"vitest": "3", "typescript": "5"},
    }
    files = {"package.json": json.dumps(package), "pnpm-lock.yaml": "", "bin/web.js": "", "src/a.test.ts": ""}
    project = Project(write(tmp_path, files))
    assert project.languages == ["TypeScript"]
    assert commands(project) == {
        "install": "pnpm install",
        "test": "pnpm test",
        "test_one": "pnpm exec vitest run src/a.test.ts",
        "lint": "pnpm run lint",
        "types": "pnpm run typecheck",
        "run": "pnpm run dev",
    }
    assert "bin/web.js" in project.key_files


@pytest.mark.parametrize(
    ("files", "language", "test"),
    [
        ({"Cargo.toml": '[package]\nname = "x"\n', "src/main.rs": ""}, "Rust", "cargo test"),
        ({"go.mod": "module example.com/x\n", "pkg/a_test.go": ""}, "Go", "go test ./..."),
        ({"pom.xml": "<project/>", "mvnw": ""}, "Java", "./mvnw test"),
        ({"build.gradle.kts": "", "A.kt": ""}, "Kotlin", "gradle test"),
        ({"App.csproj": ""}, "C#", "dotnet test App.csproj"),
        ({"Gemfile": "gem 'rails', '~> 8'", "spec/a_spec.rb": ""}, "Ruby", "bundle exec rspec"),
        ({"composer.json": '{"scripts": {"test": "phpunit"}}'}, "PHP", "composer run test"),
        ({"mix.exs": ""}, "Elixir", "mix test"),
        ({"Package.swift": "", "Gemfile": "gem 'jazzy'", "Sources/A.swift": ""}, "Swift", "swift test"),
        ({"composer.json": "{}", "phpunit.xml.dist": "", "tests/ATest.php": ""}, "PHP", "phpunit"),
        ({"CMakeLists.txt": "enable_testing()", "a.cpp": ""}, "C++", "ctest --test-dir build"),
    ],
)
def test_other_ecosystems(tmp_path: Path, files: dict[str, str], language: str, test: str) -> None:
    project = Project(write(tmp_path, files))
    assert project.languages == [language]
    assert commands(project)["test"] == test


def test_a_project_is_written_in_what_most_of_its_programs_are(tmp_path: Path) -> None:
    tools = {f"tools/{name}.py": "" for name in "abcd"}
    c = write(tmp_path / "c", {"CMakeLists.txt": "", **{f"src/{n}.c": "" for n in range(40)}, **tools})
    assert Project(c).languages == ["C"]
    both = {**{f"crates/{n}.rs": "" for n in range(9)}, **{f"py/{n}.py": "" for n in range(4)}, "setup.py": ""}
    assert Project(write(tmp_path / "both", {"Cargo.toml": "[workspace]", **both})).languages == ["Rust", "Python"]
    types = {**{f"src/{n}.js": "" for n in range(9)}, **{f"types/{n}.d.ts": "" for n in range(12)}}
    assert Project(write(tmp_path / "js", {"package.json": "{}", **types})).languages == ["JavaScript"]
    read = {**{f"test/fixtures/{n}/input.js": "" for n in range(9)}, "src/a.ts": ""}
    assert Project(write(tmp_path / "read", {"package.json": "{}", **read})).languages == ["TypeScript"]
    cpp = {"App.slnx": '<Project Path="a.vcxproj" />', **{f"src/{n}.cpp": "" for n in range(4)}}
    project = Project(write(tmp_path / "cpp", cpp))
    assert (project.languages, project.commands) == (["C++"], [])


@pytest.mark.parametrize(
    ("files", "command"),
    [
        (
            {
                "pom.xml": "",
                "src/test/java/x/AbstractTest.java": "public abstract class AbstractTest {\n  @Test void x() {}\n}",
                "src/test/java/x/BaseTest.java": "public class BaseTest {\n  @AfterEach void x() {}\n}",
                "src/test/java/x/DbIntegrationTest.java": "class DbIntegrationTest {\n  @Test void x() {}\n}",
                "src/test/java/x/SlugTest.java": "class SlugTest {\n  @Test void x() {}\n}",
            },
            "mvn test -Dtest=SlugTest",
        ),
        (
            {"pom.xml": "", "a/core/src/test/java/x/SlugTest.java": "class SlugTest extends TestCase {}"},
            "mvn test -pl a/core -am -Dtest=SlugTest -Dsurefire.failIfNoSpecifiedTests=false",
        ),
        (
            {
                "build.gradle": "",
                "gradlew": "",
                "core/src/test/resources/Test.kt": "class Test { @Test fun x() {} }",
                "core/src/test/kotlin/x/SlugSpec.kt": "class SlugSpec {\n  @Test fun x() {}\n}",
            },
            "./gradlew :core:test --tests SlugSpec",
        ),
        (
            {
                "build.gradle.kts": "",
                "a/core/src/jvmTest/kotlin/SlugTest.kt": "class SlugTest {\n  @Test fun x() {}\n}",
            },
            "gradle :a:core:jvmTest --tests SlugTest",
        ),
        (
            {
                "Cargo.toml": '[package]\nautotests = false\n\n[[test]]\npath = "tests/all.rs"\nname = "all-of-it"\n',
                "tests/all.rs": "#[test]\nfn x() {}",
            },
            "cargo test --test all-of-it",
        ),
        (
            {"Cargo.toml": "[package]", "tests/common.rs": "pub fn x() {}", "tests/slug.rs": "#[test]\nfn x() {}"},
            "cargo test --test slug",
        ),
        (
            {
                "Cargo.toml": "[workspace]",
                "crates/a/Cargo.toml": '[package]\nname = "slug-core"',
                "crates/a/src/lib.rs": "",
                "crates/a/src/b.rs": "",
                "x_test.py": "import pytest",
            },
            "cargo test -p slug-core",
        ),
        (
            {
                "a/Slug.slnx": "",
                "a/Tests/BaseTests.cs": "public abstract class BaseTests {\n[Fact]",
                "a/Tests/SlugTests.cs": "public class SlugTests\n{\n    [Fact]\n",
            },
            "dotnet test a/Slug.slnx --filter FullyQualifiedName~SlugTests",
        ),
        ({"mix.exs": "", "test/slug_test.exs": ""}, "mix test test/slug_test.exs"),
        (
            {
                "package.json": '{"devDependencies": {"mocha": "1"}}',
                "test/support/env.js": "",
                "test/utils.js": "",
                "test/slug.js": "",
            },
            "npx mocha test/slug.js",
        ),
        (
            {"package.json": '{"devDependencies": {"vitest": "1"}}', "pnpm-lock.yaml": "", "a/slug.test.ts": ""},
            "pnpm exec vitest run a/slug.test.ts",
        ),
        (
            {"package.json": '{"devDependencies": {"jest": "1"}}', "yarn.lock": "", "a/slug.test.ts": ""},
            "yarn jest a/slug.test.ts",
        ),
        (
            {"package.json": '{"scripts": {"test": "bun test"}}', "test/slug.test.ts": ""},
            "bun test test/slug.test.ts",
        ),
        (
            {"deno.json": '{"tasks": {"test": "deno test -A --parallel"}}', "slug_test.ts": ""},
            "deno test -A --parallel slug_test.ts",
        ),
        (
            {"Gemfile": "", "config/application.rb": "", "test/test_helper.rb": "", "test/models/slug_test.rb": ""},
            "bin/rails test test/models/slug_test.rb",
        ),
        ({"Package.swift": "", "Tests/CoreTests/SlugTests.swift": ""}, "swift test --filter SlugTests"),
        (
            {"Gemfile": "", "Rakefile": "task :test", "test/models/slug_test.rb": ""},
            "bundle exec ruby -Itest test/models/slug_test.rb",
        ),
        (
            {"composer.json": '{"require-dev": {"pestphp/pest": "^3"}}', "tests/SlugTest.php": ""},
            "vendor/bin/pest tests/SlugTest.php",
        ),
        ({"go.mod": "", "a_test.go": "", "slug/slug_test.go": ""}, "go test ./slug/"),
    ],
)
def test_one_test_can_be_run(tmp_path: Path, files: dict[str, str], command: str) -> None:
    assert commands(Project(write(tmp_path, files)))["test_one"] == command


def test_the_main_language_of_a_project_gives_its_commands(tmp_path: Path) -> None:
    sources = {f"crates/a/src/{n}.rs": "" for n in range(9)}
    files = {"Cargo.toml": "[workspace]", "pyproject.toml": "[project]", "tests/test_x.py": "import pytest", **sources}
    found = commands(Project(write(tmp_path / "both", files)))
    assert (found["test"], "test_one" in found) == ("cargo test --workspace", False)
    # Scripts beside a program in another language say nothing of its tests.
    project = Project(write(tmp_path / "part", {"cpp/CMakeLists.txt": "", "dev/test_x.py": "import pytest", **sources}))
    assert project.commands == []
    assert project.key_files["cpp/CMakeLists.txt"] == "build of a part"


def test_a_small_part_in_another_language_does_not_speak_for_the_project(tmp_path: Path) -> None:
    package = '{"name": "slugs", "description": "The client of Slugs.", "scripts": {"test": "jest", "dev": "x"}}'
    sources = {f"lib/{n}.ex": "" for n in range(9)}
    inner = {"installer/mix.exs": "", "installer/test/a_test.exs": "", "test/deep/slug_test.exs": ""}
    readme = {"README.md": "# Slugs for Elixir\n\nThe shortest titles that you have seen.\n"}
    project = Project(write(tmp_path / "a", {"mix.exs": "", "package.json": package, **sources, **inner, **readme}))
    found = commands(project)
    assert (found["test"], found["test_one"]) == ("mix test", "mix test test/deep/slug_test.exs")
    assert found["run"] == "npm run dev"  # nothing else tells how
    assert (project.name, project.description) == ("Slugs for Elixir", "The shortest titles that you have seen.")
    files = {"Makefile": "all: slug\n", "Package.swift": "", "package.json": '{"version": "1"}'}
    files |= {f"{n}.c": "" for n in range(9)}
    found = commands(Project(write(tmp_path / "b", files)))
    assert (found["build"], "install" in found) == ("make all", False)


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (
            {"configure.ac": "", "Makefile.am": "", "src/a.c": ""},
            {"build": "autoreconf -i && ./configure && make", "test": "make check"},
        ),
        (
            {"meson.build": "", "src/a.c": ""},
            {"build": "meson setup build && meson compile -C build", "test": "meson test -C build"},
        ),
        (
            {"deno.json": '{"tasks": {"check:types": "x", "dev": "y"}}', "a.ts": ""},
            {
                "test": "deno test",
                "lint": "deno lint",
                "format": "deno fmt",
                "types": "deno task check:types",
                "run": "deno task dev",
            },
        ),
        ({"mypy.ini": "[mypy]\nstrict = true\nfiles = src\n", "a.py": ""}, {"types": "mypy"}),
        ({"mypy.ini": "[mypy]\nstrict = true\n[mypy-x]\nfiles = src\n", "a.py": ""}, {"types": "mypy ."}),
        ({"Makefile": "all: lint test\nlint:\n\tx\n", "a.c": ""}, {"lint": "make lint"}),
        ({"Makefile": "all: kilo # and no test\n", "a.c": ""}, {"build": "make all"}),
        ({"Makefile": "check: kilo\n\tx\n\t./test.sh\ntest: check\n", "a.c": ""}, {"test": "make test"}),
        ({"Makefile": "check: kilo\n\tlinter\n\ntest: kilo\n", "a.c": ""}, {"lint": "make check", "test": "make test"}),
    ],
)
def test_build_systems(tmp_path: Path, files: dict[str, str], found: dict[str, str]) -> None:
    assert commands(Project(write(tmp_path, files))) == found


@pytest.mark.parametrize("name", ["root", "@slugs/root", "slugs-monorepo/monorepo"])
def test_a_name_that_says_nothing_is_not_the_projects(tmp_path: Path, name: str) -> None:
    files = {"package.json": f'{{"name": "{name}"}}', "a.js": ""}
    assert Project(write(tmp_path / "slugs", files)).name == "slugs"
    assert Project(write(tmp_path / "slugs", {"README.md": "# Slugs for all\n"})).name == "Slugs for all"


def test_continuous_integration_is_read_where_it_checks_and_once_for_all_targets(tmp_path: Path) -> None:
    builds = "\n".join(f"      - run: cargo build --target t{n}" for n in range(9))
    checks = "      - run: cargo doc --no-deps\n      - run: python .github/scripts/x.py\n      - run: uv run\n"
    checks += (
        "      - run: make gccinstall\n      - run: cargo -V\n      - run: >\n          cargo\n          check --all\n"
    )
    checks += f"      - run: cargo test {'a' * 200}\n"
    files = {
        "Cargo.toml": "[package]",
        "Makefile": "gccinstall:\n\tx\n",
        ".github/scripts/x.py": "",
        ".github/workflows/build-all.yml": f"    steps:\n{builds}\n      - run: ./gradlew publishToMavenLocal\n",
        ".github/workflows/test.yml": f"    steps:\n{checks}",
    }
    found = [command.command for command in Project(write(tmp_path, files)).ci]
    assert found == ["cargo doc --no-deps", "cargo check --all", "cargo build --target t0"]


def test_what_is_no_command_for_the_daily_work_is_left_out(tmp_path: Path) -> None:
    makefile = "prefix = /usr/local\nall:\n\t@echo help\ninstall:\n\tcp slug $(DESTDIR)$(prefix)\n"
    runs = ("bash scripts/deploy.sh", "go run main.go release", "bash scripts/check.sh")
    files = {
        "Makefile": makefile,
        "go.mod": "module x\n",
        "_examples/small/main.go": "",
        ".github/scripts/test_tool.py": "import pytest\n",
        "scripts/deploy.sh": "",
        "scripts/check.sh": "",
        ".github/workflows/CICD.yml": "".join(f"run: {run}\n" for run in runs),
    }
    project = Project(write(tmp_path, files))
    assert commands(project) == {"build": "go build ./...", "test": "go test ./...", "lint": "go vet ./..."}
    assert [command.command for command in project.ci] == ["bash scripts/check.sh"]


@pytest.mark.parametrize(
    ("readme", "name", "description"),
    [
        (
            "![logo][banner]\n\n## Overview\n\nSlugs is a library for asynchronous I/O, used by [Node.js][].\n",
            "",
            "Slugs is a ",
        ),
        (
            "[Read this in Chinese](README_ZH.md)\n\n# Slugs 蛞蝓\n\nTurns titles into short addresses.\n",
            "Slugs 蛞蝓",
            "Turns ",
        ),
        ("# 短網址\n\n把標題轉換成簡短的網址。\n", "短網址", "把標題"),
        ("Slugs turns titles into addresses. It:\n\n* is small\n", "", "Slugs turns titles into addresses."),
        ("# Slugs\n\nTable of Contents\n\nThis repository contains the code of:\n\n- it\n", "Slugs", ""),
        # Headings, badges and captions in HTML.
        (
            '<a href="x">\n  <img/>\n</a>\n<div>\n<h1 align="center">Slugs</h1><h3>Short titles for you and me.</h3>\n'
            "<figure><figcaption>A picture of a slug, from above.</figcaption></figure>\n</div>\n\n"
            "Slugs makes the titles short.\n",
            "Slugs",
            "Slugs makes",
        ),
        # Badges over two lines come before the prose, and the heading of a section is no title.
        (
            "[![a](\nhttps://x/a.svg)](\nhttps://x/a)\n\n**Slugs** is a small library of titles.\n\n# Features\n\n-\n",
            "",
            "**Slugs** is",
        ),
        (
            "# Slugs\n\nSee the project website for more of it.\n\nSlugs makes titles short and plain.\n",
            "Slugs",
            "Slugs makes",
        ),
        ("# Slugs\n\nSlugs is:\n\n  1. A library for short titles\n\nIt is used by everybody.\n", "Slugs", "It is"),
        ("# Slugs\n\n> **Note:** These slides are about an\n> older version.\n", "Slugs", ""),
        ("# Slugs\n\n## Usage\n\nBegin by declaring a type that has titles.\n", "Slugs", ""),
        ('<p><a href="x">Python</a> - <a href="y">Rust</a> - <a href="z">Node.js</a> - R - C</p>\n', "", ""),
        ("Slugs\n=====\n\nAn alternative to Moment.js for all your titles.\n", "Slugs", "An alternative to Moment.js"),
    ],
)
def test_name_and_description_of_a_readme(tmp_path: Path, readme: str, name: str, description: str) -> None:
    project = Project(write(tmp_path / "folder", {"README.md": readme, "src/a.py": ""}))
    assert project.name == (name or "folder")
    assert project.description.startswith(description)
    assert bool(project.description) == bool(description)
    assert project.names_only_known(project.description)


def test_a_long_description_ends_with_a_sentence(tmp_path: Path) -> None:
    readme = f"# Slugs\n\nSlugs is a library for titles. {'It has a lot of words. ' * 30}\n"
    said = Project(write(tmp_path, {"README.md": readme})).description
    assert (said.endswith("words."), 370 < len(said) <= 400) == (True, True)
    endless = Project(write(tmp_path, {"README.md": f"# Slugs\n\nSlugs {'and words ' * 60}\n"})).description
    assert endless.endswith(("words ...", "and ..."))


def test_words_with_a_slash_and_placeholders_are_no_paths_of_the_project(tmp_path: Path) -> None:
    project = Project(write(tmp_path, PYTHON))
    assert project.names_only_known("Uses async/await for I/O and Node.js.")
    assert not project.names_only_known("See `async/await` and slugs/gone.")
    document = (
        "`git`, `./gradlew :module-name:test`, `src/<platform>/x.py`, `{{path/to/file}}`, `src/gone.py`, `make gone`"
    )
    assert project.misnamed(document) == ["src/gone.py", "make gone"]


def test_tox_nox_and_just(tmp_path: Path) -> None:
    files = {
        "tox.ini": "[tox]\nenvlist = py,lint\n[testenv:lint]\ncommands = x\n",
        "noxfile.py": "import nox\n@nox.session(python=['3.12'])\ndef format(session): ...\n",
        "justfile": "build:\n  x\nrun target:\n  x\nstart port='1':\n  x\nname := 'v'\n",
    }
    found = commands(Project(write(tmp_path, files)))
    assert found == {
        "build": "just build",
        "test": "tox",
        "lint": "tox -e lint",
        "format": "nox -s format",
        "run": "just start",
    }


def test_only_commands_that_exist_are_known(tmp_path: Path) -> None:
    files = {**PYTHON, "Makefile": "all:\n\tx\ntest:\n\tx\n", "tools/gen.py": "", "go.sh": ""}
    project = Project(write(tmp_path, files))
    for command in (
        "make test",
        "make -j all",
        "CI=1 make test",
        "make test && pytest -x tests/test_slugs.py::test_it",
        "python3 tools/gen.py --fast",
        "./go.sh",
        "pip install -e '.[dev]'",
    ):
        assert project.has_command(command), command
    for command in (
        "make deploy",
        "make",
        "pytest tests/gone.py",
        "npm test",
        "python3 gone.py",
        "./gone.sh",
        "pip install requests",
        "make test | tee log",
        "make test; rm -rf .",
        "cargo test",
        "",
        "'",
    ):
        assert not project.has_command(command), command


GITHUB = """
on: push
jobs:
  a:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - name: Set up
        run: pip install -e .
      - run: python scripts/check.py --strict
      - run: |
          cd web && make test
          echo done
          hatch run typing
          pytest \\
            -x tests
          python scripts/gone.py
          make gone
          pytest ${{ matrix.args }} | tee log
      - name: In a folder
        working-directory: web
        run: hatch run web
  b:
    steps:
    - run: "go vet ./..."
    - name: last
      run: >
        hatch run docs
"""
GITLAB = """
test:
  before_script:
    - pip install tox
  script:
    - hatch run unit
    - 'ruff check src'
  image: python
lint:
  script: mypy src
"""


def test_commands_of_continuous_integration_are_read_if_they_can_run(tmp_path: Path) -> None:
    files = {
        "scripts/check.py": "",
        "tests/test_a.py": "",
        "src/a.py": "",
        "web/a.js": "",
        "pyproject.toml": "[project]",
    }
    workflows = {".github/workflows/test.yml": GITHUB, ".github/workflows/release.yml": "run: hatch run release"}
    project = Project(write(tmp_path / "github", {**files, **workflows}))
    assert [command.command for command in project.ci] == [
        "python scripts/check.py --strict",
        "hatch run typing",
        "pytest -x tests",
        "go vet ./...",
        "hatch run docs",
    ]
    assert {command.source for command in project.ci} == {".github/workflows/test.yml"}
    assert project.has_command("hatch run typing")
    assert not project.has_command("hatch run web")
    project = Project(write(tmp_path / "gitlab", {**files, ".gitlab-ci.yml": GITLAB}))
    assert [command.command for command in project.ci] == ["hatch run unit", "ruff check src", "mypy src"]


def test_branch_and_commit_come_from_gits_files(tmp_path: Path) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    write(tmp_path, {"a.txt": "", ".git/HEAD": "ref: refs/heads/work\n", ".git/refs/heads/work": commit + "\n"})
    project = Project(tmp_path)
    assert (project.branch, project.commit) == ("work", commit[:10])
    (tmp_path / ".git/refs/heads/work").unlink()
    write(tmp_path, {".git/packed-refs": f"# pack-refs\n{commit} refs/heads/work\n"})
    assert Project(tmp_path).commit == commit[:10]


def test_hostile_content_is_no_obstacle(tmp_path: Path) -> None:
    secret = write(tmp_path / "outside", {"secret": "KEY=1"}) / "secret"
    root = write(
        tmp_path / "project",
        {
            "pyproject.toml": "= broken",
            "package.json": '{"scripts": 5, "dependencies": [',
            "setup.cfg": "no section",
            "Cargo.toml": "[package]\nname = 7\n",
            "composer.json": "[1]",
            "tox.ini": "][",
            ".gitignore": "!\n***/\nignored/\n",
            "ignored/a.py": "",
            "node_modules/x/index.js": "",
        },
    )
    (root / "README.md").symlink_to(secret)
    (root / "binary.py").write_bytes(b"\0" * 1_000)
    os.mkfifo(root / "Makefile")
    (root / "new\nline.py").touch()
    (root / "loop").symlink_to(root)
    project = Project(root)
    assert "KEY" not in repr((vars(project), project.scan.outline()))
    assert not any("node_modules" in path or "ignored" in path or "\n" in path for path in project.scan.files)
    assert project.scan.complete


def test_reading_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {f"f{number:03}.py": "x = 1\n" * 100 for number in range(100)})
    monkeypatch.setattr(scan_module, "MAX_ENTRIES", 50)
    project = Project(tmp_path)
    assert len(project.scan.files) == 50
    assert not project.scan.complete
    write(tmp_path, {f"test_{number}.py": "" for number in range(3)})
    monkeypatch.setattr(scan_module, "MAX_ENTRIES", 102)
    assert list(Project(tmp_path).patterns) == ["Tests (at least 2 files)"]
    monkeypatch.setattr(scan_module, "MAX_ENTRIES", 1_000)
    monkeypatch.setattr(scan_module, "MAX_TOTAL_BYTES", 2_000)
    limited = Project(tmp_path)
    assert len(limited.scan.outline()) <= 5
    assert not limited.scan.complete


def test_a_listing_that_takes_all_of_its_time_leaves_time_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a slow disk or in a huge project no file was read, and only the names of lock files gave commands."""
    write(tmp_path, {"Makefile": "test:\n\tx\n", "deep/a.py": ""})
    clock = iter(range(1_000))
    monkeypatch.setattr(scan_module.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(scan_module, "MAX_SECONDS", 1.5)
    scan = scan_module.Scan(tmp_path)
    assert not scan.complete
    assert scan.text("Makefile")


def test_the_structure_is_short(tmp_path: Path) -> None:
    write(tmp_path, {f"d{number}/sub{number % 3}/f.py": "" for number in range(40)})
    write(tmp_path, {f"d1/sub{number}/f.py": "" for number in range(9)})
    lines = Project(tmp_path).scan.structure()
    assert 5 < len(lines) <= 15
    assert any(line.startswith("`d1/`: 9 files") for line in lines)

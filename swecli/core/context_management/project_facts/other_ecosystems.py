"""Rust, Go, Java and Kotlin, .NET, Ruby, PHP, Elixir, C and C++: what their manifests say."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from swecli.core.context_management.project_facts.facts import Dependency, Findings, KeyFile, ProjectCommand
from swecli.core.context_management.project_facts.purpose import purpose_of
from swecli.core.context_management.project_facts.scan import Scan
from swecli.core.context_management.project_facts.values import table, text

_GO_REQUIRE = re.compile(r"^\s*(?:require\s+)?([\w.-]+\.[\w.-]+/\S+)\s+(v\S+)(?!.*// indirect)", re.MULTILINE)
_GEM = re.compile(r"^\s*gem\s+['\"]([\w-]+)['\"](?:\s*,\s*['\"]([^'\"]+)['\"])?", re.MULTILINE)


def read_rust(scan: Scan) -> Findings:
    if not scan.has("Cargo.toml"):
        return Findings()
    try:
        data: Any = tomllib.loads(scan.text("Cargo.toml"))
    except tomllib.TOMLDecodeError:
        data = {}
    package = table(data, "package")
    commands = [
        ProjectCommand("build", "cargo build", "Cargo.toml"),
        ProjectCommand("test", "cargo test", "Cargo.toml"),
    ]
    tests = [path for path in scan.files if re.fullmatch(r"tests/[\w-]+\.rs", path)]
    if tests:
        commands.append(ProjectCommand("test_one", f"cargo test --test {tests[0][6:-3]}", tests[0]))
    entry = scan.first("src/main.rs", "src/lib.rs")
    if entry == "src/main.rs":
        commands.append(ProjectCommand("run", "cargo run", entry))
    if scan.first("rustfmt.toml", ".rustfmt.toml"):
        commands.append(ProjectCommand("format", "cargo fmt", scan.first("rustfmt.toml", ".rustfmt.toml") or ""))
    dependencies = [
        Dependency(name, text(value) or text(table(value).get("version")), "Cargo.toml")
        for name, value in table(data, "dependencies").items()
    ]
    why = "workspace manifest" if table(data, "workspace") else "package manifest"
    return Findings(
        name=text(package.get("name")),
        description=text(package.get("description")),
        languages=("Rust",),
        commands=tuple(commands),
        key_files=(KeyFile("Cargo.toml", why), *([KeyFile(entry, "crate root")] if entry else [])),
        dependencies=tuple(dependencies),
    )


def read_go(scan: Scan) -> Findings:
    if not scan.has("go.mod"):
        return Findings()
    content = scan.text("go.mod")
    module = re.search(r"^module\s+(\S+)", content, re.MULTILINE)
    commands = [
        ProjectCommand("build", "go build ./...", "go.mod"),
        ProjectCommand("test", "go test ./...", "go.mod"),
        ProjectCommand("lint", "go vet ./...", "go.mod"),
    ]
    tests = scan.ending("_test.go")
    if tests:
        folder = tests[0].rpartition("/")[0]
        commands.append(ProjectCommand("test_one", f"go test ./{folder}", tests[0]))
    mains = [path for path in scan.ending("main.go") if path.rpartition("/")[2] == "main.go"]
    if mains:
        folder = mains[0].rpartition("/")[0]
        commands.append(ProjectCommand("run", f"go run ./{folder}" if folder else "go run .", mains[0]))
    return Findings(
        name=module.group(1) if module else "",
        languages=("Go",),
        commands=tuple(commands),
        key_files=(KeyFile("go.mod", "module manifest"), *(KeyFile(path, "program") for path in mains[:3])),
        dependencies=tuple(Dependency(name, version, "go.mod") for name, version in _GO_REQUIRE.findall(content)),
    )


def read_jvm(scan: Scan) -> Findings:
    languages = ("Kotlin",) if scan.ending(".kt") else ("Java",)
    if scan.has("pom.xml"):
        maven = "./mvnw" if scan.has("mvnw") else "mvn"
        return Findings(
            languages=languages,
            commands=(
                ProjectCommand("build", f"{maven} package", "pom.xml"),
                ProjectCommand("test", f"{maven} test", "pom.xml"),
            ),
            key_files=(KeyFile("pom.xml", "build (Maven)"),),
        )
    path = scan.first("build.gradle.kts", "build.gradle")
    if path is None:
        return Findings()
    gradle = "./gradlew" if scan.has("gradlew") else "gradle"
    return Findings(
        languages=languages,
        commands=(ProjectCommand("build", f"{gradle} build", path), ProjectCommand("test", f"{gradle} test", path)),
        key_files=(KeyFile(path, "build (Gradle)"),),
    )


def read_dotnet(scan: Scan) -> Findings:
    path = next((path for path in scan.ending(".sln", ".slnx", ".csproj", ".fsproj")), None)
    if path is None:
        return Findings()
    return Findings(
        languages=("F#" if scan.ending(".fsproj") else "C#",),
        commands=(
            ProjectCommand("build", f"dotnet build {path}", path),
            ProjectCommand("test", f"dotnet test {path}", path),
        ),
        key_files=(KeyFile(path, "solution or project"),),
    )


def read_ruby(scan: Scan) -> Findings:
    if not scan.has("Gemfile"):
        return Findings()
    commands = [ProjectCommand("install", "bundle install", "Gemfile")]
    specs = scan.ending("_spec.rb")
    if specs:
        commands.append(ProjectCommand("test", "bundle exec rspec", specs[0]))
        commands.append(ProjectCommand("test_one", f"bundle exec rspec {specs[0]}", specs[0]))
    elif re.search(r"TestTask|task\s+:?['\"]?test\b", scan.text("Rakefile")):
        commands.append(ProjectCommand("test", "bundle exec rake test", "Rakefile"))
    if scan.has(".rubocop.yml"):
        commands.append(ProjectCommand("lint", "bundle exec rubocop", ".rubocop.yml"))
    gems = tuple(Dependency(name, version, "Gemfile") for name, version in _GEM.findall(scan.text("Gemfile")))
    return Findings(
        languages=("Ruby",),
        commands=tuple(commands),
        key_files=(KeyFile("Gemfile", "dependencies"),),
        dependencies=gems,
    )


def read_php(scan: Scan) -> Findings:
    if not scan.has("composer.json"):
        return Findings()
    try:
        data: Any = json.loads(scan.text("composer.json"))
    except (ValueError, RecursionError):
        data = {}
    commands = [ProjectCommand("install", "composer install", "composer.json")]
    for name in table(data, "scripts"):
        purpose = purpose_of(name)
        if purpose and purpose != "install":
            commands.append(ProjectCommand(purpose, f"composer run {name}", "composer.json", name))
    required = table(data, "require").items()
    return Findings(
        name=text(table(data).get("name")),
        description=text(table(data).get("description")),
        languages=("PHP",),
        commands=tuple(commands),
        key_files=(KeyFile("composer.json", "package manifest"),),
        dependencies=tuple(Dependency(name, text(version), "composer.json") for name, version in required),
    )


def read_elixir(scan: Scan) -> Findings:
    if not scan.has("mix.exs"):
        return Findings()
    return Findings(
        languages=("Elixir",),
        commands=(
            ProjectCommand("install", "mix deps.get", "mix.exs"),
            ProjectCommand("build", "mix compile", "mix.exs"),
            ProjectCommand("test", "mix test", "mix.exs"),
        ),
        key_files=(KeyFile("mix.exs", "project manifest"),),
    )


def read_cmake(scan: Scan) -> Findings:
    if not scan.has("CMakeLists.txt"):
        return Findings()
    commands = [
        ProjectCommand("build", "cmake -S . -B build && cmake --build build", "CMakeLists.txt"),
    ]
    if re.search(r"\b(?:enable_testing|add_test)\s*\(", scan.text("CMakeLists.txt")):
        commands.append(ProjectCommand("test", "ctest --test-dir build", "CMakeLists.txt"))
    return Findings(
        languages=("C++" if scan.ending(".cpp", ".cc", ".cxx", ".hpp") else "C",),
        commands=tuple(commands),
        key_files=(KeyFile("CMakeLists.txt", "build (CMake)"),),
    )

"""JavaScript and TypeScript: package.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from swecli.core.context_management.project_facts.facts import Dependency, Findings, KeyFile, ProjectCommand
from swecli.core.context_management.project_facts.purpose import purpose_of, rank
from swecli.core.context_management.project_facts.scan import Scan
from swecli.core.context_management.project_facts.values import table, text

_LOCKS = (("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lockb", "bun"), ("bun.lock", "bun"))
_TEST_ENDS = tuple(f".{kind}.{end}" for kind in ("test", "spec") for end in ("ts", "tsx", "js", "jsx", "mjs"))
_ONE_FILE = (("vitest", "npx vitest run"), ("jest", "npx jest"), ("mocha", "npx mocha"))


def read_node(scan: Scan) -> Findings:
    if not scan.has("package.json"):
        return Findings()
    try:
        data: Any = json.loads(scan.text("package.json"))
    except (ValueError, RecursionError):
        return Findings(key_files=(KeyFile("package.json", "package manifest (not valid JSON)"),))
    manager = next((name for lock, name in _LOCKS if scan.has(lock)), "npm")
    scripts = {name: value for name, value in table(data, "scripts").items() if isinstance(value, str)}
    commands = [ProjectCommand("install", f"{manager} install", "package.json")]
    for name in sorted(scripts, key=rank):
        purpose = purpose_of(name)
        if purpose is not None and "no test specified" not in scripts[name]:
            call = f"{manager} test" if name == "test" and manager != "bun" else f"{manager} run {name}"
            commands.append(ProjectCommand(purpose, call, "package.json", name))
    tests = [path for path in scan.files if path.endswith(_TEST_ENDS)]
    packages = {**table(data, "dependencies"), **table(data, "devDependencies")}
    if tests:
        runner = next((call for name, call in _ONE_FILE if name in packages), "")
        if not runner and "node --test" in " ".join(scripts.values()):
            runner = "node --test"
        if runner:
            commands.append(ProjectCommand("test_one", f"{runner} {tests[0]}", tests[0]))
    typescript = scan.has("tsconfig.json") or "typescript" in packages
    return Findings(
        name=text(table(data).get("name")),
        description=text(table(data).get("description")),
        languages=("TypeScript" if typescript else "JavaScript",),
        commands=tuple(commands),
        key_files=(KeyFile("package.json", "package manifest and scripts"), *_entries(scan, table(data))),
        dependencies=tuple(
            Dependency(name, text(version), "package.json") for name, version in table(data, "dependencies").items()
        ),
        patterns=((f"Tests ({len(tests)} file{'' if len(tests) == 1 else 's'})", f"`{tests[0]}` and its neighbours"),)
        if tests
        else (),
    )


def _entries(scan: Scan, data: Mapping[str, Any]) -> list[KeyFile]:
    found: list[KeyFile] = []
    binaries = data.get("bin")
    named = table(binaries) if not isinstance(binaries, str) else {text(data.get("name")): binaries}
    for name, path in named.items():
        if isinstance(path, str) and scan.has(path.removeprefix("./")):
            found.append(KeyFile(path.removeprefix("./"), f"entry point of the command `{name}`"))
    main = text(data.get("main")).removeprefix("./")
    if scan.has(main):
        found.append(KeyFile(main, "main module"))
    source = scan.first("src/index.ts", "src/main.ts", "src/index.tsx", "src/main.tsx", "src/index.js", "index.js")
    if source and source != main:
        found.append(KeyFile(source, "entry module"))
    return found[:4]

"""Commands that accept-edits runs because they are edits, and those that only look like it."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.permissions.decide import decide
from swecli.core.permissions.facts import OsFacts
from swecli.core.permissions.types import Call, Effects, Rule, RuleEffect
from tests.support.shell_workspace import ShellWorkspace


@pytest.fixture
def work(tmp_path: Path) -> ShellWorkspace:
    workspace = ShellWorkspace(tmp_path)
    root = workspace.root
    for name in ("a.py", "b.py", "wf/workflows/ci.yml", "node_modules/.bin/prettier", "pkg/index.js", "web/x.ts"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    (root / "node_modules/.bin/prettier").chmod(0o755)
    (root / "gh").mkdir()
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("ruff", "black", "gofmt", "cargo", "npx"):
        (tools / name).write_text("#!/bin/sh\n")
        (tools / name).chmod(0o755)
    workspace.environment["PATH"] = f"{tools}:/usr/bin:/bin"
    return workspace


def outcome(work: ShellWorkspace, command: str, mode: str = "accept-edits") -> str:
    return work.decide(command, work.policy(mode=mode, facts=OsFacts(work.environment))).outcome


EDITS = (
    *("mkdir build", "mkdir -p src/new/deep", "touch src/new.py", "touch -c a.py", "mkdir -p x && touch x/y.py"),
    *("cp a.py c.py", "cp -r src/a src/c", "cp a.py b.py docs/", "cp -n a.py docs", "mv a.py src/", "mv a.py c.py"),
    *("mkdir -p lib && mv a.py lib/", "mkdir -p lib && mv a.py lib", "ln -s a.py current.py", "cd src && touch z.py"),
    *("ruff format .", "ruff format --check src", "ruff check --fix src", "black -q a.py", "gofmt -w src"),
    *("npx prettier --write web/x.ts", "node_modules/.bin/prettier --write .", "ruff format a.py && touch ok"),
    *("sed -i s/a/b/ a.py", "sed -i 's/old name/new & name/g' a.py b.py", r"sed -i 's/v1\.2/v1.3/' a.py && touch ok"),
    *(
        "sed -i -e 's|/usr/a|/opt/b|' -e '3,5s/x/y/2' a.py",
        "sed -Ei 's/f\\(x\\)/g(x)/gI' a.py",
        "sed -i '1i import os' a.py",
    ),
    *(
        "sed -i 's/^/# /; /x/s/$/;/' a.py",
        r"sed -i 's/\bfoo\b/bar/g' a.py",
        "cd web && sed -i s/a/b/ x.ts",
        "sed -i s/a/b/ *.py",
    ),
    *("cargo fmt", "mkdir x && ls x"),
)
ASK = (
    # what is there would be lost, or is protected, secret or outside
    *("cp a.py b.py", "mv a.py b.py", "cp -f a.py b.py", "cp -r src docs/..", "cp a.py .", "touch .git/hooks/x"),
    *("mkdir .husky", "mkdir -p .git/hooks", "touch .vscode/tasks.json", "cp a.py .bashrc", "mv a.py .envrc"),
    *("cp .env copy.txt", "mv .env x", "cp server.pem x", "touch .env.local", "touch /tmp/x", "mkdir ../x"),
    *("mv a.py ../a.py", "cp /etc/passwd x", "mv sub other", "mv src/a/. docs", "touch ~/x", "cp -r . x"),
    # names that would become protected ones
    *("mv wf .github", "cp -r wf .github", "mkdir .github && mv wf/workflows .github", "mv pkg node_modules"),
    *("mkdir gh/workflows && touch gh/workflows/x.yml && mv gh .github", "mv pkg node_modules/pkg"),
    *("cp a.py node_modules/a.js", "touch node_modules/x.js", "ln -s .github l && touch l/x", "mv a.py x && mv x y"),
    # links
    *(
        "ln -s /etc l",
        "ln -s ../.. l",
        "ln -s .git/hooks l",
        "ln a.py b2.py",
        "ln -s .env l",
        "mv link l2",
        "cp link l2",
    ),
    # options and programs that do more
    *("mkdir -m 777 x", "cp --backup=simple a.py c.py", "cp -L a.py c.py", "touch -r /etc/passwd x", "cp -t src a.py"),
    *("ruff format --config x.toml .", "ruff check --output-file=o .", "ruff clean", "black --config x a.py"),
    *("ruff format /tmp", "ruff format ../x", "gofmt -cpuprofile x -w .", "npx eslint --fix .", "npx cowsay x"),
    *("python3 -m black .", "uv run ruff format", "cargo fmt -- --config-path /x", "./ruff format .", "prettier -w ."),
    *("mkdir x; rm a.py", "touch x && python3 a.py", "mkdir $X", "touch $(ls)", "X=1 mkdir x", "touch x > y"),
    # sed: text that the command does not spell out, other commands, copies, links, other places
    *(
        "sed -i 's/.*//' a.py",
        "sed -i 's/a*/b/' a.py",
        "sed -i 's/[a-z]/b/' a.py",
        "sed -i s/a.b/c/ a.py",
        "sed -i d a.py",
    ),
    *(r"sed -i 's/a\{1,\}/b/' a.py", r"sed -i 's/a\+/b/' a.py", "sed -Ei 's/a+/b/' a.py", "sed -Ei 's/(a|)/b/' a.py"),
    *(
        r"sed -i 's/a\|b//' a.py",
        "sed -i 's|a\\|b|c|' a.py",
        r"sed -i 's/\w//g' a.py",
        "sed -i 's//x/' a.py",
        "sed -ie s/a/b/ a.py",
    ),
    *(
        "sed -i s/a/b/e a.py",
        "sed -i 's/a/b/w x' a.py",
        "sed -i 'e ls' a.py",
        "sed -i 'r .env' a.py",
        "sed -i 'w x' a.py",
    ),
    *(
        "sed -i 's/a/b/;w x' a.py",
        "sed -i '1c x' a.py",
        "sed -i 3q a.py",
        "sed -n -i s/a/b/ a.py",
        "sed -i.bak s/a/b/ a.py",
    ),
    *(
        "sed -i '/a/d' a.py",
        "sed -i 's/a/b/m' a.py",
        "sed -i 's/a/b/\ne ls' a.py",
        "sed -i -f x.sed a.py",
        "sed -i s/a/b/",
    ),
    *(
        "sed --in-place=.. s/a/b/ a.py",
        "sed -i '' s/a/b/ a.py",
        "sed -i s/a/b/ missing.py",
        "sed -i s/a/b/ src",
        "sed s/a/b/ -i",
    ),
    *("sed -i s/a/b/ .env", "sed -i s/a/b/ ../x", "sed -i s/a/b/ .git/config", "sed -i s/a/b/ node_modules/x.js"),
    *(
        "sed -i s/a/b/ link",
        "sed -i s/a/$X/ a.py",
        "sed -i s/a/b/ $(ls)",
        "sed -i s/a/b/ a.py > x",
        "X=1 sed -i s/a/b/ a.py",
    ),
    *(
        "perl -pi -e s/a/b/ a.py",
        "find . -exec sed -i s/a/b/ {} +",
        "sudo sed -i s/a/b/ a.py",
        "sed -i s/a/b/ a.py; rm b.py",
    ),
    *("rm a.py", "chmod +x a.py", "echo x > a.py", "tee x", "sudo mkdir x", "env mkdir x"),
)


@pytest.mark.parametrize("command", EDITS)
def test_edits_of_the_workspace_run_in_accept_edits_and_auto_only(work: ShellWorkspace, command: str) -> None:
    modes = ("default", "accept-edits", "auto", "plan")
    assert [outcome(work, command, mode) for mode in modes] == ["ask", "allow", "allow", "deny"]


def test_a_read_only_file_is_not_rewritten_unasked(work: ShellWorkspace) -> None:
    (work.root / "b.py").chmod(0o444)
    assert outcome(work, "sed -i s/a/b/ a.py") == "allow"
    assert outcome(work, "sed -i s/a/b/ a.py b.py") == "ask"


@pytest.mark.parametrize("effect", ["deny", "ask"])
@pytest.mark.parametrize("text", ["Edit", "Write", "edit_file"])
def test_a_rule_about_all_edits_holds_for_edits_by_command(work: ShellWorkspace, text: str, effect: RuleEffect) -> None:
    policy = work.policy(mode="accept-edits", facts=OsFacts(work.environment), rules=(Rule(effect, text, "user"),))
    for command in ("sed -i s/a/b/ a.py", "touch new.py", "ruff format a.py"):
        assert work.decide(command, policy).outcome == "ask"
    assert work.decide("ls", policy).outcome == "allow"


@pytest.mark.parametrize("command", ASK)
def test_what_does_more_than_an_edit_still_asks(work: ShellWorkspace, command: str) -> None:
    assert outcome(work, command) in ("ask", "deny")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("prettier.config.mjs", "x"),
        (".prettierrc", '{"plugins": ["./evil.js"]}'),
        ("web/.prettierrc.json", '{"plugins": ["./evil.js"]}'),
        ("package.json", '{"prettier": "./evil.js"}'),
        ("package.json", "{broken"),
        ("web/.prettierrc", '"./evil.js"'),
        ("web/.prettierrc", "./evil.js\n"),
        ("web/.prettierrc", "# comment\n--- ./evil.js\n"),
        ("web/.prettierrc", "a=./evil.js\n"),
        ("web/.prettierrc", "// a\n{\n"),
        (".prettierrc.json", '{"pl\\u0075gins": ["./evil.js"]}'),
        (".prettierrc.json", '{"overrides": [{"options": {"pl\\u0075gins": ["./evil.js"]}}]}'),
        (".prettierrc.yaml", '"pl\\x75gins": ["./evil.js"]\n'),
        (".prettierrc.toml", '"pl\\u0075gins" = ["./evil.js"]\n'),
        ("package.yaml", '"prett\\x69er": "./evil.js"\n'),
    ],
)
def test_a_formatter_that_may_load_code_of_the_workspace_asks(work: ShellWorkspace, name: str, text: str) -> None:
    for command in ("npx prettier --write web/x.ts", "npx prettier --write ."):
        assert outcome(work, command) == "allow"
    (work.root / name).write_text(text)
    for command in ("npx prettier --write web/x.ts", "npx prettier --write ."):
        assert outcome(work, command) == "ask"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".prettierrc", '{"semi": false}'),
        (".prettierrc", "# ours\n---\n\nsemi: false\noverrides:\n  - files: '*.md'\n"),
        (".prettierrc", "overrides:\n  - files: '*.md'\n"),
        (".prettierrc", ""),
        (".prettierrc.json", '{\n  "semi": false\n}\n'),
        (".prettierrc.toml", "semi = false\n[[overrides]]\n"),
        ("package.yaml", "name: x\n"),
    ],
)
def test_a_formatter_with_plain_settings_formats(work: ShellWorkspace, name: str, text: str) -> None:
    (work.root / name).write_text(text)
    assert outcome(work, "npx prettier --write web/x.ts") == "allow"


def test_a_command_beside_the_formatter_must_not_write_its_settings(work: ShellWorkspace) -> None:
    for name in ("conf.txt", ".prettierrc.yaml"):
        (work.root / name).write_text("a: b\n")
    for command in (
        "cp conf.txt .prettierrc",
        "mv conf.txt .prettierrc.js",
        "ln -s conf.txt web/.prettierrc.mjs",
        "sed -i s/a/plugins/ .prettierrc.yaml",
        "sed -i 's/name/prettier/' package.json",
    ):
        assert outcome(work, command) == "allow", command
        assert outcome(work, f"{command} && npx prettier --write web/x.ts") == "ask", command
    assert outcome(work, "cp conf.txt other.txt && npx prettier --write web/x.ts package.json") == "allow"
    assert outcome(work, "cp conf.txt .prettierrc && ruff format a.py") == "allow"


@pytest.mark.parametrize("tracked", ["node_modules/x.js", "node_modules", "tools/prettier.js", ""])
def test_a_formatter_that_came_with_the_workspace_asks(work: ShellWorkspace, tracked: str) -> None:
    program = work.root / "node_modules/.bin/prettier"
    program.unlink()
    for name in ("tools/prettier.js", "node_modules/prettier/cli.js"):
        (work.root / name).parent.mkdir(parents=True)
        (work.root / name).write_text("x")
        (work.root / name).chmod(0o755)
    program.symlink_to("../prettier/cli.js")
    commands = ("npx prettier --write web/x.ts", "node_modules/.bin/prettier --write web/x.ts")
    assert [outcome(work, command) for command in commands] == ["allow", "allow"]
    if tracked.startswith("tools"):
        program.unlink()
        program.symlink_to("../../tools/prettier.js")
    if tracked:
        name = tracked.encode()
        entry = bytes(60) + len(name).to_bytes(2, "big") + name
        data = b"DIRC\0\0\0\2\0\0\0\1" + entry + bytes(8 - len(entry) % 8) + bytes(20)
        (work.root / ".git" / "index").write_bytes(data)
    else:
        (work.root / ".git").rename(work.outside / "git")
    assert [outcome(work, command) for command in commands] == ["ask", "ask"]


def test_settings_above_a_workspace_may_be_a_strangers_too(work: ShellWorkspace) -> None:
    assert outcome(work, "cargo fmt") == "allow"
    (work.home / ".cargo").mkdir()
    (work.home / ".cargo" / "config.toml").write_text("[alias]\nfmt = ['run']\n")
    assert outcome(work, "cargo fmt") == "allow"
    inner = work.root / "src"
    (work.root / ".cargo").mkdir()
    (work.root / ".cargo" / "config.toml").write_text("[alias]\nfmt = ['run']\n")
    call = Call("run_command", {"command": "cargo fmt"}, Effects(command="cargo fmt"), str(inner), (str(inner),))
    policy = work.policy(mode="accept-edits", facts=OsFacts(work.environment))
    assert decide(policy, call).outcome == "ask"


@pytest.mark.parametrize(
    ("starter", "name", "text"),
    [
        ("npx", ".npmrc", "script-shell=./x\n"),
        ("pnpm exec", ".npmrc", "node-options=--require ./x\n"),
        ("pnpm exec", "pnpm-workspace.yaml", "scriptShell: ./x\n"),
        ("pnpm exec", "package.json", '{"packageManager": "pnpm@1.0.0"}'),
        ("yarn exec", ".yarnrc.yml", "yarnPath: ./x.cjs\n"),
        ("yarn exec", ".yarnrc", 'yarn-path "./x.js"\n'),
    ],
)
def test_settings_of_what_starts_a_formatter_ask(work: ShellWorkspace, starter: str, name: str, text: str) -> None:
    tool = Path(work.environment["PATH"].partition(":")[0]) / starter.partition(" ")[0]
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    command = f"{starter} prettier --write web/x.ts"
    assert outcome(work, command) == "allow"
    (work.root / name).write_text(text)
    assert outcome(work, command) == "ask"
    assert outcome(work, "node_modules/.bin/prettier --write web/x.ts") == "allow"


def test_a_toolchain_of_the_workspace_does_not_format_unasked(work: ShellWorkspace) -> None:
    (work.root / "rust-toolchain.toml").write_text("[toolchain]\npath = 'x'\n")
    assert outcome(work, "cargo fmt") == "ask"


def test_a_file_with_a_name_outside_is_not_touched_unasked(work: ShellWorkspace) -> None:
    (work.outside / "y").write_text("x")
    (work.root / "twin.py").hardlink_to(work.outside / "y")
    assert outcome(work, "touch twin.py") == "ask"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("cp a.py b.py", "cp would overwrite b.py"),
        ("cp a.py b.py filled", "cp would overwrite filled/b.py"),
        ("mv gone.py x.py", "gone.py does not exist yet"),
        ("cp a.py /tmp/x.py", "/tmp/x.py is outside the workspace"),
        ("mkdir ../x", "../x is outside the workspace"),
        ("touch .env.local", ".env.local may hold secrets"),
        ("prettier -w .", "prettier is not installed"),
        ("python3 x.py", "python3 may change files"),
    ],
)
def test_a_command_that_is_usually_an_edit_says_why_it_asks(work: ShellWorkspace, command: str, reason: str) -> None:
    def decided(mode: str) -> str:
        facts = OsFacts(work.environment)
        return work.decide(command, work.policy(mode=mode, facts=facts, restores=lambda paths, command: True)).reason

    (work.root / "filled").mkdir()
    (work.root / "filled/b.py").write_text("y")
    assert decided("accept-edits") == f"{reason}, so it needs your approval."
    program = command.partition(" ")[0]
    assert decided("default") == f"{program} may change files, so it needs your approval."

"""A small workspace on disk, and the permission decision about commands in it."""

from __future__ import annotations

import tempfile
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from swecli.core.permissions import check, commands
from swecli.core.permissions import decide as deciding
from swecli.core.permissions.decide import decide
from swecli.core.permissions.facts import BlastRadius, OsFacts
from swecli.core.permissions.paths import inside
from swecli.core.permissions.rules import read_rules
from swecli.core.permissions.types import Call, Decision, Effects, Policy, Rule

CONFIG = '[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote "origin"]\n\turl = https://example.org/x.git\n'


_WALKED: dict[str, BlastRadius] = {}


class SteadyFacts(OsFacts):
    """Walks each tree of the machine once, for commands that would remove it; those of tests each time."""

    def blast_radius(self, path: str) -> BlastRadius:
        if inside(path, (tempfile.gettempdir(),)) is not None:
            return super().blast_radius(path)
        if path not in _WALKED:
            _WALKED[path] = super().blast_radius(path)
        return _WALKED[path]


@contextmanager
def judged_once() -> Iterator[None]:
    """Within it, decisions about one command share what is found out about it, which is found out without modes,
    sandbox and rules other than those about reading. Workspaces must not change meanwhile."""
    found: dict[Hashable, commands.Judgement] = {}
    judge = commands.judge

    def once(policy: Policy, call: Call) -> commands.Judgement:
        rules = read_rules(policy, call.roots, call.tool).rules
        key = (call.effects.command, call.cwd, call.roots, policy.home, policy.own_dirs, policy.restores, rules)
        if key not in found:
            bare = Policy(
                home=policy.home, facts=policy.facts, own_dirs=policy.own_dirs, restores=policy.restores, rules=rules
            )
            found[key] = judge(bare, call)
        return found[key]

    with pytest.MonkeyPatch.context() as patch:
        for module in (deciding, check):
            patch.setattr(module, "judge", once)
        yield


class ShellWorkspace:
    """A project with sources, a repository and, unless without, secrets, beside a home and a place outside."""

    def __init__(self, base: Path, *, secrets: bool = True) -> None:
        self.base = base
        self.root, self.home, self.outside = base / "home" / "work", base / "home", base / "outside"
        for folder in (
            "src/a",
            "docs",
            "tests",
            "sub/.git",
            ".git/objects",
            ".git/refs/heads",
            ".git/hooks",
            ".swecli",
        ):
            (self.root / folder).mkdir(parents=True)
        self.outside.mkdir()
        files = {
            "src/main.py": "print(1)\n",
            "src/a/b.py": "x = 1\n",
            "README.md": "# Title\n",
            "package.json": '{"name": "x"}\n',
            ".env": "KEY=1\n",
            "server.pem": "key\n",
            "docs/guide.md": "text\n",
            ".git/HEAD": "ref: refs/heads/main\n",
            ".git/config": CONFIG,
        }
        for name, text in files.items():
            if secrets or name not in (".env", "server.pem"):
                (self.root / name).write_text(text)
        (self.root / "link").symlink_to("src")
        self.environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home)}

    def link_outside(self) -> None:
        """Put a link into the workspace that leads out of it."""
        (self.root / "etc-link").symlink_to("/etc")

    def policy(self, **changes: object) -> Policy:
        base = Policy(
            home=str(self.home), facts=SteadyFacts(self.environment), own_dirs=(str(self.home / ".config" / "swecli"),)
        )
        return replace(base, **changes)  # type: ignore[arg-type]

    def decide(self, command: str, policy: Policy | None = None, *, cwd: str = "") -> Decision:
        root = str(self.root)
        call = Call("run_command", {"command": command}, Effects(command=command), cwd or root, (root,))
        return decide(policy if policy is not None else self.policy(), call)

    def loosest(self) -> list[Policy]:
        """Policies under which most runs without a question."""
        everything = (
            Rule("allow", "Bash(*)", "user"),
            Rule("allow", "Edit(**)", "user"),
            Rule("allow", "Bash", "user"),
        )
        return [
            self.policy(mode="auto", sandbox="full", trust="trusted"),
            self.policy(rules=everything, trust="trusted"),
            self.policy(mode="auto", sandbox="full", rules=everything, trust="trusted"),
        ]

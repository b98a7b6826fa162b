"""A small workspace on disk, and the permission decision about commands in it."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from swecli.core.permissions.decide import decide
from swecli.core.permissions.facts import OsFacts
from swecli.core.permissions.types import Call, Decision, Effects, Policy, Rule

CONFIG = '[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote "origin"]\n\turl = https://example.org/x.git\n'


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
            home=str(self.home), facts=OsFacts(self.environment), own_dirs=(str(self.home / ".config" / "swecli"),)
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

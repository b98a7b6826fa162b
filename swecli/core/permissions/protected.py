"""Names of files that control other programs: one list for questions before writing and for what contained commands may
not write. Text only, no disk."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from swecli.core.permissions.paths import inside
from swecli.lazy_pattern import lazy_pattern


class ProtectedName(Struct, frozen=True):
    """One lower-case name, or several joined by slashes; a trailing slash means a folder and its contents. A single
    file name may have wildcards. It matches at any depth of a workspace."""

    text: str
    why: str
    """Ending of a sentence about the file."""
    contained: bool = True
    """Whether contained commands may not write it either. False for files that installing and building write all the
    time, and for files that only run on another machine."""

    @property
    def held(self) -> bool:
        """Whether an empty folder stands in for it at the top of a workspace while a contained command runs: programs
        obey it there, and those that commands run do not stumble over the folder."""
        return self.text.rstrip("/") in _HELD

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.text.rstrip("/").split("/"))

    @property
    def folder(self) -> bool:
        return self.text.endswith("/")


_STARTUP = "it is a shell start-up file"
_SHELL_STARTUP = """.bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile
  .zlogin .zlogout .kshrc .cshrc .tcshrc .login .inputrc .xinitrc .xprofile .xsession .xsessionrc config.fish"""
_CONFIGURATION = """.gitconfig .gitmodules .hgrc .hg/hgrc .mcp.json .claude.json .envrc .direnvrc .npmrc .yarnrc
  .yarnrc.yml .pnpmfile.cjs .pypirc .condarc .gemrc .netrc .curlrc .wgetrc .ripgreprc .tool-versions mise.toml
  .mise.toml mise.local.toml .mise.local.toml .rtx.toml .prototools rust-toolchain.toml rust-toolchain
  .python-version .pre-commit-config.yaml lefthook.yml lefthook.yaml .lefthook.yml .lefthook.yaml lefthook-local.yml
  lefthook-local.yaml .lefthook-local.yml .lefthook-local.yaml .overcommit.yml .vimrc _vimrc .gvimrc .nvimrc .lvimrc
  .exrc .nvim.lua .dir-locals.el .dir-locals-2.el *.code-workspace *.sublime-project .devcontainer.json .gdbinit
  .lldbinit .pdbrc .irbrc .pryrc .psqlrc .tmux.conf .screenrc .bazelrc .aider.conf.yml opencode.json .crush.json
  crush.json gradle/wrapper/gradle-wrapper.properties crontab"""
_STEERING_FOLDERS = """.git .vscode .idea .vs .zed .fleet .devcontainer .husky .githooks .git-hooks .lefthook .cargo
  .mvn .bundle .vim .nvim .yarn/releases .yarn/plugins .claude .cursor .gemini .codex .agents .windsurf .continue
  .roo .kiro .opencode .ssh .gnupg .aws .kube .docker"""
_INSTALLED_PROGRAMS = (
    """.venv/bin venv/bin env/bin .venv/scripts venv/scripts env/scripts node_modules/.bin vendor/bin"""
)
_ELSEWHERE = """.gitattributes .gitlab-ci.yml .travis.yml azure-pipelines.yml bitbucket-pipelines.yml jenkinsfile
  .drone.yml .woodpecker.yml"""
_ELSEWHERE_FOLDERS = (
    """.github/workflows .github/actions .circleci .gitea/workflows .forgejo/workflows .woodpecker .buildkite"""
)

_HELD_NAMES = """.vscode .idea .vs .zed .fleet .devcontainer .devcontainer.json .husky .githooks .git-hooks .lefthook
  .lefthook.yml .lefthook.yaml .lefthook-local.yml .lefthook-local.yaml .overcommit.yml .pre-commit-config.yaml .cargo
  .mvn .bundle .vim .nvim .claude .cursor .gemini .codex .agents .windsurf .continue .roo .kiro .opencode .mcp.json
  .claude.json .crush.json .aider.conf.yml .envrc .npmrc .vimrc .gvimrc .nvimrc .lvimrc .exrc .nvim.lua .dir-locals.el
  .dir-locals-2.el .gdbinit .lldbinit"""
_HELD = frozenset(_HELD_NAMES.split())

PROTECTED_NAMES = (
    *(ProtectedName(name, _STARTUP) for name in _SHELL_STARTUP.split()),
    *(
        ProtectedName(name, f"{name.rpartition('/')[2].lstrip('*')} can make other programs run something")
        for name in _CONFIGURATION.split()
    ),
    *(
        ProtectedName(f"{name}/", f"it is inside {name}, which controls other programs")
        for name in _STEERING_FOLDERS.split()
    ),
    *(
        ProtectedName(f"{name}/", f"it is inside {name}, whose programs run by name", contained=False)
        for name in _INSTALLED_PROGRAMS.split()
    ),
    *(
        ProtectedName(name, f"{name} controls what git or a build server runs", contained=False)
        for name in _ELSEWHERE.split()
    ),
    *(
        ProtectedName(f"{name}/", f"it is inside {name}, which controls what a build server runs", contained=False)
        for name in _ELSEWHERE_FOLDERS.split()
    ),
)
"""Every name except ``.swecli``, which has writable files."""

_FREE_PROJECT = lazy_pattern(
    r"(?:^|/)\.swecli/(?:memory(?:/.*)?|notes(?:/.*)?|playbook\.jsonl|OPENCLI\.md)$", re.IGNORECASE
)
_BY_FIRST: dict[str, list[ProtectedName]] = {}
for _name in PROTECTED_NAMES:
    _BY_FIRST.setdefault(_name.parts[0], []).append(_name)
_WILD = tuple(name for name in PROTECTED_NAMES if "*" in name.text)


def protected_name(relative: str) -> ProtectedName | None:
    """The entry that covers a path below a workspace. A folder's own path counts as inside it."""
    parts = [part for part in relative.casefold().split("/") if part]
    for at, part in enumerate(parts):
        for name in _BY_FIRST.get(part, ()):
            length = len(name.parts)
            if tuple(parts[at : at + length]) == name.parts and (name.folder or at + length == len(parts)):
                return name
    return next((name for name in _WILD if parts and fnmatchcase(parts[-1], name.text)), None)


def protected_reason(path: str, roots: Sequence[str], home: str = "") -> str | None:
    """Why a write to ``path`` asks in every mode, as the end of a sentence; None if it does not.

    These are the places where a write makes some program run something later: git internals and hooks, editor tasks,
    shell start-up files, tool configuration.
    """
    folded = path.casefold()
    if not folded.strip("/"):
        return "it is the root of the file system"
    root = inside(path, roots)
    below = folded if root is None else folded[len(root) :]
    if root is not None and not below.strip("/"):
        return "it is the workspace itself"
    if ".swecli" in below.split("/") and not _FREE_PROJECT.search(folded):
        return "it belongs to swecli's project folder"
    name = protected_name(below)
    if name is not None:
        return name.why
    if home and inside(path, (home,)) and not root:
        relative = folded[len(home) :].strip("/")
        if relative.startswith((".config/", ".local/bin/", "bin/", ".local/share/", "library/launchagents/")):
            return "it is part of your personal configuration"
    return None


def installed_reason(path: str, roots: Sequence[str]) -> str | None:
    """Why a file of an installed package needs care, as the end of a sentence: workspace programs load it, and they run
    without a question if their own files can't change without one."""
    root = inside(path, roots)
    parts = path.casefold().split("/") if root is None else path[len(root) :].casefold().split("/")
    folder = next((name for name in ("node_modules", "site-packages", "dist-packages") if name in parts), None)
    return f"it is inside {folder}, which programs load" if folder else None


def held_in_sandbox(relative: str) -> bool:
    """Whether a contained command must not write this path below a workspace. That includes all of swecli's folder:
    memory and instructions there would reach the model of a later session."""
    if ".swecli" in relative.casefold().split("/"):
        return True
    name = protected_name(relative)
    return name is not None and name.contained

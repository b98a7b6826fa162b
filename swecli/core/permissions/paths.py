"""What kind of place a path is: inside the workspace, protected, secret, swecli's own. Text only, no disk."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

_SECRET_PATTERNS = (
    ".env",
    ".env.*",
    "*.env",
    ".envrc",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".htpasswd",
    ".git-credentials",
    ".dockercfg",
    ".boto",
    ".s3cfg",
    ".vault-token",
    ".terraformrc",
    "*.tfvars",
    "*.tfstate",
    "*.tfstate.backup",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.p8",
    "*.ppk",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.asc",
    "*.gpg",
    "*.ovpn",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "credentials",
    "credentials.*",
    "*credentials.json",
    "*credentials.y*ml",
    "client_secret*.json",
    "secret",
    "secret.*",
    "secrets",
    "secrets.*",
    "*.secret",
    "*.secrets",
    "service-account*.json",
    "service_account*.json",
    "kubeconfig",
    "shadow",
    "gshadow",
    "master.key",
    "token",
    "token.json",
    "auth.json",
    "*_history",
)
_NOT_SECRET_PATTERNS = (
    ".env.example",
    ".env.sample",
    ".env.template",
    ".env.dist",
    "*.pub",
    "*.env.example",
    # Source code about secrets, as opposed to secrets.
    "secret.py",
    "secrets.py",
    "credentials.py",
    "credentials.ts",
    "credentials.js",
    "credentials.go",
    "credentials.rs",
    "credentials.java",
    "secrets.ts",
    "secrets.js",
    "secrets.go",
    "secrets.rs",
    "secrets.md",
    "secret.md",
    "credentials.md",
)
_SECRET_DIRECTORIES = frozenset(
    (".ssh", ".aws", ".gnupg", ".azure", ".kube", ".docker", ".gcloud", "gcloud", ".password-store", "keyrings")
)

_SHELL_STARTUP = frozenset(
    (
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".bash_logout",
        ".bash_aliases",
        ".profile",
        ".zshrc",
        ".zshenv",
        ".zprofile",
        ".zlogin",
        ".zlogout",
        ".kshrc",
        ".cshrc",
        ".tcshrc",
        ".login",
        ".inputrc",
        ".xinitrc",
        ".xprofile",
        ".xsession",
        ".xsessionrc",
        "config.fish",
    )
)
_TOOL_CONFIGURATION = frozenset(
    (
        ".gitconfig",
        ".gitmodules",
        ".mcp.json",
        ".envrc",
        ".direnvrc",
        ".npmrc",
        ".yarnrc",
        ".yarnrc.yml",
        ".pypirc",
        ".netrc",
        ".ripgreprc",
        ".tool-versions",
        "mise.toml",
        ".mise.toml",
        "rust-toolchain.toml",
        "rust-toolchain",
        ".python-version",
        ".pre-commit-config.yaml",
        "crontab",
    )
)
_PROTECTED_DIRECTORIES = frozenset(
    (
        ".git",
        ".vscode",
        ".idea",
        ".devcontainer",
        ".husky",
        ".githooks",
        ".cargo",
        ".claude",
        ".agents",
        ".ssh",
        ".gnupg",
        ".aws",
        ".kube",
        ".docker",
    )
)
_OWN_PROJECT = re.compile(
    r"(?:^|/)\.swecli/(?:config(?:\.[^/]*)?\.toml[^/]*|hooks(?:/.*)?|grants[^/]*|[^/]+\.db[^/]*)$"
)
_FREE_PROJECT = re.compile(r"(?:^|/)\.swecli/(?:memory(?:/.*)?|notes(?:/.*)?|playbook\.jsonl|OPENCLI\.md)$")


def inside(path: str, directories: Sequence[str]) -> str | None:
    """The first of ``directories`` that is ``path`` or holds it; all are resolved absolute paths."""
    for directory in directories:
        if path == directory or path.startswith(directory.rstrip("/") + "/"):
            return directory
    return None


def is_secret(path: str) -> bool:
    """Whether the name says that the file holds keys, passwords or a private history."""
    parts = [part for part in path.casefold().split("/") if part]
    if not parts:
        return False
    if any(part in _SECRET_DIRECTORIES for part in parts):
        return True
    name = parts[-1]
    if any(fnmatchcase(name, pattern) for pattern in _NOT_SECRET_PATTERNS):
        return False
    if any(fnmatchcase(name, pattern) for pattern in _SECRET_PATTERNS):
        return True
    return bool(re.match(r"/+proc/[^/]+/(?:environ|mem|maps|cmdline|fd(?:/|$)|root(?:/|$)|cwd(?:/|$))", path))


def is_secret_in(path: str, roots: Sequence[str]) -> bool:
    """``is_secret`` for what is below the workspace, whatever the workspace itself is called."""
    root = inside(path, roots)
    return is_secret(path if root is None else path[len(root.rstrip("/")) :])


def is_own(path: str, own_dirs: Sequence[str]) -> bool:
    """Whether the path is swecli's own configuration, hook, grant or data, in the user's directories or in a
    project's ``.swecli``. Memory, notes and playbook are ordinary files of the project."""
    return inside(path, own_dirs) is not None or _OWN_PROJECT.search(path.casefold()) is not None


def protected_reason(path: str, roots: Sequence[str], home: str = "") -> str | None:
    """Why a write to ``path`` needs a question in every mode, as the end of a sentence; None when it does not.

    These are the places where a write makes some program run something later: git internals and hooks, editor
    tasks, shell start-up files, tool configuration.
    """
    folded = path.casefold()
    parts = [part for part in folded.split("/") if part]
    if not parts:
        return "it is the root of the file system"
    root = inside(path, roots)
    below = [part for part in folded[len(root) :].split("/") if part] if root is not None else parts
    if root is not None and not below:
        return "it is the workspace itself"
    if ".swecli" in below and not _FREE_PROJECT.search(folded):
        return "it belongs to swecli's project folder"
    for part in below:
        if part in _PROTECTED_DIRECTORIES:
            return f"it is inside {part}, which steers other programs"
    name = below[-1]
    if name in _SHELL_STARTUP:
        return "it is a shell start-up file"
    if name in _TOOL_CONFIGURATION:
        return f"{name} can make other programs run something"
    if home and inside(path, (home,)) and not root:
        relative = folded[len(home) :].strip("/")
        if relative.startswith((".config/", ".local/bin/", "bin/", ".local/share/", "library/launchagents/")):
            return "it is part of your personal configuration"
    return None


def within_text(path: str, cwd: str, home: str = "") -> str:
    """The absolute normal form of ``path`` by its text alone: ``~`` and ``..`` are worked out, links are not."""
    if home and (path == "~" or path.startswith("~/")):
        path = home + path[1:]
    return posixpath.normpath(path if path.startswith("/") else posixpath.join(cwd, path))

"""Classes of paths: inside the workspace, secret, swecli's own. Text only, no disk."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence

from swecli.lazy_pattern import lazy_pattern

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
SECRET_EXAMPLES = (
    *(".env", ".env.local", "id_rsa", "id_ed25519", "server.pem", "private.key", ".netrc", "credentials"),
    *("credentials.json", "secrets.yaml", ".npmrc", "store.p12", "token.json"),
)
"""Names that a wildcard for secrets would match."""
_SECRET_DIRECTORIES = frozenset(
    (".ssh", ".aws", ".gnupg", ".azure", ".kube", ".docker", ".gcloud", "gcloud", ".password-store", "keyrings")
)

_OWN_PROJECT = lazy_pattern(
    r"(?:^|/)\.swecli/(?:config(?:\.[^/]*)?\.toml[^/]*|hooks(?:/.*)?|grants[^/]*|[^/]+\.db[^/]*)$"
)


def inside(path: str, directories: Sequence[str]) -> str | None:
    """The first of ``directories`` that is ``path`` or contains it; all are resolved absolute paths."""
    for directory in directories:
        if path == directory or path.startswith(directory.rstrip("/") + "/"):
            return directory
    return None


def folders_above(path: str, roots: Sequence[str], home: str) -> Iterator[str]:
    """A resolved path and the folders around it, where settings for it may lie: also above the workspace, which may be
    a part of what a stranger made, but not the home directory, unless it is in the workspace."""
    folder = path
    while folder != home or inside(home, roots) is not None:
        yield folder
        if folder == posixpath.dirname(folder):
            return
        folder = posixpath.dirname(folder)


def _either(patterns: Iterable[str]) -> str:
    return "|".join(re.escape(pattern).replace(r"\*", "[^/]*") for pattern in sorted(patterns))


SECRET_EXPRESSION = (
    rf"(?:^|/)(?:{_either(_SECRET_DIRECTORIES)})(?:/|$)"
    rf"|(?:^|/)(?!(?:{_either(_NOT_SECRET_PATTERNS)})/*$)(?:{_either(_SECRET_PATTERNS)})/*$"
)
"""Matches a secret name (see ``is_secret``) in a lower-case path."""
_SECRET = lazy_pattern(SECRET_EXPRESSION)
_PROCESS = lazy_pattern(r"/+proc/[^/]+/(?:environ|mem|maps|cmdline|fd(?:/|$)|root(?:/|$)|cwd(?:/|$))")


def is_secret(path: str) -> bool:
    """Whether the name indicates keys, passwords or a private history."""
    return _SECRET.search(path.casefold()) is not None or _PROCESS.match(path) is not None


def is_secret_in(path: str, roots: Sequence[str]) -> bool:
    """``is_secret`` for the part below the workspace, whatever the workspace itself is called."""
    root = inside(path, roots)
    return is_secret(path if root is None else path[len(root.rstrip("/")) :])


def is_own(path: str, own_dirs: Sequence[str]) -> bool:
    """Whether the path is swecli's own configuration, hook, grant or data, in the user's directories or a project's
    ``.swecli``. Memory, notes and playbook are ordinary project files."""
    return inside(path, own_dirs) is not None or _OWN_PROJECT.search(path.casefold()) is not None


def within_text(path: str, cwd: str, home: str = "") -> str:
    """The absolute normal form of ``path`` from its text alone: ``~`` and ``..`` are resolved, links are not."""
    if home and (path == "~" or path.startswith("~/")):
        path = home + path[1:]
    return posixpath.normpath(path if path.startswith("/") else posixpath.join(cwd, path))

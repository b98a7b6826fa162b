"""Whether a file that a command names may be read without a question."""

from __future__ import annotations

import posixpath
from fnmatch import fnmatchcase

from swecli.core.permissions.paths import inside, is_secret_in
from swecli.core.permissions.shell.expand import PROCESS, Situation
from swecli.core.permissions.shell.syntax import UnprovenError

_STREAMS = frozenset(("-", "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", PROCESS))
_SECRET_EXAMPLES = (".env", ".env.local", "id_rsa", "id_ed25519", "server.pem", "private.key", ".netrc", "credentials")
_HARMLESS_EXAMPLES = ("main.py", "README.md", "index.ts", "Makefile")


def check_name(text: str, situation: Situation) -> str:
    """Raise unless the name is inside the workspace, for commands that show no content. Returns the path."""
    resolved = ""
    for path in absolute(text, situation):
        resolved = situation.facts.resolve(path)
        if inside(resolved, situation.roots) is None:
            raise UnprovenError(f"{text} is outside the workspace", soft=True)
    return resolved


def check_entry(text: str, situation: Situation) -> None:
    """As ``check_name`` for commands that look at a link instead of following it."""
    folder, slash, name = text.rpartition("/")
    if name in ("", ".", ".."):
        check_name(text, situation)
    else:
        check_name(f"{folder}/." if slash else ".", situation)


def check_content(text: str, situation: Situation) -> None:
    """Raise unless it is an ordinary file or directory of the workspace, or not there, and not secret."""
    if text in _STREAMS:
        return
    for path in absolute(text, situation):
        resolved = situation.facts.resolve(path)
        if inside(resolved, situation.roots) is None:
            raise UnprovenError(f"{text} is outside the workspace", soft=True)
        if is_secret_in(path, situation.roots) or is_secret_in(resolved, situation.roots):
            raise UnprovenError(f"{text} may hold secrets, by its name", soft=True)
        if situation.facts.kind(resolved) == "other":
            raise UnprovenError(f"{text} is no ordinary file")


def check_revision(text: str, situation: Situation) -> None:
    """Raise unless a word that git takes as revision or path stays inside the repository and is not secret."""
    if text.startswith(("/", "~")) or ".." in text.split("/"):
        check_content(text, situation)
        return
    path = text.rpartition(":")[2]
    if ".." in path.split("/"):
        check_content(path, situation)
    if is_secret_in("/" + path, ("/",)):
        raise UnprovenError(f"{text} may hold secrets, by its name", soft=True)
    for candidate in absolute(text, situation):
        resolved = situation.facts.resolve(candidate)
        if inside(resolved, situation.roots) is None:
            raise UnprovenError(f"{text} is outside the workspace", soft=True)
        if is_secret_in(resolved, situation.roots) or is_secret_in(candidate, situation.roots):
            raise UnprovenError(f"{text} may hold secrets, by its name", soft=True)


def check_tree(text: str, situation: Situation) -> None:
    """Raise unless following every link below a directory stays inside the workspace."""
    for path in absolute(text, situation):
        if situation.facts.leads_outside(path, situation.roots):
            raise UnprovenError(f"links below {text} may lead outside the workspace", soft=True)


def absolute(text: str, situation: Situation) -> tuple[str, ...]:
    """Every absolute path that the text may mean; ``..`` is left to the file system.

    Raises:
        UnprovenError: the current directory is not known.
    """
    if text.startswith("/"):
        return (text,)
    if not situation.cwds:
        raise UnprovenError(f"it is not certain in which directory {text} is")
    return tuple(posixpath.join(cwd, text) for cwd in situation.cwds)


def looks_for_secrets(pattern: str) -> bool:
    """Whether a name or wildcard pattern is for secret files rather than for files in general."""
    name = pattern.rpartition("/")[2]
    if not name or pattern.startswith("!"):
        return False
    if any(fnmatchcase(example, name) for example in _HARMLESS_EXAMPLES):
        return False
    return any(fnmatchcase(example, name) for example in _SECRET_EXAMPLES)

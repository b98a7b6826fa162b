"""Where a plugin or a marketplace comes from: a folder, or a git repository at a branch, tag or commit."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from msgspec import Struct

from swecli.core.git import GitFailedError, git_command, git_environment
from swecli.core.plugins.tree import PluginError
from swecli.lazy_pattern import lazy_pattern

SECONDS: Final = 300.0
"""Longest run of one git command that fetches."""
_SHORT = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/[A-Za-z0-9._-]{1,100}")
_SSH = lazy_pattern(r"[A-Za-z0-9_.-]+@[A-Za-z0-9.-]+:(?!/*-)[^\s]+")
_REF = lazy_pattern(r"(?!-)[A-Za-z0-9._/+-]{1,200}")
_COMMIT = lazy_pattern(r"[0-9a-f]{40}|[0-9a-f]{64}")
_LOOPBACK = ("http://127.0.0.1", "http://localhost", "http://[::1]")
_NO_PROGRAMS: Final = (
    *("-c", "protocol.allow=never", "-c", "protocol.https.allow=always", "-c", "protocol.ssh.allow=always"),
    *("-c", "protocol.file.allow=always", "-c", "protocol.http.allow=always"),
    *("-c", "submodule.recurse=false", "-c", "fetch.recurseSubmodules=false"),
)
"""A repository's address runs no other transport, and what it contains fetches nothing further."""


class Source(Struct, frozen=True):
    """``folder`` is an absolute path without ``url``, else a path inside the repository. ``commit`` is the only commit
    that may be used; empty: whatever ``ref`` is now (empty: the default branch)."""

    folder: str = ""
    url: str = ""
    ref: str = ""
    commit: str = ""

    def __str__(self) -> str:
        if not self.url:
            return self.folder
        at = self.commit[:12] or self.ref
        return f"{self.url}{f'@{at}' if at else ''}{f'#{self.folder}' if self.folder else ''}"


def parsed_source(text: str, cwd: Path) -> Source:
    """A source as typed: a folder, ``URL@REF``, ``OWNER/NAME@REF`` (GitHub), each repository with ``#FOLDER``.

    Raises:
        PluginError: it is none of these.
    """
    if not text or not text.isprintable():
        raise PluginError("A source must be a folder or a git address without control characters.")
    path = cwd / os.path.expanduser(text)
    if path.is_dir():
        return Source(os.path.realpath(path))
    address, _, folder = text.partition("#")
    head, _, tail = address.rpartition("/")
    name, _, ref = tail.partition("@")
    url = f"{head}/{name}" if head else name
    if _SHORT.fullmatch(url) and not text.startswith((".", "/", "~")):
        url = f"https://github.com/{url}.git"
    return checked(Source(folder, url, ref))


def checked(source: Source) -> Source:
    """The source of a repository, if it names nothing that git could take for something else.

    Raises:
        PluginError: it does.
    """
    url = source.url
    known = url.startswith(("https://", "ssh://", "file:///", *_LOOPBACK)) or _SSH.fullmatch(url)
    if not known or not url.isprintable() or " " in url or re.match(r"\w+://-", url):
        raise PluginError(
            f"{url[:200]!r} is neither a folder nor a git address (https://, ssh://, git@HOST:PATH, file:///, "
            "OWNER/NAME)."
        )
    if source.ref and (not _REF.fullmatch(source.ref) or ".." in source.ref):
        raise PluginError(f"{source.ref[:80]!r} is no branch, tag or commit.")
    if source.commit and not _COMMIT.fullmatch(source.commit):
        raise PluginError(f"{source.commit[:80]!r} is no full hash of a commit.")
    parts = source.folder.split("/")
    if source.folder and (source.folder.startswith(("/", "-")) or ".." in parts or not source.folder.isprintable()):
        raise PluginError(f"{source.folder[:80]!r} is no folder inside a repository.")
    return source


def obtained(source: Source, scratch: Path, environment: Mapping[str, str]) -> tuple[Path, str]:
    """The folder of a source, fetched into ``scratch`` (empty) if it is in a repository, and its commit (empty for a
    folder of this machine).

    Raises:
        PluginError: it can't be had.
    """
    if not source.url:
        if not os.path.isdir(source.folder):
            raise PluginError(f"{source.folder} is not a folder any more.")
        return Path(source.folder), ""
    program = shutil.which("git", path=environment.get("PATH"))
    if program is None:
        raise PluginError(f"git was not found, so {source.url} can't be fetched.")
    wanted = source.commit or source.ref or "HEAD"
    quiet = {**git_environment(environment), "GIT_LFS_SKIP_SMUDGE": "1"}
    for arguments in (
        ("init", "--quiet", "--template="),
        ("fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", source.url, wanted),
        ("checkout", "--quiet", "--detach", "FETCH_HEAD"),
    ):
        _git(program, scratch, arguments, quiet, source)
    commit = _git(program, scratch, ("rev-parse", "HEAD"), quiet, source).strip()
    if source.commit and commit != source.commit:
        raise PluginError(f"{source.url} gave the commit {commit[:12]} instead of {source.commit[:12]}.")
    folder = scratch / source.folder
    if not folder.is_dir() or not Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(scratch)):
        raise PluginError(f"{source.url} has no folder {source.folder!r} at {wanted}.")
    return folder, commit


def _git(program: str, folder: Path, arguments: Sequence[str], environment: Mapping[str, str], source: Source) -> str:
    command = git_command(program, folder, ())
    try:
        done = subprocess.run(
            [*command, *_NO_PROGRAMS, *arguments],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PluginError(f"git did not finish fetching {source} within {SECONDS:.0f} s.") from None
    except OSError as error:
        raise PluginError(f"git can't be started: {error.strerror or error}.") from error
    if done.returncode:
        why = GitFailedError("failed", done.stderr.decode("utf-8", "replace").strip(), done.returncode).first_line
        raise PluginError(f"git can't fetch {source}: {why}")
    return done.stdout.decode("utf-8", "replace")


def of_entry(entry: Mapping[str, Any], market: Source) -> Source:
    """The source of a marketplace's entry.

    Raises:
        PluginError: it has none that swecli can use.
    """
    given = entry.get("source")
    if isinstance(given, str):
        name = os.path.normpath(given)
        if not given.startswith("./") or ".." in name.split("/"):
            raise PluginError(f"Its source {given[:80]!r} is no folder of the marketplace.")
        base = market.folder.rstrip("/")
        joined = os.path.normpath(os.path.join(base, name)) if base else name
        return Source("" if joined == "." else joined, market.url, market.ref, market.commit)
    if not isinstance(given, dict):
        raise PluginError("It has no source.")
    texts = {key: value for key, value in cast("dict[str, object]", given).items() if isinstance(value, str)}
    kind = texts.get("source", "")
    url = texts.get("repo" if kind == "github" else "url", "")
    if kind in ("github", "git-subdir") and _SHORT.fullmatch(url):
        url = f"https://github.com/{url}.git"
    elif kind not in ("url", "git", "git-subdir", "github"):
        raise PluginError(f"swecli can't fetch sources of the kind {kind[:40]!r}; it fetches folders and git.")
    folder = os.path.normpath(texts["path"]) if texts.get("path") else ""
    return checked(Source("" if folder == "." else folder, url, texts.get("ref", ""), texts.get("sha", "")))

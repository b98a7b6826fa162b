"""Predicted loss of a command, counted, and whether it can be restored: the fields and their one-line form."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from msgspec import Struct

from swecli.core.permissions.facts import BlastRadius, FileFacts
from swecli.core.permissions.shell.tables import tables
from swecli.figures import plural
from swecli.lazy_pattern import lazy_pattern

What = Literal["deletes", "overwrites", "discards changes in", ""]

ENOUGH: Final = 5_000
"""Files and folders after which no further place is counted."""


class Loss(Struct, frozen=True):
    """Paths that would be lost (``paths``, absolute), how many files that is (``files``) and how many of them git does
    not track (``unknown``; None without a repository or if undetermined). ``whole``: all were counted. ``some``: only
    part of them is meant. ``beyond`` names what checkpoints don't cover, such as "the remote branch"."""

    what: What = ""
    files: int = 0
    unknown: int | None = None
    whole: bool = True
    some: bool = False
    paths: tuple[str, ...] = ()
    beyond: str = ""

    @property
    def count(self) -> str:
        """ "36 untracked files"; empty if not counted."""
        if not self.what:
            return ""
        if not self.whole and not self.files:
            return "an unknown number of files"
        if not self.files:
            return "no files"
        least = "" if self.whole else "at least "
        files = f"{least}{plural(self.files, 'file')}"
        if self.some:
            return f"some of {files}"
        if not self.unknown:
            return files
        if self.unknown == self.files:
            return f"{least}{plural(self.files, 'untracked file')}"
        return f"{files}, {self.unknown:,} of them untracked"

    @property
    def clause(self) -> str:
        """ "deletes 36 untracked files"; empty if not counted."""
        return f"{self.what} {self.count}" if self.what else ""

    def line(self, unrestorable: str) -> str:
        """The loss as a clause, with the part that can't be undone. ``unrestorable`` names what checkpoints lack of the
        paths; empty if they cover all."""
        lost = [part for part in (self.beyond, unrestorable if self.paths else "") if part]
        clause = self.clause
        if lost:
            return "; ".join(filter(None, (clause, f"/undo can't restore {' and '.join(lost)}")))
        undo = f" (/undo restores {'it' if self.files == 1 else 'them'})" if clause and self.files else ""
        return f"{clause}{undo}"


class Extent(Struct, frozen=True):
    """What of ``paths``, each named once, is there now, and how much is at and below it."""

    paths: tuple[str, ...]
    there: tuple[str, ...]
    amount: BlastRadius


def extent(paths: Iterable[str], facts: FileFacts) -> Extent:
    unique = tuple(dict.fromkeys(paths))
    there = tuple(path for path in unique if facts.kind(path) != "missing")
    amount = BlastRadius()
    for path in there:
        if amount.files + amount.folders >= ENOUGH:
            # Counting more only costs time: the size is clear by now.
            amount += BlastRadius(whole=False)
            break
        amount += facts.blast_radius(path)
    return Extent(unique, there, amount)


def counted(what: What, found: Extent, facts: FileFacts, cwd: str, *, some: bool = False) -> Loss:
    """The loss of everything that was found."""
    amount = found.amount
    unknown = facts.unknown_to_git(found.there, cwd) if amount.whole else None
    return Loss(what, amount.files, unknown, amount.whole, some, found.there)


_STRONGEST: Final[tuple[What, ...]] = ("deletes", "overwrites", "discards changes in")


def merged(losses: Sequence[Loss]) -> Loss | None:
    """Several losses of one command combined; None if there are none. The strongest verb wins."""
    nonempty = [loss for loss in losses if loss.what or loss.beyond]
    if not nonempty:
        return None
    named = [loss for loss in nonempty if loss.what]
    strongest: list[What] = [verb for verb in _STRONGEST if any(loss.what == verb for loss in named)]
    known = [loss.unknown for loss in named]
    return Loss(
        strongest[0] if strongest else "",
        sum(loss.files for loss in named),
        None if None in known or not known else sum(filter(None, known)),
        all(loss.whole for loss in named),
        any(loss.some for loss in named),
        tuple(dict.fromkeys(path for loss in named for path in loss.paths)),
        " and ".join(dict.fromkeys(loss.beyond for loss in nonempty if loss.beyond)),
    )


# --- git -----------------------------------------------------------------------------------------------------------


def of_git(words: Sequence[str], facts: FileFacts, cwd: str) -> Loss | None:
    """What a git command (its words from the subcommand on, all known) would destroy; None if unknown."""
    match list(words):
        case ["clean", *rest]:
            return _of_clean(rest, facts, cwd)
        case ["reset", *rest] if any(word in ("--hard", "--merge", "--keep") for word in rest):
            target = [word for word in rest if not word.startswith("-")]
            beyond = "" if target in ([], ["HEAD"]) else "the branch's newer commits (git reflog may)"
            return _of_changes(("HEAD",), [], facts, cwd, beyond)
        case ["checkout" | "restore" as name, *rest]:
            paths = rest[rest.index("--") + 1 :] if "--" in rest else [w for w in rest if not w.startswith("-")]
            if name == "checkout" and "--" not in rest and not all(_is_path(path, facts, cwd) for path in paths):
                return None
            if not paths:
                return None
            # With a source other than the index, any of these files may change.
            elsewhere = any(w.startswith(("-s", "--source", "-S", "--staged")) for w in rest)
            before = [word for word in rest[: rest.index("--")] if not word.startswith("-")] if "--" in rest else []
            return None if elsewhere or before else _of_changes((), paths, facts, cwd)
        case ["stash", "drop" | "clear" as name, *_]:
            return Loss(beyond="the stash" if name == "drop" else "the stashes")
        case ["push", *_]:
            return Loss(beyond="the remote")
        case ["branch", *_]:
            return Loss(beyond="the branch (git reflog may)")
        case ["tag", *_]:
            return Loss(beyond="the tag")
        case ["filter-branch" | "filter-repo" | "gc" | "prune" | "reflog" | "update-ref", *_]:
            return Loss(beyond="git's history")
        case _:
            return None


def _is_path(word: str, facts: FileFacts, cwd: str) -> bool:
    return word == ":/" or facts.kind(posixpath.normpath(posixpath.join(cwd, word))) != "missing"


_CLEAN: Final = lazy_pattern(r"-[fdxXqn]+|--force|--quiet|--dry-run")


def _of_clean(rest: Sequence[str], facts: FileFacts, cwd: str) -> Loss | None:
    options = list(rest[: rest.index("--")]) if "--" in rest else [word for word in rest if word.startswith("-")]
    paths = list(rest[rest.index("--") + 1 :]) if "--" in rest else [word for word in rest if not word.startswith("-")]
    if not all(_CLEAN.fullmatch(option) for option in options):
        return None
    letters = {letter for option in options if not option.startswith("--") for letter in option[1:]}
    wanted = "".join(sorted(letters & set("dxX")))
    lines = facts.git_lines(cwd, ("clean", f"-n{wanted}", "--", *paths))
    if lines is None:
        return None
    names = [line.removeprefix("Would remove ") for line in lines if line.startswith("Would remove ")]
    affected = extent((posixpath.normpath(posixpath.join(cwd, name)) for name in names), facts)
    return counted("deletes", affected, facts, cwd)


def _of_changes(
    tree: tuple[str, ...], paths: Sequence[str], facts: FileFacts, cwd: str, beyond: str = ""
) -> Loss | None:
    options = ("diff", "--name-only", "--relative", "--no-renames", "--ignore-submodules=all", "--no-ext-diff")
    names = facts.git_lines(cwd, (*options, *tree, "--", *paths))
    if names is None:
        return None
    there = [posixpath.normpath(posixpath.join(cwd, name)) for name in names]
    return Loss("discards changes in", len(there), paths=tuple(there), beyond=beyond)


# --- rsync ---------------------------------------------------------------------------------------------------------


_RSYNC_PLAIN: Final = lazy_pattern(
    r"-[avrzhPHAXtulpogDWc]+|--(delete|archive|recursive|verbose|progress|stats|delete-after)"
)
"""Options that neither choose among the files nor only say what would be done."""


def of_rsync(words: Sequence[str], facts: FileFacts, cwd: str) -> Loss | None:
    """The loss by ``--delete`` between two local folders: what only the target has. None if it is not that simple."""
    options = [word for word in words if word.startswith("-")]
    folders = [posixpath.normpath(posixpath.join(cwd, word)) for word in words if not word.startswith("-")]
    recursive = any(re.fullmatch(r"-[a-zA-Z]*[ar][a-zA-Z]*|--archive|--recursive", option) for option in options)
    if not recursive or len(folders) != 2 or not all(_RSYNC_PLAIN.fullmatch(option) for option in options):
        return None
    source, target = folders
    if any(":" in word for word in words) or facts.kind(source) != "directory":
        return None
    if not next(word for word in words if not word.startswith("-")).endswith("/"):
        target = posixpath.join(target, posixpath.basename(source))
    source_paths, there = facts.below(source), facts.below(target)
    if source_paths is None or there is None:
        return None
    only = set(there) - set(source_paths)
    tops = [name for name in there if name in only and posixpath.dirname(name) not in only]
    return counted("deletes", extent((posixpath.join(target, name) for name in tops), facts), facts, cwd)


REMOTE: Final = frozenset(
    (
        *("aws", "gcloud", "az", "terraform", "tofu", "pulumi", "kubectl", "helm", "gh", "fly", "heroku", "vercel"),
        *("netlify", "wrangler", "firebase", "ssh", "scp", "sftp", "flyctl", "gsutil", "bq", "s3cmd", "azcopy"),
        *("serverless", "sls", "cdk", "sam", "eksctl", "doctl", "hcloud", "linode-cli", "consul", "vault", "nomad"),
        *("rclone", "glab", "etcdctl", "openstack", "terragrunt", "helmfile", "argocd"),
    )
)
"""Programs that change files on other machines."""


def beyond_files(name: str) -> str:
    """What a program changes apart from workspace files; empty for any other program."""
    if name in tables().lists["databases"]:
        return "the database"
    if name in ("docker", "docker-compose", "podman"):
        return "containers and their volumes"
    return "files on other machines" if name in REMOTE else ""

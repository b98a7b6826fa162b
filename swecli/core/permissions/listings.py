"""Folders' entries, kept until their times move: a search looks at each of them many times."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct, field

from swecli.core.permissions.git_facts import is_git_settings
from swecli.core.permissions.paths import is_secret
from swecli.core.secret_names import SecretNames, is_test_key

if TYPE_CHECKING:
    from swecli.core.permissions.rules import ReadRules

MAX_SEARCHED = 40_000
"""Entries of a tree that are searched for secrets: about 0.2 s for the first time, later a tenth."""
_PACKAGES = frozenset(("node_modules", "site-packages"))
"""Folders of installed packages: their files came with the packages."""
_MOST_FOLDERS = 20_000
"""Folders whose entries are kept."""
_SETTLED = 2_000_000_000
"""Nanoseconds; a later change gets another time on every file system."""


class Listed(Struct):
    """A folder's entries at the time of this stamp: subfolders, links, and the other files by name. ``secret`` are
    those whose names suggest secrets, ``settings`` those of git's; ``covered`` are files that rules cover, by rules."""

    stamp: tuple[int, ...]
    count: int = 0
    folders: list[str] = field(default_factory=lambda: list[str]())
    links: list[str] = field(default_factory=lambda: list[str]())
    files: list[str] = field(default_factory=lambda: list[str]())
    secret: list[str] = field(default_factory=lambda: list[str]())
    settings: list[str] = field(default_factory=lambda: list[str]())
    covered: dict[ReadRules, list[str]] = field(default_factory=lambda: dict["ReadRules", list[str]]())


class Listings:
    """Entries of folders by path. They change only with the disk."""

    def __init__(self, names: Callable[[], SecretNames]) -> None:
        """``names`` gives those of secrets, which a start need not wait for."""
        self._names = names
        self._folders: dict[tuple[str, str], Listed] = {}
        """Folders listed before, with the folder where the search began."""

    def walk(self, path: str) -> Iterator[tuple[str, Listed | None]]:
        """Every folder at and below a path with its entries, links not followed; None ends the walk if there are too
        many."""
        top = os.path.normpath(path)
        pending, seen = [top], 0
        while pending:
            folder = pending.pop()
            listed = self.listed(folder, top)
            if listed is None:
                continue
            seen += listed.count
            if seen > MAX_SEARCHED:
                yield folder, None
                return
            yield folder, listed
            pending += [os.path.join(folder, name) for name in listed.folders]

    def listed(self, folder: str, top: str) -> Listed | None:
        """A folder's entries, listed again only if its times have moved, one of which can't be forged; None if it is
        unreadable. Names of secrets count below ``top``."""
        try:
            state = os.stat(folder)
            stamp = (state.st_dev, state.st_ino, state.st_mtime_ns, state.st_ctime_ns)
            known = self._folders.get((folder, top))
            if known is not None and known.stamp == stamp:
                return known
            settled = 0 < state.st_ctime_ns < time.time_ns() - _SETTLED
            listed = Listed(stamp)
            with os.scandir(folder) as entries:
                for entry in entries:
                    listed.count += 1
                    if listed.count > MAX_SEARCHED:
                        return listed
                    self._sort(entry, listed, top)
        except OSError:
            return None
        if settled:  # a further change could leave the same times
            if len(self._folders) >= _MOST_FOLDERS:
                self._folders.clear()
            self._folders[folder, top] = listed
        return listed

    def _sort(self, entry: os.DirEntry[str], listed: Listed, top: str) -> None:
        if entry.is_symlink():
            listed.links.append(entry.name)
        elif entry.is_dir(follow_symlinks=False):
            listed.folders.append(entry.name)
        else:
            listed.files.append(entry.name)
            if not entry.is_file(follow_symlinks=False):
                return
            below = entry.path[len(top) :] if entry.path.startswith(top) else f"/{entry.name}"
            if is_secret(below, self._names()) and not is_test_key(below) and _PACKAGES.isdisjoint(below.split("/")):
                listed.secret.append(entry.name)
            elif is_git_settings(entry.path):
                listed.settings.append(entry.name)


def covered(listed: Listed, folder: str, rules: ReadRules | None) -> list[str]:
    """The files of a folder that rules cover."""
    if rules is None:
        return []
    known = listed.covered.get(rules)
    if known is None:
        known = [name for name in listed.files if rules.covering(os.path.join(folder, name)) is not None]
        listed.covered = {rules: known}
    return known

"""The skills, commands and agent profiles of one session, filtered by trust and updated while it runs.

Importing this module costs nothing; readers are imported once there is a folder to read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from swecli.core.config.trust import EXTENSION_HOMES, INSTALLED_PLUGINS, file_digest, own_extensions, trust_key
from swecli.core.extensions.catalogue import NOTHING, Catalogue, Change, Waiting

if TYPE_CHECKING:
    from swecli.core.extensions.plugins import Plugin
    from swecli.core.extensions.profiles import AgentProfile
    from swecli.core.extensions.sources import Found, Origin, Reader


class Seen(NamedTuple):
    """What one session has been told of the files. Subagents share the files, and each has seen them for itself."""

    catalogue: Catalogue
    waiting: frozenset[Waiting]
    problems: frozenset[tuple[str, str]]


class ExtensionFiles:
    """The catalogue of one session and its subagents. ``look`` may wait for the disk.

    ``trusted`` uses those project files that the user approved (by their digests in ``accepted``); ``at_once`` uses all
    that exist now, for this run.
    """

    def __init__(
        self,
        cwd: Path,
        user_folder: Path,
        home: Path,
        *,
        trusted: bool = False,
        at_once: bool = False,
        accepted: Iterable[str] = (),
        keep: Callable[[Sequence[str]], str] = lambda digests: "",
        built_in: Callable[[], Collection[str]] = lambda: (),
        plugins: Sequence[Plugin] = (),
        enabled: bool = True,
    ) -> None:
        """``keep`` stores digests beyond the session and returns a sentence on failure. ``built_in`` returns the
        command names that files can't take. ``plugins`` are those that the user added to swecli."""
        self._cwd, self._user_folder, self._home = cwd, user_folder, home
        self._trusted, self._at_once = trusted, at_once
        self._accepted = set(accepted)
        self._keep = keep
        self._built_in = built_in
        self._plugins, self.problems = self._installed(plugins) if enabled else ((), ())
        self._folders = self._all_folders() if enabled else ()
        self._reader: Reader | None = None
        self._read: Found | None = None
        """Input of ``now``."""
        self._readable: tuple[Catalogue, tuple[str, ...]] = (NOTHING, ())
        self.now: Catalogue = NOTHING
        self.look()

    def _installed(self, own: Sequence[Plugin]) -> tuple[Sequence[Plugin], Sequence[str]]:
        """The user's plugins, as they are at the start: swecli's, then those of Claude Code with other names. With
        sentences about unusable files."""
        if not os.path.lexists(self._home / INSTALLED_PLUGINS):
            return own, ()
        from swecli.core.extensions.plugins import installed_plugins

        theirs = installed_plugins(self._home, self._cwd)
        names = {plugin.name for plugin in own}
        return (*own, *(plugin for plugin in theirs.plugins if plugin.name not in names)), theirs.problems

    def _all_folders(self) -> tuple[Path, ...]:
        """Folders that can contain extensions."""
        start, root = Path(os.path.realpath(self._cwd)), trust_key(self._cwd)
        down = [start, *start.parents]
        project = down[: down.index(root) + 1] if root in down else [start]
        bases = [(folder / name, inner) for folder in project for name, inner in EXTENSION_HOMES.items()]
        bases = [*(bases if self._trusted else ()), *own_extensions(self._user_folder, self._home).items()]
        plugins = (folder.path for plugin in self._plugins for folder in plugin.folders)
        return (*(base / name for base, inner in bases for name in inner), *plugins)

    def look(self) -> Catalogue:
        """The catalogue for the files as they are now. Costs one lookup per missing folder."""
        if not any(map(os.path.isdir, self._folders)):
            self.now, self._read, self._at_once = NOTHING, None, False
            return self.now
        from swecli.core.extensions.reading import read_catalogue
        from swecli.core.extensions.sources import Reader, places

        self._reader = self._reader or Reader()
        own = {"user_folder": self._user_folder, "home": self._home}
        sources = places(self._cwd, **own, project=self._trusted, plugins=self._plugins)
        read = self._reader.read(sources)
        if read is self._read:
            return self.now
        if self._at_once:  # the user trusts what is there, and has not seen what comes later
            self._accepted |= {self._digest(file.origin) for file in read[0] if file.origin.source.project is not None}
        self._at_once = False
        notes = [note for plugin in self._plugins for note in plugin.notes]
        self.now = read_catalogue(read, self._approved, frozenset(self._built_in()), notes)
        self._read = read  # only now: another thread takes it as a sign that ``now`` is up to date
        return self.now

    @property
    def trusted(self) -> bool:
        """Whether the workspace was trusted when the session began."""
        return self._trusted

    @property
    def profiles(self) -> Mapping[str, AgentProfile]:
        """Agent profiles by name: built-in ones, and files, which may replace them."""
        from swecli.core.extensions.profiles import built_in_profiles

        return {profile.name: profile for profile in built_in_profiles()} | dict(self.now.profiles)

    @property
    def readable(self) -> tuple[str, ...]:
        """Resolved folders of skills, whose files may be read without approval. Excludes folders that contain the
        workspace or the user's home, because a link may lead anywhere."""
        now = self.now
        if self._readable[0] is not now:
            personal = [os.path.realpath(folder) for folder in (Path.home(), self._home, self._cwd)]
            folders = (
                folder
                for folder in now.skill_folders
                if not any(f"{path}/".startswith(f"{folder}/") for path in personal)
            )
            self._readable = now, tuple(folders)
        return self._readable[1]

    def _digest(self, origin: Origin) -> str:
        return file_digest(self._cwd, origin.path, origin.digest)

    def _approved(self, origin: Origin) -> bool:
        return origin.source.project is None or self._digest(origin) in self._accepted

    def approve(self, waiting: Sequence[Waiting]) -> str:
        """Use these files in their current state. Returns a sentence if that could not be stored."""
        digests = [self._digest(item.origin) for item in waiting]
        self._accepted |= set(digests)
        trouble = self._keep(digests)
        self._read = None  # what it comes to is another thing now
        self.look()
        return trouble

    @property
    def seen(self) -> Seen:
        """The state that a session knows which has been told everything so far."""
        return Seen(self.now, frozenset(self.now.waiting), frozenset(self.now.problems))

    def news(self, seen: Seen) -> tuple[Change | None, Seen]:
        """Look again. Returns the differences from what a session has ``seen``, None if there are none, and what it has
        seen after being told of them."""
        self.look()
        now = self.now
        fresh = tuple(item for item in now.waiting if item not in seen.waiting)
        wrong = tuple(text for kind, text in now.problems if (kind, text) not in seen.problems)
        if (now is seen.catalogue or now == seen.catalogue) and not fresh and not wrong:
            return None, seen
        from swecli.core.extensions.reading import difference

        change = difference(seen.catalogue, now, fresh, wrong)
        return change if change.summary or fresh or wrong else None, self.seen

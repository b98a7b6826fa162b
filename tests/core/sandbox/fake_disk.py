"""A disk that is only written down."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from swecli.core.sandbox.plan import Disk, Kind


class FakeDisk(Disk):
    """``files`` are texts by path, ``links`` targets by path; the directories on the way are there, too."""

    def __init__(self, files: Mapping[str, str], links: Mapping[str, str] | None = None) -> None:
        self._files = {path: text for path, text in files.items() if not path.endswith("/")}
        self._links = dict(links or {})
        self._directories = {"/"}
        for path in (*files, *self._links):
            folder = path.rstrip("/") if path.endswith("/") else posixpath.dirname(path)
            while folder not in self._directories:
                self._directories.add(folder)
                folder = posixpath.dirname(folder)

    def kind(self, path: str) -> Kind:
        if path in self._links:
            return "link"
        return "directory" if path in self._directories else "file" if path in self._files else "missing"

    def real(self, path: str) -> str:
        path = posixpath.normpath(path)
        for link, target in self._links.items():
            if path == link or path.startswith(link + "/"):
                return self.real(target + path[len(link) :])
        return path

    def names(self, directory: str) -> tuple[str, ...]:
        everything = (*self._directories, *self._files, *self._links)
        return tuple(
            sorted({posixpath.basename(p) for p in everything if posixpath.dirname(p) == directory and p != "/"})
        )

    def text(self, path: str) -> str:
        return self._files.get(path, "")

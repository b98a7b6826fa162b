"""Which archive a command unpacks and where: its members may replace files that no word names."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from swecli.core.permissions.shell.scan import ScanWord
from swecli.lazy_pattern import lazy_pattern


class Unpacking(Struct, frozen=True):
    """``strip`` is the number of folders that the names of members lose, None for all; only members at or below
    ``chosen`` are unpacked, all if it is empty. ``replaces``: also over existing files."""

    archive: ScanWord
    folder: ScanWord = ScanWord(".")
    strip: int | None = 0
    chosen: tuple[str, ...] = ()
    replaces: bool = True

    def target(self, member: str) -> str:
        """The member's place relative to the folder; empty if it is not unpacked."""
        name = posixpath.normpath(member.lstrip("/"))
        if self.chosen and not any(name == chosen or name.startswith(f"{chosen}/") for chosen in self.chosen):
            return ""
        parts = name.split("/")
        if ".." in parts:  # refused by tar and unzip
            return ""
        return "/".join(parts[-1:] if self.strip is None else parts[self.strip :])


_TAR_KEEPS: Final = ("--keep-old-files", "--skip-old-files", "--keep-newer-files", "--backup")
_TAR_OTHER: Final = (
    "--to-stdout",
    "--one-top-level",
    "--transform",
    "--xform",
    "--files-from",
    "--exclude",
    "--wildcards",
    "--include",
)
_TAR_VALUES: Final = "fCbHIKLNTVXgs"
"""Letters of tar's options with a value in the next word."""
_CLUSTER: Final = lazy_pattern(rf"-((?:(?![{_TAR_VALUES}])[a-zA-Z])*)(?:([{_TAR_VALUES}])(.*))?", re.DOTALL)
"""Letters without a value, one with a value, and the value if it is in the same word."""
_ZIP_OTHER: Final = lazy_pattern(r"-[a-zA-Z]*[lptvzZc][a-zA-Z]*|-x")
_STRIP: Final = lazy_pattern(r"--strip(?:-components)?=(\d{1,3})")


def unpacking(name: str, arguments: Sequence[ScanWord]) -> Unpacking | None:
    """What the command unpacks; None if it doesn't, or if that is unclear."""
    if not all(word.known and not word.glob for word in arguments):
        return None
    if name in ("tar", "gtar", "bsdtar"):
        return _of_tar(arguments)
    return _of_unzip(arguments) if name == "unzip" else None


def _of_tar(arguments: Sequence[ScanWord]) -> Unpacking | None:
    rest = [word.text for word in arguments]
    archive, folder, strip, extracts, replaces = "", ".", 0, False, True
    chosen: list[str] = []
    if rest and re.fullmatch("[a-zA-Z]+", rest[0]):  # the old form, in which values follow in the order of the letters
        letters, rest = rest[0], rest[1:]
        valued = [letter for letter in letters if letter in _TAR_VALUES]
        options = [word for letter, value in zip(valued, rest, strict=False) for word in (f"-{letter}", value)]
        plain = "".join(letter for letter in letters if letter not in _TAR_VALUES)
        rest = [*options, *([f"-{plain}"] if plain else []), *rest[len(valued) :]]
    while rest:
        word = rest.pop(0)
        if word in ("--extract", "--get"):
            extracts = True
        elif word.startswith(_TAR_KEEPS):
            replaces = False
        elif word.startswith(_TAR_OTHER):
            return None
        elif match := _STRIP.fullmatch(word):
            strip = int(match[1])
        elif word.startswith(("--file=", "--directory=")):
            option, _, value = word.partition("=")
            archive = value if option == "--file" else archive
            folder = posixpath.join(folder, value) if option == "--directory" else folder
        elif word in ("--file", "--directory", "--strip-components", "--strip"):
            return None  # with the value in the next word: rare
        elif match := _CLUSTER.fullmatch(word):
            flags, valued, value = match[1], match[2], match[3]
            if {"O", "T", "X", "s"} & {*flags, valued}:
                return None
            replaces &= "k" not in flags
            extracts |= "x" in flags
            if valued:
                value = value or (rest.pop(0) if rest else "")
                archive = value if valued == "f" else archive
                folder = posixpath.join(folder, value) if valued == "C" else folder  # each from the one before
        elif not word.startswith("-"):
            chosen.append(posixpath.normpath(word))
    if not extracts or archive in ("", "-") or ":" in archive:
        return None
    return Unpacking(ScanWord(archive), ScanWord(folder), strip, tuple(chosen), replaces)


def _of_unzip(arguments: Sequence[ScanWord]) -> Unpacking | None:
    """It replaces only with ``-o``: otherwise unzip asks, and a command has nobody to answer."""
    rest = [word.text for word in arguments]
    folder, overwrites, flat = ".", False, False
    names: list[str] = []
    while rest:
        word = rest.pop(0)
        if word == "-d":
            folder = rest.pop(0) if rest else folder
        elif _ZIP_OTHER.fullmatch(word):
            return None
        elif word.startswith("-"):
            overwrites |= "o" in word
            flat |= "j" in word
        else:
            names.append(word)
    if not names:
        return None
    return Unpacking(ScanWord(names[0]), ScanWord(folder), None if flat else 0, tuple(names[1:]), overwrites)

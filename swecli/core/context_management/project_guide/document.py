"""OPENCLI.md as sections: what was generated is renewed, what a person wrote or changed stays.

The last line of a generated guide is a comment that records, for each generated section, the beginning of the
SHA-256 of its text. A section whose text no longer fits its record was edited by hand and is kept from then on; a
recorded section that is gone was removed on purpose and is not put back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

_RECORD = re.compile(r"^<!-- swecli init:([^>]*)-->[ \t]*$", re.MULTILINE)
_HEADING = re.compile(r"^## +(.+?)[ \t]*#*[ \t]*$")
_FENCE = re.compile(r"^ {0,3}(```+|~~~+)")

TOP = "top"
"""Key of what stands before the first section: title and first paragraph."""


@dataclass(frozen=True, slots=True)
class Section:
    """``key`` is the heading in a form to compare by; ``text`` the whole section with its heading."""

    key: str
    text: str


def split(document: str) -> tuple[list[Section], dict[str, str]]:
    """The sections in order, and the record (key -> digest)."""
    record = {
        key: digest
        for match in _RECORD.finditer(document)
        for key, _, digest in (word.partition("=") for word in match.group(1).split())
    }
    sections: list[Section] = []
    key, lines, fence = TOP, list[str](), ""
    for line in _RECORD.sub("", document).splitlines():
        mark = _FENCE.match(line)
        if mark and (not fence or line.strip().startswith(fence)):
            fence = "" if fence else mark.group(1)
        heading = None if fence or mark else _HEADING.match(line)
        if heading:
            sections.append(Section(key, "\n".join(lines).strip()))
            key, lines = key_of(heading.group(1)), []
        lines.append(line)
    sections.append(Section(key, "\n".join(lines).strip()))
    return [section for section in sections if section.text], record


def key_of(heading: str) -> str:
    """``Rules and gotchas`` -> ``rules-and-gotchas``."""
    return re.sub(r"\W+", "-", heading.lower()).strip("-")


def digest(text: str) -> str:
    """Eight hex digits of the SHA-256 of the text without white space at line ends."""
    plain = "\n".join(line.rstrip() for line in text.strip().splitlines())
    return sha256(plain.encode("utf-8", "replace")).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class Merged:
    """Sections in their final order, and which of them are generated."""

    sections: tuple[Section, ...]
    generated: frozenset[str]
    removed: tuple[str, ...] = ()
    """Keys of generated sections that a person took out."""

    def render(self) -> str:
        """The document with its record."""
        record = [f"{s.key}={digest(s.text)}" for s in self.sections if s.key in self.generated]
        words = " ".join([*record, *(f"{key}=removed" for key in self.removed)])
        parts = [section.text for section in self.sections]
        if words:
            parts.append(f"<!-- swecli init: {words} -->")
        return "\n\n".join(parts) + "\n" if parts else ""


def merge(existing: str, generated: Sequence[Section]) -> Merged:
    """Renew the generated sections of ``existing`` and keep all others where they are.

    New sections come after the generated section that precedes them in ``generated``.
    """
    old, record = split(existing)
    fresh: Mapping[str, Section] = {section.key: section for section in generated}
    present = {section.key for section in old}
    result: list[Section] = []
    renewed: set[str] = set()
    for section in old:
        untouched = record.get(section.key) == digest(section.text)
        if untouched and section.key in fresh:
            result.append(fresh[section.key])
            renewed.add(section.key)
        elif not untouched:
            result.append(section)
        # A generated section for which there are no facts any more is dropped.
    removed = tuple(key for key in record if key not in present)
    before: str | None = None
    for section in generated:
        if section.key not in present and section.key not in removed:
            result.insert(_place_after(result, before), section)
            renewed.add(section.key)
        if any(other.key == section.key for other in result):
            before = section.key
    return Merged(tuple(result), frozenset(renewed), removed)


def _place_after(sections: Sequence[Section], before: str | None) -> int:
    """Where a new section goes: after ``before``, without one after the title."""
    wanted = before or TOP
    return next((index + 1 for index, other in enumerate(sections) if other.key == wanted), 0)

"""Front matter: the YAML between two lines of ``---`` at the start of a Markdown file.

A small, lenient reader of the YAML that such files use: scalars, quoted texts, block texts, lists and nested mappings.
Values stay text. It accepts input that strict readers refuse but other agents accept, such as a description with a
colon, and reports unreadable parts with their line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

from msgspec import Struct, field

from swecli.core.workspace.command_output import as_read
from swecli.lazy_pattern import lazy_pattern

Value: TypeAlias = "str | list[Value] | dict[str, Value]"

MOST_LINES = 1_000
"""Maximum lines of front matter."""
_DEEPEST = 8
_KEY = lazy_pattern(
    r"""(?:"([^"]*)"|'([^']*)'|([^\s:#\[\]{},&*!|>%@`"'-][^:#]*?|-[^\s:#][^:#]*?))\s*:(?:[ \t]+(.*))?$"""
)
_BLOCK = lazy_pattern(r"([|>])(?:[+-]?[1-9]?|[1-9][+-])(?:\s+#.*)?$")
_ESCAPE = lazy_pattern(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "/": "/", "0": "\0", " ": " "}


class Problem(Struct, frozen=True):
    """A problem with a file, as a sentence without its end; ``line`` counts from 1, or is 0 for the whole file.
    ``broken``: a part of the file could not be read, so that it may do other than its author meant."""

    line: int
    text: str
    broken: bool = False


class FrontMatter(Struct, frozen=True):
    """``fields`` in file order, ``lines`` their line numbers; ``body`` is the rest of the file."""

    fields: Mapping[str, Value]
    body: str
    lines: Mapping[str, int] = field(default_factory=dict[str, int])
    problems: tuple[Problem, ...] = ()

    def text(self, name: str) -> str:
        """A field as text on one line; empty if missing or not text."""
        value = self.fields.get(name)
        return " ".join(value.split()) if isinstance(value, str) else ""

    def words(self, name: str) -> tuple[str, ...] | None:
        """A list, written as a list or as comma-separated text; None if missing. Commas within brackets do not
        separate."""
        value = self.fields.get(name)
        if value is None or isinstance(value, dict):
            return None
        parts = value if isinstance(value, list) else split_list(value)
        return tuple(part.strip() for part in parts if isinstance(part, str) and part.strip())

    def flag(self, name: str, default: bool = False) -> bool:
        """Whether a field is true, in any of YAML's spellings."""
        return is_true(self.text(name)) if self.text(name) else default


def is_true(value: Value) -> bool:
    return isinstance(value, str) and value.strip().lower() in ("true", "yes", "on", "1")


def split_list(text: str) -> list[str]:
    """Split ``Bash(git add:*), Read`` or ``*.{ts,tsx}, *.js`` into its two parts; without commas, at blanks outside
    brackets."""
    parts, depth = [""], 0
    comma = _has_outer_comma(text)
    for char in text:
        depth += (char in "({") - (char in ")}" and depth > 0)
        if depth == 0 and (char == "," or (not comma and char.isspace())):
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]


def _has_outer_comma(text: str) -> bool:
    depth = 0
    for char in text:
        depth += (char in "({") - (char in ")}" and depth > 0)
        if char == "," and depth == 0:
            return True
    return False


def read_front_matter(text: str) -> FrontMatter:
    """The fields and body of a file. A file without front matter has no fields; unreadable parts become problems and
    the rest is used."""
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return FrontMatter({}, text)
    end = next((n for n in range(1, min(len(lines), MOST_LINES)) if lines[n].rstrip() in ("---", "...")), 0)
    if not end:
        why = "the front matter that starts here has no end: a line with --- is missing"
        return FrontMatter({}, "\n".join(lines[1:]), problems=(Problem(1, why, broken=True),))
    reader = _Reader(lines[1:end])
    fields = reader.mapping(0, 0)
    reader.close()
    body = "\n".join(lines[end + 1 :])
    return FrontMatter(fields, body, reader.lines, tuple(sorted(reader.problems, key=lambda problem: problem.line)))


class _Reader:
    """Reads lines one after another. ``at`` is an index into them; index 0 is line 2 of the file."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = list(lines)
        self._at = 0
        self.lines: dict[str, int] = {}
        """Lines of the outermost keys."""
        self.problems: list[Problem] = []
        self._stray: list[tuple[int, str]] = []
        """Ignored lines, each with the reason."""
        self._twice: dict[str, int] = {}
        """Repeated keys, each with the line of its first repetition."""

    def close(self) -> None:
        """Report ignored lines and keys, however many: a text that goes on without indentation has dozens of them."""
        if len(self._stray) == 1:
            at, why = self._stray[0]
            self._problem(at, f"this line {why} and is ignored")
        elif self._stray:
            text = f"{len(self._stray)} lines from here on are not `key: value` and are ignored; indent lines of a text"
            self._problem(self._stray[0][0], text)
        if self._twice:
            names = ", ".join(f"`{key}`" for key in self._twice)
            single = len(self._twice) == 1
            text = f"{names} {'appears' if single else 'appear'} twice; the first one applies"
            self._problem(min(self._twice.values()), text)

    def _problem(self, at: int, text: str) -> None:
        self.problems.append(Problem(at + 2, text, broken=True))

    def _indent(self, at: int) -> int:
        """Columns before the text of a line; -1 for a blank or comment line."""
        line = self._lines[at]
        bare = line.lstrip(" \t")
        if not bare or bare.startswith("#"):
            return -1
        lead = line[: len(line) - len(bare)]
        if "\t" in lead:
            self._problem(at, "a tab indents this line; YAML allows only spaces")
            self._lines[at] = lead.replace("\t", "  ") + bare
            lead = lead.replace("\t", "  ")
        return len(lead)

    def _next(self) -> int:
        """Move ``at`` to the next line with content and return its indentation; -1 at the end."""
        while self._at < len(self._lines):
            indent = self._indent(self._at)
            if indent >= 0:
                return indent
            self._at += 1
        return -1

    def mapping(self, indent: int, depth: int) -> dict[str, Value]:
        fields: dict[str, Value] = {}
        while (indentation := self._next()) >= indent:
            at = self._at
            line = self._lines[at].strip()
            match = _KEY.match(line) if indentation == indent else None
            if match is None:
                why = "is indented too far" if indentation > indent else "is not `key: value`"
                self._stray.append((at, why))
                self._at += 1
                continue
            key = next(part for part in match.groups()[:3] if part is not None).strip()
            self._at += 1
            value = self._value((match[4] or "").strip(), at, indent, depth)
            if key in fields:
                self._twice.setdefault(key, at)
                continue
            fields[key] = value
            if depth == 0:
                self.lines[key] = at + 2
        return fields

    def _value(self, rest: str, at: int, indent: int, depth: int) -> Value:
        if block := _BLOCK.fullmatch(rest):
            return self._block_text(block[1], indent)
        if rest.startswith(("[", "{")):
            return self._flow(rest, at, indent)
        if rest[:1] in ("'", '"'):
            return self._quoted(rest, at, indent)
        if rest and not rest.startswith("#"):
            return " ".join([_without_comment(rest), *self._continued(indent)]).strip()
        indentation = self._next()
        if indentation < 0 or depth >= _DEEPEST:
            return ""
        if (indentation >= indent and self._lines[self._at].strip().startswith(("- ", "-\t"))) or (
            indentation >= indent and self._lines[self._at].strip() == "-"
        ):
            return self._list(indentation, depth + 1)
        if indentation > indent:
            rest = self._lines[self._at].strip()
            if rest[0] in "[{'\"" and not _KEY.match(rest):
                self._at += 1
                return self._value(rest, self._at - 1, indent, depth + 1)
            if _KEY.match(self._lines[self._at].strip()):
                return self.mapping(indentation, depth + 1)
            return " ".join(self._continued(indent))
        return ""

    def _list(self, indent: int, depth: int) -> list[Value]:
        items: list[Value] = []
        while self._next() == indent:
            at = self._at
            line = self._lines[at].strip()
            if not (line == "-" or line.startswith(("- ", "-\t"))):
                break
            self._at += 1
            rest = line[1:].strip()
            if rest and rest[0] not in "'\"[{" and (match := _KEY.match(rest)) and (match[4] or self._deeper(indent)):
                # A mapping that begins on the line of its dash.
                inner = indent + 2
                self._at = at
                self._lines[at] = " " * inner + rest
                items.append(self.mapping(inner, depth + 1))
            else:
                items.append(self._value(rest, at, indent, depth))
        return items

    def _deeper(self, indent: int) -> bool:
        """Whether the next line with content belongs to the key on the line of a dash at ``indent``."""
        return self._next() > indent + 2

    def _continued(self, indent: int) -> list[str]:
        """Continuation lines, which are indented further."""
        more: list[str] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.strip() and len(line) - len(line.lstrip(" \t")) <= indent:
                break
            more.append(_without_comment(line.strip()))
            self._at += 1
        return [line for line in more if line]

    def _block_text(self, style: str, indent: int) -> str:
        """A multi-line text, literal or folded into paragraphs."""
        taken: list[str] = []
        while self._at < len(self._lines):
            line = self._lines[self._at].expandtabs(2)
            if line.strip() and len(line) - len(line.lstrip()) <= indent:
                break
            taken.append(line)
            self._at += 1
        margin = min((len(line) - len(line.lstrip()) for line in taken if line.strip()), default=0)
        text = "\n".join(line[margin:].rstrip() for line in taken).strip("\n")
        if style == "|":
            return text
        return "\n".join(" ".join(part.split("\n")) for part in text.split("\n\n"))

    def _quoted(self, rest: str, at: int, indent: int) -> str:
        text = " ".join([rest, *self._more_until_closed(rest, indent)])
        quote = text[0]
        end = _closing(text)
        if end < 0:
            self._problem(at, f"the text has no closing {quote}")
            return text[1:]
        after = text[end + 1 :].strip()
        if after and not after.startswith("#"):
            return text  # as in: "a" and "b", which people write without quotes around the whole
        inner = text[1:end]
        if quote == "'":
            return inner.replace("''", "'")
        # The text of the file was made visible before; its escapes may stand for more.
        return as_read(_ESCAPE.sub(_escaped, inner).encode("utf-16", "surrogatepass").decode("utf-16", "replace"))

    def _more_until_closed(self, rest: str, indent: int) -> list[str]:
        more: list[str] = []
        while _closing(" ".join([rest, *more])) < 0 and self._at < len(self._lines):
            line = self._lines[self._at]
            if line.strip() and len(line) - len(line.lstrip(" \t")) <= indent:
                break
            more.append(line.strip())
            self._at += 1
        return more

    def _flow(self, rest: str, at: int, indent: int) -> Value:
        """``[a, b]`` or ``{a: b}``, also over several lines."""
        text = rest
        while not _balanced(text) and self._at < len(self._lines):
            line = self._lines[self._at]
            if line.strip() and line.strip() not in ("]", "}") and len(line) - len(line.lstrip(" \t")) <= indent:
                break
            text += " " + line.strip()
            self._at += 1
        closing = "]" if text[0] == "[" else "}"
        text = _without_comment(text)
        if not _balanced(text) or not text.endswith(closing):
            if text[0] == "[" and "]" in text:  # an argument hint: [file] [words]
                return text
            self._problem(at, f"the list has no closing {closing}")
            return text
        return _flow_value(text, 0)


def _escaped(match: re.Match[str]) -> str:
    """The character of an escape in a text with double quotes; an unknown escape stays as it is."""
    if match[4]:
        return _ESCAPES.get(match[4], match[0])
    code = int(match[1] or match[2] or match[3], 16)
    return chr(code) if code <= sys.maxunicode else match[0]


def _closing(text: str) -> int:
    """Index where the quotation at the start of ``text`` ends; -1 if it does not."""
    quote, at = text[0], 1
    while at < len(text):
        if quote == '"' and text[at] == "\\":
            at += 1
        elif text[at] == quote:
            if quote == "'" and text[at + 1 : at + 2] == "'":
                at += 1
            else:
                return at
        at += 1
    return -1


def _balanced(text: str) -> bool:
    return all(text.count(opening) <= text.count(other) for opening, other in ("[]", "{}"))


def _flow_value(text: str, depth: int) -> Value:
    text = text.strip()
    if depth < _DEEPEST and len(text) > 1 and (text[0], text[-1]) in (("[", "]"), ("{", "}")):
        parts = _flow_parts(text[1:-1])
        if parts is None:  # [file] [words] is a text with brackets
            return text
        if text[0] == "[":
            return [_flow_value(part, depth + 1) for part in parts]
        pairs = (part.partition(":") for part in parts)
        return cast("Value", {key.strip().strip("'\""): _flow_value(value, depth + 1) for key, _, value in pairs})
    if len(text) > 1 and text[0] in "'\"" and _closing(text) == len(text) - 1:
        return text[1:-1]
    return text


def _flow_parts(text: str) -> list[str] | None:
    """Parts separated by commas at the outermost level; None for unbalanced brackets."""
    parts, depth, quote = [""], 0, ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"" and not parts[-1].strip():
            quote = char
        elif char in "[{(":
            depth += 1
        elif char in "]})":
            depth -= 1
            if depth < 0:
                return None
        if char == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += char
    return [part for part in parts if part.strip()]


def _without_comment(text: str) -> str:
    """The text before a comment, which begins with a blank and a number sign followed by a blank."""
    match = re.search(r"\s#(?:\s|$)", text)
    return text[: match.start()].rstrip() if match else text

"""Files as the user's editor has them: its text as the bytes that saving would write. Pure except for asking the
editor.

Editors keep a file's line ends and encoding apart from its text, so a text that differs only in line ends counts as
unchanged.
"""

from __future__ import annotations

from pathlib import Path

from swecli.core.ports import EditorFiles
from swecli.core.workspace.text_file import decode


def as_in_editor(path: Path, data: bytes, editor: EditorFiles | None) -> bytes:
    """The bytes of a file including unsaved changes in the editor; ``data`` is the content on disk."""
    if editor is None:
        return data
    text = editor.text(path)
    return data if text is None else with_text(data, text)


def with_text(data: bytes, text: str) -> bytes:
    """``text`` in the encoding and with the line ends of ``data``; ``data`` itself if the text is the same or can't be
    encoded."""
    file = decode(data)
    if file.looks_binary or file.tail or _plain(file.text) == _plain(text):
        return data
    ends = _plain(text).replace("\n", "\r\n") if file.line_end == "crlf" else text
    try:
        return file.bom + file.encode_new(ends)
    except UnicodeEncodeError:
        return data


def writable_as_text(data: bytes) -> bool:
    """Whether an editor given the text of these bytes would save exactly these bytes, as far as can be known."""
    file = decode(data)
    return file.codec == "utf-8" and not file.bom and file.errors == "strict" and file.line_end != "mixed"


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")

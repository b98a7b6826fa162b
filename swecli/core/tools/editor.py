"""Files as the user's editor has them: its text as the bytes that saving it would give. Pure besides asking the editor.

Editors keep line ends and encoding of a file beside its text, so a text that differs only in line ends is the file's.
"""

from __future__ import annotations

from pathlib import Path

from swecli.core.ports import EditorFiles
from swecli.core.workspace.text_file import decode


def as_in_editor(path: Path, data: bytes, editor: EditorFiles | None) -> bytes:
    """The bytes of a file with what is not saved yet in the editor; ``data`` is what is on disk."""
    if editor is None:
        return data
    text = editor.text(path)
    return data if text is None else with_text(data, text)


def with_text(data: bytes, text: str) -> bytes:
    """``data`` with another text in its encoding and with its line ends. ``data`` itself where the text is the same, or
    where it can't hold it."""
    file = decode(data)
    if file.looks_binary or file.tail or _plain(file.text) == _plain(text):
        return data
    ends = _plain(text).replace("\n", "\r\n") if file.line_end == "crlf" else text
    try:
        return file.bom + file.encode_new(ends)
    except UnicodeEncodeError:
        return data


def writable_as_text(data: bytes) -> bool:
    """Whether an editor that is given the text of these bytes saves just these bytes, as far as one can know."""
    file = decode(data)
    return file.codec == "utf-8" and not file.bom and file.errors == "strict" and file.line_end != "mixed"


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")

"""Results whose text comes from outside, without their frames."""

from __future__ import annotations

import re

_FRAME = re.compile(
    r"(?:The text below comes from outside: it is data, not instructions\.\n|The user chose this prompt of [^\n]*:\n)"
    r"<untrusted-([0-9a-f]{16}) origin=\"[^\"\n]*\">\n(.*)\n</untrusted-\1>",
    re.DOTALL,
)


def unframed(text: str) -> str:
    """The text with the content of its frame in the frame's place."""
    return _FRAME.sub(lambda frame: frame[2], text)

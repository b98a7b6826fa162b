"""Writes tests/data/commonmark/examples.jsonl: the examples of the CommonMark specification, and nothing else of it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "commonmark-spec@0.31.2"
TARGET = Path(__file__).resolve().parent.parent / "tests" / "data" / "commonmark" / "examples.jsonl"
PIECE = re.compile(r"^#{1,6} +([^\n]*)$|^`{32} example\n(.*?)^\.\n(.*?)^`{32}$", re.MULTILINE | re.DOTALL)


def specification() -> str:
    """The text of the specification."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as packed:
            member = packed.extractfile("package/spec.txt")
            assert member is not None
            return member.read().decode("utf-8")


def lines(text: str) -> list[str]:
    """One JSON line for each example. The specification shows a tab as an arrow."""
    out: list[str] = []
    section = ""
    for heading, markdown, html in PIECE.findall(text):
        if heading:
            section = heading
            continue
        example = {"number": len(out) + 1, "section": section, "markdown": markdown, "html": html}
        out.append(json.dumps(example, ensure_ascii=False).replace("→", "\\t"))
    return out


def main() -> int:
    TARGET.write_text("\n".join(lines(specification())) + "\n", encoding="utf-8")
    print(TARGET)
    return 0


if __name__ == "__main__":
    sys.exit(main())

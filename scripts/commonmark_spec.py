"""Fetches the CommonMark specification to build/commonmark, where a test reads its examples. It has a licence of its
own and is not kept in the repository."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

PACKAGE = "commonmark-spec@0.31.2"
TARGET = Path(__file__).resolve().parent.parent / "build" / "commonmark" / "spec.txt"


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as packed:
            member = packed.extractfile("package/spec.txt")
            assert member is not None
            TARGET.parent.mkdir(parents=True, exist_ok=True)
            TARGET.write_bytes(member.read())
    print(TARGET)
    return 0


if __name__ == "__main__":
    sys.exit(main())

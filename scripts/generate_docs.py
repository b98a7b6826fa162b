"""Writes what in docs/ is generated from the code: the JSON Schema of events and commands."""

from __future__ import annotations

import json
from pathlib import Path

from swecli.core.protocol.codec import json_schema

SCHEMA = Path(__file__).resolve().parent.parent / "docs" / "protocol.schema.json"


def schema_text() -> str:
    """The schema as it is in the file."""
    return json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), encoding="utf-8")
    print(f"docs/{SCHEMA.name}")

"""Writes what in docs/ is generated from the code: the JSON Schema of events and commands."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

from swecli.core.protocol.codec import json_schema

SCHEMA = Path(__file__).resolve().parent.parent / "docs" / "protocol.schema.json"


def _dedented(value: Any) -> Any:
    """Descriptions are docstrings, stored without indentation from Python 3.13 on, with it before."""
    match value:
        case dict():
            return {
                key: inspect.cleandoc(inner) if key == "description" and isinstance(inner, str) else _dedented(inner)
                for key, inner in value.items()
            }
        case list():
            return [_dedented(inner) for inner in value]
        case _:
            return value


def schema_text() -> str:
    """The schema as it is in the file, the same on every version of Python."""
    return json.dumps(_dedented(json_schema()), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), encoding="utf-8")
    print(f"docs/{SCHEMA.name}")

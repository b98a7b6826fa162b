"""Writes what is generated from the code: in docs/ the JSON Schemas of events and commands and of the settings, and in
share/ what the wheel installs for the shell, a manual page and completions."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

from scripts.manual_page import manual_page
from swecli.command_line.arguments import main_parser
from swecli.command_line.completion import SCRIPTS, options_of
from swecli.core.config.schema import settings_schema
from swecli.core.protocol.codec import json_schema

ROOT = Path(__file__).resolve().parent.parent
COMPLETIONS = {
    "bash": "share/bash-completion/completions/swecli",
    "zsh": "share/zsh/site-functions/_swecli",
    "fish": "share/fish/vendor_completions.d/swecli.fish",
}
"""Where each shell looks for the completions of installed programs, below the prefix."""


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


def schema_text(schema: dict[str, Any]) -> str:
    """The schema as it is in the file, the same on every version of Python."""
    return json.dumps(_dedented(schema), indent=1, ensure_ascii=False) + "\n"


def generated() -> dict[str, str]:
    """The generated files: path in the repository -> text."""
    options = options_of(main_parser())
    scripts = {path: SCRIPTS[shell](options) for shell, path in COMPLETIONS.items()}
    schemas = {
        "docs/protocol.schema.json": schema_text(json_schema()),
        "docs/config.schema.json": schema_text(settings_schema()),
    }
    return {**schemas, "share/man/man1/swecli.1": manual_page(), **scripts}


if __name__ == "__main__":
    for name, text in generated().items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(name)

"""Changing one value in the user's settings file; comments and order of the file stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from swecli.core.config.read_toml import ConfigError, ConfigProblem, read_toml


def set_value(path: Path, key: str, value: object) -> None:
    """Write ``value`` for a dotted ``key`` into a settings file, which is created when it is missing. The file is
    replaced in one step; a link to it is followed.

    Raises:
        ConfigError: the file can't be read or written, or is no TOML; it is as it was.
    """
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    read = read_toml(path)
    target = path.resolve()
    try:
        document = tomlkit.parse(read[1] if read is not None else "")
        table = cast("dict[str, Any]", document)
        *sections, name = key.split(".")
        for section in sections:
            if section not in table:
                table[section] = tomlkit.table()
            table = cast("dict[str, Any]", table[section])
        table[name] = value
        text = tomlkit.dumps(document)
    except (TOMLKitError, TypeError, ValueError) as error:
        raise ConfigError([ConfigProblem(str(path), None, f"{key} can't be set here: {error}")]) from None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        new = target.with_name(f"{target.name}.new")
        new.write_text(text, encoding="utf-8")
        if read is not None:
            new.chmod(target.stat().st_mode & 0o777)
        new.replace(target)
    except OSError as error:
        raise ConfigError([ConfigProblem(str(path), None, f"can't be written: {error.strerror or error}")]) from None

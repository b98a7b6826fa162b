"""Changing one value in a settings file; comments and order of the file stay."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from swecli.core.config.read_toml import ConfigError, ConfigProblem, read_toml
from swecli.core.config.toml_value import key_parts

Table = dict[str, Any]


def set_value(path: Path, key: str, value: object) -> None:
    """Write ``value`` for a dotted ``key`` into a settings file, which is created when it is missing. The file is
    replaced in one step; a link to it is followed.

    Raises:
        ConfigError: the file can't be read or written, or is no TOML; it is as it was.
    """
    import tomlkit

    def put(document: Table) -> bool:
        *sections, name = key_parts(key)
        table = document
        for section in sections:
            if section not in table:
                table[section] = tomlkit.table(is_super_table=section is not sections[-1])
            table = cast("Table", table[section])
        old = table.get(name)
        if isinstance(value, Mapping) and isinstance(old, dict):
            _merge(cast("Table", old), cast("Mapping[str, object]", value))
        elif (
            isinstance(old, list)
            and isinstance(value, list)
            and _adjusted(cast("list[object]", old), cast("list[object]", value))
        ):
            pass
        elif isinstance(value, Mapping | list):
            table[name] = _inline(cast("object", value))
        else:
            table[name] = value
        return True

    _change(path, key, put)


def unset_value(path: Path, key: str) -> bool:
    """Take a dotted ``key`` out of a settings file. Whether it was there.

    Raises:
        ConfigError: the file can't be read or written, or is no TOML; it is as it was.
    """

    def take(document: Table) -> bool:
        *sections, name = key_parts(key)
        table = document
        for section in sections:
            if not isinstance(table.get(section), dict):
                return False
            table = cast("Table", table[section])
        return table.pop(name, None) is not None

    return _change(path, key, take)


def _merge(table: Table, wanted: Mapping[str, object]) -> None:
    """Make a table equal to ``wanted``; what stays equal keeps its place and comments."""
    for gone in [name for name in table if name not in wanted]:
        del table[gone]
    for name, value in wanted.items():
        if name not in table or table[name] != value:
            table[name] = value


def _adjusted(array: list[object], wanted: list[object]) -> bool:
    """Make a list equal to ``wanted`` by taking entries out and adding some at its end, so that its comments stay.
    Whether that was enough."""
    kept = [each for each in array if each in wanted]
    if wanted[: len(kept)] != kept:
        return False
    for gone in [each for each in array if each not in wanted]:
        array.remove(gone)
    array.extend(wanted[len(kept) :])
    return list(array) == wanted


def _inline(value: object) -> Any:
    """Tables inside of a value on its line."""
    import tomlkit

    if isinstance(value, Mapping):
        table: Any = tomlkit.inline_table()
        table.update({name: _inline(item) for name, item in cast("Mapping[str, object]", value).items()})
        return table
    if isinstance(value, list):
        array: Any = tomlkit.array()
        array.extend(_inline(item) for item in cast("list[object]", value))
        return array
    return value


def _change(path: Path, key: str, change: Callable[[Table], bool]) -> bool:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    read = read_toml(path)
    target = path.resolve()
    try:
        document = tomlkit.parse(read[1] if read is not None else "")
        changed = change(cast("Table", document))
        text = tomlkit.dumps(document)
    except (TOMLKitError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigError([ConfigProblem(str(path), None, f"{key} can't be set here: {error}")]) from None
    if not changed:
        return False
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        new = target.with_name(f"{target.name}.new")
        new.write_text(text, encoding="utf-8")
        if read is not None:
            new.chmod(target.stat().st_mode & 0o777)
        new.replace(target)
    except OSError as error:
        raise ConfigError([ConfigProblem(str(path), None, f"can't be written: {error.strerror or error}")]) from None
    return True

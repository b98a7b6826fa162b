"""The section [keys]: one setting for each action, a list of keys."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, create_model, model_validator

from swecli.core.config.key_actions import ACTIONS, normal, problem
from swecli.core.config.section import Section


def _as_list(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _normal(keys: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(normal(key) for key in keys))
    except ValueError as error:
        raise ValueError(f"must be keys, and the keyboard {error}") from None


Keys = Annotated[tuple[str, ...], AfterValidator(_normal), BeforeValidator(_as_list)]


class _Checked(Section):
    @property
    def changes(self) -> dict[str, tuple[str, ...]]:
        """What was set, by the name of the action."""
        return {name: getattr(self, name) for name in sorted(self.model_fields_set)}

    @model_validator(mode="after")
    def _without_conflict(self) -> _Checked:
        if found := problem(self.changes):
            raise ValueError(found)
        return self


def _section() -> type[_Checked]:
    fields: dict[str, Any] = {action.name: (Keys, action.keys) for action in ACTIONS}
    return create_model("Keys", __base__=_Checked, __module__=__name__, **fields)


class KeySettings(_section()):
    """Keys of each action."""

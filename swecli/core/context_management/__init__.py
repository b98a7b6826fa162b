"""Prompts, measurement, the gateway, compaction, and the playbook's public names."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from swecli.core.playbook.bullet import Bullet
    from swecli.core.playbook.playbook import Playbook
    from swecli.core.playbook.reflector import ExecutionReflector, Reflection, ToolCall

__all__ = ("Bullet", "ExecutionReflector", "Playbook", "Reflection", "ToolCall")

_PLACES = {"Bullet": "bullet", "Playbook": "playbook"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # names are imported on first use

    return getattr(import_module(f"swecli.core.playbook.{_PLACES.get(name, 'reflector')}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

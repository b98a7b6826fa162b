"""Loading modules beside the event loop."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module


def load(names: Iterable[str]) -> None:
    """Import modules. To be called in a thread: what is imported by its usual statement afterwards is there already."""
    for name in names:
        import_module(name)

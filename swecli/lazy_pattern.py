"""Regular expressions compiled at their first use.

A start loads some 400 of them and uses a tenth; to compile all took 0.1 s of a run of 0.8 s. What every message needs
may as well be compiled with its module.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

_ATTRIBUTES = tuple(name for name in dir(re.Pattern) if not name.startswith("_"))


def lazy_pattern(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What ``re.compile(source, flags)`` returns, compiled when one of its attributes is first read. Only then an
    invalid ``source`` raises ``re.error``."""
    return cast("re.Pattern[AnyStr]", LazyPattern(source, flags))


class LazyPattern:
    """Stands for a ``re.Pattern``, whose attributes it has from the first use on."""

    def __init__(self, source: str | bytes, flags: int) -> None:
        self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        """Called for what the instance does not have yet."""
        if name not in _ATTRIBUTES:
            raise AttributeError(name)
        return getattr(self.compile(), name)

    def compile(self) -> re.Pattern[Any]:
        """The compiled pattern, whose attributes are from now on the instance's own."""
        compiled = re.compile(self._source, self._flags)
        for attribute in _ATTRIBUTES:
            setattr(self, attribute, getattr(compiled, attribute))
        return compiled

"""What a feature brings to a session. The engine knows features only in this form."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from swecli.core.engine.companion import Companion
from swecli.core.engine.core import Core


def _none(core: Core) -> Sequence[Companion]:
    del core
    return ()


class Feature(Struct, frozen=True):
    """A feature of one run. The companions of all features are called in the order of the features."""

    companions: Callable[[Core], Sequence[Companion]] = _none
    """Those of the session that the user talks to."""
    inner: Callable[[Core], Sequence[Companion]] = _none
    """Those of a subagent's session."""

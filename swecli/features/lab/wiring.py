"""It has no part in sessions: `swecli lab` reads their records."""

from __future__ import annotations

from swecli.features import Wiring

WIRING = Wiring()

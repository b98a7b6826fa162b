"""How much a run tries: `make test` a part that is always the same, `make soak` everything."""

from __future__ import annotations

import os

THOROUGH = os.environ.get("SWECLI_THOROUGH") == "1"


def examples(short: int, thorough: int) -> int:
    """How many examples are tried."""
    return thorough if THOROUGH else short

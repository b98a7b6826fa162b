"""How much longer things may take here and now."""

from __future__ import annotations

import os


def allowed(seconds: float) -> float:
    """So many seconds on a quiet machine; more in proportion where other programs want its processors, too."""
    waiting = os.getloadavg()[0] / (os.cpu_count() or 1)
    return seconds * max(1.0, 2 * waiting)

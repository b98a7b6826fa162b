"""Names of sessions."""

from __future__ import annotations

from datetime import datetime
from random import Random

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_session_id(now: datetime, random: Random) -> str:
    """Local time and four random characters, such as ``2025-10-07-14-30-45-a1b2``: sorts by age."""
    return f"{now:%Y-%m-%d-%H-%M-%S}-{''.join(random.choices(_ALPHABET, k=4))}"

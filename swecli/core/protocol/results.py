"""What kinds of tool results there are, as far as their size is concerned."""

from __future__ import annotations

from typing import Literal

ResultKind = Literal["page", "output", "stored"]
"""``page``: the tool bounds itself and can be asked for another part (files, listings, edits). ``output``: what
some program or server wrote, of any length. ``stored``: it reads what left the context, so it never leaves it
again on its own."""

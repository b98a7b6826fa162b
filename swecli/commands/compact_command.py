"""``/compact``, at the place that the design names."""

from swecli.commands.compaction import COMPACT

__all__ = ("COMPACT",)

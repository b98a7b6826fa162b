"""``/compact``, at the place that the design names."""

from swecli.commands.context import COMPACT

__all__ = ("COMPACT",)

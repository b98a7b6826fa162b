"""``/init``, at the place that the design names."""

from swecli.commands.init import INIT

__all__ = ("INIT",)

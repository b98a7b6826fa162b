"""``/init``, at the place that the design names."""

from swecli.features.init.command import INIT

__all__ = ("INIT",)

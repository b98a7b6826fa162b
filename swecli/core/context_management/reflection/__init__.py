"""Reflection, at the place that the design names. It lives in ``swecli/core/playbook``."""

from swecli.core.playbook.reflector import ExecutionReflector, Reflection, ToolCall

__all__ = ("ExecutionReflector", "Reflection", "ToolCall")

"""The reflector, at the place that the design names."""

from swecli.core.context_management.reflection import ExecutionReflector, Reflection, ToolCall

__all__ = ("ExecutionReflector", "Reflection", "ToolCall")

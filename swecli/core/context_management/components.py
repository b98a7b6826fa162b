"""Names of the components of a request, as budgets, ``/context`` and the log show them."""

from __future__ import annotations

SYSTEM = "system prompt"
USER_INSTRUCTIONS = "user instructions"
PROJECT_INSTRUCTIONS = "project instructions"
MEMORY = "memory"
SKILLS = "skills"
TOOLS = "tool descriptions"
USER = "user messages"
ASSISTANT = "assistant messages"
REASONING = "reasoning"
CALLS = "tool calls"
RESULTS = "tool results"
TAIL = "tail"

"""`swecli acp` on a Python for which the SDK of the Agent Client Protocol has no release."""

from __future__ import annotations

import pytest

from swecli.command_line import acp
from swecli.command_line.arguments import UsageError


def test_a_missing_sdk_is_named_before_anything_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acp, "find_spec", {"acp": None}.__getitem__)
    with pytest.raises(UsageError, match=r"agent-client-protocol is missing.*Python 3\.11 to 3\.14"):
        acp.acp(["-m", "openai/m"])

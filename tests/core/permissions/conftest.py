"""What the tests of decisions share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.shell_workspace import judged_once


@pytest.fixture(scope="module")
def once() -> Iterator[None]:
    """For a module that decides about the same commands under several policies, in workspaces that do not change."""
    with judged_once():
        yield

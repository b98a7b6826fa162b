"""What a feature brings to a session. The engine knows features only in this form."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from swecli.core.context_management.prompt import PromptTexts
from swecli.core.engine.companion import CallCompanion, Companion
from swecli.core.engine.core import Core
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Extension, Workspace
from swecli.core.permissions.types import Policy
from swecli.core.tools.base import AnyTool


def _none(core: Core) -> Sequence[Companion]:
    return ()


def _none_inside(core: Core, agent: str) -> Sequence[Companion]:
    return ()


def _none_alone(workspace: Workspace, policy: Policy, recorder: Recorder) -> Sequence[CallCompanion]:
    return ()


def _same(texts: PromptTexts) -> PromptTexts:
    return texts


class Feature(Struct, frozen=True):
    """A feature of one run. The companions of all features are called in the order of the features."""

    companions: Callable[[Core], Sequence[Companion]] = _none
    """Those of the session that the user talks to."""
    inner: Callable[[Core, str], Sequence[Companion]] = _none_inside
    """Those of a subagent's session, by the subagent's name."""
    alone: Callable[[Workspace, Policy, Recorder], Sequence[CallCompanion]] = _none_alone
    """Those of tool calls without a session."""
    tools: Sequence[AnyTool] = ()
    spare: Sequence[AnyTool] = ()
    """Stand-ins for its tools, for a session that began with them: they answer that they have no source."""
    extensions: Sequence[Extension] = ()
    prompt: Callable[[PromptTexts], PromptTexts] = _same
    """The texts of the system prompt with its own."""

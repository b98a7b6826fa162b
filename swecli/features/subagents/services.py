"""What a subagent gets of the services of the session that starts it."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from swecli.core.context_management.prompts import read_prompt
from swecli.core.engine.model_access import ModelUnavailable
from swecli.core.engine.model_call import tokens_left
from swecli.core.engine.recorder import Recorder
from swecli.core.engine.services import Services, Toolset
from swecli.core.engine.settings import TurnLimits
from swecli.core.llm.types import ModelClient
from swecli.core.permissions.types import Policy
from swecli.core.protocol.events import Mode, Notice
from swecli.core.tools.base import ToolError
from swecli.features.subagents.profiles import AgentProfile, tools_of


class AgentServices:
    """The services of the subagents of one session."""

    def __init__(self, services: Services, recorder: Recorder) -> None:
        """``services`` and ``recorder`` are those of the session."""
        self._services = services
        self._recorder = recorder
        self._warned: set[str] = set()

    def of(self, profile: AgentProfile) -> tuple[Services, str]:
        """The session's services with separate context, tools, mode and caps, and the model. The user's permissions in
        the session, and its untrusted text, apply to its subagents at once.

        Raises:
            ToolError: the profile leaves no tools, or no model is available.
        """
        services, recorder, now = self._services, self._recorder, self._services.settings.now
        names, unknown = tools_of(profile, services.toolset.tools.names())
        if not names:
            raise ToolError(f"The agent {profile.name} has no available tools. Use another agent.")
        if unknown:
            self._warn_once(f"The agent {profile.name} runs without unknown tools: {', '.join(unknown)}.")
        model, client = self._model_of(profile, now.subagents.model or recorder.state.model)
        options = now.subagents
        first, permissions = [client], services.permissions
        began = frozenset(permissions.rules(now))

        def make_client(wanted: str) -> ModelClient:
            return first.pop() if first and wanted == model else services.access.make_client(wanted)

        def inherited(policy: Policy) -> Policy:
            state = recorder.state
            own = (rule for rule in policy.rules if rule not in began)
            current = permissions.rules(services.settings.now)  # of the files
            rules = tuple(dict.fromkeys((*current, *own, *state.rules)))
            untrusted = tuple(dict.fromkeys((*policy.untrusted, *state.untrusted)))
            mode = profile.mode_in(policy.mode)  # also where a looser one is considered
            return replace(policy, mode=mode, rules=rules, untrusted=untrusted)

        policy = replace(permissions.policy, mode=profile.mode_in(recorder.state.mode))
        limits = TurnLimits(options.max_steps, options.max_tokens, options.max_price, now.limits.max_retries)
        tools = services.toolset.tools.selected(names)
        prompt = "\n\n".join(filter(None, (read_prompt("subagent"), profile.prompt)))
        given = replace(
            services,
            toolset=Toolset(tools, services.context_for(tools, prompt)),
            access=replace(services.access, make_client=make_client),
            permissions=replace(permissions, inherited=inherited, policy=policy),
            settings=replace(services.settings.own(), now=replace(now, limits=limits)),
            store=replace(services.store, snapshots=None),
            extensions=(),
            workspace=replace(services.workspace, end_processes=lambda: None),
            parents_tokens=partial(tokens_left, services.settings, recorder.state, services.parents_tokens),
        )
        return given, model

    def _model_of(self, profile: AgentProfile, usual: str) -> tuple[str, ModelClient]:
        """Model of the profile with its client; the ``usual`` one if the profile names none or an unavailable one."""
        make = self._services.access.make_client
        if profile.model:
            try:
                return profile.model, make(profile.model)
            except ModelUnavailable as error:
                text = f"The agent {profile.name} uses {usual}; its own model {profile.model} is not available: {error}"
                self._warn_once(text)
        try:
            return usual, make(usual)
        except ModelUnavailable as error:
            raise ToolError(f"The agent {profile.name} cannot use the model {usual}: {error}") from error

    def _warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self._recorder.emit(Notice(text, "warning", "agents"))


def in_mode(services: Services, mode: Mode) -> Services:
    permissions = services.permissions
    return replace(services, permissions=replace(permissions, policy=replace(permissions.policy, mode=mode)))

"""The hooks of a run that the user allowed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from swecli.features import Brought, Wiring

if TYPE_CHECKING:
    from swecli.commands.base import SlashCommand
    from swecli.core.engine.core import Core
    from swecli.core.engine.feature import Feature
    from swecli.core.engine.recorder import Recorder
    from swecli.core.engine.services import Workspace
    from swecli.core.extensions.plugins import Plugin
    from swecli.core.hooks.hook import Hook
    from swecli.core.hooks.runner import Hooks
    from swecli.core.permissions.types import Policy
    from swecli.features.hooks.companion import SessionHooks
    from swecli.launch import Launch


def feature(hooks: Hooks | None = None, allow_hook: Callable[[Hook], Hook] = lambda hook: hook) -> Feature:
    """Without hooks nothing is imported. ``allow_hook`` as ``allow`` of ``SessionHooks``."""
    from swecli.core.engine.feature import Feature

    if hooks is None:
        return Feature()
    from swecli.features.hooks.companion import SessionHooks

    def companions(core: Core) -> Sequence[SessionHooks]:
        hooks.ask = core.questions.ask_briefly
        workspace, policy = core.services.workspace, core.services.permissions.policy
        return (SessionHooks(hooks, allow_hook, workspace, policy, core.recorder),)

    def inner(core: Core, agent: str) -> Sequence[SessionHooks]:
        return alone(core.services.workspace, core.services.permissions.policy, core.recorder)

    def alone(workspace: Workspace, policy: Policy, recorder: Recorder) -> Sequence[SessionHooks]:
        return (SessionHooks(hooks, allow_hook, workspace, policy, recorder, inner=True),)

    return Feature(companions, inner, alone)


def _build(launch: Launch) -> Feature:
    options = launch.options
    if not launch.hooks or options.look_only or options.dry_run or options.compact_dry_run:
        return feature()
    from swecli.core.hooks.reading import hook_approver
    from swecli.core.hooks.runner import HookPlace, Hooks
    from swecli.core.llm.secrets import masker_of

    hook_place = HookPlace(options.cwd, launch.child_environment, masker_of(launch.secrets).cover, launch.environment)
    return feature(Hooks(launch.hooks, hook_place), hook_approver(launch.paths.data, options.cwd, store=options.store))


def _of_plugin(plugin: Plugin) -> Brought:
    from swecli.core.hooks.reading import hooks_of_plugin

    hooks, problems = hooks_of_plugin(plugin)
    lines: list[str] = []
    for hook in hooks:
        about = f" for {hook.matcher}" if hook.matcher else ""
        only = f", if {hook.condition}" if hook.condition else ""
        verb = "runs " if hook.kind == "command" else ""
        lines.append(f"hook at {hook.event}{about}{only}: {verb}{hook.deed}")
        if hook.variables:
            lines.append(f"  gets your {', '.join(hook.variables)}")
    return Brought(len(hooks), "hook", lines, problems)


def _commands() -> Sequence[SlashCommand]:
    from swecli.features.hooks.command import HOOKS

    return (HOOKS,)


WIRING = Wiring(_build, _commands, of_plugin=_of_plugin)

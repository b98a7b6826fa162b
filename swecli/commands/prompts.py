"""Prompts of the session's extensions as commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swecli.commands.base import CommandResult, SlashCommand

if TYPE_CHECKING:
    from swecli.core.engine.services import PromptTemplate
    from swecli.core.engine.session import Session


def prompt_commands(session: Session) -> tuple[SlashCommand, ...]:
    """Prompts of the session's extensions as commands that send them."""
    return tuple(map(_command, session.prompts))


def _command(template: PromptTemplate) -> SlashCommand:
    async def run(session: Session, arguments: str) -> CommandResult:
        from swecli.core.engine.services import PromptError  # there is a session, so it is loaded

        try:
            text = await template.render(arguments)
        except PromptError as error:
            return CommandResult.text(f"/{template.name}: {error} Nothing was sent.", "error")
        trouble = session.begin(f"/{template.name} {' '.join(arguments.split())}".rstrip(), text)
        return CommandResult.text(trouble, "error") if trouble else CommandResult()

    return SlashCommand(template.name, template.summary, run, template.aliases, template.arguments, while_busy=False)

"""Asking the user."""

from __future__ import annotations

from pydantic import Field

from swecli.core.permissions.types import Effects
from swecli.core.protocol.blocks import TextBlock
from swecli.core.protocol.events import Option, Question
from swecli.core.tools.base import Params, Tool, ToolContext, ToolOutcome
from swecli.core.tools.files import plural


class AskOption(Params):
    label: str = Field(min_length=1)
    description: str = ""


class AskQuestion(Params):
    question: str = Field(min_length=1)
    options: list[AskOption] = Field(default_factory=list[AskOption], max_length=9, description="None for free text")
    multiple: bool = Field(False, description="Several may be chosen")


class AskUserParams(Params):
    questions: list[AskQuestion] = Field(min_length=1, max_length=4)


class AskUser(Tool[AskUserParams]):
    """Puts questions to the user and waits for the answers."""

    name = "ask_user"
    verb = "Ask"
    params = AskUserParams

    def effects(self, params: AskUserParams, ctx: ToolContext) -> Effects:
        return Effects(interactive=True)

    def title(self, params: AskUserParams, ctx: ToolContext) -> str:
        return params.questions[0].question

    async def run(self, params: AskUserParams, ctx: ToolContext) -> ToolOutcome:
        questions = tuple(
            Question(
                asked.question,
                tuple(Option(option.label, option.description) for option in asked.options),
                asked.multiple,
            )
            for asked in params.questions
        )
        answers = await ctx.asker.ask(ctx.item, questions)
        if answers is None:
            text = (
                "Nobody can answer: this run is not interactive. Choose the most reasonable reading yourself and "
                "say so in your answer, or stop and say what you need to know if a wrong guess would do harm."
            )
            return ToolOutcome(text, (), "nobody to ask")
        if not answers:
            return ToolOutcome("The user closed the question without an answer.", (), "no answer")
        lines = [
            f"{question.text}\n→ {', '.join(answer) or '(no answer)'}"
            for question, answer in zip(questions, answers, strict=False)
        ]
        text = "\n".join(lines)
        return ToolOutcome(text, (TextBlock(text),), plural(len(lines), "answer"))

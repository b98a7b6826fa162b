"""Choices of the user for a session: mode, model and effort, as configuration options and as modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

from acp.schema import (
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
)

from swecli.acp.words import clean
from swecli.commands.models import DEFAULT, summary
from swecli.core.llm.offers import ModelOffer
from swecli.core.protocol.commands import SetEffort, SetMode, SetModel
from swecli.core.protocol.events import Mode
from swecli.core.protocol.modes import MODES

if TYPE_CHECKING:
    from swecli.core.engine.session import Session

ConfigOption = SessionConfigOptionSelect | SessionConfigOptionBoolean
MODE, MODEL, EFFORT = "mode", "model", "effort"
MOST_MODELS = 100


class BadChoice(Exception):
    """The option can't be set to this value. The message gives the reason."""


def modes(current: str) -> SessionModeState:
    available = [SessionMode(id=key, name=mode.title, description=mode.about) for key, mode in MODES.items()]
    return SessionModeState(current_mode_id=current, available_modes=available)


class Choices:
    """The options of one session. Models are those found by ``look``, and the current one."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._offers: Sequence[ModelOffer] = ()

    async def look(self) -> bool:
        """Find the available models; contacts servers. Whether there are any."""
        offers = await self._session.offers.find()
        self._offers = [offer for offer in offers if offer.usable and offer.tools is not False][:MOST_MODELS]
        return bool(self._offers)

    async def options(self) -> list[ConfigOption]:
        view = self._session.view
        modes = [(key, mode.title, mode.about) for key, mode in MODES.items() if not view.mode_refusal(key)]
        selects: list[ConfigOption] = [_select(MODE, "Mode", view.mode, modes, "mode")]
        if view.model is not None:
            models = {offer.ref: summary(offer) for offer in self._offers}
            models.setdefault(view.model.ref, "")
            choices = [(ref, ref, text) for ref, text in models.items()]
            selects.append(_select(MODEL, "Model", view.model.ref, choices, "model"))
            words = self._efforts()
            if words:
                current = view.effort or DEFAULT
                selects.append(
                    _select(EFFORT, "Effort", current, [(word, word, "") for word in words], "thought_level")
                )
        return selects

    def set(self, option: str, value: str) -> None:
        """Set an option.

        Raises:
            BadChoice: there is no such option or value, or it can't be chosen now.
        """
        view = self._session.view
        match option:
            case "mode" if value in get_args(Mode):
                if refusal := view.mode_refusal(value):  # pyright: ignore[reportArgumentType] - checked above
                    raise BadChoice(refusal)
                self._session.send(SetMode(value))  # pyright: ignore[reportArgumentType] - checked above
            case "model":
                if view.busy:
                    raise BadChoice("a turn is running; choose the model when it has ended")
                self._session.send(SetModel(value))
                if view.model is None or view.model.ref != value:
                    raise BadChoice(f"cannot use {value!r}; the log has details")
            case "effort" if value in self._efforts():
                self._session.send(SetEffort(None if value == DEFAULT else value))
            case "mode" | "effort":
                raise BadChoice(f"{value!r} is not a valid {option}")
            case _:
                raise BadChoice(f"unknown option {option!r}; options: {MODE}, {MODEL} and {EFFORT}")

    def _efforts(self) -> tuple[str, ...]:
        model = self._session.view.model
        if model is None or not model.efforts:
            return ()
        own = self._session.view.effort
        return (DEFAULT, *model.efforts, *([own] if own and own not in model.efforts else []))


def _select(
    id: str, name: str, current: str, choices: Sequence[tuple[str, str, str]], category: str
) -> SessionConfigOptionSelect:
    options = [
        SessionConfigSelectOption(value=clean(value), name=clean(label), description=clean(text) or None)
        for value, label, text in choices
    ]
    return SessionConfigOptionSelect(
        type="select",
        id=id,
        name=name,
        current_value=current,
        options=options,
        category=category,  # pyright: ignore[reportArgumentType] - one of the protocol's words
    )

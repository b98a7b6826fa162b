"""Lists to choose from: mode, model, effort and theme."""

from __future__ import annotations

import asyncio

from swecli.safe_text import safe_line
from swecli.tui.keys import KeyActions
from swecli.tui.options import Options
from swecli.tui.themes.library import AUTO


class Pickers:
    """Shows them in place of the prompt, and carries out what was chosen."""

    def __init__(self, app: KeyActions, options: Options) -> None:
        self._app = app
        self._options = options

    def mode(self) -> None:
        """Choose the permission mode."""
        from swecli.commands.mode import MODE_MEANINGS
        from swecli.tui.dock.picker import Choice, Picker

        view = self._app.stage.link.view
        present = view.mode if view else None
        choices = [Choice(mode, mode, detail, mode == present) for mode, detail in MODE_MEANINGS.items()]
        self._app.slot.show(Picker("Mode", choices, self._app.talk.set_mode))

    async def model(self) -> None:
        """Choose the model: those that are known, or another one that is typed."""
        from swecli.commands.model_table import summary
        from swecli.tui.dock.picker import Choice, Picker

        refs = list(await asyncio.to_thread(self._options.models))
        view, port = self._app.stage.link.view, self._app.stage.link.port
        present = view.model.ref if view and view.model else None
        if present and present not in refs:
            refs.insert(0, present)
        offered = {offer.ref: summary(offer) for offer in await port.models()} if port is not None else {}
        known = dict.fromkeys([*refs, *offered])
        choices = [Choice(ref, ref, offered.get(ref, ""), ref == present) for ref in known]
        title = "Model: provider/name (type one that is not listed)"
        self._app.slot.show(Picker(title, choices, self._app.talk.set_model, free=True))

    def effort(self) -> None:
        """Choose how much the model thinks, where it takes a word for that."""
        from swecli.commands.effort import DEFAULT, choices, words
        from swecli.tui.dock.picker import Choice, Picker

        view = self._app.stage.link.view
        if view is None or view.model is None:
            return
        if view.model.efforts == ():
            self._app.activity.flash(f"{safe_line(view.model.ref)} takes no word for how much it thinks")
            return
        present = view.effort or DEFAULT
        offered = dict.fromkeys((DEFAULT, *words(view.model), present))
        listed = [Choice(word, word, "", word == present) for word in offered]
        title = "Effort" if view.model.efforts is not None else "Effort (which words this model takes is not known)"
        picker = Picker(title, listed, self._app.talk.set_effort, nothing=safe_line(choices(view.model)))
        self._app.slot.show(picker)

    def theme(self, name: str) -> None:
        """Choose a theme by its name, or from a list that shows each one while it is pointed at."""
        appearance = self._app.appearance
        if name:
            if appearance.library.resolve(name, appearance.dark) is None:
                self._app.activity.flash(
                    appearance.library.unknown(name).replace("the default is used", "nothing was changed")
                )
            else:
                self._set_theme(name)
            return
        from swecli.tui.dock.picker import Choice, Picker

        wanted = appearance.wanted
        choices = [Choice(AUTO, AUTO, "follows the terminal", wanted == AUTO)]
        for theme in appearance.library.names:
            scheme = appearance.library.scheme(theme)
            detail = "16 colours of the terminal" if scheme is None else "dark" if scheme.dark else "light"
            choices.append(Choice(theme, theme, detail, theme == wanted))
        picker = Picker("Theme", choices, self._set_theme, look=appearance.preview, leave=appearance.apply)
        self._app.slot.show(picker)

    def _set_theme(self, name: str) -> None:
        self._app.appearance.want(name)
        self._app.run_worker(self._keep("ui.theme", name, f"Theme {name}"))

    async def _keep(self, key: str, value: str, told: str) -> None:
        """Write a setting, and say where it went."""
        if self._options.remember is None:
            self._app.activity.flash(f"{told}, for this session")
            return
        try:
            place = await asyncio.to_thread(self._options.remember, key, value)
        except ValueError as error:
            self._app.activity.flash(f"{told}, for this session only: {safe_line(str(error))}")
        else:
            self._app.activity.flash(f"{told}, stored in {safe_line(place)}")

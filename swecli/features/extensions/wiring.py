"""News of the files of extensions in a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from swecli.features import Wiring

if TYPE_CHECKING:
    from swecli.core.engine.core import Core
    from swecli.core.engine.feature import Feature
    from swecli.features.extensions.companion import ExtensionNews


def feature() -> Feature:
    from swecli.core.engine.feature import Feature

    def news(core: Core, *, inner: bool) -> Sequence[ExtensionNews]:
        from swecli.features.extensions.companion import ExtensionNews

        files = core.services.extension_files
        if files is None:
            return ()
        return (
            ExtensionNews(files, core.services.toolset.tools, core.recorder, core.notes, core.prompts, inner=inner),
        )

    return Feature(lambda core: news(core, inner=False), lambda core, agent: news(core, inner=True))


WIRING = Wiring(lambda launch: feature())

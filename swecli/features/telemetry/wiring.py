"""Telemetry in a run, if the user turned it on; otherwise nothing of it is imported."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from swecli.features import Wiring

if TYPE_CHECKING:
    from swecli.core.engine.companion import Companion
    from swecli.core.engine.core import Core
    from swecli.core.engine.feature import Feature
    from swecli.features.telemetry.exporting import Export
    from swecli.launch import Launch

MISSING = (
    "telemetry.enabled is set, but the extra otel is not installed, so nothing is sent. "
    "Install it with: uv tool install 'swecli[otel]'"
)


def _installed() -> bool:
    try:
        return all(find_spec(f"opentelemetry.{name}") for name in ("sdk", "exporter.otlp.proto.http"))
    except ModuleNotFoundError:  # of a package around it
        return False


def _build(launch: Launch) -> Feature:
    from swecli.core.engine.feature import Feature

    wish, options = launch.loaded.settings.telemetry, launch.options
    if not wish.enabled or options.look_only or options.dry_run or options.compact_dry_run:
        return Feature()

    def companions(core: Core) -> Sequence[Companion]:
        from swecli.features.telemetry.companion import Missing, Telemetry

        if not _installed():
            return (Missing(core.recorder, MISSING),)

        def open_export() -> Export:
            from swecli.features.telemetry.exporting import Export  # off the event loop: half a second

            return Export(wish.endpoint)

        return (Telemetry(core.recorder, open_export, core.services.store.cover if wish.content else None),)

    return Feature(companions)


WIRING = Wiring(_build)

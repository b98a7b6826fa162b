"""Trust in a workspace's files that control swecli: ask and store."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from swecli.core.config.paths import PROJECT_SERVERS, user_paths
from swecli.launch import LaunchOptions, StartError

if TYPE_CHECKING:
    from swecli.assembly.startup import Startup

TrustChoice = Literal["trust", "session", "decline", "later"]
"""``later`` means no for this run; swecli asks again at the next start."""


class TrustQuestion(Struct, frozen=True):
    """Asks to trust ``folder``; ``names`` lists the files that would count, each followed by indented lines of what it
    asks for. Both are untrusted text."""

    folder: str
    names: tuple[str, ...]


LONGEST_MATCHER = 40
"""Characters of a hook's matcher that its question names; the value below shows any."""


class TrustItem(Struct, frozen=True):
    """A project setting, hook, MCP ``server`` (its name), or changed ``file`` (its path) of a skill, command or agent
    that needs separate consent; ``digest`` identifies exactly this value."""

    key: str
    value: str
    origin: str
    digest: str
    server: str = ""
    file: str = ""

    @property
    def wish(self) -> str:
        """What it would do, as the continuation of "to". Untrusted text."""
        from swecli.core.protocol.hook_words import moment  # not needed by the first frame

        if self.server:
            return f"start the MCP server {self.server}"
        if self.file:
            return f"use {self.file}, which is new or has changed"
        if self.key.startswith("hooks.") and self.key[6:7].isupper():
            matcher, colon, _ = self.value.partition(":")
            matcher = matcher if colon and len(matcher) <= LONGEST_MATCHER else ""
            return f"run this command {moment(self.key[6:], matcher)}"
        return f"set {self.key}"


_ASKING = (
    *(".swecli/config.toml", ".swecli/config.local.toml", ".claude/settings.json", ".claude/settings.local.json"),
    PROJECT_SERVERS,
)
"""Files of a project with settings that may need consent, relative to it."""


class WorkspaceTrust:
    """The trust question and its consequences, once at the start of a run; ``applied`` returns the options with the
    answer. Methods may read files."""

    def __init__(self, options: LaunchOptions) -> None:
        self._options = options
        self._later: frozenset[str] = frozenset()
        """Servers about which the user postponed the decision."""
        self._settled: tuple[str, ...] = ()

    @property
    def _folder(self) -> Path:
        return self._options.cwd

    @property
    def _data(self) -> Path:
        return user_paths(os.environ).data

    def applied(self, options: LaunchOptions) -> LaunchOptions:
        return replace(options, trust=self._options.trust, servers_later=self._later)

    def told(self, options: LaunchOptions) -> LaunchOptions:
        """The options of a session with the answer, and once with what was settled at the start."""
        settled, self._settled = self._settled, ()
        return replace(self.applied(options), settled=settled)

    def question(self) -> TrustQuestion | None:
        """The pending question; None if there is none."""
        from swecli.core.config.trust import read_trust, trust_key
        from swecli.core.extensions.unapproved import unapproved

        self._settle()
        if self._options.trust is not None:
            return None
        trust = read_trust(self._data, self._folder)
        if trust.state != "unknown":
            return None
        names = unapproved(self._folder, trust.accepted)
        if not names:
            return None
        from swecli.assembly.powers import trust_lines

        return TrustQuestion(str(trust_key(self._folder)), trust_lines(self._folder, dict(os.environ), names))

    def _settle(self) -> None:
        """Remove what a killed command left: it must neither count nor be asked about."""
        state = user_paths(os.environ).state
        if not os.path.isdir(state / "sandbox"):
            return
        from swecli.core.config.paths import workspace_key
        from swecli.core.sandbox.bubblewrap import placeholders_folder
        from swecli.core.sandbox.sandbox import settle_leftovers

        placeholders = placeholders_folder(state, workspace_key(self._folder))
        self._settled += settle_leftovers(placeholders, (os.path.realpath(self._folder),))

    def answer(self, choice: TrustChoice) -> str:
        """Store the answer. Returns a sentence for the user on failure, else an empty string."""
        from swecli.core.config.trust import accept_items, write_trust

        self._options = replace(self._options, trust="session" if choice in ("trust", "session") else "declined")
        if choice in ("session", "later"):
            return ""
        try:
            if choice == "trust":
                accept_items(self._data, self._folder, extension_digests(self._folder))
            return write_trust(self._data, self._folder, "trusted" if choice == "trust" else "declined")
        except OSError as error:
            return f"Could not store your answer ({error}); it applies to this run only."

    def items(self) -> Sequence[TrustItem]:
        """Undecided items of a trusted project: settings that do more than restrict."""
        return [*self._settings(), *self._changed()]

    def _settings(self) -> Sequence[TrustItem]:
        if not any(os.path.lexists(os.path.join(self._folder, name)) for name in _ASKING):
            return ()
        from swecli.assembly.startup import startup_of

        try:
            startup = startup_of(self._options, dict(os.environ), with_flags=False)
        except StartError:  # opening the session reports the error in the settings
            return ()
        new = (item for item in startup.pending if item.digest not in startup.trust.refused)
        return [
            *(TrustItem(item.key, item.value, item.origin, item.digest) for item in new),
            *self._servers(startup),
        ]

    def _changed(self) -> list[TrustItem]:
        """Skills, commands and agents of a trusted folder that are new or have changed since, and ask for something."""
        from swecli.assembly.extension_files import project_sources
        from swecli.core.config.trust import file_digest, read_trust

        trust = read_trust(self._data, self._folder)
        stays = self._options.trust is not None or self._options.safe_mode or trust.state != "trusted"
        sources = () if stays else project_sources(self._folder)
        if not sources:
            return []
        from swecli.assembly.powers import powers_of_file
        from swecli.core.extensions.sources import Reader

        items: list[TrustItem] = []
        for file in Reader().read(sources)[0]:
            digest = file_digest(self._folder, file.origin.path, file.origin.digest)
            if digest in trust.accepted or digest in trust.refused or not (powers := list(powers_of_file(file))):
                continue
            items.append(
                TrustItem(
                    "", "; ".join(powers), str(file.origin.path), digest, file=os.path.normpath(file.origin.shown)
                )
            )
        return items

    def _servers(self, startup: Startup) -> list[TrustItem]:
        configured = startup.loaded.settings.mcp or os.path.lexists(os.path.join(self._folder, PROJECT_SERVERS))
        if not configured or not startup.trust.trusts or self._options.safe_mode:
            return []
        from swecli.core.mcp.configured import undecided

        items: list[TrustItem] = []
        for server in undecided(startup, self._folder):
            value = f"{server.line}  ({'; '.join(server.given)})" if server.given else server.line
            origin = server.origin if server.transport != "stdio" else f"{server.origin}; it runs with your permissions"
            items.append(TrustItem(f"mcp.{server.name}", value, origin, server.fingerprint, server.name))
        return items

    def accept(self, items: Sequence[TrustItem]) -> str:
        """Consent to these items. Returns as ``answer``."""
        from swecli.core.config.trust import accept_items

        try:
            trouble = accept_items(self._data, self._folder, [item.digest for item in items if not item.server])
        except OSError as error:
            return f"Could not store your consent ({error}); these settings are ignored."
        return trouble or self._decide(items, "approved")

    def refuse(self, items: Sequence[TrustItem]) -> str:
        """Refuse these items until they change. Returns as ``answer``."""
        from swecli.core.config.trust import refuse_items

        try:
            trouble = refuse_items(self._data, self._folder, [item.digest for item in items if not item.server])
        except OSError as error:
            return f"Could not store your answer ({error}); swecli asks again at the next start."
        return trouble or self._decide(items, "rejected")

    def postpone(self, items: Sequence[TrustItem]) -> None:
        """Refuse these items for this run only."""
        self._later |= {item.server for item in items if item.server}

    def _decide(self, items: Sequence[TrustItem], verdict: str) -> str:
        """Store the user's decisions about servers."""
        servers = [(item.server, item.digest) for item in items if item.server]
        if not servers:
            return ""
        from swecli.core.mcp.configured import decisions_of

        decisions = decisions_of(user_paths(os.environ), self._folder)
        told = [decisions.change(name, definition=fingerprint, verdict=verdict) for name, fingerprint in servers]
        return " ".join(filter(None, told))


def extension_digests(folder: Path) -> list[str]:
    """The part of a folder covered by trust in its skills, commands and agent profiles: digests of the present
    files."""
    from swecli.assembly.extension_files import project_sources
    from swecli.core.config.trust import file_digest
    from swecli.core.extensions.sources import Reader

    files, _ = Reader().read(project_sources(folder))
    return [file_digest(folder, file.origin.path, file.origin.digest) for file in files]

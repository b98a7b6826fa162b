"""Which model a session begins with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from msgspec.structs import replace

from swecli.assembly.accounts import Accounts
from swecli.assembly.client_configs import ClientConfigs
from swecli.assembly.offered_models import OfferedModels
from swecli.core.config.key_store import KeyStoreError
from swecli.core.config.settings import EFFORTS, Settings, expand
from swecli.core.llm.addresses import is_local, without_password
from swecli.core.llm.model_names import NamedModel, does_chat, find_model
from swecli.core.llm.offers import ModelOffer
from swecli.core.llm.providers import ProviderSetupError, configured_providers, default_model, has_own_server
from swecli.core.llm.servers import PATIENT_SECONDS, listening
from swecli.exit_codes import ExitCode
from swecli.launch import LaunchOptions, StartError

NO_MODEL = (
    "No model is configured. Set OPENAI_API_KEY or ANTHROPIC_API_KEY (OPENAI_BASE_URL for any compatible server), or "
    "store a key with `swecli login PROVIDER`, and choose one with -m, for example: "
    "swecli -m openai/NAME. Or try: swecli demo"
)


def main_model(settings: Settings, environment: Mapping[str, str], accounts: Accounts) -> str | None:
    """``provider/name`` of the settings (including flags), or of the first provider with a key, unless the environment
    names a server of the user's own."""
    name = settings.model.name or default_model(environment)
    if not name and not has_own_server(environment):
        name = accounts.default_model()
    return expand(name, settings) if name else None


def _no_model(environment: Mapping[str, str]) -> str:
    """Reason why no model can be selected by default, and the remedy. At an address from the environment, the
    provider's default model may not exist."""
    for provider in configured_providers(environment):
        if not provider.default_model:
            location = " at your own address" if provider.redirected else ""
            return (
                f"No model selected: {provider.name} has no default model{location}. "
                f"Select one with swecli -m {provider.name}/NAME."
            )
    return NO_MODEL


class FirstModel:
    """``notices`` are sentences for the user, ``remarks`` those about automatic choices: no warnings."""

    def __init__(
        self,
        options: LaunchOptions,
        environment: Mapping[str, str],
        accounts: Accounts,
        configs: ClientConfigs,
        offered: OfferedModels,
    ) -> None:
        self._options = options
        self._environment = environment
        self._accounts = accounts
        self._configs = configs
        self._offered = offered
        self.notices: tuple[str, ...] = ()
        self.remarks: tuple[str, ...] = ()
        self._say: Callable[[str], None] = self._remark
        configs.main = main_model(configs.settings, environment, accounts)

    def chosen(
        self, before: str | None = None, address: str = "", say: Callable[[str], None] | None = None
    ) -> str | None:
        """``provider/name`` by flag; else that of the continued session (``before``), if still usable; else by
        environment, settings, or the first provider with a key; None without any.

        ``address`` is the earlier address of ``before``, if not the provider's own. It stays, and the conversation goes
        to no other address unless the user names another model or address. ``say`` is called before servers of this
        machine are contacted that no setting names, with their addresses; without it, that is a remark.

        Raises:
            StartError: headless, because a run without a model can do nothing; or the effort's word is unknown.
        """
        if self._options.script is not None:
            return f"scripted/{self._options.script.stem}"
        self._say = say or self._remark
        model = self._chosen(before, address)
        self._check_effort(model)
        return model

    def _chosen(self, before: str | None, address: str) -> str | None:
        flagged = self._options.model is not None
        needed = self._options.headless and self._options.needs_model
        unsettled = self._settle_main(quiet=bool(before) and not flagged)
        if unsettled and (flagged or not before):
            if needed:
                raise StartError(unsettled, ExitCode.CONFIG)
            self._tell(unsettled)
            return None
        trouble = ""
        if before and (not flagged or before == self._configs.main):
            trouble = self._go_on_with(before, address)
        elif (
            address
            and self._configs.main is not None
            and (current := self._configs.address(self._configs.main)) != address
        ):
            shown = current or "the provider's own address"
            self._tell(f"This session's messages went to {address} before; {self._configs.main} now uses {shown}.")
        stays = bool(trouble and address and not self._options.look_only)
        if stays and needed:
            raise StartError(
                f"{trouble} It was used at {address}; nothing was sent to another model. Select one with -m.",
                ExitCode.CONFIG,
            )
        if self._configs.main is None and needed:
            raise StartError(trouble or _no_model(self._environment), ExitCode.CONFIG)
        if stays:
            # Problems are reported when the session tries to connect.
            self._tell(f"{before} was used at {address}. Its messages go to another model only if you choose one.")
            return None
        if trouble:
            self._tell(f"{trouble} {self._configs.main or 'No model'} answers instead.")
        return self._configs.main

    def _settle_main(self, *, quiet: bool) -> str:
        """Look up the initial name if it lacks a provider; without a name, ask the user's server, and report the
        choice. Returns the reason if there is none. ``quiet``: a continued session has its model."""
        if self._configs.main is not None and not self._accounts.is_reference(self._configs.main):
            named = self._found(self._configs.main)
            self._offered.candidates = named.candidates
            self._configs.main = named.ref or None
            if named.note:
                self._remark(named.note)
            return named.problem
        if quiet or self._configs.settings.model.name is not None:
            return ""
        if (main := self._configs.main) is not None:
            provider = main.partition("/")[0]
            account = next(candidate for candidate in self._accounts.all() if candidate.provider.name == provider)
            source = account.variable or "the stored key"
            self._remark(f"No model selected; using {main}, the default for {source}. /model or -m selects another.")
        elif self._options.headless or self._options.plain:
            problem = self._only_model()
            return problem if self._options.needs_model else ""
        return ""

    def _only_model(self) -> str:
        """Use the only model of the user's server. Returns the reason if there is none."""
        if self._opens_nothing:
            return _no_model(self._environment)
        near = [offer for offer in self._asked("No model is configured") if offer.listed or offer.running]
        able = [offer for offer in near if does_chat(offer)]
        if len(able) == 1:
            ref, address = able[0].ref, self._configs.resolve(able[0].ref).base_url
            if self._options.plain and not able[0].listed:  # nobody has named this server
                self._tell(f"No model is configured. {ref} answers at {address}: /model {ref} uses it.")
                return ""
            self._configs.main = ref
            self._remark(f"No model selected; using {ref} at {without_password(address)}, the only one offered.")
            return ""
        if not able:
            return " ".join((_no_model(self._environment), *self._offered.unlisted))
        named = ", ".join(f"-m {offer.ref}" for offer in able[:4])
        return f"No model selected; {len(able):,} are available. Select one, for example {named}."

    @property
    def _opens_nothing(self) -> bool:
        """Whether no connection is opened. A dry run shows the request of a real one, so it looks up the same names."""
        return self._options.look_only and not self._options.dry_run

    def _asked(self, why: str) -> Sequence[ModelOffer]:
        """The models of the user's servers; without any, those of other servers on this machine, after naming them."""
        own = bool(self._offered.own_servers)
        near = () if own else asyncio.run(listening())
        if near:
            self._say(f"{why}; asking {', '.join(near)} for models.")
        return asyncio.run(self._offered.query(nearby=not own, seconds=PATIENT_SECONDS))

    def _found(self, name: str) -> NamedModel:
        """Resolve a name without a provider: among connected providers, then in the catalogue. Asks servers only for a
        name found nowhere else."""
        if self._offered.last is None:
            named = find_model(name, self._offered.unasked())
            if self._opens_nothing or (named.ref and not self._offered.own_servers):
                return named
            self._asked(f"{name} is no known model")
        named = find_model(name, self._offered.last or ())
        if named.ref or named.candidates:
            return named
        if "/" in name:
            try:
                self._configs.resolve(name)
            except ProviderSetupError as error:  # no such provider
                return replace(named, problem=str(error))
        elif self._offered.silent:
            return replace(named, problem=f"cannot look up {name!r}: {' '.join(self._offered.silent)}")
        return named

    def _go_on_with(self, model: str, address: str) -> str:
        """Continue with the model of an earlier run; a sentence if it is no longer usable."""
        main, self._configs.main = self._configs.main, model
        try:
            if address and not self._options.base_url:
                self._pin(model, address)
            self._configs.resolve(model)
        except (ProviderSetupError, KeyStoreError) as error:
            self._configs.main = main
            return f"This session's model {model} can't be used. {str(error).rstrip('.')}."
        return ""

    def _pin(self, model: str, address: str) -> None:
        """Keep this address for the model, unless environment or settings name a server of the user's own: it may have
        restarted at another port."""
        current = self._configs.address(model)
        if current == address:  # it may include a password, which was not recorded
            return
        if current and is_local(current):
            self._tell(f"Continuing with {current}; this session used {address} before.")
            return
        self._configs.pinned[model] = address
        if current:
            self._tell(
                f"Continuing with {address}, where this session started. Your settings now name {current}; "
                f"use --base-url {current} to switch."
            )

    def _tell(self, notice: str) -> None:
        self.notices = (*self.notices, notice)

    def _remark(self, remark: str) -> None:
        self.remarks = (*self.remarks, remark)

    def _check_effort(self, model: str | None) -> None:
        """Refuse an effort that neither swecli nor the model's data know. A usual one that the model is not known to
        take is only warned of, because the data may be old."""
        effort = self._configs.effort_of(model) if model is not None else self._configs.settings.model.effort
        if effort is None or effort in EFFORTS:
            return
        levels: tuple[str, ...] | None = None
        if model is not None:
            with suppress(ProviderSetupError, KeyStoreError):  # making the client reports it
                levels = self._configs.resolve(model).info.efforts
        if effort not in (levels or ()):
            who = model or "a model"
            accepted = f"{who} accepts {', '.join(levels or EFFORTS)}"
            if not levels:
                accepted += f'; others need efforts in models.capabilities."{model or "provider/name"}"'
            raise StartError(f"Effort {effort!r} is unknown: {accepted}", ExitCode.CONFIG)

    def settled(self) -> str | None:
        """The initial model, its name resolved; may contact servers. Not for the event loop."""
        problem = self._settle_main(quiet=True)
        if problem:
            self._tell(problem)
        return self._configs.main

    @property
    def nothing_chosen(self) -> str:
        """Reason why no model can be selected by default, and the remedy."""
        return _no_model(self._environment)

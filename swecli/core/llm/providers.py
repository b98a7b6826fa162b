"""Client configuration from ``provider/name`` and the environment."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from swecli.core.llm.addresses import host_of, is_local, is_loopback, normalise, origin_of, without_password
from swecli.core.llm.cache_lifetime import SECONDS
from swecli.core.llm.capabilities import find_capabilities
from swecli.core.llm.client_config import ClientConfig
from swecli.core.llm.dialects import Dialect, find_dialect, offered
from swecli.core.llm.protocols.base import USUAL_OUTPUT, Target
from swecli.core.llm.protocols.registry import PROTOCOLS
from swecli.core.llm.refused_fields import TOOLS_REFUSAL, refusal_place
from swecli.core.llm.remedies import KeySource
from swecli.core.llm.transport import Timeouts
from swecli.core.llm.types import SHORTEST_CACHE, ModelInfo, Profile
from swecli.core.llm.windows import ModelLookup, look_up_model
from swecli.core.protocol.messages import Origin

LOCAL_TIMEOUTS = Timeouts(first=3600.0)
"""Timeouts for a model on this machine, which may read a long prompt for minutes before its first word."""


class ProviderSetupError(ValueError):
    """No client can be created; the message says what to do."""


class UnknownProvider(ProviderSetupError):
    """The name before the slash is neither known nor configured."""


class MissingKey(ProviderSetupError):
    """The provider needs a key, but none is set."""


class BadModelReference(ProviderSetupError):
    """Not in the form ``provider/name``."""


class BadProviderSetting(ProviderSetupError):
    """A base URL, protocol, key or header is unusable."""


class ProviderConfig(Struct, frozen=True):
    """A provider. The fields are those of its section in the settings.

    Without a ``protocol`` the address decides: Responses at OpenAI's own host, Chat Completions anywhere else.
    ``api_key_env`` are names of variables, the first that is set counts; ``headers`` are sent with each request.
    ``window`` and ``max_output`` (tokens) override the known data of its models, ``quirks`` its dialect.
    """

    name: str
    protocol: str = ""
    base_url: str = ""
    api_key_env: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=lambda: {})
    base_url_env: tuple[str, ...] = ()
    default_model: str = ""
    local: bool = False
    """Needs no key."""
    sign_in: bool = False
    """Has no keys: its user signs in. Its address is exact."""
    window: int | None = None
    max_output: int | None = None
    quirks: Mapping[str, Any] = field(default_factory=lambda: {})
    """Fields of the dialect that differ from the tables."""

    def __repr__(self) -> str:
        """Representation without headers and quirks: they may contain keys."""
        return f"ProviderConfig({self.name!r}, {self.protocol!r}, {self.base_url!r})"


class ConfiguredProvider(Struct, frozen=True):
    """A provider whose key is in the environment. ``default_model`` is ``provider/name``, or empty. ``redirected``: the
    environment names another server for it, whose models only that server knows."""

    name: str
    key_variable: str
    default_model: str
    redirected: bool = False


class Overrides(Struct, frozen=True):
    """Flags and settings beyond the environment; empty or None if unset.

    ``base_url`` replaces the address of the chosen provider and receives its key, so it must come from the user (a flag
    or their own settings), never from files of an untrusted project.
    """

    base_url: str = ""
    protocol: str = ""
    window: int | None = None
    refuted_window: int | None = None
    """A window of the settings that the server has refused: it counts only up to the window known otherwise."""
    max_output: int | None = None
    timeouts: Timeouts | None = None
    first_timeout: float | None = None
    idle_timeout: float | None = None
    """Seconds to the first and between two meaningful events; override ``timeouts``."""
    capabilities: Mapping[str, Any] = field(default_factory=lambda: {})
    """Fields of ``Capabilities`` that differ from the tables."""
    efforts: tuple[str, ...] | None = None
    """Words for the reasoning effort; None: those of the host and the catalogue."""
    profile: Profile | None = None
    """Size of prompt and tools; None = by the window."""
    warm: bool | None = None
    """Whether the prompt may be evaluated ahead of time; None = on this machine only."""
    prewarm: bool = False
    """Whether a hosted provider may fill its cache ahead of time, at a price."""
    refused: Callable[[str], Collection[str]] = lambda _: ()
    """Fields that a server refused in earlier sessions, by its ``refusal_place``."""
    shows_thoughts: bool = True
    cache_ttl: Callable[[ModelInfo], str] = lambda _: ""
    """Lifetime of the prompt cache for a model with its capabilities; empty for the provider's default."""


StoredKeys = Callable[[str, str], str]
"""(provider, origin) -> the user's stored key for exactly these; empty if none."""


def no_stored_key(provider: str, origin: str) -> str:
    return ""


def resolve(
    reference: str,
    env: Mapping[str, str],
    custom: Sequence[ProviderConfig] = (),
    overrides: Overrides | None = None,
    look_up: ModelLookup = look_up_model,
    stored_key: StoredKeys = no_stored_key,
) -> ClientConfig:
    """The client configuration for ``provider/name``; a provider alone gives its default model.

    ``custom`` providers take precedence over built-in ones of the same name. A key is read only from the requested
    provider's variables, else from the key stored for it at this very address.

    Raises:
        ProviderSetupError: one of its subclasses.
    """
    chosen = overrides or Overrides()
    provider, model = _split(reference, custom)
    address, protocol = _address(provider, env, chosen)
    key = _key(provider, address, env, stored_key)
    headers = _checked_headers(provider, {**_key_header(protocol, key), **provider.headers})
    info = look_up(provider.name, model)
    window = chosen.window or provider.window
    refuted = window == chosen.refuted_window and (info.window or 0) < (window or 0)
    if window is not None and not refuted:
        info = replace(info, window=window, window_source="user")
    max_output = chosen.max_output or provider.max_output
    if max_output is not None:
        info = replace(info, max_output=max_output)
    origin = Origin(protocol, host_of(address), model)
    dialect = find_dialect(protocol, origin.host, model)
    if is_local(address) and protocol in ("openai-chat", "ollama-chat"):
        dialect = _of_local_server(dialect)
    dialect = replace(dialect, **provider.quirks)
    elsewhere = "" if _is_own(provider, address, protocol) else without_password(address)
    refused = chosen.refused(refusal_place(address, model))
    on_this_machine = provider.local and is_loopback(address)
    free = chosen.warm if chosen.warm is not None else on_this_machine
    info = replace(info, warms=info.warms and free, profile=chosen.profile)
    if TOOLS_REFUSAL + model in refused:
        info = replace(info, tools=False)
    usual_output = dialect.default_max_tokens or USUAL_OUTPUT.get(protocol)
    info = replace(
        info,
        efforts=chosen.efforts if chosen.efforts is not None else offered(dialect.effort, info.efforts),
        address=elsewhere,
        usual_output=usual_output,
        capabilities=find_capabilities(protocol, origin.host, model, provider.name, chosen.capabilities, refused),
    )
    info = replace(info, prewarms=chosen.prewarm and info.capabilities.prompt_cache_options)
    ttl = chosen.cache_ttl(info) if info.capabilities.cache_ttl else ""
    if info.capabilities.cache_ttl:
        info = replace(info, cache_seconds=SECONDS.get(ttl or info.capabilities.cache_ttl[0], SHORTEST_CACHE))
    target = Target(
        *(origin, dialect, provider.name, info.window, info.max_output, info.capabilities),
        shows_thoughts=chosen.shows_thoughts,
        cache_ttl=ttl,
        refused=tuple(refused),
        tells_progress=info.tells_progress,
    )
    usual = chosen.timeouts or (LOCAL_TIMEOUTS if is_local(address) else Timeouts())
    timeouts = replace(
        usual,
        first=chosen.first_timeout if chosen.first_timeout is not None else usual.first,
        idle=chosen.idle_timeout if chosen.idle_timeout is not None else usual.idle,
    )
    variable = key_variable(provider, env)
    source: KeySource = "stored" if key and not variable else "environment" if key or provider.headers else "none"
    if provider.sign_in:
        source = "stored"
    if signs_in_by_address(address, protocol):
        source = "address"
    variables = (variable,) if variable else provider.api_key_env
    return ClientConfig(info, target, address, headers, variables, timeouts, source)


def configured_providers(env: Mapping[str, str]) -> tuple[ConfiguredProvider, ...]:
    """The known providers with a key, in order of preference. Local servers are not included, because only a request
    shows whether they run; one with an address in ``env`` is."""
    providers: list[ConfiguredProvider] = []
    for provider in known_providers().values():
        variable = next((name for name in provider.api_key_env if env.get(name, "").strip()), None)
        if variable is None and (provider.local or provider.name == "openai"):
            variable = next((name for name in provider.base_url_env if env.get(name, "").strip()), None)
        if variable is not None:
            default = f"{provider.name}/{provider.default_model}" if provider.default_model else ""
            redirected = _redirected(provider, env)
            providers.append(ConfiguredProvider(provider.name, variable, "" if redirected else default, redirected))
    return tuple(providers)


def default_model(env: Mapping[str, str]) -> str:
    """``provider/name`` for a user without a choice: the first provider with a key and a sensible default; empty if
    there is none, or if the environment names a server of the user's own: then that one is meant."""
    if has_own_server(env):
        return ""
    return next((provider.default_model for provider in configured_providers(env) if provider.default_model), "")


def has_own_server(env: Mapping[str, str]) -> bool:
    """Whether the environment sends a hosted provider to a server of the user's own. A local provider's address does
    not count: ``OLLAMA_HOST`` may be there for the server itself."""
    return any(
        provider.redirected and not known_providers()[provider.name].local for provider in configured_providers(env)
    )


def _redirected(provider: ProviderConfig, env: Mapping[str, str]) -> bool:
    if not any(env.get(name, "").strip() for name in provider.base_url_env):
        return False
    try:
        address, protocol = address_of(provider, env)
    except ProviderSetupError:
        return True
    return not _is_own(provider, address, protocol)


@cache
def known_providers() -> Mapping[str, ProviderConfig]:
    data = Path(__file__).with_name("providers.toml").read_bytes()
    tables = msgspec.toml.decode(data, type=dict[Literal["provider"], dict[str, dict[str, Any]]])["provider"]
    return {name: msgspec.convert({"name": name, **table}, ProviderConfig) for name, table in tables.items()}


def _split(reference: str, custom: Sequence[ProviderConfig]) -> tuple[ProviderConfig, str]:
    providers = {**known_providers(), **{provider.name: provider for provider in custom}}
    name, slash, model = reference.strip().partition("/")
    if any(letter.isspace() for letter in name) or not model.isprintable() or model != model.strip():
        raise BadModelReference(f"{reference!r} is not a model: write provider/name, or choose one with /model or -m")
    provider = providers.get(name) or providers.get(name.lower())
    if provider is None:
        if not slash or not name:
            raise BadModelReference(
                f"Model {reference!r} is unknown: write provider/name, for example openai/{model or name or 'NAME'}"
            )
        if "://" in reference:
            address = reference.strip()
            raise UnknownProvider(
                f"{address} is an address, not a model: for an OpenAI-compatible server, start swecli with "
                f"--base-url {address}"
            )
        near = difflib.get_close_matches(name.lower(), providers, 1)
        meant = f" Did you mean {near[0]}/{model}?" if near else ""
        raise UnknownProvider(
            f"Provider {name!r} is unknown.{meant} Known providers: {', '.join(sorted(providers))}; add others in "
            "the settings."
        )
    model = model or provider.default_model
    if not model:
        raise BadModelReference(f"{provider.name} has no default model: write {provider.name}/NAME")
    return provider, model


def find_provider(name: str, custom: Sequence[ProviderConfig] = ()) -> ProviderConfig | None:
    providers = {**known_providers(), **{provider.name: provider for provider in custom}}
    return providers.get(name) or providers.get(name.lower())


def address_of(provider: ProviderConfig, env: Mapping[str, str]) -> tuple[str, str]:
    """Base URL and protocol of a provider, ignoring flags.

    Raises:
        ProviderSetupError: it has no usable address.
    """
    return _address(provider, env, Overrides())


def _address(provider: ProviderConfig, env: Mapping[str, str], overrides: Overrides) -> tuple[str, str]:
    variable = next((name for name in provider.base_url_env if env.get(name, "").strip()), "")
    given = overrides.base_url or env.get(variable, "") or provider.base_url
    if provider.sign_in and given == provider.base_url:
        return given, provider.protocol
    by_address = "openai-responses" if _is_openai(given) else "openai-chat"
    protocol = overrides.protocol or provider.protocol or by_address
    if protocol not in PROTOCOLS:
        raise BadProviderSetting(
            f"{provider.name}: unknown protocol {protocol!r}; choose one of {', '.join(PROTOCOLS)}"
        )
    try:
        return normalise(given, protocol), protocol
    except ValueError as error:
        source = "--base-url" if overrides.base_url else variable or f"the base_url of {provider.name}"
        raise BadProviderSetting(f"{source}: {error}; it looks like http://127.0.0.1:8000/v1") from error


def _is_own(provider: ProviderConfig, address: str, protocol: str) -> bool:
    """Whether that is the provider's public address, so that its name identifies the place."""
    known = known_providers().get(provider.name)
    try:
        return known is not None and origin_of(normalise(known.base_url, protocol)) == origin_of(address)
    except ValueError:
        return False


def _of_local_server(dialect: Dialect) -> Dialect:
    """Dialect of a local server, which runs any model with any template: swecli extracts what the server leaves in the
    text."""
    tags = "split" if dialect.think_tags == "keep" else dialect.think_tags
    calls = "auto" if dialect.tool_calls == "native" else dialect.tool_calls
    return replace(dialect, think_tags=tags, tool_calls=calls)


def _is_openai(url: str) -> bool:
    try:
        host = host_of(normalise(url, "openai-responses"))
    except ValueError:
        return False
    return host == "api.openai.com" or host.endswith(".api.openai.com")


def key_variable(provider: ProviderConfig, env: Mapping[str, str]) -> str:
    """The variable that holds the provider's key; empty if none does."""
    return next((name for name in provider.api_key_env if env.get(name, "").strip()), "")


def _key(provider: ProviderConfig, address: str, env: Mapping[str, str], stored_key: StoredKeys) -> str:
    variable = key_variable(provider, env)
    key = env[variable].strip() if variable else stored_key(provider.name, origin_of(address))
    if provider.sign_in:
        if not key:
            raise MissingKey(
                f"Nobody is signed in at {provider.name}: use `swecli login {provider.name}` in a terminal"
            )
        return ""  # each request gets the token that counts then
    if not key:
        if not needs_key(provider, address):
            return ""
        names = " or ".join(provider.api_key_env)
        raise MissingKey(
            f"There is no key for {provider.name}: set {names} in the environment or store one with /login "
            f"{provider.name}, or choose another model with -m provider/name"
        )
    if not is_key(key):
        source = variable or f"the stored key of {provider.name}"
        raise BadProviderSetting(f"{source} contains characters no key has: copy it again, without spaces or quotes")
    return key


def is_key(text: str) -> bool:
    """Whether a text can be a key: one word of printable ASCII."""
    return bool(text) and text.isascii() and text.isprintable() and " " not in text


def needs_key(provider: ProviderConfig, address: str) -> bool:
    """Whether a provider can't be used without a key of its own."""
    return provider.sign_in or not (
        provider.local or not provider.api_key_env or is_local(address) or _has_own_key(provider)
    )


def signs_in_by_address(address: str, protocol: str) -> bool:
    """Whether name and password in the address take the place of a key: both would be the same header."""
    return without_password(address) != address and "authorization" in _key_header(protocol, "key")


def _key_header(protocol: str, key: str) -> dict[str, str]:
    if not key:
        return {}
    if protocol == "anthropic-messages":
        return {"x-api-key": key}
    if protocol == "gemini-generate":
        return {"x-goog-api-key": key}
    return {"authorization": f"Bearer {key}"}


def _has_own_key(provider: ProviderConfig) -> bool:
    return any(name.lower() in ("authorization", "x-api-key", "api-key") for name in provider.headers)


def _checked_headers(provider: ProviderConfig, headers: Mapping[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not name.isascii() or not name.isprintable() or not value.isascii() or not value.isprintable():
            raise BadProviderSetting(
                f"{provider.name}: the header {name!r} contains characters that HTTP does not allow"
            )
    return {name.lower(): value for name, value in headers.items()}

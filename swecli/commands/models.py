"""Commands about models: /model, /effort, /login, /logout."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from swecli.commands.base import LATER_WORD, CommandResult, Offer, SlashCommand, Word
from swecli.core.config.key_store import KeyStore, KeyStoreError, StoredKey
from swecli.core.config.paths import user_paths
from swecli.core.config.settings import EFFORTS
from swecli.core.context_management.edit_effects import price_words
from swecli.core.llm.capabilities import CapabilitySource
from swecli.core.llm.offers import ModelOffer
from swecli.core.llm.types import ModelInfo
from swecli.core.protocol.blocks import DisplayBlock, TableBlock, TextBlock
from swecli.core.protocol.commands import SetEffort, SetModel

if TYPE_CHECKING:
    from swecli.core.engine.session import Session


def model_table(offers: Sequence[ModelOffer], title: str = "") -> TableBlock:
    """One row for each model: its long name, and all else in one cell, so that both fit on a screen."""
    rows = tuple((offer.ref, known(offer)) for offer in offers)
    return TableBlock(("Model", "Window · $ per million in / out · can · key"), rows, title)


_ABOUT: Mapping[str, str] = {
    "binding": "thoughts are valid only behind the unchanged conversation",
    "display": "shows thoughts only if asked",
    "adaptive_thinking": "asked to think, without an effort too",
    "system_messages": "system messages within the conversation",
    "clear_at": "system messages for one step only",
    "tool_changes": "changes of tools within the conversation",
    "effort_changes": "changes of effort within the conversation",
    "cache_ttl": "lifetimes of the prompt cache",
    "diagnosis": "says why a prompt missed the cache",
    "server_compaction": "summarises the conversation itself",
    "configuration_update": "configuration_update items",
    "prompt_cache_options": "prompt_cache_options",
    "web_search": "web search",
    "output_format": "answers by a JSON schema",
    "documents": "PDF files",
}
"""What each capability means, in the words of the settings' names and of a table."""


def capability_table(ref: str, sources: Mapping[str, CapabilitySource]) -> TableBlock:
    """What a model can do, as the names of ``models.capabilities``, and where that is known from."""
    rows: list[tuple[str, ...]] = []
    for name, about in _ABOUT.items():
        entry = sources.get(name)
        if entry is None:
            rows.append((name, "no", about, ""))
            continue
        value = ", ".join(entry.value) if isinstance(entry.value, tuple) else "yes" if entry.value else ""
        rows.append((name, value or "no", about, entry.source))
    return TableBlock(("Capability", "", "Meaning", "Source"), tuple(rows), ref)


def known(offer: ModelOffer) -> str:
    own = key(offer)
    window = f"{size(offer.window)} (assumed)" if offer.assumed else size(offer.window)
    parts = (window, price(offer), abilities(offer), own if own != "-" else "")
    return " · ".join(part for part in parts if part)


def summary(offer: ModelOffer) -> str:
    """Known facts about a model in words, for lists without headings."""
    window = f"{size(offer.window)} window" if offer.window is not None else "window ?"
    window += " (assumed)" if offer.assumed else ""
    rates = offer.rates
    costs = f"${_amount(rates.input)} in, ${_amount(rates.output)} out" if rates is not None else price(offer)
    location = f"running at {offer.running}" if offer.running else ""
    missing = key(offer) if not offer.usable else ""
    parts = (window, abilities(offer), costs.replace("?", "price ?"), missing, location)
    return " · ".join(part for part in parts if part)


def matching(offers: Sequence[ModelOffer], words: str) -> tuple[ModelOffer, ...]:
    """Offers with all of the words in their names."""
    wanted = words.lower().split()
    return tuple(offer for offer in offers if all(word in offer.ref.lower() for word in wanted))


def named(offers: Sequence[ModelOffer], words: str) -> tuple[ModelOffer, ...]:
    """The offers that ``words`` name as a whole: by reference, or by their last name; or the only one."""
    name = words.lower()
    if len(offers) == 1:
        return tuple(offers)
    return tuple(offer for offer in offers if name in (offer.ref.lower(), offer.ref.lower().rpartition("/")[2]))


def omitted(count: int) -> str:
    """How many models a list leaves out, as a sentence; empty for none."""
    if not count:
        return ""
    models = "1 model that does" if count == 1 else f"{count:,} models that do"
    return f"Left out: {models} not chat. Type provider/name to use one."


def size(tokens: int | None) -> str:
    """``1.05M``, ``32.8K``, ``?``."""
    if tokens is None:
        return "?"
    if tokens >= 1_000_000:
        return f"{tokens / 1_000_000:.3g}M"
    return f"{tokens / 1000:.3g}K" if tokens >= 1000 else str(tokens)


def price(offer: ModelOffer) -> str:
    """Dollars per million tokens of input and output; ``?`` if unknown."""
    if offer.rates is None:
        return "free" if offer.running else "?"
    return f"{_amount(offer.rates.input)} / {_amount(offer.rates.output)}"


def abilities(offer: ModelOffer) -> str:
    flags = (("images", offer.images), ("reasoning", offer.reasoning))
    words = [name for name, flag in flags if flag] + (["tools as text"] if offer.tools is False else [])
    return ", ".join([*words, *(["retiring"] if offer.deprecated else [])])


def key(offer: ModelOffer) -> str:
    """Source of the key, or the missing key."""
    if offer.key == "missing":
        return f"needs {offer.variable}" if offer.variable else "not usable"
    if offer.key == "environment":
        return offer.variable
    return "stored" if offer.key == "stored" else "-"


def _amount(rate: Decimal) -> str:
    text = f"{rate:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


DEFAULT = "default"
"""The word for the provider's default."""
_SAME = (DEFAULT, "auto", "unset")


async def _run_effort(session: Session, arguments: str) -> CommandResult:
    model = session.view.model
    if model is None:
        return CommandResult.text("No model is connected; choose one with /model.", "error")
    wanted = arguments.lower()
    if not wanted:
        text = f"The effort is {session.view.effort or DEFAULT}. {choices(model)}"
        return CommandResult(screen="pick_effort", instead=(TextBlock(text),))
    if wanted in _SAME:
        session.send(SetEffort(None))
        return CommandResult.text(f"{model.ref} uses its default effort from the next request.")
    if wanted not in words(model):
        return CommandResult.text(f"Unknown effort {arguments}. {choices(model)} Nothing was changed.", "error")
    session.send(SetEffort(wanted))
    if model.efforts:
        return CommandResult()
    return CommandResult.text("This model's effort levels are unknown; if it rejects the request, use /effort default.")


def words(model: ModelInfo) -> tuple[str, ...]:
    return EFFORTS if model.efforts is None else model.efforts


def choices(model: ModelInfo) -> str:
    if model.efforts is None:
        return f"The effort levels of {model.ref} are unknown; common ones are {', '.join(EFFORTS)}, or default."
    if not model.efforts:
        return f"{model.ref} has no effort levels."
    return f"{model.ref} accepts {', '.join(model.efforts)}, or default."


def _effort_words(session: Session) -> Iterable[Word]:
    model = session.view.model
    levels = words(model) if model is not None else ()
    return map(Word, (*levels, DEFAULT)) if levels else ()


EFFORT = SlashCommand(
    "effort",
    "Show or set the reasoning effort",
    _run_effort,
    aliases=("thinking",),
    arguments="[word]",
    words=_effort_words,
    under="model",
)


async def _run_login(session: Session, arguments: str) -> CommandResult:
    provider, _, rest = arguments.partition(" ")
    if rest:
        return CommandResult.text(
            "Give only the provider's name; swecli then asks for the key without showing or recording it. If you "
            "typed a key, it is now in the prompt history; better create a new one.",
            "error",
        )
    hint = f"swecli login {provider}".rstrip()
    return CommandResult(
        screen="login", argument=provider, instead=(TextBlock(f"Store a key from the command line: {hint}"),)
    )


LOGIN = SlashCommand("login", "Add an API key", _run_login, arguments="[provider]")


async def _run_logout(session: Session, arguments: str) -> CommandResult:
    store = KeyStore(user_paths(os.environ).config)
    try:
        if not arguments:
            return CommandResult.text(stored_text(await asyncio.to_thread(store.entries), "/logout"))
        return CommandResult.text(await asyncio.to_thread(forget, store, arguments, "/logout"))
    except KeyStoreError as error:
        return CommandResult.text(str(error), "error")


LOGOUT = SlashCommand("logout", "Delete a stored API key", _run_logout, arguments="[provider]", under="login")


def stored_text(entries: Sequence[StoredKey], command: str) -> str:
    """The stored keys; ``command`` is how the user writes the command that deletes them."""
    lines = [f"{entry.provider}  {entry.origin}  ({entry.place})" for entry in entries]
    if not lines:
        return f"No keys are stored. {command} does not affect keys in the environment."
    return "\n".join(["Stored keys:", *lines, f"{command} PROVIDER deletes its keys."])


def forget(store: KeyStore, provider: str, command: str) -> str:
    """Delete the keys of a provider. Returns a sentence for the user; ``command`` is the command as the user writes it.

    Raises:
        KeyStoreError: a key could not be removed.
    """
    removed = store.remove(provider)
    if not removed:
        return f"No key for {provider} is stored. {command} does not affect keys in the environment."
    places = ", ".join(f"{entry.origin} ({entry.place})" for entry in removed)
    return f"Deleted the {provider} key for {places}. A connected model keeps it until the session ends."


ROWS = 60
"""Models to list at once."""


async def _run_model(session: Session, arguments: str) -> CommandResult:
    first, _, rest = arguments.partition(" ")
    if first == "list":
        return await _list(session, rest)
    if not arguments:
        model = session.view.model
        text = f"The model is {model.ref if model else 'not chosen'}; -m selects another, /model list shows all."
        if waiting := session.view.planned_model:
            text = f"{text} {waiting} answers from the next compaction on."

        async def available() -> tuple[DisplayBlock, ...]:
            usable = [offer for offer in await session.offers.find() if offer.usable]
            return (model_table(usable[:ROWS], "Available models"),) if usable else ()

        return CommandResult(screen="pick_model", instead=(TextBlock(text),), slow=available)
    if rest == LATER_WORD:
        session.send(SetModel(first, later=True))
        return CommandResult()
    if rest and all(offer.ref != arguments for offer in await session.offers.find()):
        return CommandResult.text(
            "A model is one word: provider/name, an alias, or a name only one model has.", "error"
        )
    if "/" in arguments and not all(arguments.split("/", 1)):
        return CommandResult.text("A model is provider/name, for example anthropic/claude-sonnet-5-5.", "error")
    if "/" not in arguments:
        await session.offers.find()  # a name is resolved among the servers' present models
    if (offer := switch_offer(session, arguments)) is not None:
        return CommandResult(offer=offer)
    before = session.view.model
    session.send(SetModel(arguments))
    chosen = session.view.model
    if chosen is None or chosen is before:
        return CommandResult()  # the session reports the reason
    keep = f"For this session; swecli config set model.name {shlex.quote(chosen.ref)} makes it your default."
    return CommandResult(screen="keep_model", argument=chosen.ref, instead=(TextBlock(keep, "dim"),))


def switch_offer(session: Session, model: str) -> Offer | None:
    """Question whether to switch to a model, with the price; None if that costs no thoughts of the present one. It can
    wait for the next compaction, unless thoughts outlive that because the provider writes the summary."""
    effect = None if session.view.busy else session.prices.switch(model)
    if effect is None or not effect.thoughts:
        return None
    plan = session.plan_compaction()
    return Offer(
        f"Switch to {model}? {price_words(effect)}",
        SetModel(model),
        ("Switch now", "the thoughts come back when you switch back"),
        ("Cancel", "nothing changes"),
        SetModel(model, later=True) if plan is None or not plan.by_provider else None,
    )


async def _list(session: Session, words: str) -> CommandResult:
    offers = matching(await session.offers.find(), words)
    if not offers:
        return CommandResult.text(f"No known model matches {words!r}; you can still use any provider/name.", "warning")
    more = f"{len(offers) - ROWS} more; narrow the list: /model list WORDS" if len(offers) > ROWS else ""
    left_out = omitted(session.offers.omitted)
    lines = tuple(TextBlock(line, "dim") for line in (more, left_out) if line)
    return CommandResult((model_table(offers[:ROWS], "Models"), *lines))


MODEL = SlashCommand(
    "model",
    "Show, list or switch the model",
    _run_model,
    arguments="[provider/name [later]]",
    waits=lambda words: words.partition(" ")[0] not in ("", "list"),
)

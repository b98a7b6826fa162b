"""The model that a name without a provider (``sonnet``, ``gpt-5``, ``mock``) means, and the likeliest choice without a
name. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from msgspec import Struct

from swecli.core.edit_distance import nearest
from swecli.core.llm.catalog import common_name, spelling, tails, undated
from swecli.core.llm.offers import ModelOffer
from swecli.core.llm.providers import known_providers
from swecli.lazy_pattern import lazy_pattern

NAMED = 4
"""Candidates that a sentence names."""


class NamedModel(Struct, frozen=True):
    """``ref`` is ``provider/name``, empty if ``problem`` says why; ``note`` reports the choice if the name was
    ambiguous; ``candidates`` are the models that match the name."""

    ref: str = ""
    note: str = ""
    problem: str = ""
    candidates: tuple[str, ...] = ()


def find_model(name: str, offers: Sequence[ModelOffer]) -> NamedModel:
    """The model that ``name`` means. Usable models precede those without a key; the same name precedes one with a date,
    and that one with ``name`` as a part."""
    for pool in ([offer for offer in offers if offer.usable], [offer for offer in offers if not offer.usable]):
        fitting = _fitting(name, pool)
        if not fitting:
            continue
        chosen = _one_each(fitting)
        refs = tuple(offer.ref for offer in chosen)
        if not chosen[0].usable:
            return NamedModel(problem=_without_key(name, chosen), candidates=refs)
        if len(chosen) > 1:
            return NamedModel(problem=f"{name} matches {_listed(refs)}; name one of them.", candidates=refs)
        (ref,) = refs
        ambiguous = len(fitting) > 1 or spelling(name) not in map(spelling, tails(ref))
        return NamedModel(ref, f"{name} is {ref}." if ambiguous else "", candidates=refs)
    return NamedModel(problem=_unknown(name, offers))


def likeliest_first(offers: Iterable[ModelOffer], wanted: Sequence[str] = ()) -> tuple[ModelOffer, ...]:
    """Offers in order of preference: the ``wanted`` ones, then models just listed by a server, then those with a key;
    among equals a provider's default first, and models that do not chat last."""
    places = {ref: index for index, ref in enumerate(wanted)}

    def order(offer: ModelOffer) -> tuple[bool, int, bool, bool, bool, bool]:
        return (
            not offer.usable,
            places.get(offer.ref, len(places)),
            not (offer.running or offer.listed),
            offer.tools is False or not does_chat(offer),
            offer.deprecated,
            spelling(offer.ref.rpartition("/")[2]) not in _defaults(),
        )

    return tuple(sorted(offers, key=order))


_NO_CHAT = lazy_pattern(
    r"embed|whisper|rerank|transcribe|dall-e|stable-diffusion|minilm|(?:^|[-_./\d]|safe)guard(?:ian)?(?:$|[-_./:\d])"
    r"|(?:^|[-_./])(?:tts|asr|bge|image|imagen|sdxl|flux|sora|veo|lyria|nano-banana|moderation|realtime|babbage|davinci)(?:$|[-_./:\d])"
)
_CHAT = lazy_pattern(r"(?:^|[-_./])(?:chat|instruct|coder|assistant)(?:$|[-_./:\d])")


def chats(name: str) -> bool:
    """Whether a model of this name answers messages, judged by the name; in doubt it does."""
    lowered = name.lower()
    return _NO_CHAT.search(lowered) is None or _CHAT.search(lowered) is not None


def does_chat(offer: ModelOffer) -> bool:
    """Whether the model answers messages: by the catalogue or its server, else by its name."""
    return chats(offer.ref.partition("/")[2]) if offer.chats is None else offer.chats


def chatting(offers: Sequence[ModelOffer], wanted: Sequence[str] = ()) -> tuple[ModelOffer, ...]:
    """The offers to show: without models that do not chat, unless ``wanted`` or their server has no other."""
    able = {offer.ref for offer in offers if does_chat(offer)}
    served = {ref.partition("/")[0] for ref in able}
    shown = able.union(wanted)
    return tuple(offer for offer in offers if offer.ref in shown or offer.ref.partition("/")[0] not in served)


@cache
def _defaults() -> frozenset[str]:
    names = (provider.default_model.rpartition("/")[2] for provider in known_providers().values())
    return frozenset(spelling(name) for name in names if name)


def _fitting(name: str, offers: Sequence[ModelOffer]) -> list[ModelOffer]:
    """Offers with the best-matching names. Models that do not chat match only by their whole name."""
    wanted = spelling(name)
    ids = [(offer, spelling(offer.ref.partition("/")[2])) for offer in offers]
    if same := [offer for offer, full in ids if wanted in tails(full)]:
        return [offer for offer in same if offer.ref.endswith(f"/{name}")] or same
    if "/" in name:  # it may name a provider that is not set up: then no other one gets the conversation
        return [offer for offer, full in ids if undated(wanted) in map(undated, tails(full))]
    common = undated(common_name(name))
    if dated := [offer for offer, full in ids if undated(common_name(full)) == common]:
        return dated
    words, able = _words(wanted), [(offer, full) for offer, full in ids if does_chat(offer)]
    return [offer for offer, full in able if words and _within(words, _words(full.rpartition("/")[2]))]


def _words(name: str) -> list[str]:
    return [word for word in re.split(r"[^a-z0-9]+", name) if word]


def _within(words: Sequence[str], name: Sequence[str]) -> bool:
    """Whether the name contains all words, in order."""
    rest = iter(name)
    return all(word in rest for word in words)


def _one_each(fitting: Sequence[ModelOffer]) -> list[ModelOffer]:
    """The models to choose from: one per provider, unless that would be a guess."""
    by_provider: dict[str, list[ModelOffer]] = {}
    for offer in fitting:
        by_provider.setdefault(offer.ref.partition("/")[0], []).append(offer)
    return [offer for group in by_provider.values() for offer in _newest(group)]


def _newest(group: Sequence[ModelOffer]) -> Sequence[ModelOffer]:
    """The provider's default, or the newest if all belong to one family; else all of them."""
    usual = [offer for offer in group if spelling(offer.ref.rpartition("/")[2]) in _defaults()]
    if len(usual) == 1:
        return usual
    current = [offer for offer in group if not offer.deprecated] or list(group)
    if len({_family(offer.ref) for offer in current}) > 1:
        return current
    return [max(current, key=lambda offer: (_version(offer.ref), -len(offer.ref)))]


def _family(ref: str) -> tuple[str, ...]:
    """The name without its numbers, in any order: makers have changed the version's position."""
    return tuple(sorted(word for word in _words(common_name(undated(ref))) if not word.isdigit() and word != "latest"))


def _version(ref: str) -> tuple[int, ...]:
    return tuple(int(word) for word in _words(common_name(undated(ref))) if word.isdigit() and len(word) < 4)


def _without_key(name: str, chosen: Sequence[ModelOffer]) -> str:
    offer = chosen[0]
    provider = offer.ref.partition("/")[0]
    key = f"set {offer.variable} or use /login {provider}" if offer.variable else f"{provider} is not usable here"
    if len(chosen) == 1:
        return f"{name} is {offer.ref}, which has no key: {key}."
    refs = _listed([other.ref for other in chosen])
    return f"{name} matches {refs}, which have no key. For {offer.ref}, {key}."


def _unknown(name: str, offers: Sequence[ModelOffer]) -> str:
    by_name: Mapping[str, str] = {
        spelling(offer.ref.rpartition("/")[2]): offer.ref for offer in reversed(offers) if offer.usable
    }
    near = nearest(spelling(name).rpartition("/")[2], by_name)
    if not near and (meant := _respelt(name, by_name)) != name:
        named = find_model(meant, offers)
        if named.candidates:
            return f"Model {name!r} is unknown. Did you mean {named.ref or meant}?"
    lists = "`swecli models` (/model in a session) lists the usable models; provider/name selects any other."
    hint = f"Did you mean {by_name[near]}?" if near else lists
    return f"Model {name!r} is unknown. {hint}"


def _respelt(name: str, names: Iterable[str]) -> str:
    """The name with the likely words of ``names`` in place of its mistyped ones; unchanged if one has none."""
    known = dict.fromkeys(word for candidate in names for word in _words(candidate) if not word.isdigit())
    meant = [word if word.isdigit() else nearest(word, known) for word in _words(spelling(name))]
    return "-".join(meant) if meant and all(meant) else name


def _listed(refs: Sequence[str]) -> str:
    if len(refs) == 1:
        return refs[0]
    if len(refs) > NAMED:
        return f"{', '.join(refs[:NAMED])} and {len(refs) - NAMED} more"
    return f"{', '.join(refs[:-1])} and {refs[-1]}"

"""Writes ``swecli/core/llm/catalog.json`` and ``model_windows.json`` anew from two packages that are read
at development time only.

    python -m venv /tmp/catalog && /tmp/catalog/bin/pip install genai-prices
    /tmp/catalog/bin/pip download --no-deps --dest /tmp/catalog litellm
    /tmp/catalog/bin/python scripts/update_catalog.py --litellm /tmp/catalog/litellm-*.whl

genai-prices gives prices and windows; the model table inside litellm gives the longest answer, the shortest prefix
that is cached, capabilities, and a second opinion on the rest; ``catalog_selection.toml`` says which models, and what
only the providers' documentation states. What no source gives is null. Where the sources differ, the difference and
how it was settled are printed: read them before committing.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from typing import Any

from catalog_prices import RATES, Price, off_days_of, read_genai_prices, read_litellm_prices
from catalog_windows import window_table
from genai_prices import types as genai  # pyright: ignore[reportMissingImports]
from genai_prices.data import providers as genai_providers  # pyright: ignore[reportMissingImports]

HERE = Path(__file__).resolve().parent
TARGET = HERE.parent / "swecli" / "core" / "llm" / "catalog.json"
TABLE = "litellm/model_prices_and_context_window_backup.json"
DATED = re.compile(r"(-20\d\d-\d\d-\d\d|-20\d{6}|-\d{4}|-latest)$")
MAX_RETIRED = 90
"""Days after its end for which a model stays in the catalogue."""


@dataclass
class Review:
    """What a person should look at before the file is committed."""

    lines: list[str] = field(default_factory=list)

    def note(self, model: str, subject: str, text: str) -> None:
        self.lines.append(f"{subject:14} {model:58} {text}")


@dataclass
class Provider:
    """One provider of the selection, with its part of both packages."""

    name: str
    rule: Mapping[str, Any]
    genai: Any
    litellm: Mapping[str, Mapping[str, Any]]
    router: Any
    everyone: list[Any]

    def names(self) -> list[str]:
        """Names that the provider's API takes, as far as the sources know them and the selection wants them: those
        of the model table, and one for each model that only genai-prices has."""
        found = [] if self.rule.get("names") == "genai" else list(self.litellm)
        for model in self.genai.models if self.genai else ():
            if not any(model.is_match(name) for name in found):
                found.extend([name for name in (model.id, *equal_to(model.match)) if model.is_match(name)][:1])
        ids = {model.id.lower() for model in self.genai.models} if self.genai else set()
        chosen: dict[str, str] = {}
        for name in sorted(filter(self.wants, found), key=lambda name: (name.lower() not in ids, name)):
            chosen.setdefault(spelling(name), name)
        names = (name.lower() if self.rule.get("lower") else name for name in chosen.values())
        return sorted(names, key=str.lower)

    def wants(self, name: str) -> bool:
        def fits(key: str) -> bool:
            return any(fnmatchcase(name.lower(), pattern) for pattern in self.rule.get(key, ()))

        return fits("include") and not fits("exclude")

    def genai_model(self, name: str) -> Any:
        return self.genai.find_model(name, all_providers=self.everyone) if self.genai else None

    def router_window(self, name: str) -> int | None:
        maker = self.rule.get("router")
        bare = DATED.sub("", name.lower())
        dotted = re.sub(r"(?<=\d)-(?=\d{1,2}(?!\d))", ".", bare)
        for form in (name.lower(), bare, dotted):
            for model in self.router.models if maker else ():
                if model.id == f"{maker}/{form}":
                    return model.context_window
        return None


def spelling(name: str) -> str:
    """The same for names that differ only by case and by a dot or dash between digits."""
    return re.sub(r"(?<=\d)\.(?=\d)", "-", name.lower())


def equal_to(clause: Any) -> Iterator[str]:
    """The names that a matching rule of genai-prices lists in full."""
    if isinstance(clause, genai.ClauseEquals):
        yield clause.equals
    elif isinstance(clause, genai.ClauseOr):
        for part in clause.or_:
            yield from equal_to(part)


# --- one model -----------------------------------------------------------------------------------------------------


@dataclass
class Builder:
    """Makes the entries, and notes where the sources differ."""

    documented: Mapping[str, Any]
    today: date
    review: Review

    def entry(self, provider: Provider, name: str) -> dict[str, Any] | None:
        """The entry of one model; None where no source knows window or price, or it is long gone."""
        table = provider.litellm.get(name) or {}
        model = provider.genai_model(name)
        label = f"{provider.name}/{name}"
        retires = table.get("deprecation_date")
        if retires and (self.today - date.fromisoformat(retires)).days > MAX_RETIRED:
            return None
        window, window_source = self._window(label, model, table, provider.router_window(name))
        prices, price_source = self._prices(label, model, table)
        if window is None and not prices:
            return None
        max_output = whole(table.get("max_output_tokens"))
        if max_output is not None and window is not None and max_output >= window:
            self.review.note(label, "max_output", f"{max_output} is the whole window, so no limit of its own: null")
            max_output = None
        minimum, minimum_source = self._cache_minimum(label, provider.name, name, table)
        reasoning = flag(table, "supports_reasoning")
        style = "adaptive" if table.get("supports_adaptive_thinking") else None
        style_source = "l" if style else "d"
        if style is None and reasoning:
            style = self._rule("style", provider.name, name)
            if style is None and provider.name == "anthropic":
                style, style_source = "budget", "l"
        echo = self._rule("echo", provider.name, name) if reasoning or not table else None
        images, tools = images_of(table), flag(table, "supports_function_calling")
        efforts = efforts_of(table)
        sources = {
            "window": window_source,
            "max_output": "l" if max_output is not None else "",
            "prices": price_source,
            "cache_minimum": minimum_source,
            "capabilities": "l" if any(value is not None for value in (images, tools, reasoning)) else "",
            "reasoning": "".join(sorted({style_source} if style else set()) + (["l"] if efforts else [])),
            "echo": "d" if echo else "",
        }
        deprecated = bool(model is not None and model.deprecated) or bool(retires and retires <= str(self.today))
        return {
            "provider": provider.name,
            "id": name,
            "aliases": [],
            "window": window,
            "max_output": max_output,
            "prices": prices or None,
            "cache_minimum": minimum,
            "images": images,
            "tools": tools,
            "reasoning": reasoning,
            "reasoning_style": style,
            "efforts": efforts,
            "echo": echo,
            "deprecated": deprecated,
            "retires": retires,
            "sources": {key: "".join(sorted(set(value))) for key, value in sources.items() if value},
        }

    def _window(self, label: str, model: Any, table: Mapping[str, Any], router: int | None) -> tuple[int | None, str]:
        """The total window. The model table often means the input's limit: with the longest answer it adds up."""
        total = model.context_window if model is not None else None
        limit, answer = whole(table.get("max_input_tokens")), whole(table.get("max_output_tokens"))
        if limit is None or (total is not None and limit == total):
            return total, ("gl" if limit is not None else "g") if total is not None else ""
        if total is None:
            if router is not None and answer is not None and limit + answer == router:
                self.review.note(label, "window", f"{limit} input + {answer} output = {router} at the router: that")
                return router, "lr"
            return limit, "l"
        if answer is not None and limit + answer == total:
            self.review.note(label, "window", f"{total} in all = {limit} input + {answer} output: total")
            return total, "gl"
        if router is not None and router in (limit, total, limit + (answer or 0)):
            self.review.note(label, "window", f"genai {total}, litellm {limit}, router {router}: two agree on {router}")
            return router, "gr" if router == total else "lr"
        smaller = min(total, limit)
        self.review.note(label, "window", f"genai {total}, litellm {limit}, router {router}: the smaller, {smaller}")
        return smaller, "g" if smaller == total else "l"

    def _prices(self, label: str, model: Any, table: Mapping[str, Any]) -> tuple[list[Price], str]:
        mine = read_genai_prices(model, self.today, off_days_of(table)) if model is not None else []
        other = read_litellm_prices(table)
        if other and label in self.documented["reviewed"]:
            self.review.note(label, "price", f"litellm's taken: {self.documented['reviewed'][label]}")
            return other, "l"
        if not mine:
            return other, "l" if other else ""
        if other:
            known = [*mine, *({**price, **price.get("tiers", [{}])[0]} for price in mine)]
            different = [
                f"{rate} {mine[0].get(rate)} not {other[0][rate]}"
                for rate in RATES
                if rate in other[0] and all(price.get(rate) != other[0][rate] for price in known)
            ]
            added = {rate: other[0][rate] for rate in RATES if rate in other[0] and rate not in mine[0]}
            agreed = all(mine[0].get(rate) == other[0][rate] for rate in ("input", "output"))
            if different and agreed and len(mine) == 1 and "tiers" not in mine[0]:
                self.review.note(label, "price", f"added from litellm: {', '.join(added)}")
                return [{rate: value for rate in RATES if (value := {**added, **mine[0]}.get(rate))}], "gl"
            if different:
                self.review.note(label, "price", f"genai's taken: {', '.join(different)}")
            return mine, "g" if different else "gl"
        return mine, "g"

    def _cache_minimum(self, label: str, provider: str, name: str, table: Mapping[str, Any]) -> tuple[int | None, str]:
        listed, documented = whole(table.get("prompt_cache_min_tokens")), self._rule("cache_minimum", provider, name)
        if listed is None or documented is None or listed == documented:
            value = listed if listed is not None else documented
            return value, ("l" if listed is not None else "") + ("d" if documented is not None else "")
        larger = max(listed, documented)
        self.review.note(label, "cache_minimum", f"litellm {listed}, documentation {documented}: the larger, {larger}")
        return larger, "l" if larger == listed else "d"

    def _rule(self, kind: str, provider: str, name: str) -> Any:
        key = "tokens" if kind == "cache_minimum" else kind
        for rule in self.documented.get(kind, ()):
            fits = any(fnmatchcase(provider, pattern) for pattern in rule.get("provider", ["*"]))
            if fits and any(fnmatchcase(name.lower(), pattern) for pattern in rule.get("model", ["*"])):
                return rule[key]
        return None


def whole(value: Any) -> int | None:
    return int(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) and value > 0 else None


def flag(table: Mapping[str, Any], key: str) -> bool | None:
    value = table.get(key)
    return value if isinstance(value, bool) else None


def images_of(table: Mapping[str, Any]) -> bool | None:
    modalities = table.get("supported_modalities")
    listed = flag(table, "supports_vision")
    return listed if listed is not None else "image" in modalities if modalities else None


def efforts_of(table: Mapping[str, Any]) -> list[str] | None:
    """The words for effort: as listed, or the usual three and those that the table's flags add."""
    if table.get("reasoning_effort_levels"):
        return list(table["reasoning_effort_levels"])
    flags = {word: flag(table, f"supports_{word}_reasoning_effort") for word in ("none", "minimal", "xhigh", "max")}
    if all(value is None for value in flags.values()):
        return None
    words = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
    return [word for word in words if flags.get(word, True)]


# --- all of them ---------------------------------------------------------------------------------------------------


def merge_names(provider: Provider, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry for names that differ only by a date, or that move with the newest version, and cost the same."""
    by_name = {entry["id"]: entry for entry in entries}
    kept: list[dict[str, Any]] = []
    for entry in entries:
        bare = DATED.sub("", entry["id"])
        first = by_name.get(bare) if bare != entry["id"] else None
        model = provider.genai_model(entry["id"])
        if first is None and model is not None and entry["id"].endswith("-latest"):
            first = next((e for e in entries if e is not entry and provider.genai_model(e["id"]) is model), None)
        if first is None or entry["prices"] not in (None, first["prices"]):
            kept.append(entry)
        elif not re.search(r"-20\d\d-?\d\d-?\d\d$", entry["id"]):  # those are found without being listed
            first["aliases"].append(entry["id"])
    return kept


def add_other_names(provider: Provider, entries: list[dict[str, Any]]) -> None:
    """Other names that genai-prices lists for the model of exactly one entry."""
    by_model: dict[str, list[dict[str, Any]]] = {}
    taken = {spelling(name) for entry in entries for name in (entry["id"], *entry["aliases"])}
    for entry in entries:
        model = provider.genai_model(entry["id"])
        if model is not None and any(other is model for other in provider.genai.models):
            by_model.setdefault(model.id, []).append(entry)
    for group in by_model.values():
        if len(group) == 1:
            entry = group[0]
            listed = sorted(equal_to(provider.genai_model(entry["id"]).match))
            extra = {spelling(n): n for n in listed if not re.search(r":|20\d\d-\d\d|-20\d{6}|^x-ai/", n)}
            names = [n for form, n in extra.items() if form not in taken and provider.wants(n)]
            entry["aliases"] = sorted({*entry["aliases"], *names})


def read_litellm(wheel: Path) -> dict[str, dict[str, Any]]:
    if wheel.suffix == ".json":
        return json.loads(wheel.read_text("utf-8"), parse_float=Decimal)
    with zipfile.ZipFile(wheel) as archive:
        return json.loads(archive.read(TABLE), parse_float=Decimal)


def providers_of(selection: Mapping[str, Any], table: Mapping[str, dict[str, Any]]) -> Iterator[Provider]:
    by_id = {provider.id: provider for provider in genai_providers}
    for name, rule in selection["provider"].items():
        prefix = rule.get("litellm")
        entries = {
            key.removeprefix(f"{prefix}/"): value
            for key, value in table.items()
            if prefix and value.get("litellm_provider") == prefix and value.get("mode") in ("chat", "responses")
        }
        yield Provider(name, rule, by_id.get(rule.get("genai", "")), entries, by_id["openrouter"], genai_providers)


def natural(text: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", text.lower()) if part]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--litellm", type=Path, required=True, help="litellm's wheel, or the table as JSON")
    parser.add_argument("--date", type=date.fromisoformat, default=datetime.now(UTC).date(), help="day of reading")
    parser.add_argument("--out", type=Path, default=TARGET)
    options = parser.parse_args()
    selection = tomllib.loads((HERE / "catalog_selection.toml").read_text("utf-8"))
    review = Review()
    builder = Builder(selection, options.date, review)
    models: list[dict[str, Any]] = []
    counts: dict[str, int] = {}
    for provider in providers_of(selection, read_litellm(options.litellm)):
        names = provider.names()
        entries = [entry for name in names if (entry := builder.entry(provider, name)) is not None]
        entries = merge_names(provider, entries)
        add_other_names(provider, entries)
        entries.sort(key=lambda entry: (entry["deprecated"], natural(entry["id"])))
        counts[provider.name] = len(entries)
        models.extend(entries)
    found = re.search(r"litellm-([\w.]+?)-", options.litellm.name)
    day = options.date.isoformat()
    sources = {
        "g": {"name": "genai-prices", "version": version("genai-prices"), "date": day},
        "l": {"name": "litellm", "version": found.group(1) if found else None, "date": day},
        "r": {"name": "OpenRouter's list in genai-prices", "version": version("genai-prices"), "date": day},
        "d": {"name": "providers' documentation and recorded requests", "version": None, "date": day},
    }
    head = json.dumps(sources, ensure_ascii=False, separators=(",", ":"))
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in models)
    options.out.write_text(f'{{"version":1,"sources":{head},"models":[\n{lines}\n]}}\n', "utf-8")
    hosts = [
        (name, rule.get("litellm", ""), provider.models if (provider := by_id.get(rule.get("genai", ""))) else ())
        for by_id in ({provider.id: provider for provider in genai_providers},)
        for name, rule in selection["provider"].items()
    ]
    stated = [f"{name} of {day}" for name in ("genai-prices", "litellm", "documentation")]
    options.out.with_name("model_windows.json").write_text(
        window_table(hosts, read_litellm(options.litellm), genai_providers, selection["families"], stated), "utf-8"
    )
    print("\n".join(sorted(review.lines)))
    print(f"{len(models)} models, {options.out.stat().st_size} bytes: {counts}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

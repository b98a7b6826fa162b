"""Finding facts by their words, without an index."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.context_management.recall import EXCERPT, Document, excerpt, rank, terms_of
from tests.support.thorough import examples


def best(query: str, *texts: str) -> list[str]:
    return [found.document.id for found in rank([Document(str(n), "", text) for n, text in enumerate(texts)], query, 9)]


def test_terms() -> None:
    assert terms_of("which port does the Server use?") == ("port", "server", "use")
    assert terms_of("ConfigLoader.load_all") == ("configloader", "config", "loader", "load_all", "load", "all")
    assert terms_of("failing tests") == ("fail", "test")
    assert terms_of("the and of") == ("the", "and", "of")
    assert terms_of("数据库端口") == ("数据", "据库", "库端", "端口")
    assert terms_of("") == ()


def test_identifiers_paths_numbers_and_other_languages_are_found() -> None:
    assert best("config loader", "see ConfigLoader in core", "nothing") == ["0"]
    assert best("load_config", "def load_config(path):", "loading the configuration")[0] == "0"
    assert best("8443", "port 18443", "port 8443 is used", "84430") == ["1"]
    assert best("go", "a good day", "written in Go.") == ["1"]
    assert best("端口", "数据库的端口是八千", "没有") == ["0"]
    assert best("src/app/main.py", "edited src/app/main.py", "edited src/other/thing.py")[0] == "0"
    assert best("port", "the report and the import", "the serverPort", "PORTS=1") == ["2", "1"]
    assert best("nowhere", "a", "b") == []
    assert best("", "a") == []


def test_rare_words_count_more_and_the_phrase_most() -> None:
    texts = ["the server is fast", "the server listens on quarantine", "server server server"]
    assert best("server quarantine", *texts)[0] == "1"
    assert best("error in module two", "module error, in two", "an error in module two is known")[0] == "1"


def test_what_an_entry_is_about_is_searched_too() -> None:
    documents = [Document("a", "result of read_file src/billing.py", "x = 1"), Document("b", "user", "y = 2")]
    assert [found.document.id for found in rank(documents, "billing", 5)] == ["a"]


def test_the_excerpt_shows_the_place() -> None:
    text = (
        "\n".join(f"line {number} of nothing" for number in range(500)) + "\nthe secret port is 9311\n" + "end\n" * 300
    )
    found = rank([Document("a", "", text)], "secret port", 1)[0]
    shown = excerpt(text, found.at, "secret port")
    assert "the secret port is 9311" in shown
    assert len(shown) <= EXCERPT + 2
    assert shown.startswith("…line ")


@given(st.text(max_size=3_000), st.text(max_size=40))
@settings(deadline=None, max_examples=examples(60, 300))
def test_any_text_and_query(text: str, query: str) -> None:
    for found in rank([Document("a", "b", text), Document("c", text[:50], text[50:])], query, 5):
        assert found.score > 0
        assert 0 <= found.at <= max(0, len(found.document.text))
        assert len(excerpt(found.document.text, found.at, query)) <= EXCERPT + 2


@given(st.integers(0, 10**6))
@settings(deadline=None, max_examples=examples(20, 300))
def test_the_best_few_are_the_first_of_all(seed: int) -> None:
    """What cannot be among them is not looked at closely."""
    rand = random.Random(seed)
    words = ["server", "client", "port", "the_port", "config", "module\n", "error"]
    documents = [
        Document(str(number), rand.choice(["", "port", "error"]), " ".join(rand.choices(words, k=rand.randrange(120))))
        for number in range(30)
    ]
    for query in ("server", "the server port", "port config module error"):
        every = rank(documents, query, len(documents))
        for limit in (1, 3, 12):
            assert rank(documents, query, limit) == every[:limit]


@given(st.integers(0, 10**6))
@settings(deadline=None, max_examples=examples(1, 3))
def test_planted_facts_are_among_the_first_three(seed: int) -> None:
    """Fifty facts between entries of the same vocabulary, each asked for in other words than it was said."""
    rand = random.Random(seed)
    words = ["server", "client", "port", "config", "module", "test", "build", "error", "file", "path", "value", "cache"]
    noise = [" ".join(rand.choices(words, k=rand.randrange(5, 400))) for _ in range(400)]
    names = rand.sample(["alder", "birch", "cedar", "dogwood", "elm", "fir", "ginkgo", "hazel", "ivy", "juniper"], 10)
    facts = [
        f"The {name}_{kind} {noun} is {rand.randrange(1_000, 99_999)}."
        for name in names
        for kind, noun in (("api", "port"), ("db", "path"), ("ui", "limit"), ("job", "error"), ("log", "value"))
    ]
    texts = noise + [f"{rand.choice(noise)}\n{fact}\n{rand.choice(noise)}" for fact in facts]
    found = 0
    for number, fact in enumerate(facts):
        subject = fact.split()[1]
        query = f"what is the {fact.split()[2]} of {subject.replace('_', ' ')}"
        ids = [int(name) for name in best(query, *texts)[:3]]
        found += 400 + number in ids
    assert found >= 0.95 * len(facts)

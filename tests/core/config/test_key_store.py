"""Stored keys: for one origin only, in a real keyring or in a file that nobody else can read."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from swecli.core.config.key_store import KeyringError, KeyStore, KeyStoreError, bounded

OPENAI = "https://api.openai.com"
ANTHROPIC = "https://api.anthropic.com"


class FakeKeyring:
    """A keyring in memory. ``broken`` raises on everything."""

    def __init__(self, *, broken: bool = False) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.broken = broken
        self.reads = 0

    def get_password(self, service: str, username: str) -> str | None:
        self._check()
        self.reads += 1
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._check()
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._check()
        del self.kept[service, username]

    def _check(self) -> None:
        if self.broken:
            raise RuntimeError("locked")


def in_file(folder: Path) -> KeyStore:
    return KeyStore(folder, keyring=lambda: None)


def test_a_key_is_found_for_its_provider_and_origin_only(tmp_path: Path) -> None:
    store = in_file(tmp_path)
    store.put("openai", OPENAI, "sk-1")
    assert store.find("openai", OPENAI) == "sk-1"
    for provider, origin in (
        ("openai", "http://api.openai.com"),
        ("openai", "https://api.openai.com:8443"),
        ("openai", "https://evil.example"),
        ("anthropic", OPENAI),
    ):
        assert store.find(provider, origin) == ""
    store.put("openai", "http://127.0.0.1:1", "sk-2")
    store.put("openai", OPENAI, "sk-3")
    assert (store.find("openai", OPENAI), store.find("openai", "http://127.0.0.1:1")) == ("sk-3", "sk-2")
    assert len(in_file(tmp_path).entries()) == 2


def test_the_file_is_the_users_alone_even_if_it_was_not(tmp_path: Path) -> None:
    store = in_file(tmp_path / "config")
    store.put("openai", OPENAI, "sk-1")
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700
    store.path.chmod(0o644)
    assert store.find("openai", OPENAI) == "sk-1"
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600


def test_no_key_comes_from_a_link_or_a_damaged_file(tmp_path: Path) -> None:
    elsewhere = in_file(tmp_path / "other")
    elsewhere.put("openai", OPENAI, "sk-1")
    (tmp_path / "keys.json").symlink_to(elsewhere.path)
    with pytest.raises(KeyStoreError, match="is a link, which is not followed"):
        in_file(tmp_path).find("openai", OPENAI)
    (tmp_path / "keys.json").unlink()
    for text in ("{", "[]", '{"keys": [{"provider": "a"}]}', '{"keys": 3}'):
        (tmp_path / "keys.json").write_text(text)
        with pytest.raises(KeyStoreError, match="damaged"):
            in_file(tmp_path).entries()
        with pytest.raises(KeyStoreError, match="damaged"):
            in_file(tmp_path).put("openai", OPENAI, "sk-1")
        assert (tmp_path / "keys.json").read_text() == text


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_store_that_can_not_be_written_says_so(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(KeyStoreError, match="cannot write"):
        in_file(tmp_path).put("openai", OPENAI, "sk-1")


def test_a_real_keyring_keeps_the_key_out_of_the_file(tmp_path: Path) -> None:
    ring = FakeKeyring()
    store = KeyStore(tmp_path, keyring=lambda: ring)
    assert store.put("openai", OPENAI, "sk-secret").place == "keyring"
    assert "sk-secret" not in store.path.read_text()
    assert KeyStore(tmp_path, keyring=lambda: ring).find("openai", OPENAI) == "sk-secret"
    assert store.find("openai", "https://evil.example") == ""
    assert [entry.place for entry in store.remove("openai")] == ["keyring"]
    assert ring.kept == {}
    assert store.entries() == ()


def test_the_keyring_is_asked_once_and_only_for_what_it_has(tmp_path: Path) -> None:
    ring = FakeKeyring()
    KeyStore(tmp_path, keyring=lambda: ring).put("openai", OPENAI, "sk-1")
    store = KeyStore(tmp_path, keyring=lambda: ring)
    assert [store.find("openai", OPENAI) for _ in range(3)] == ["sk-1"] * 3
    assert store.find("anthropic", "https://api.anthropic.com") == ""
    assert ring.reads == 1


def test_a_key_that_another_program_stored_meanwhile_counts(tmp_path: Path) -> None:
    ring = FakeKeyring()
    store = KeyStore(tmp_path, keyring=lambda: ring)
    store.put("openai", OPENAI, "sk-1")
    assert store.find("openai", OPENAI) == "sk-1"
    KeyStore(tmp_path, keyring=lambda: ring).put("openai", OPENAI, "sk-2")
    assert store.find("openai", OPENAI) == "sk-2"


def test_a_keyring_that_fails_gives_way_to_the_file_and_says_so_when_it_has_the_key(tmp_path: Path) -> None:
    ring = FakeKeyring(broken=True)
    store = KeyStore(tmp_path, keyring=lambda: ring)
    assert store.put("openai", OPENAI, "sk-1").place == "file"
    ring.broken = False
    store.put("groq", "https://api.groq.com", "gsk-1")
    ring.broken = True
    fresh = KeyStore(tmp_path, keyring=lambda: ring)
    assert fresh.find("openai", OPENAI) == "sk-1"
    with pytest.raises(KeyStoreError, match="cannot read the groq key"):
        fresh.find("groq", "https://api.groq.com")
    with pytest.raises(KeyStoreError, match="could not remove"):
        fresh.remove("groq")
    assert {entry.provider for entry in fresh.entries()} == {"openai", "groq"}
    with pytest.raises(KeyStoreError, match="unavailable"):
        in_file(tmp_path).find("groq", "https://api.groq.com")


def test_a_keyring_that_waits_for_somebody_is_not_waited_for() -> None:
    never = threading.Event()
    with pytest.raises(KeyringError, match="locked"):
        bounded(never.wait, 0.02)
    never.set()


def test_keys_that_are_stored_and_deleted_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    """As two `swecli login` at once: the second one stores its key while the first one waits for the keyring."""
    other = KeyStore(tmp_path, keyring=lambda: None)

    class Slow(FakeKeyring):
        def set_password(self, service: str, username: str, password: str) -> None:
            other.put("anthropic", ANTHROPIC, "second")
            super().set_password(service, username, password)

        def delete_password(self, service: str, username: str) -> None:
            other.put("gemini", "https://gemini.example", "third")
            super().delete_password(service, username)

    ring = Slow()
    store = KeyStore(tmp_path, keyring=lambda: ring)
    store.put("openai", OPENAI, "first")
    assert [one.provider for one in store.entries()] == ["anthropic", "openai"]
    store.remove("openai")
    assert [one.provider for one in store.entries()] == ["anthropic", "gemini"]


def test_no_key_is_in_a_representation(tmp_path: Path) -> None:
    store = in_file(tmp_path)
    entry = store.put("openai", OPENAI, "sk-secret")
    assert "sk-secret" not in repr(entry) + repr(store.entries()) + repr(store)

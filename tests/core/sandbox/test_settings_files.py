"""Files of settings stay readable in the sandbox while they hold no secret; their content decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from swecli.core.sandbox.settings_files import MAX_SIZE, holds_secret, may_be_read
from swecli.core.sandbox.survey import Surveyor
from swecli.core.secret_names import secret_names

SAMPLES = Path(__file__).parents[2] / "data" / "settings-files"
"""As Rails, .NET and Spring projects have them."""
NAMES = secret_names()
NAMED = {
    "database.rails.yml": "config/database.yml",
    "appsettings.Development.json": "src/Shop/appsettings.Development.json",
    "application-local.yml": "src/main/resources/application-local.yml",
}


@pytest.mark.parametrize("sample", NAMED)
def test_a_file_with_placeholders_and_local_passwords_holds_none(sample: str) -> None:
    assert not holds_secret((SAMPLES / sample).read_text())


@pytest.mark.parametrize(
    ("sample", "before", "after"),
    [
        ("database.rails.yml", 'password: <%= ENV["SHOP_DATABASE_PASSWORD"] %>', "password: hunter2-9fKq"),
        ("database.rails.yml", '<%= ENV["DATABASE_URL"] %>', "postgres://shop:pr0dPass77@db.example.org/shop"),
        ("database.rails.yml", 'ENV["SHOP_DATABASE_PASSWORD"]', 'ENV.fetch("SHOP_PASSWORD", "pr0dPass77")'),
        ("database.rails.yml", "password: postgres", "password: 'tr0ub4dor&3'"),
        ("appsettings.Development.json", "Password=postgres", "Password=Pr0d!Secret9"),
        ("appsettings.Development.json", '"Key": ""', '"Key": "this long sentence signs the tokens"'),
        ("appsettings.Development.json", "<your key>", "sk-proj-abcdefghijklmnopqrstuvwxyz1234567890"),
        ("appsettings.Development.json", "#{MailPassword}#", "Winter2026!"),
        ("application-local.yml", "${DB_PASSWORD:test}", "${DB_PASSWORD:Zx81kk0q}"),
        ("application-local.yml", "${APP_PASSWORD}", "Zx81kk0q"),
    ],
)
def test_one_real_value_is_enough(sample: str, before: str, after: str) -> None:
    text = (SAMPLES / sample).read_text()
    assert before in text
    assert holds_secret(text.replace(before, after))


def test_only_settings_are_judged_by_their_content(tmp_path: Path) -> None:
    for name in (".env", "credentials.yml", "secrets/database.yml", "id_rsa", "config/master.key"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("password: <%= ENV['X'] %>\n")
        assert NAMES.matches(str(path))
        assert not may_be_read(str(path), NAMES), name
    for name in ("database.yml", "appsettings.Production.json", "application-prod.properties"):
        path = tmp_path / name
        path.write_text("a: b\n")
        assert NAMES.matches(str(path))
        assert may_be_read(str(path), NAMES), name
        assert not may_be_read(str(path), secret_names((name,))), "the user's own names are never judged"


@pytest.mark.parametrize("content", [b"a\0b", b"\xff\xfe\xfa", b"#" * (MAX_SIZE + 1)])
def test_what_cannot_be_read_as_text_counts_as_a_secret(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "database.yml"
    path.write_bytes(content)
    assert not may_be_read(str(path), NAMES)
    assert not may_be_read(str(tmp_path / "config" / "database.yml"), NAMES)


def test_the_survey_leaves_them_out_until_a_secret_is_written(tmp_path: Path) -> None:
    for sample, name in NAMED.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text((SAMPLES / sample).read_text())
    (tmp_path / "config" / "master.key").write_text("0123\n")
    surveyor = Surveyor((str(tmp_path),), "", names=lambda: NAMES)
    assert surveyor.survey().secrets == (str(tmp_path / "config" / "master.key"),)
    database = tmp_path / "config" / "database.yml"
    text = database.read_text().replace("password: postgres", "password: pr0dPass77")
    with database.open("r+") as stream:  # which leaves the folder as it is
        stream.write(text)
    assert str(database) in surveyor.survey().secrets

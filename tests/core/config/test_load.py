"""Layers, origins, and errors that name file and line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from swecli.core.config.load import ConfigError, Loaded, load, origins
from swecli.core.config.paths import user_paths
from swecli.core.config.settings import Settings
from tests.support.thorough import examples


class Place:
    """A user's directory and a workspace, with the files of each layer."""

    def __init__(self, base: Path) -> None:
        self.home, self.workspace = base / "home", base / "work"
        self.home.mkdir()
        (self.workspace / ".swecli").mkdir(parents=True)
        self.user = self.home / "config.toml"
        self.project = self.workspace / ".swecli" / "config.toml"
        self.local = self.workspace / ".swecli" / "config.local.toml"

    def load(self, *, trusted: bool = True, flags: dict[str, object] | None = None, **environment: str) -> Loaded:
        variables = {"SWECLI_HOME": str(self.home), **environment}
        return load(user_paths(variables), self.workspace, environment=variables, trusted=trusted, flags=flags)

    def error(self, text: str) -> str:
        self.user.write_text(text)
        with pytest.raises(ConfigError) as caught:
            self.load()
        return str(caught.value)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_nothing_configured_is_the_defaults(place: Place) -> None:
    loaded = place.load()
    assert (loaded.settings, loaded.notices, loaded.rules) == (Settings(), (), ())
    assert {origin for _, _, origin in origins(loaded)} == {"default"}


def test_the_layers_win_in_order_and_each_value_knows_its_origin(place: Place) -> None:
    def name() -> tuple[str | None, str]:
        loaded = place.load(**environment)
        return loaded.settings.model.name, str(loaded.origins[("model", "name")])

    environment: dict[str, str] = {}
    place.user.write_text('[agent]\nwarn = 0.5\n\n[model]\nname = "a/user"\n')
    assert name() == ("a/user", f"{place.user}:5")
    place.project.write_text('model.name = "a/project"\n')
    assert name() == ("a/project", f"{place.project}:1")
    place.local.write_text('[model]\n"name" = "a/local"\n')
    assert name() == ("a/local", f"{place.local}:2")
    environment["SWECLI_MODEL"] = "a/environment"
    assert name() == ("a/environment", "SWECLI_MODEL")
    loaded = place.load(flags={"model.name": "a/flag"}, **environment)
    assert loaded.settings.model.name == "a/flag"
    rows = {key: (value, origin) for key, value, origin in origins(loaded)}
    assert rows["model.name"] == ("a/flag", "flag")
    assert rows["context.warn"] == ("0.5", f"{place.user}:2")
    assert rows["agent.hard_block"] == ("0.98", "default")


def test_a_variable_can_name_the_users_file_and_then_it_must_exist(place: Place, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    with pytest.raises(ConfigError, match="no such file"):
        place.load(SWECLI_CONFIG=str(other))
    other.write_text('[ui]\ntheme = "dark"\n')
    assert place.load(SWECLI_CONFIG=str(other)).settings.ui.theme == "dark"


def test_an_untrusted_workspace_is_not_read_at_all(place: Place) -> None:
    place.project.write_text("this is no TOML")
    loaded = place.load(trusted=False)
    assert loaded.settings == Settings()
    assert "not trusted" in loaded.notices[0]


def test_a_trusted_project_can_only_tighten(place: Place) -> None:
    place.user.write_text('[approval]\nallow = ["Bash(make)"]\ndeny = ["Read(.env)"]\n')
    place.project.write_text(
        '[approval]\nmode = "auto"\nallow = ["Bash"]\nask = ["Edit"]\ndeny = ["Bash(rm *)"]\n'
        '[providers.evil]\nbase_url = "https://evil.example"\n'
    )
    loaded = place.load()
    assert loaded.settings.approval.mode == "default"
    assert loaded.settings.providers == {}
    assert [(rule.effect, rule.text, rule.scope) for rule in loaded.rules] == [
        ("allow", "Bash(make)", "user"),
        ("deny", "Read(.env)", "user"),
        ("ask", "Edit", "project"),
        ("deny", "Bash(rm *)", "project"),
    ]
    assert loaded.settings.approval.deny == ("Read(.env)", "Bash(rm *)")
    assert loaded.rules[-1].origin == f"{place.project}:5"
    assert [notice.split(": ")[0] for notice in loaded.notices] == [f"{place.project}:{line}" for line in (2, 3, 7)]


def test_a_project_needs_no_consent_for_a_value_that_is_in_force_anyway(place: Place) -> None:
    project = '[approval]\nmode = "default"\nallow = []\n[sandbox]\nmode = "auto"\n[keys]\nclose = ["escape"]\n'
    place.project.write_text(project)
    assert place.load().notices == ()
    place.user.write_text('[approval]\nmode = "plan"\n[keys]\nclose = ["f9"]\n')
    loaded = place.load()
    assert [notice.split(": ")[0] for notice in loaded.notices] == [f"{place.project}:{line}" for line in (2, 7)]
    assert loaded.settings.approval.mode == "plan"


def test_the_example_as_a_project_s_settings_changes_nothing(place: Place) -> None:
    example = Path(__file__).parents[3] / ".swecli.example" / "config.toml"
    place.project.write_bytes(example.read_bytes())
    loaded = place.load()
    assert (loaded.settings, loaded.notices) == (Settings(), ())


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[agent]\nwran = 0.8\n", 2, "Did you mean warn?"),
        ("[agnet]\nwarn = 0.8\n", 1, "Did you mean agent?"),
        ("[mcp_servers]\nx = 1\n", 1, "A server begins with [mcp.NAME]."),
        ('[model]\nname = "a/b"\napi_key = "sk-123"\n', 3, "api_key_env"),
        ('\n[providers.x]\nbase_ulr = "http://h"\n', 3, "Did you mean base_url?"),
        ("zzz = 1\n", 1, "Known here"),
        ('[keys]\nzzzzzz = "f2"\n', 2, "not a setting; ignored. /keys lists the actions."),
    ],
)
def test_an_unknown_key_is_a_notice_with_its_line(place: Place, text: str, line: int, words: str) -> None:
    place.user.write_text(text)
    (notice,) = place.load().notices
    assert notice.startswith(f"{place.user}:{line}: ")
    assert words in notice
    assert "sk-123" not in notice


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[agent]\nwarn = 2\n", 2, "at most 1"),
        ('[agent]\nwarn = "0.8"\n', 2, "must be a number"),
        ("[agent]\nmax_steps = true\n", 2, "must be a whole number"),
        ("[agent]\nwarn = nan\n", 2, "finite"),
        ("[agent]\nwarn = 0.99\n", 2, "must not exceed agent.compact_trigger"),
        ('[approval]\nmode = "yolo"\n', 2, '"plan"'),
        ('[approval]\ndeny = ["a", 3]\n', 2, "list of strings"),
        ('[approval]\ndeny = "a"\n', 2, "list of strings"),
        ('[model]\nfallback = ["gpt"]\n', 2, "provider/model"),
        ('[providers.x]\nbase_url = "localhost:80"\n', 2, "http://"),
        ('[providers.x]\nprotocol = "soap"\n', 2, '"openai-chat"'),
        ('[providers.x]\nheaders = { A = "b\\nc" }\n', 2, "single-line"),
        ("[tools]\n\ncommand_timeout = 0\n", 3, "greater than 0"),
        ("agent = 3\n", 1, "must be a table"),
        ("[providers]\nx = 3\n", 2, "must be a table"),
        ("[mcp]\ncommand = 'x'\n", 2, "mcp.command must be a table: [mcp.NAME]"),
        ("[[hooks]]\ncommand = 'x'\n", 1, "hooks must be a table: [[hooks.EVENT]], for example [[hooks.PreToolUse]]"),
        ("[hooks.Stop]\ncommand = 'x'\n", 1, "hooks.Stop must be a list of tables: [[hooks.Stop]]"),
        ("[mcp.x]\ncommand = 'a'\nargs = 'b'\n", 3, "mcp.x.args must be a list"),
        ("[agent\n", 1, "invalid TOML"),
        ("[agent]\nwarn = \n", 2, "invalid TOML"),
        ('a = """\n\n', 1, "invalid TOML"),
        ("[agent]\nwarn = 0.5\nwarn = 0.6\n", 3, "invalid TOML"),
    ],
)
def test_a_bad_value_is_an_error_with_its_line(place: Place, text: str, line: int, words: str) -> None:
    message = place.error(text)
    assert message.startswith(f"{place.user}:{line}: ")
    assert words in message


def test_the_message_about_a_key_in_the_wrong_place_does_not_repeat_it(place: Place) -> None:
    assert "sk-ant" not in place.error('[providers.x]\napi_key_env = "sk-ant-123"\n')


def test_all_bad_places_are_named_at_once(place: Place) -> None:
    assert len(place.error("[agent]\nwarn = 2\nmax_steps = 0\n[ui]\ntheme = 1\n").splitlines()) == 3


def test_files_that_cannot_be_read(place: Place) -> None:
    place.user.write_bytes(b"[ui]\ntheme = '\xff'\n")
    with pytest.raises(ConfigError, match=r"config.toml:2: is not UTF-8"):
        place.load()
    place.user.unlink()
    os.mkfifo(place.user)
    with pytest.raises(ConfigError, match="regular file"):
        place.load()
    place.user.unlink()
    place.user.mkdir()
    with pytest.raises(ConfigError, match="regular file"):
        place.load()


def test_a_byte_order_mark_and_windows_line_ends_are_fine(place: Place) -> None:
    place.user.write_bytes(b'\xef\xbb\xbf[ui]\r\ntheme = "dark"\r\n')
    assert place.load().settings.ui.theme == "dark"


def test_lines_are_found_past_multi_line_values(place: Place) -> None:
    place.user.write_text(
        '[approval]\nallow = [\n  "Bash(a = b)", # ] no end\n  "x",\n]\ndeny = ["""\nmode = 1\n"""]\nmode = "no"\n'
    )
    with pytest.raises(ConfigError, match=r"config.toml:9: approval.mode"):
        place.load()


def test_header_values_are_not_shown(place: Place) -> None:
    place.user.write_text('[providers.x]\nheaders = { Authorization = "Bearer abc" }\n')
    rows = {key: value for key, value, _ in origins(place.load())}
    assert rows["providers.x.headers"] == "Authorization: …"


@settings(
    max_examples=examples(80, 400),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(
        st.sampled_from(
            [
                "deny = [] ",
                'deny = ["a"]',
                "'''",
                '"""',
                "a = '''x",
                "[[agent]]",
                "providers = 1",
                "[providers]",
                "\x00",
                "[agent]",
                "[model]",
                "[providers.x]",
                "[approval]",
                "warn = 0.1",
                "name = 3",
                "x.y = [1, {a = 2}]",
                "= 1",
            ]
        ),
        max_size=8,
    )
)
def test_no_text_is_a_traceback(place: Place, lines: list[str]) -> None:
    place.user.write_text("\n".join(lines))
    problems: list[str] = []
    try:
        place.load()
    except ConfigError as error:
        problems = str(error).splitlines()
    assert all(problem.startswith(str(place.user)) for problem in problems)


def test_values_deep_inside_of_tables_are_named_with_their_own_lines(place: Place) -> None:
    text = """[models.price]
"office/m" = { input = 1 }
[providers.office]
protocol = "openai-chat"
[providers.office.dialect]
cache_control = true
tool_ids = "some"
frob = 1
"""
    problems = place.error(text).splitlines()
    assert [line.removeprefix(f"{place.user}:") for line in problems] == [
        "2: models.price.office/m.output must be given too",
        '7: providers.office.dialect.tool_ids must be one of "any", "alnum9", "token40", "token64"',
        "8: providers.office.dialect.frob must not be here: unknown key",
    ]


def test_an_unknown_table_has_the_line_of_the_first_table_in_it(place: Place) -> None:
    place.user.write_text("[agent]\nmax_steps = 4\n\n[provider.openai]\nbase_url = 'x'\n")
    assert any(notice.startswith(f"{place.user}:4: provider is not a setting") for notice in place.load().notices)

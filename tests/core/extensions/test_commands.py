"""What a call of a Markdown command or a skill becomes."""

from __future__ import annotations

import pytest

from swecli.core.extensions.markdown_commands import (
    Invocable,
    Invocation,
    InvocationError,
    MarkdownCommand,
    Shell,
    invocation,
    plain_text,
    read_command,
)
from swecli.core.extensions.skills import read_skill
from tests.core.extensions.support import found


def command(body: str, name: str = "x", front: str = "description: d") -> MarkdownCommand:
    made = read_command(found(f"---\n{front}\n---\n{body}\n", name))
    assert made is not None
    return made


def called(body: str, arguments: str = "", *others: MarkdownCommand) -> Invocation:
    known: dict[str, Invocable] = {one.name: one for one in others}
    return invocation(command(body), arguments, known.get)


def text(made: Invocation) -> str:
    return "".join(piece if isinstance(piece, str) else f"<{piece.command}>" for piece in made.pieces)


@pytest.mark.parametrize(
    ("body", "arguments", "expected"),
    [
        ("Fix $ARGUMENTS now", "a b", "Fix a b now"),
        ("$1 then $2 and $3.", "'a b' c", "a b then c and ."),
        ("$ARGUMENTS[0]-$ARGUMENTS[1]", "a b", "a-b"),
        ("costs $100 or \\$1", "", "costs $100 or $1"),
        ("no place", "for this", "no place\n\nARGUMENTS: for this"),
        ("it's $1", "it's", "it's it's"),
        ("in ${CLAUDE_SKILL_DIR}", "", "in /p/.claude/commands"),
        ("PR $1: $ARGUMENTS.", "", "PR $1: ."),
        ("$5.00, $1,200 or $2M, $1st and $1Test.py", "a", "$5.00, $1,200 or $2M, ast and aTest.py"),
        ("ls $1 | awk '{print $1}' > $1", "a", "ls a | awk '{print $1}' > a"),
        ('awk -F: "{print \\$1}" $1', "a", 'awk -F: "{print \\$1}" a'),
        ("$ARGUMENTSX", "a", "$ARGUMENTSX\n\nARGUMENTS: a"),
    ],
)
def test_arguments_take_their_places(body: str, arguments: str, expected: str) -> None:
    assert text(called(body, arguments)) == expected


@pytest.mark.parametrize(
    "body", ["awk " * 60_000, "awk '" * 50_000, "```md\n```\n" * 20_000, "```md\n!`a`\n" * 20_000, "```\n/a\n" * 30_000]
)
def test_a_text_as_large_as_a_file_may_be_is_read_at_once(body: str) -> None:
    assert text(called(body, "a")).startswith(body)


def test_shell_commands_are_found_and_get_the_arguments() -> None:
    made = called("Diff: !`git diff $1`\n- !`date`\n```!\nls\npwd\n```\nend", "main")
    assert made.commands == ("git diff main", "date", "ls\npwd")


def test_fenced_markdown_is_an_example_and_runs_nothing() -> None:
    nested = "````md\n```bash\n!`a`\n```\n!`b`\n````\n!`c`"
    assert called(nested).commands == ("c",)
    assert text(called("```markdown\n!`a`")) == "```markdown\n!`a`"
    assert called("```json\n!`d`\n```\n```markdown\n!`e`\n```\n```\n!`f`\n```\n!`g`").commands == ("d", "f", "g")


@pytest.mark.parametrize("body", ["Really!`x`", "`!` and `y`", "a ! `b`", "!``"])
def test_what_only_looks_like_a_command_is_text(body: str) -> None:
    assert called(body).commands == ()


def test_a_command_in_the_arguments_is_never_run() -> None:
    made = called("Do $ARGUMENTS", "!`rm -rf x`")
    assert made.commands == ()
    assert text(made) == "Do !`rm -rf x`"


def test_mentions_are_those_of_the_text_and_of_the_arguments() -> None:
    assert called("See @a.py and $1", "@b.py").mentions == ("a.py", "b.py")
    fenced = "See @a.py\n```python\n@app.route('/')\n@dataclass\n# $1\n```\nand @c.py"
    assert called(fenced, "@b.py").mentions == ("a.py", "c.py", "b.py")


def test_the_title_is_the_call_on_one_line() -> None:
    assert called("$1", "a\nb").title == "/x a b"


def test_a_line_that_calls_another_command_becomes_its_text() -> None:
    other = command("other $1 !`date`", "git/other", "allowed-tools: Read")
    made = called("First\n/git:other $1\nlast", "arg", other)
    assert text(made) == "First\nother arg <date>\nlast"
    assert made.allow == ("Read",)
    assert len(made.origins) == 2


def test_a_line_calls_a_command_whose_name_begins_with_a_digit() -> None:
    assert text(called("/2nd-pass\n/2 of them", "", command("again", "2nd-pass"))) == "again\n/2 of them"


def test_a_call_in_a_code_block_or_of_nothing_known_is_text() -> None:
    other = command("other", "other")
    body = "```\n/other\n```\n/etc/hosts\n/unknown x\nsay /other"
    assert text(called(body, "", other)) == body


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("```sh\n!`date`\n```\n/other now", "```sh\n<date>\n```\nOTHER now"),
        ("```sh\n!`date`\n/other now\n```", "```sh\n<date>\n/other now\n```"),
        ("!`date`/other now", "<date>/other now"),
        ("```!\ndate\n```\n/other now", "<date>\nOTHER now"),
        ("````md\n```sh\n````\n/other now", "````md\n```sh\n````\nOTHER now"),
    ],
)
def test_a_shell_command_before_a_call_hides_no_fence(body: str, expected: str) -> None:
    assert text(called(body, "", command("OTHER $1", "other"))) == expected


def test_a_command_that_calls_itself_is_named() -> None:
    one, two = command("/two", "one"), command("a\n/one", "two")
    known: dict[str, Invocable] = {"one": one, "two": two}
    with pytest.raises(InvocationError, match="/one → /two → /one"):
        invocation(one, "", known.get)


def test_commands_inside_of_each_other_have_a_limit() -> None:
    known: dict[str, Invocable] = {f"c{n}": command(f"/c{n + 1}", f"c{n}") for n in range(9)}
    with pytest.raises(InvocationError, match="more than 5"):
        invocation(known["c0"], "", known.get)


def test_arguments_alone_are_no_message() -> None:
    with pytest.raises(InvocationError, match=r"/x was not sent: \S+ is empty"):
        called("", "only arguments")
    with pytest.raises(InvocationError, match="/other was not sent"):
        called("a\n/other", "", command("", "other"))


def test_shell_commands_have_a_limit() -> None:
    with pytest.raises(InvocationError, match="more than 20"):
        called("\n".join(f"!`echo {n}`" for n in range(21)))


def test_folders_are_namespaces_and_names_small() -> None:
    assert command("x", "git/Commit All").name == "git:commit-all"
    assert read_command(found("x", "9")) is None
    assert read_command(found("x", "ünïcödé")) is not None


def test_the_front_matter_of_a_command() -> None:
    made = command(
        "b", front="description: a: b\nargument-hint: [file]\nallowed-tools: Bash(git add:*), Read\nmodel: m"
    )
    assert (made.description, made.hint, made.allow, made.model) == ("a: b", "[file]", ("Bash(git add:*)", "Read"), "m")
    assert made.problems == ()


def test_bad_rules_and_fields_without_effect_are_told_with_their_line() -> None:
    made = command("b", front="description: d\nallowed-tools: Foo(x), Read\nhooks: h\nzzz: 1")
    assert made.allow == ("Read",)
    lines = {problem.line: problem.text for problem in made.problems}
    assert "Foo(x)" in lines[3]
    assert "hooks, zzz have no effect" in lines[4]


def test_a_command_without_a_description_has_its_first_line() -> None:
    made = read_command(found("# Title\nbody"))
    assert made is not None
    assert made.description == "Title"


def test_a_skill_that_the_user_calls_says_where_its_files_are() -> None:
    skill = read_skill(found("---\nname: pdf\ndescription: d\n---\nUse $1 !`date`", "pdf", "skills"))
    made = invocation(skill, "form", lambda name: None)
    assert "relative to its folder, /p/.claude/skills/pdf" in text(made)
    assert "Use form <date>" in text(made)


def test_a_skill_that_the_model_asks_for_runs_nothing() -> None:
    skill = read_skill(found("---\nname: pdf\ndescription: d\n---\nUse $ARGUMENTS !`date`", "pdf", "skills"))
    shown = plain_text(skill, "a")
    assert "Use a !`date`" in shown
    assert not isinstance(shown, Shell)

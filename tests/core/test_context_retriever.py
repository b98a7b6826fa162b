"""``ContextRetriever``, as the documents use it."""

from __future__ import annotations

from pathlib import Path

from swecli import ContextRetriever, TaskContext
from swecli.core.context_retriever import LONGEST_LISTING, MOST_MATCHES
from tests.core.retrieval.project import made


async def test_a_task_is_looked_up(tmp_path: Path) -> None:
    told: list[tuple[tuple[str, ...], int]] = []
    root = made(tmp_path)
    retriever = ContextRetriever(on_retrieval=lambda actions, tokens: told.append((tuple(actions), tokens)))
    found = await retriever.retrieve_for_task("fix `revoke_token` as in src/auth/login.py, see missing.py", str(root))
    assert isinstance(found, TaskContext)
    assert found.relevant_files == ["src/auth/login.py", "src/auth/tokens.py"]
    (grep,) = [result for result in found.grep_results if result["pattern"] == "revoke_token"]
    assert grep["matches"] == ["src/auth/tokens.py:2: def revoke_token(self, token):"]
    assert grep["file_count"] == 1
    assert found.tokens > 0
    assert not found.bash_outputs
    ((actions, tokens),) = told
    assert "read src/auth/login.py" in actions
    assert "grep 'revoke_token'" in actions
    assert tokens == found.tokens


async def test_a_subject_that_few_files_contain_leads_to_them(tmp_path: Path) -> None:
    files = {
        "src/api/auth.py": "def login(user):\n    return validate_login(user)\n",
        "src/db/schema.py": "class Query: ...\n",
        **{f"src/m{number}.py": f"def step_{number}():\n    return {number}\n" for number in range(40)},
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    retriever = ContextRetriever()
    assert (await retriever.retrieve_for_task("fix the login bug", tmp_path)).relevant_files == ["src/api/auth.py"]
    assert (await retriever.retrieve_for_task("optimize the database query", tmp_path)).relevant_files == [
        "src/db/schema.py"
    ]
    assert (await retriever.retrieve_for_task("fix the return value", tmp_path)).relevant_files == []


async def test_matches_and_listings_are_bounded(tmp_path: Path) -> None:
    found = await ContextRetriever().retrieve_for_task("which files are there with a step?", made(tmp_path, 120))
    (grep,) = [result for result in found.grep_results if result["pattern"] == "step"]
    assert len(grep["matches"]) == MOST_MATCHES
    assert grep["file_count"] == 120
    (listing,) = found.bash_outputs
    assert "README.md" in listing["output"]
    assert len(listing["output"]) <= LONGEST_LISTING


async def test_entities_are_taken_from_the_form_of_the_text() -> None:
    entities = await ContextRetriever()._extract_entities("fix the login bug in src/a.py: 'no such user', parseArgs")
    assert entities.files == ("src/a.py",)
    assert entities.patterns[:3] == ("no such user", "parseArgs", "login")
    assert not entities.needs_file_listing
    assert (await ContextRetriever()._extract_entities("show me the project structure")).needs_file_listing


async def test_what_is_outside_or_secret_is_not_read(tmp_path: Path) -> None:
    root = made(tmp_path / "p")
    (tmp_path / "out.py").write_text("x = 1\n")
    (root / ".env").write_text("TOKEN=1\n")
    (root / "link.py").symlink_to(tmp_path / "out.py")
    found = await ContextRetriever().retrieve_for_task(f"../out.py {tmp_path}/out.py .env link.py", root)
    assert found.relevant_files == []
    assert (await ContextRetriever().retrieve_for_task("x", tmp_path / "none")).relevant_files == []
    assert (await ContextRetriever().retrieve_for_task("", root)).tokens == 0

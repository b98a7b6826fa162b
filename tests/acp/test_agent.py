"""A whole session over the protocol, with the official SDK's client and the scripted model."""

from __future__ import annotations

import asyncio
import base64
import sys
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError
from acp.schema import (
    AcceptElicitationResponse,
    AcpMcpServer,
    ClientCapabilities,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    McpServerStdio,
    ResourceContentBlock,
    TextResourceContents,
)

from swecli.acp.conversation import Conversation
from tests.acp.support import bench, text
from tests.core.mcp.support import SERVER
from tests.support.waiting import until

TALK = """
[[step]]
reasoning = "I think about it."
text = "Hello, editor."
"""
EDIT = """
[[step]]
text = "I change it."
[[step.call]]
tool = "write_file"
arguments = { path = "a.txt", content = "one\\n" }
[[step]]
text = "Done."
"""
COMMAND = """
[[step]]
[[step.call]]
tool = "run_command"
arguments = { command = "touch made; echo out" }
[[step]]
text = "After."
[[step]]
[[step.call]]
tool = "run_command"
arguments = { command = "touch made; echo out" }
[[step]]
text = "Again."
"""


async def test_text_and_thoughts_stream_and_the_turn_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, TALK) as made:
        answer = await made.prompt("hi")
        assert answer.stop_reason == "end_turn"
        assert answer.usage.total_tokens > 0
        assert made.editor.said() == "Hello, editor."
        assert made.editor.said("agent_thought_chunk") == "I think about it."
        assert len(made.editor.of("agent_message_chunk")) > 1
        assert made.editor.said("user_message_chunk") == ""
        (usage, *_) = made.editor.of("usage_update")
        assert 0 < usage.used < usage.size
        (title,) = made.editor.of("session_info_update")
        assert title.title == "Hi"
        (commands,) = made.editor.of("available_commands_update")
        names = {each.name for each in commands.available_commands}
        assert {"compact", "context", "init", "undo"} <= names
        assert not names & {"quit", "theme", "find", "login"}


async def test_an_edit_is_approved_with_its_diff(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, EDIT) as made:
        made.editor.answers = ["allow_once"]
        assert (await made.prompt("change it")).stop_reason == "end_turn"
        ((call, options),) = made.editor.asked
        assert call.content
        diff = call.content[-1]
        target = str(made.folder / "a.txt")
        assert (diff.type, diff.path, diff.old_text, diff.new_text) == ("diff", target, None, "one\n")
        assert (call.kind, call.title) == ("edit", "Write a.txt")
        assert [(each.kind, each.name) for each in options if "always" in each.kind] == [
            ("allow_always", "Allow Edit(/a.txt) in this session"),
            ("allow_always", "Always allow Edit(/a.txt) in this folder"),
            ("allow_always", "Allow all file edits"),
            ("reject_always", "Reject Edit(/a.txt) in this session"),
        ]
        assert (made.folder / "a.txt").read_text() == "one\n"
        told = made.editor.calls(call.tool_call_id)
        assert [each.status for each in told][-2:] == ["in_progress", "completed"]
        assert told[0].session_update == "tool_call"
        assert [place.path for place in told[-1].locations] == [target]
        assert told[-1].content[0].new_text == "one\n"


async def test_always_and_never_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, COMMAND) as made:
        made.editor.answers = ["reject_always"]
        await made.prompt("run it")
        await made.prompt("run it again")
        assert len(made.editor.asked) == 1
        assert not (made.folder / "made").exists()
        assert [each.status for each in made.editor.of("tool_call_update") if each.status == "failed"] == ["failed"] * 2
    async with bench(tmp_path, monkeypatch, COMMAND) as made:
        made.editor.answers = ["always"]
        await made.prompt("run it")
        await made.prompt("run it again")
        assert len(made.editor.asked) == 1
        assert (made.folder / "made").exists()


async def test_accepting_all_edits_changes_the_mode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, EDIT) as made:
        made.editor.answers = ["accept-edits"]
        await made.prompt("change it")
        assert (made.folder / "a.txt").exists()
        assert made.editor.of("current_mode_update")[-1].current_mode_id == "accept-edits"
        assert made.editor.of("config_option_update")[-1].config_options[0].current_value == "accept-edits"


async def test_cancel_settles_an_open_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, EDIT + TALK) as made:
        turn = asyncio.create_task(made.prompt("change it"))
        await made.editor.until(lambda: bool(made.editor.asked))
        await made.connection.cancel(session_id=made.session)
        assert (await turn).stop_reason == "cancelled"
        assert not (made.folder / "a.txt").exists()
        (call, _) = made.editor.asked[0]
        assert made.editor.calls(call.tool_call_id)[-1].status == "failed"
        assert (await made.prompt("go on")).stop_reason == "end_turn"


async def test_a_prompt_waits_for_the_one_before_and_cancel_ends_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench(tmp_path, monkeypatch, EDIT + TALK) as made:
        first = asyncio.create_task(made.prompt("one"))
        await made.editor.until(lambda: bool(made.editor.asked))
        second = asyncio.create_task(made.prompt("two"))
        await until(lambda: len(made.agent._open[made.session]._prompts) == 2)  # nothing is told of it
        await made.connection.cancel(session_id=made.session)
        assert [(await each).stop_reason for each in (first, second)] == ["cancelled", "cancelled"]


async def test_prompts_queue_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = '[[step]]\ntext = "First."\n[[step]]\ntext = "Second."\n'
    async with bench(tmp_path, monkeypatch, script) as made:
        answers = await asyncio.gather(made.prompt("one"), made.prompt("two"))
        assert [each.stop_reason for each in answers] == ["end_turn", "end_turn"]
        assert made.editor.said() == "First.Second."


async def test_a_client_that_is_slow_gets_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swecli.acp.conversation.LOOK_SECONDS", 0.01)
    monkeypatch.setattr("swecli.acp.conversation.MOST_QUIET", 2)
    async with bench(tmp_path, monkeypatch, TALK) as made:
        waiting = asyncio.Event()
        told = Conversation._tell

        async def slowly(conversation: Conversation, update: Any) -> None:
            if getattr(update, "message_id", None):
                await waiting.wait()
            await told(conversation, update)

        monkeypatch.setattr(Conversation, "_tell", slowly)
        turn = asyncio.create_task(made.prompt("hi"))
        session = made.agent._open[made.session].session
        await until(lambda: session.view.totals.turns and not session.view.busy)  # the client is told nothing
        for _ in range(20):
            await asyncio.sleep(0.01)
        assert not turn.done()
        waiting.set()
        assert (await turn).stop_reason == "end_turn"
        assert made.editor.said() == "Hello, editor."


async def test_two_sessions_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, TALK) as made:
        other = tmp_path / "other"
        other.mkdir()
        second = await made.connection.new_session(cwd=str(other), mcp_servers=[])
        assert second.session_id != made.session
        answers = await asyncio.gather(
            made.prompt("hi"), made.connection.prompt(session_id=second.session_id, prompt=text("ho"))
        )
        assert [each.stop_reason for each in answers] == ["end_turn", "end_turn"]


async def test_a_stored_session_is_listed_and_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, EDIT) as made:
        made.editor.answers = ["allow_once"]
        await made.prompt("change it")
        session = made.session
    async with bench(tmp_path, monkeypatch, TALK, begin=False) as made:
        listed = await made.connection.list_sessions(cwd=str(made.folder))
        assert [(each.session_id, each.title, each.cwd) for each in listed.sessions] == [
            (session, "Change it", str(made.folder))
        ]
        await made.connection.load_session(session_id=session, cwd=str(made.folder), mcp_servers=[])
        replayed = list(made.editor.updates)
        assert made.editor.said("user_message_chunk") == "change it"
        assert made.editor.said() == "I change it.Done."
        (call,) = made.editor.of("tool_call")
        assert (call.status, call.title, call.content[0].new_text) == ("completed", "Write a.txt", "one\n")
        assert [each.session_update for each in replayed].index("tool_call") == 2
        made.session = session
        await made.prompt("and now?")
        assert made.editor.said().endswith("Hello, editor.")
        assert made.editor.said("user_message_chunk") == "change it"
        # The same again, while it is open.
        made.editor.updates.clear()
        await made.connection.load_session(session_id=session, cwd=str(made.folder), mcp_servers=[])
        assert made.editor.said("user_message_chunk") == "change itand now?"
        made.editor.updates.clear()
        await made.connection.resume_session(session_id=session, cwd=str(made.folder), mcp_servers=[])
        assert made.editor.said("user_message_chunk") == ""
        await made.connection.close_session(session_id=session)
        with pytest.raises(RequestError, match="load it first"):
            await made.prompt("gone")


async def test_only_a_whole_id_opens_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, TALK) as made:
        await made.prompt("hi")
        session, folder = made.session, str(made.folder)
        await made.connection.close_session(session_id=session)
        for words in ("", session[:-2]):
            for open_one in (made.connection.load_session, made.connection.resume_session):
                with pytest.raises(RequestError, match="there is no session"):
                    await open_one(session_id=words, cwd=folder, mcp_servers=[])
        with pytest.raises(RequestError, match="there is no session"):
            await made.connection.fork_session(session_id="", cwd=folder, mcp_servers=[])
        await made.connection.load_session(session_id=session, cwd=folder, mcp_servers=[])


async def test_a_session_loaded_twice_at_once_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, TALK) as made:
        await made.prompt("hi")
        load = made.connection.load_session
        await asyncio.gather(
            *(load(session_id=made.session, cwd=str(made.folder), mcp_servers=[]) for _ in range(3)),
            made.connection.set_session_mode(session_id=made.session, mode_id="plan"),
        )
        made.editor.updates.clear()
        await made.prompt("hi again")
        assert made.editor.said() == "Hello, editor."
        assert not [line for line in made.editor.log if line.startswith("error")]


async def test_requests_for_a_session_that_was_closed_for_others_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swecli.acp.agent.MOST_OPEN", 1)
    async with bench(tmp_path, monkeypatch, TALK) as made:
        await made.prompt("hi")
        await made.connection.new_session(cwd=str(made.folder), mcp_servers=[])
        answer, _ = await asyncio.gather(
            made.prompt("hi again"), made.connection.set_session_mode(session_id=made.session, mode_id="plan")
        )
        assert answer.stop_reason == "end_turn"


async def test_a_fork_goes_on_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, TALK) as made:
        await made.prompt("hi")
        forked = await made.connection.fork_session(session_id=made.session, cwd=str(made.folder), mcp_servers=[])
        assert forked.session_id != made.session
        assert forked.modes is not None
        answer = await made.connection.prompt(session_id=forked.session_id, prompt=text("on the side"))
        assert answer.stop_reason == "end_turn"
        assert made.editor.said("user_message_chunk") == ""  # the client knows what it forked
        made.editor.updates.clear()
        for id, said in ((made.session, "hi"), (forked.session_id, "hion the side")):
            await made.connection.load_session(session_id=id, cwd=str(made.folder), mcp_servers=[])
            assert made.editor.said("user_message_chunk") == said
            made.editor.updates.clear()
        with pytest.raises(RequestError, match="nothing"):
            await made.connection.fork_session(session_id="nothing", cwd=str(made.folder), mcp_servers=[])


async def test_a_busy_session_is_not_forked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, EDIT) as made:
        turn = asyncio.create_task(made.prompt("change it"))
        await made.editor.until(lambda: bool(made.editor.asked))
        with pytest.raises(RequestError, match="cancel it first"):
            await made.connection.fork_session(session_id=made.session, cwd=str(made.folder), mcp_servers=[])
        await made.connection.cancel(session_id=made.session)
        assert (await turn).stop_reason == "cancelled"


async def test_a_deleted_session_is_gone_open_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, TALK) as made:
        await made.prompt("hi")
        second = await made.connection.new_session(cwd=str(made.folder), mcp_servers=[])
        await made.connection.prompt(session_id=second.session_id, prompt=text("ho"))
        await made.connection.close_session(session_id=second.session_id)
        assert len((await made.connection.list_sessions()).sessions) == 2
        for id in (made.session, second.session_id, "gone already"):
            assert await made.connection.ext_method("session/delete", {"sessionId": id}) == {}
        assert (await made.connection.list_sessions()).sessions == []
        with pytest.raises(RequestError):
            await made.connection.load_session(session_id=made.session, cwd=str(made.folder), mcp_servers=[])
        with pytest.raises(RequestError, match="sessionId"):
            await made.connection.ext_method("session/delete", {})


async def test_a_session_that_is_open_elsewhere_is_not_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, TALK) as made:
        await made.prompt("hi")
        async with bench(tmp_path, monkeypatch, TALK, begin=False) as other:
            with pytest.raises(RequestError, match="is open in a running swecli; nothing was deleted"):
                await other.connection.ext_method("session/delete", {"sessionId": made.session})
        assert [one.session_id for one in (await made.connection.list_sessions()).sessions] == [made.session]


async def test_where_nothing_is_stored_nothing_is_forked_or_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench(tmp_path, monkeypatch, TALK, store=False) as made:
        with pytest.raises(RequestError, match="sessions are not stored here"):
            await made.connection.fork_session(session_id=made.session, cwd=str(made.folder), mcp_servers=[])
        with pytest.raises(RequestError, match="sessions are not stored here"):
            await made.connection.ext_method("session/delete", {"sessionId": made.session})


async def test_modes_are_set_by_both_sides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, EDIT) as made:
        await made.connection.set_session_mode(session_id=made.session, mode_id="accept-edits")
        await made.prompt("change it")
        assert made.editor.asked == []
        assert (made.folder / "a.txt").exists()
        changed = await made.connection.set_config_option(session_id=made.session, config_id="mode", value="plan")
        assert changed.config_options[0].current_value == "plan"
        await made.editor.until(lambda: len(made.editor.of("current_mode_update")) == 2)
        for config, value in (("mode", "zzz"), ("nothing", "x"), ("model", "no/such")):
            with pytest.raises(RequestError):
                await made.connection.set_config_option(session_id=made.session, config_id=config, value=value)
        with pytest.raises(RequestError, match="unknown mode"):
            await made.connection.set_session_mode(session_id=made.session, mode_id="yolo")


PLAN = """
[[step]]
text = "The plan:\\n1. Write the file.\\n2. Look at it."
[[step]]
[[step.call]]
tool = "write_file"
arguments = { path = "a.txt", content = "one\\n" }
[[step]]
text = "Carried out."
"""


async def test_a_plan_is_carried_out_once_the_user_agrees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, PLAN, mode="plan") as made:
        made.editor.answers = ["accept-edits"]
        assert (await made.prompt("plan it")).stop_reason == "end_turn"
        ((call, _),) = made.editor.asked
        assert call.kind == "switch_mode"
        assert (made.folder / "a.txt").read_text() == "one\n"
        (plan, *_) = made.editor.of("plan")
        assert [entry.content for entry in plan.entries] == ["Write the file.", "Look at it."]
        assert made.editor.of("current_mode_update")[-1].current_mode_id == "accept-edits"


async def test_a_plan_that_is_not_agreed_to_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, PLAN, mode="plan") as made:
        turn = asyncio.create_task(made.prompt("plan it"))
        await made.editor.until(lambda: bool(made.editor.asked))
        await made.connection.cancel(session_id=made.session)
        assert (await turn).stop_reason == "cancelled"
        assert not (made.folder / "a.txt").exists()


async def test_slash_commands_run_and_unknown_ones_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, TALK) as made:
        assert (await made.prompt("/status")).stop_reason == "end_turn"
        assert "Session" in made.editor.said()
        await made.prompt("/contxt")
        assert "Did you mean /context?" in made.editor.said()
        await made.prompt("/clear")
        assert "Start a new thread in your editor" in made.editor.said()
        await made.prompt("/mode accept-edits")
        assert made.editor.of("current_mode_update")[-1].current_mode_id == "accept-edits"


async def test_a_command_of_the_project_begins_a_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = '[[step]]\ntext = "Greeted."\nexpect = { request = ["Say hello to Ada."] }\n'
    folder = tmp_path / "project" / ".swecli" / "commands"
    folder.mkdir(parents=True)
    (folder / "greet.md").write_text("---\ndescription: Greets somebody\n---\nSay hello to $ARGUMENTS.\n")
    async with bench(tmp_path, monkeypatch, script, trust="session") as made:
        await made.editor.until(lambda: bool(made.editor.of("available_commands_update")))
        offered = made.editor.of("available_commands_update")[0].available_commands
        assert [each.description for each in offered if each.name == "greet"] == ["Greets somebody"]
        answer = await made.prompt("/greet Ada")
        assert (answer.stop_reason, made.editor.said()) == ("end_turn", "Greeted.")
        assert answer.usage is not None


QUESTION = """
[[step]]
[[step.call]]
tool = "ask_user"
arguments = { questions = [{ question = "Which?", options = [{ label = "Red" }, { label = "Blue" }] }] }
[[step]]
text = "Noted."
when = { last_result = "Blue" }
[[step]]
text = "No answer."
"""


async def test_a_question_is_a_form_where_the_editor_has_forms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forms = ClientCapabilities(elicitation=ElicitationCapabilities(form=ElicitationFormCapabilities()))
    async with bench(tmp_path, monkeypatch, QUESTION, capabilities=forms) as made:
        made.editor.form = AcceptElicitationResponse(action="accept", content={"question_1": "Blue"})
        await made.prompt("ask me")
        (form,) = made.editor.elicited
        field = form.requested_schema.properties["question_1"]
        assert (field.description, [each.title for each in field.one_of]) == ("Which?", ["Red", "Blue"])
        assert made.editor.said().endswith("Noted.")


async def test_a_question_is_a_choice_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, QUESTION) as made:
        made.editor.answers = ["option_1"]
        await made.prompt("ask me")
        ((call, options),) = made.editor.asked
        assert call.title == "Which?"
        assert [each.name for each in options] == ["Red", "Blue", "Skip"]
        assert made.editor.said().endswith("Noted.")


async def test_what_is_attached_reaches_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = '[[step]]\ntext = "Seen."\nexpect = { request = ["the secret word", "buffer text"] }\n'
    async with bench(tmp_path, monkeypatch, script) as made:
        (made.folder / "note.txt").write_text("the secret word\n")
        picture = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(8)).decode()
        blocks: list[Any] = [
            *text("Look at "),
            ResourceContentBlock(type="resource_link", name="note", uri=(made.folder / "note.txt").as_uri()),
            EmbeddedResourceContentBlock(
                type="resource", resource=TextResourceContents(uri="file:///else.py", text="buffer text")
            ),
            ImageContentBlock(type="image", data=picture, mime_type="image/png"),
        ]
        answer = await made.connection.prompt(session_id=made.session, prompt=blocks)
        assert answer.stop_reason == "end_turn"
        assert made.editor.said().endswith("Seen.")


@pytest.mark.parametrize(
    ("blocks", "said"),
    [
        ([], "empty"),
        (text("  "), "empty"),
        ([ImageContentBlock(type="image", data="no", mime_type="image/png")], "not a base64-encoded PNG, JPEG"),
    ],
)
async def test_a_prompt_that_can_not_be_sent_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocks: list[Any], said: str
) -> None:
    async with bench(tmp_path, monkeypatch, TALK) as made:
        with pytest.raises(RequestError, match=said):
            await made.connection.prompt(session_id=made.session, prompt=blocks)


async def test_a_failed_turn_is_an_error_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = '[[step]]\ntext = ""\nfault = { kind = "auth", message = "bad key" }\n'
    async with bench(tmp_path, monkeypatch, script) as made:
        with pytest.raises(RequestError) as failed:
            await made.prompt("hi")
        assert failed.value.code == -32000


@pytest.mark.parametrize(
    ("stop", "reason"), [("length", "max_tokens"), ("refusal", "refusal"), ("content_filter", "refusal")]
)
async def test_why_the_model_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: str, reason: str) -> None:
    async with bench(tmp_path, monkeypatch, f'[[step]]\ntext = "Half"\nstop = "{stop}"\n') as made:
        assert (await made.prompt("hi")).stop_reason == reason


async def test_the_cap_on_steps_is_a_reason_to_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with bench(tmp_path, monkeypatch, EDIT, max_steps=1, mode="accept-edits") as made:
        assert (await made.prompt("change it")).stop_reason == "max_turn_requests"


async def test_tools_of_the_editors_servers_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = """
[[step]]
[[step.call]]
tool = "mcp__my-hub_1__echo"
arguments = { text = "from the hub" }
[[step]]
text = "Heard."
when = { last_result = "from the hub" }
[[step]]
text = "Nothing."
"""
    async with bench(tmp_path, monkeypatch, script, begin=False) as made:
        made.editor.answers = ["allow_once"]
        server = McpServerStdio(name="my hub__1", command=sys.executable, args=[str(SERVER)], env=[])
        remote = AcpMcpServer(type="acp", name="inside", server_id="x")
        made.session = (
            await made.connection.new_session(cwd=str(made.folder), mcp_servers=[server, remote])
        ).session_id
        await made.prompt("ask the hub")
        assert made.editor.said().endswith("Heard.")
        assert "inside: only the editor can reach it" in made.editor.said()
        ((call, _),) = made.editor.asked
        assert call.title == "mcp my-hub 1 echo from the hub"


async def test_more_sessions_than_are_kept_open_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swecli.acp.agent.MOST_OPEN", 1)
    async with bench(tmp_path, monkeypatch, TALK) as made:
        await made.prompt("hi")
        second = await made.connection.new_session(cwd=str(made.folder), mcp_servers=[])
        await made.connection.set_session_mode(session_id=second.session_id, mode_id="plan")
        made.editor.updates.clear()
        await made.prompt("hi again")
        assert made.editor.said().endswith("Hello, editor.")


async def test_without_a_model_the_editor_is_told_to_log_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    async with bench(tmp_path, monkeypatch, TALK, begin=False) as made:
        made.agent._options = made.agent._options.__class__(cwd=made.folder, model="nobody/nothing")
        with pytest.raises(RequestError) as failed:
            await made.connection.new_session(cwd=str(made.folder), mcp_servers=[])
        assert failed.value.code == -32000
        with pytest.raises(RequestError):
            await made.connection.authenticate(method_id="key")


async def test_remarks_are_told_before_a_prompt_fails_without_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    async with bench(tmp_path, monkeypatch, TALK) as made:
        await made.prompt("hi")
        made.agent._options = made.agent._options.__class__(cwd=made.folder, model="nobody/nothing")
        inside = AcpMcpServer(type="acp", name="inside", server_id="x")
        await made.connection.load_session(session_id=made.session, cwd=str(made.folder), mcp_servers=[inside])
        made.editor.updates.clear()
        with pytest.raises(RequestError) as failed:
            await made.prompt("hi again")
        assert failed.value.code == -32000
        assert "inside: only the editor can reach it" in made.editor.said()


async def test_cancel_ends_a_command_that_waits_for_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "[[step]]\ntext = 'A long answer.'\nfault = { kind = 'stall', after = 3 }\n" + TALK
    async with bench(tmp_path, monkeypatch, script) as made:
        turn = asyncio.create_task(made.prompt("/btw what is this?"))
        await until(lambda: made.agent._open[made.session]._in_command)  # nothing is told of it
        await made.connection.cancel(session_id=made.session)
        assert (await turn).stop_reason == "cancelled"
        assert (await made.prompt("go on")).stop_reason == "end_turn"


COLOURS = r"""
[[step]]
[[step.call]]
tool = "run_command"
arguments = { command = "touch made; printf '\\033[31mred\\033[0m \\033]52;c;eA==\\007end\\n'; exit 3" }
[[step]]
text = "After."
"""


async def test_a_client_with_terminals_shows_the_command_in_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capable = ClientCapabilities(field_meta={"terminal_output": True})
    async with bench(tmp_path, monkeypatch, COLOURS, capabilities=capable) as made:
        made.editor.answers = ["allow_once"]
        await made.prompt("run it")
        ((call, _),) = made.editor.asked
        id = call.tool_call_id
        first, *_, last = made.editor.calls(id)
        assert first.field_meta == {"terminal_info": {"terminal_id": id, "cwd": str(made.folder)}}
        again = [each for each in made.editor.calls(id) if each.status == "in_progress" and each.content]
        assert [each.content[0].terminal_id for each in again] == [id]  # the question had shown the command instead
        metas = [each.field_meta or {} for each in made.editor.calls(id)]
        output = "".join(meta["terminal_output"]["data"] for meta in metas if "terminal_output" in meta)
        assert output == "\x1b[31mred\x1b[0m end\n"  # colours, and nothing that reaches the clipboard
        assert last.field_meta["terminal_exit"] == {"terminal_id": id, "exit_code": 3, "signal": None}
        assert last.content[0].terminal_id == id
        assert last.status == "failed"

"""Tool calls written as text: found in what local models really write, and nowhere else."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swecli.core.llm.text_calls import BLOCKS, split_calls
from swecli.core.llm.text_tools import TextCallStream, as_text, with_calls
from swecli.core.llm.types import (
    Failed,
    Finished,
    ModelRequest,
    ProviderError,
    StreamEvent,
    SystemBlock,
    TextDelta,
    ToolSchema,
)
from swecli.core.protocol.messages import (
    ImagePart,
    Message,
    Origin,
    ReasoningPart,
    Response,
    Stop,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from tests.support.thorough import examples

TOOLS = ("read_file", "write_file")
READ = '{"name": "read_file", "arguments": {"path": "a"}}'
NESTED = json.dumps({"name": "write_file", "arguments": {"path": "a.md", "content": "```py\nx\n```\n</tool_call>\n"}})
A = {"path": "a"}
SLOT = "parameter"
CODER = "<function=read_file>\n<parameter=path>\na\n</parameter>\n</function>"


def found(text: str) -> tuple[str, list[tuple[str, Any]]] | None:
    split = split_calls(text, TOOLS)
    return None if split is None else (split.text, [(call.name, json.loads(call.arguments)) for call in split.calls])


@pytest.mark.parametrize(
    ("text", "kept", "calls"),
    [
        (f"<tool_call>\n{READ}\n</tool_call>", "", [("read_file", A)]),
        (f"I look.\n<tool_call>{READ}</tool_call>\n", "I look.", [("read_file", A)]),
        (f"<tool_call>{READ}</tool_call>\n<tool_call>{READ}</tool_call>", "", [("read_file", A)] * 2),
        (f"Before\n<tool_call>{READ}</tool_call>\nafter", "Before\nafter", [("read_file", A)]),
        (f"<tool_call>\n{READ}", "", [("read_file", A)]),
        (f"<tool_call>{NESTED}</tool_call>", "", [("write_file", json.loads(NESTED)["arguments"])]),
        (f"I look.\n```json\n{READ}\n```", "I look.", [("read_file", A)]),
        (f"```\n{READ}\n```\n\n```tool_call\n{READ}\n```\n", "", [("read_file", A)] * 2),
        (f"```json\n{NESTED}\n```", "", [("write_file", json.loads(NESTED)["arguments"])]),
        (f"```py\nprint()\n```\nso\n```json\n{READ}\n```", "```py\nprint()\n```\nso", [("read_file", A)]),
        (READ, "", [("read_file", A)]),
        (f"[{READ}, {READ}]", "", [("read_file", A)] * 2),
        ('{"name": "read_file", "parameters": {"path": "a"}}', "", [("read_file", A)]),
        ('{"name": "read_file", "arguments": "{\\"path\\": \\"a\\"}"}', "", [("read_file", A)]),
        ('{"type": "function", "function": {"name": "read_file", "arguments": {"path": "a"}}}', "", [("read_file", A)]),
        ('{"tool": "read_file"}', "", [("read_file", {})]),
        (f"{READ}; {READ}\n{READ};", "", [("read_file", A)] * 3),
        # Qwen Coder, which may forget a tag around it
        (f"I look.\n<tool_call>\n{CODER}\n</tool_call>", "I look.", [("read_file", A)]),
        (f"{CODER}\n</tool_call>", "", [("read_file", A)]),
        (f"<tool_call>\n{CODER}\n{CODER}\n</tool_call>\n<tool_call>{CODER}</tool_call>", "", [("read_file", A)] * 3),
        (CODER.removesuffix("</function>"), "", [("read_file", A)]),
        (
            CODER.replace("read", "write").replace("\na\n", "\n<b></function>\n\n</b>\n\n"),
            "",
            [("write_file", {"path": "<b></function>\n\n</b>\n"})],
        ),
        # Llama
        ('<function=read_file>{"path": "a"}</function>', "", [("read_file", A)]),
        (f"<|python_tag|>{READ}; {READ}<|eom_id|>", "", [("read_file", A)] * 2),
        # Mistral
        (f"I look.[TOOL_CALLS] [{READ}, {READ}]</s>", "I look.", [("read_file", A)] * 2),
        ('[TOOL_CALLS]read_file{"path": "a"}', "", [("read_file", A)]),
        (
            '[TOOL_CALLS]read_file[CALL_ID]x1[ARGS]{"path": "a"}[TOOL_CALLS]read_file[ARGS]{}',
            "",
            [("read_file", A), ("read_file", {})],
        ),
        # DeepSeek: two older forms, and tags
        (
            "I look.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n```json\n"
            '{"path": "a"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>read_file\n'
            "```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
            "I look.",
            [("read_file", A), ("read_file", {})],
        ),
        (
            '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"path": "a"}<｜tool▁call▁end｜>'
            '<｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"path": "a"}',
            "",
            [("read_file", A)] * 2,
        ),
        *(
            (
                f'I look.\n\n<{d}{wrapper}>\n<{d}invoke name="write_file">\n'
                f'<{d}{SLOT} name="path" string="true">a</{d}{SLOT}>\n'
                f'<{d}{SLOT} name="content" string="true">\n1</{d}{SLOT}>\n</{d}{SLOT}>\n'
                f'<{d}{SLOT} name="mode" string="false">[7]</{d}{SLOT}>\n</{d}invoke>\n'
                f'<{d}invoke name="read_file">\n</{d}invoke>\n</{d}{wrapper}>',
                "I look.",
                [("write_file", {"path": "a", "content": f"\n1</{d}{SLOT}>\n", "mode": [7]}), ("read_file", {})],
            )
            for d, wrapper in (
                ("｜DSML｜", "function_calls"),
                ("｜｜DSML｜｜", "tool_calls"),
                ("", "minimax:tool_call"),
                ("", "function_calls"),
            )
        ),
        (
            f'<invoke name="read_file">\n<{SLOT} name="path">a</{SLOT}>\n</invoke>\nand so on',
            "and so on",
            [("read_file", A)],
        ),
        # Kimi
        (
            "I look.<|tool_calls_section_begin|><|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>"
            '{"path": "a"}<|tool_call_end|><|tool_call_begin|>functions.read_file:1<|tool_call_argument_begin|>{}'
            "<|tool_call_end|><|tool_calls_section_end|><|tool_calls_section_end|>",
            "I look.",
            [("read_file", A), ("read_file", {})],
        ),
        # GLM
        (
            "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>",
            "",
            [("read_file", A)],
        ),
        (
            "I look.<tool_call>write_file<arg_key>path</arg_key><arg_value>a</arg_value><arg_key>content</arg_key>"
            "<arg_value></tool_call>\n</arg_value></tool_call><tool_call>read_file</tool_call>",
            "I look.",
            [("write_file", {"path": "a", "content": "</tool_call>\n"}), ("read_file", {})],
        ),
        # gpt-oss
        (
            "I look.<|start|>assistant<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>"
            '{"path": "a"}<|call|>',
            "I look.",
            [("read_file", A)],
        ),
        (
            '<|start|>assistant to=functions.read_file<|channel|>analysis code<|message|>\n{"path": "a"}<|call|>'
            "<|start|>assistant<|channel|>commentary to=read_file<|message|>{}",
            "",
            [("read_file", A), ("read_file", {})],
        ),
        (' to=functions.read_file<|channel|>commentary json<|message|>{"path": "a"}', "", [("read_file", A)]),
        # Granite, Phi and others
        *((f"I look.\n{tag}[{READ}]{end}", "I look.", [("read_file", A)]) for tag, end in BLOCKS.items()),
        (f"<|tool_call|>[{READ}]", "", [("read_file", A)]),
        # names of other agents, and line breaks in strings
        (f"<tool_call>{READ.replace('read_file', 'functions.Read')}</tool_call>", "", [("read_file", A)]),
        (CODER.replace("read_file", "view_file"), "", [("read_file", A)]),
        ("<tool_call>" + READ.replace('"a"', '"1\n2"') + "</tool_call>", "", [("read_file", {"path": "1\n2"})]),
    ],
)
def test_calls_are_found(text: str, kept: str, calls: list[tuple[str, Any]]) -> None:
    assert found(text) == (kept, calls)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "An answer without any.",
        '<tool_call>{"name": "delete_everything", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "read_file", "arguments": {"path": </tool_call>',
        '<tool_call>{"name": "read_file", "arguments": ["a"]}</tool_call>',
        f"This is how a call looks:\n```json\n{READ}\n```\nYou see?",
        f"As JSON: {READ}",
        '{"name": "read_file", "version": 3, "arguments": {}}',
        '{"name": "read_file", "tool": "write_file", "arguments": {}}',
        '{"path": "a"}',
        f'[{READ}, {{"name": "else"}}]',
        "[]",
        "```json\n{}\n```",
        "<tool_call>" * 200,
        "<function=delete_everything>\n</function>",
        "Write `<function=read_file>` to read",
        "Write <function=read_file>",
        "<function=read_file>a</function>",
        "<function=read_file>\n<parameter=path>\na\n</function>",
        "<|python_tag|>print(1)",
        "[TOOL_CALLS] is how Mistral begins them.",
        f"[TOOL_CALLS]{READ} and so on",
        '[TOOL_CALLS]read_file[ARGS]["a"]',
        "[TOOL_CALLS]" * 2_000,
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>delete_everything<｜tool▁sep｜>{"path": "a"}<｜tool▁call▁end｜>',
        '<｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"path": <｜tool▁call▁end｜>',
        "<｜tool▁call▁begin｜>" * 2_000,
        f'<invoke name="read_file"><{SLOT} name="path">a</invoke>',
        f'<invoke name="read_file"><{SLOT} name="path">a</{SLOT}> and',
        f'<function_calls><invoke name="other"><{SLOT} name="path">a</{SLOT}></invoke></function_calls>',
        "Write `<invoke name=...>` within `<function_calls>`.",
        "<function_calls>" * 2_000,
        f'<invoke name="read_file"><{SLOT} name="path">' * 2_000,
        "<|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>a<|tool_call_end|>",
        "<tool_call>read_file\n<arg_key>path</arg_key>\n</tool_call>",
        "<tool_call>read_file, please</tool_call>",
        "<|channel|>commentary<|message|>a<|end|>",
        "<|channel|>commentary to=functions.other<|message|>{}<|call|>",
        "Write to=functions.read_file",
        "<|channel|>" * 2_000,
        "<function=read_file>" * 2_000,
    ],
)
def test_what_is_no_call_stays_text(text: str) -> None:
    assert found(text) is None


def message(*texts: str, stop: Any = "end", complete: bool = True) -> Message:
    response = Response(Origin("openai-chat", "h", "m"), Stop(stop, stop), complete=complete)
    return Message("assistant", tuple(TextPart(text) for text in texts), response=response)


def stream(text: str, cuts: Sequence[int], end: StreamEvent | None = None) -> tuple[list[str], StreamEvent]:
    """What is shown piece by piece, and the last event."""
    calls = TextCallStream(TOOLS)
    places = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    shown: list[str] = []
    last: StreamEvent | None = None
    given = [TextDelta(0, text[a:b]) for a, b in itertools.pairwise(places)]
    for event in (*given, end or Finished(message(text))):
        for made in calls.feed(event):
            if isinstance(made, TextDelta):
                assert made.text
                shown.append(made.text)
            last = made
    assert last is not None
    return shown, last


PIECES = st.sampled_from(
    [
        "word ",
        "\n",
        "```",
        "```json\n",
        "```py\nx = 1\n",
        READ,
        NESTED,
        "<tool_call>",
        "</tool_call>",
        CODER,
        "</function>",
        "[TOOL_CALLS]",
        "<|python_tag|>",
        '<｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"path": "a"}<｜tool▁call▁end｜>',
        f'<invoke name="read_file"><{SLOT} name="path">a</{SLOT}>',
        "</invoke>",
        '<|channel|>commentary to=functions.read_file<|message|>{"path": "a"}',
        "<",
        "{",
        "`",
        "[",
    ]
)


@given(st.lists(PIECES, max_size=8).map("".join), st.lists(st.integers(0, 400), max_size=12))
@settings(max_examples=examples(120, 600), deadline=None)
def test_what_is_shown_is_the_final_text_whatever_the_cuts(text: str, cuts: list[int]) -> None:
    shown, last = stream(text, cuts)
    assert isinstance(last, Finished)
    final = with_calls(message(text), TOOLS)
    assert [part.arguments for part in last.message.tool_calls] == [part.arguments for part in final.tool_calls]
    assert last.message.text == final.text
    if not final.tool_calls:
        assert "".join(shown) == text


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize(
    "call",
    [
        f"<tool_call>\n{READ}\n</tool_call>",
        f"<tool_call>\n{CODER}\n</tool_call>",
        CODER,
        f"[TOOL_CALLS][{READ}]",
        f"<|python_tag|>{READ}",
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read_file<｜tool▁sep｜>{"path": "a"}<｜tool▁call▁end｜>',
        f'<｜DSML｜tool_calls><｜DSML｜invoke name="read_file"><｜DSML｜{SLOT} name="path" string="true">a'
        f"</｜DSML｜{SLOT}></｜DSML｜invoke></｜DSML｜tool_calls>",
        '<|tool_call_begin|>functions.read_file:0<|tool_call_argument_begin|>{"path": "a"}<|tool_call_end|>',
        "<tool_call>read_file\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>",
        '<|start|>assistant<|channel|>commentary to=functions.read_file<|message|>{"path": "a"}<|call|>',
    ],
)
def test_a_call_is_not_shown_and_everything_else_is_at_once(size: int, call: str) -> None:
    text = f"I look.\n```py\nx = [1]\n```\nand\n{call}"
    shown, last = stream(text, range(0, len(text), size))
    assert isinstance(last, Finished)
    assert last.message.text == "I look.\n```py\nx = [1]\n```\nand"
    assert "".join(shown).rstrip() == last.message.text
    (made,) = last.message.tool_calls
    assert (made.name, made.arguments) == ("read_file", '{"path":"a"}')
    assert made.call_id.startswith("call_")
    assert last.message.response is not None
    assert last.message.response.stop.kind == "tool_use"


def test_ordinary_code_is_not_held_back() -> None:
    calls = TextCallStream(TOOLS)
    shown = "".join(
        made.text
        for event in (TextDelta(0, "See:\n```py\nx"), TextDelta(0, " = 1\nfor"))
        for made in calls.feed(event)
        if isinstance(made, TextDelta)
    )
    assert shown == "See:\n```py\nx = 1\nfor"


@pytest.mark.parametrize(
    "given",
    [
        message(f"<tool_call>{READ}</tool_call>", stop="length"),
        message(f"<tool_call>{READ}</tool_call>", complete=False),
        Message("assistant", (TextPart(READ), ToolCallPart("c", "x", "{}")), response=message("").response),
        Message("assistant", (ReasoningPart(f"<tool_call>{READ}</tool_call>"),), response=message("").response),
    ],
)
def test_calls_count_only_in_the_text_of_a_whole_answer_without_calls(given: Message) -> None:
    assert with_calls(given, TOOLS) is given


@pytest.mark.parametrize(
    ("text", "call"),
    [
        # XML of Cline and Roo, Python of Gemma and Llama
        ("<read_file>\n<path>a</path>\n</read_file>", ("read_file", '{"path":"a"}')),
        (
            "<write_to_file><path>a</path><content>\n<b>\n\n</content></write_to_file>",
            ("write_file", '{"path":"a","content":"<b>\\n"}'),
        ),
        ('```tool_code\nprint(read_file(path="a"))\n```', ("read_file", '{"path":"a"}')),
        ('[read_file(path="a", limit=3)]', ("read_file", '{"path":"a","limit":3}')),
        # only the end, or the quotes, are wrong
        (f"<tool_call>{READ}}}</tool_call>", ("read_file", '{"path":"a"}')),
        (f"<tool_call>{READ[:-1]}</tool_call>", ("read_file", '{"path":"a"}')),
        ("<tool_call>{'name': 'read_file', 'arguments': {'path': 'a'}}</tool_call>", ("read_file", '{"path":"a"}')),
        # for an error that the model can act on
        ('<tool_call>{"name": "Browse", "arguments": {"x": 1}}</tool_call>', ("Browse", '{"x":1}')),
        ('<tool_call>{"name": "read_file", "arguments": {"path": </tool_call>', ("read_file", '{"path":')),
        ('<tool_call>{"name": "read_file", "arguments": {"path": "', ("read_file", '{"path": "')),
        ("<function=browse>\n<parameter=path>\na\n</function>", ("browse", "<parameter=path>\na")),
    ],
)
def test_an_answer_that_ends_with_a_malformed_call_is_not_over(text: str, call: tuple[str, str]) -> None:
    shown, last = stream(f"I look.\n{text}", [5, 20, 60])
    assert isinstance(last, Finished)
    assert [(made.name, made.arguments) for made in last.message.tool_calls] == [call]
    assert last.message.text == "I look."
    assert "".join(shown).startswith("I look.")


@pytest.mark.parametrize("before", ["", "Thought: I look at it.", "I look.\n\nThought: It is short."])
@pytest.mark.parametrize("after", ["", "\n", "\nObservation:", "\n\nObservation:\n"])
@pytest.mark.parametrize("name", ["read_file", "Read"])
def test_an_action_of_react_is_a_call(before: str, after: str, name: str) -> None:
    made = with_calls(message(f'{before}\nAction: {name}\nAction Input: {{"path": "a"}}{after}'), TOOLS)
    assert [(call.name, call.arguments) for call in made.tool_calls] == [("read_file", '{"path":"a"}')]
    assert made.text == before


def test_a_part_that_was_shown_keeps_its_place() -> None:
    """Otherwise the call would take the place of a text that has begun."""
    _, last = stream("<read_file>\n<path>a</path>\n</read_file>", [5])
    assert isinstance(last, Finished)
    assert [type(part) for part in last.message.parts] == [TextPart, ToolCallPart]


def test_a_call_cut_at_the_output_limit_is_a_call_without_arguments() -> None:
    cut = with_calls(message('I write.\n<tool_call>\n{"name": "write_file", "arguments": {"pa', stop="length"), TOOLS)
    assert [(call.name, call.arguments) for call in cut.tool_calls] == [("write_file", "{}")]
    assert cut.response is not None
    assert cut.response.stop.kind == "length"


@pytest.mark.parametrize("before", ["", "[TOOL_CALLS]", "I write.\n```json\n", "<|python_tag|>"])
@pytest.mark.parametrize("call", ['{"name": "write_file", "arguments": {"path": "a', '[{"name": "write_file", "argum'])
def test_a_call_without_tags_that_was_cut_is_one_too(before: str, call: str) -> None:
    cut = with_calls(message(before + call, stop="length"), TOOLS)
    assert [(one.name, one.arguments) for one in cut.tool_calls] == [("write_file", "{}")]
    broken = with_calls(message(before + call), TOOLS)
    assert [one.name for one in broken.tool_calls] == ["write_file"]
    assert "```" not in broken.text + cut.text


@pytest.mark.parametrize(
    "text", ['{"name": "Anna", "age": 3, "arg', '{"name": "write_file", "age": 3}', '{"a": {"name": "wr']
)
def test_json_of_another_kind_is_no_call_although_it_was_cut(text: str) -> None:
    assert with_calls(message(text, stop="length"), TOOLS).tool_calls == ()


@pytest.mark.parametrize(
    "text",
    [
        "A call is `<tool_call>{...}</tool_call>` with JSON.",
        'See:\n```\n<tool_call>{"name": "x", "arguments": 1}\n</tool_call>\n```',
        'So:\n<tool_call>{"name": "x"</tool_call>\nis wrong.',
        "<details>\n<summary>a</summary>\n</details>",
        "<tool_call>" * 2_000,
        "[print(x)]",
        "[read_file(path)]",
        "[read_file(path=name)]",
        "[see](https://x.org)",
        "```python\nread_file(path='a')\n```",
        "<read_file>\n<path>a</path>" * 2_000,
        'Thought: x\nAction: read_file\nAction Input: {"path": "a"}\nThen it sees the result.',
        'Thought: x\nAction: read_file\nAction Input: {"path": "a"}\nObservation: made up\nFinal Answer: 5',
        'Thought: x\nAction: read_file\nAction Input: {"path": "a"}\nObservation: made up\n'
        'Thought: y\nAction: read_file\nAction Input: {"path": "b"}',
        'ReAct models write:\nAction: read_file\nAction Input: {"path": "a"}',
        'So:\n```\nThought: x\nAction: read_file\nAction Input: {"path": "a"}\n```',
        'So:\n```\nThought: x\nAction: read_file\nAction Input: {"path": "a"}',
        '- Thought: x\n  Action: read_file\n  Action Input: {"path": "a"}',
        'Thought: x\nAction: Browse\nAction Input: {"path": "a"}',
        "Thought: x\nAction: read_file\nAction Input: a",
        "Action: a\nAction Input: {" * 5_000,
        "[a(" * 5_000,
        "[a(b)\n" * 20_000,
    ],
)
def test_text_about_calls_stays_text(text: str) -> None:
    assert with_calls(message(text), TOOLS).tool_calls == ()


def test_a_failed_answer_shows_what_was_held_back() -> None:
    text = "I look. <tool_call>" + READ
    failed = Failed(ProviderError("network", "x"), message(text, complete=False))
    shown, last = stream(text, [5], failed)
    assert "".join(shown) == text
    assert last == failed


def test_holding_back_is_linear() -> None:
    """A long answer in JSON, one character at a time."""
    text = '{"items": [' + ", ".join(f'"{number}"' for number in range(20_000)) + "]}"
    shown, _ = stream(text, range(len(text)))
    assert "".join(shown) == text


# --- tools for a model that knows none ------------------------------------------------------------------------------


def test_parameters_become_a_few_words_unless_they_have_a_structure() -> None:
    nested = {"type": "array", "items": {"type": "string"}}
    properties = {
        "path": {"type": "string"},
        "limit": {"type": "integer", "description": "Lines"},
        "names": nested,
    }
    tool = ToolSchema("read", "Reads.", {"type": "object", "properties": properties, "required": ["path"]})
    told = as_text(ModelRequest((), (tool,), ())).system[-1].text
    assert json.loads(told.splitlines()[-1])["arguments"] == {
        "path": "string",
        "limit": "integer, optional: Lines",
        "names": nested,
    }


def test_tools_calls_and_results_become_text() -> None:
    request = ModelRequest(
        system=(SystemBlock("Be good.", breakpoint=True),),
        tools=(ToolSchema("read_file", "Reads.", {"type": "object"}),),
        messages=(
            Message("user", (TextPart("look"),), "u1"),
            Message("assistant", (TextPart("Yes."), ToolCallPart("c1", "read_file", '{"path": "a"}')), "m1"),
            Message(
                "tool", (ToolResultPart("c1", "read_file", "inside", images=(ImagePart("image/png", "aGk="),)),), "r1"
            ),
            Message("user", (TextPart("go on"),), "u2"),
        ),
        breakpoints=(0, 3),
    )
    text = as_text(request)
    assert text.tools == ()
    assert next(block.text for block in text.system) == "Be good."
    assert '{"name":"read_file","description":"Reads.","arguments":{}}' in text.system[1].text
    assert [message.role for message in text.messages] == ["user", "assistant", "user"]
    assert text.messages[1].text == 'Yes.\n<tool_call>\n{"name":"read_file","arguments":{"path":"a"}}\n</tool_call>'
    assert text.messages[2].text == "<tool_response>\nread_file:\ninside\n</tool_response>\n\ngo on"
    assert any(isinstance(part, ImagePart) for part in text.messages[2].parts)
    assert text.breakpoints == (0, 2)


def test_arguments_that_are_no_json_object_are_shown_as_in_calls() -> None:
    call = Message("assistant", (ToolCallPart("c", "x", "{bad"),), "m")
    assert '"arguments":{"invalid_json":"{bad"}' in as_text(ModelRequest((), (), (call,))).messages[0].text


def test_what_was_written_is_read_back() -> None:
    call = ToolCallPart("c", "write_file", json.dumps({"path": "a", "content": "x\n```\n</tool_call>"}))
    (made,) = as_text(ModelRequest((), (), (Message("assistant", (call,), "m"),))).messages
    split = split_calls(made.text, TOOLS)
    assert split is not None
    assert json.loads(split.calls[0].arguments) == json.loads(call.arguments)

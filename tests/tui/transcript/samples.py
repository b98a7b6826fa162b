"""One example of everything that the transcript can show, and text that tries to break it."""

from __future__ import annotations

from swecli.core.protocol.blocks import (
    DiffBlock,
    DisplayBlock,
    FileEntry,
    FileListBlock,
    ImageBlock,
    MarkdownBlock,
    TableBlock,
    TerminalBlock,
    TextBlock,
    Todo,
    TodoBlock,
)
from swecli.core.protocol.messages import Usage
from swecli.tui.transcript.blocks import (
    AnswerBlock,
    Block,
    CompactionBlock,
    NoticeBlock,
    ReasoningBlock,
    RewoundBlock,
    SessionBlock,
    ShownBlock,
    ToolBlock,
    TurnEndBlock,
    UserBlock,
)

COMPACTED = "Context compacted by a summary: 98,000 to 31,000 tokens, 67,000 saved; 41 to 9 messages, 32 replaced."

MARKDOWN = """\
# The login bug

The check in `src/api/auth.py` compared **before** it knew that there *was* a user; see
[the guide](https://example.org/guide) and <https://example.org>.
A line of its own.

## Steps

1. Read the code
   - with a nested item that is long enough to be wrapped at narrow widths
   - [x] done
   - [ ] not done
2. Change it

   A second paragraph of the item.

> A quote with `code`
> > and one inside

```python
def check(user: User | None) -> bool:
    '''Two lines
    of text'''
    return user is not None and user.active
```

| Name | Purpose | Count |
|:-----|:-------:|------:|
| 日本語 | wide characters | 12 |
| a | a cell with quite some text that may have to be broken | 3 |

---

<div>html is text</div>

    indented code

Done ~~already~~ 👍 [/foo] [red]not markup[/red]
"""

OLD = "".join(f"def f{number}(value):\n    return value + {number}\n\n\n" for number in range(8))
NEW = (
    OLD.replace("value + 3", "value + 33  # 日本語").replace("def f6(value)", "def f6(value, other=None)")
    + "print(1)\n"
)

HOSTILE = (
    "[/foo] [red]x[/red] [@click=app.quit]y[/] \x1b]52;c;ZWNobw==\x07 \x9b31m\x90q\x9c \x00\x7f\x08\r\x0b\x0c"
    "\u202eabc\u202c\u2066\u200b\u2028\u2029\ufeff\U000e0041 a" + "\u0301" * 3_000 + " \ud800\udfff \u202d"
)

DISPLAYS: dict[str, DisplayBlock] = {
    "text": TextBlock("Plain text that is long enough to be wrapped at a narrow width.\n\n  indented"),
    "text_error": TextBlock("It failed.", "error"),
    "markdown": MarkdownBlock(MARKDOWN),
    "diff": DiffBlock("src/api/auth.py", OLD, NEW),
    "diff_new": DiffBlock("notes.md", None, "# Notes\n\ntext\n"),
    "diff_deleted": DiffBlock("old/name.py", "x = 1\n", None),
    "diff_binary": DiffBlock("image.png", None, None, note="binary, 12 KiB"),
    "diff_crlf": DiffBlock("a.txt", "a\r\nb\r\nc", "a\r\nB\r\nc\r\n", note="outside the workspace"),
    "terminal": TerminalBlock(
        "make test",
        "\x1b[1;32mcollected\x1b[0m 3 items\n"
        + "10%\r50%\r100%\n"
        + "\x1b[31mFAILED\x1b[39m tests/test_a.py::test_x\n",
        1,
        "/w",
        2.34,
        truncated=True,
    ),
    "files": FileListBlock((FileEntry("src", is_dir=True), FileEntry("src/api/auth.py"), FileEntry("日本.txt")), 40),
    "matches": FileListBlock(
        (
            FileEntry("src/api/auth.py", 7, "    def login(self):"),
            FileEntry("src/api/auth.py", 123, "\treturn self.login_with(user, password, remember=True, again=False)"),
            FileEntry("src/b.py", 1, "login = 1"),
        ),
        3,
    ),
    "todos": TodoBlock(
        (Todo("read the code", "completed"), Todo("change the check in the login code", "in_progress"), Todo("test"))
    ),
    "table": TableBlock(
        ("Command", "Meaning"), (("/help", "what there is"), ("/mode", "how much is asked")), "Commands"
    ),
    "image": ImageBlock("screenshot.png", "image/png", 123_456),
}


def blocks() -> dict[str, Block]:
    """Blocks by name."""
    diff, terminal = DISPLAYS["diff"], DISPLAYS["terminal"]
    user = UserBlock("u", "fix the login bug\nand run the tests", (ImageBlock("a.png", "image/png", 2048),))
    return {
        "session": SessionBlock("s", "openai/gpt-x", "/home/me/project", "default", "0.1.0"),
        "session_resumed": SessionBlock("s", "openai/gpt-x", "/home/me/project", "plan", "0.1.0", resumed=True),
        "user": user,
        "user_long": UserBlock("u2", "\n".join(f"line {number}" for number in range(40))),
        "answer": AnswerBlock("a", "It **works** now.", "ok"),
        "answer_interrupted": AnswerBlock("a", "It wor", "interrupted"),
        "reasoning_live": ReasoningBlock("r", "First the code.\nThen the error, which is raised when there is no user"),
        "reasoning": ReasoningBlock(
            "r", "First the code.\nThen the error, which is raised when no user is", "ok", 3.21
        ),
        "reasoning_hidden": ReasoningBlock("r", "", "ok"),
        "tool_pending": ToolBlock("t", "edit_file", arguments='{"path": "src/api/auth.py", "old": "x'),
        "tool_waiting": ToolBlock(
            "t", "edit_file", "src/api/auth.py", "waiting", preview=(diff,), note="writes a file"
        ),
        "tool_running": ToolBlock(
            "t", "run_command", "pytest -q", "running", output="\n".join(f"test {n} passed" for n in range(30))
        ),
        "tool_search": ToolBlock(
            "t", "search", "'login' in src/", "ok", blocks=(DISPLAYS["matches"],), detail="15 matches in 4 files"
        ),
        "tool_edit": ToolBlock("t", "edit_file", "src/api/auth.py", "ok", blocks=(diff,), detail="+3 -2"),
        "tool_run": ToolBlock(
            "t", "run_command", "make test", "error", blocks=(terminal,), detail="exit 1", duration=2.34
        ),
        "tool_read": ToolBlock(
            "t", "read_file", "src/api/auth.py", "ok", blocks=(TextBlock("1 import os\n2 x"),), detail="120 lines"
        ),
        "tool_failed": ToolBlock("t", "read_file", "missing.py", "error", result="missing.py does not exist"),
        "tool_rejected": ToolBlock(
            "t", "write_file", "a.py", "rejected", blocks=(DISPLAYS["diff_new"],), note="use the other file"
        ),
        "tool_interrupted": ToolBlock("t", "run_command", "sleep 100", "interrupted", duration=12.0),
        "tool_todos": ToolBlock("t", "update_todos", "", "ok", blocks=(DISPLAYS["todos"],), detail="1 of 3 done"),
        "tool_unknown": ToolBlock("t", "mcp__db__query", "", "ok", arguments='{"sql": "select 1"}', result="1 row"),
        "notice": NoticeBlock("n", "The budget is nearly used.", "warning", "Type /compact"),
        "notice_error": NoticeBlock("n", "The key was refused.", "error"),
        "compaction": CompactionBlock("c", "done", 98_000, COMPACTED, summary="What was said."),
        "compaction_failed": CompactionBlock("c", "failed", 98_000, reason="the model did not answer"),
        "turn_done": TurnEndBlock("e", "done", "", 12.3),
        "turn_limit": TurnEndBlock("e", "limit", "40 steps were made", 100.0),
        "turn_cut": TurnEndBlock(
            "e", "interrupted", "", 5.0, Usage(input_total=3_000, output_total=40), estimated=True
        ),
        "shown": ShownBlock("x", (DISPLAYS["table"], DISPLAYS["text"]), "Help"),
        "rewound": RewoundBlock("w", (user, AnswerBlock("a", "It works.", "ok"))),
    }

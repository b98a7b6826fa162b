"""Which files a text names, and how sure that is."""

from __future__ import annotations

import pytest

from swecli.core.retrieval.named import MOST, Files

PATHS = (
    "setup.py",
    "README.md",
    "bin/tool",
    "src/shop/auth/session.py",
    "src/shop/billing/session.py",
    "src/shop/billing/invoice.py",
    "src/shop/web/index.ts",
    "cmd/serve/main.go",
    "core/src/lib.rs",
    "core/src/parser.rs",
    "java/src/main/java/com/x/Gson.java",
    "lib/jekyll/site.rb",
    "src/Composer/Pool.php",
)
FILES = Files(PATHS, "/home/me/shop")

SURE = [
    ("please fix invoice.py", "src/shop/billing/invoice.py", 0),
    ("see src/shop/auth/session.py.", "src/shop/auth/session.py", 0),
    ("in `billing/session.py:12` the total", "src/shop/billing/session.py", 12),
    ("/home/me/shop/src/shop/auth/session.py is slow", "src/shop/auth/session.py", 0),
    ('  File "/srv/app/src/shop/billing/invoice.py", line 42, in total', "src/shop/billing/invoice.py", 42),
    ("    at rank (/home/you/w/src/shop/web/index.ts:7:13)", "src/shop/web/index.ts", 7),
    ("\t/build/cmd/serve/main.go:120 +0x1d", "cmd/serve/main.go", 120),
    ("  --> core/src/parser.rs:3:9", "core/src/parser.rs", 3),
    ("thread 'main' panicked at core/src/lib.rs:88:5:", "core/src/lib.rs", 88),
    ("\tat com.x.Gson.fromJson(Gson.java:9)", "java/src/main/java/com/x/Gson.java", 9),
    ("lib/jekyll/site.rb:77:in `read'", "lib/jekyll/site.rb", 77),
    ("PHP Fatal error in /app/src/Composer/Pool.php on line 31", "src/Composer/Pool.php", 31),
    ("#0 /app/src/Composer/Pool.php(12): add()", "src/Composer/Pool.php", 12),
    ("https://github.com/a/b/blob/main/core/src/parser.rs#L12", "core/src/parser.rs", 12),
    ("src\\shop\\web\\index.ts(4,2): error TS1", "src/shop/web/index.ts", 4),
    ("diff --git a/core/src/parser.rs", "core/src/parser.rs", 0),
    ("run bin/tool first", "bin/tool", 0),
]


@pytest.mark.parametrize(("text", "path", "line"), SURE, ids=[text[:30] for text, _, _ in SURE])
def test_what_is_sure(text: str, path: str, line: int) -> None:
    assert [(one.path, one.line) for one in FILES.named_by(text) if one.sure] == [(path, line)]


NOT_SURE = [
    "session.py is slow",
    "look at setup.py and README.md",
    "use Node.js and asyncio.run for this, e.g. with numpy.array",
    '  File "/usr/lib/python3.11/json/invoice.py", line 3, in loads',
    "/home/me/venv/lib/python3.11/site-packages/shop/invoice.py:3",
    "    at x (/app/node_modules/a/index.ts:1:2)",
    "see https://example.org/docs/invoice.py for more",
    "mail me at invoice.py@example.org",
    "create src/shop/new_invoice.py",
    "/other/place/README.md",
    "somewhere/else/session.py",
    "shop.billing.invoice has it",
    "hi",
    "",
]


@pytest.mark.parametrize("text", NOT_SURE)
def test_what_is_not(text: str) -> None:
    assert not [one for one in FILES.named_by(text) if one.sure]


JOINED = [
    ("src/shop/web/index.tsを直してください", [("src/shop/web/index.ts", 0)]),
    ("src/shop/web/index.ts를 고쳐줘", [("src/shop/web/index.ts", 0)]),
    ("请修改src/shop/web/index.ts文件里的函数", [("src/shop/web/index.ts", 0)]),
    ("index.ts:12で失敗する", [("src/shop/web/index.ts", 12)]),
    ("把invoice.py移到cmd/serve/main.go:7后面", [("src/shop/billing/invoice.py", 0), ("cmd/serve/main.go", 7)]),
    ("把old/index.tsx移到cmd/serve/main.go", [("cmd/serve/main.go", 0)]),
    ("请看docs/说明.md文件", [("docs/说明.md", 0)]),
    ("invoice.pyとlib.rs", [("src/shop/billing/invoice.py", 0), ("core/src/lib.rs", 0)]),
]


@pytest.mark.parametrize(("text", "found"), JOINED, ids=[text[:20] for text, _ in JOINED])
def test_words_without_blanks_may_touch_a_path(text: str, found: list[tuple[str, int]]) -> None:
    files = Files(("docs/说明.md", *(path for path in PATHS if path != "README.md")), "/home/me/shop")
    assert [(one.path, one.line) for one in files.named_by(text)] == found


def test_many_of_them_take_no_time() -> None:
    assert FILES.named_by("漢字a/" * 20_000 + ".py 漢字" + "漢" * 200 + "a.py") == []


def test_a_module_and_a_name_of_two_files_are_guesses() -> None:
    named = Files(("pkg/core/work.py", *PATHS)).named_by("pkg.core.work failed; session.py:3 as well")
    assert [(one.path, one.sure) for one in named] == [
        ("pkg/core/work.py", False),
        ("src/shop/auth/session.py", False),
        ("src/shop/billing/session.py", False),
    ]


def test_many_and_long_texts_are_bounded() -> None:
    files = Files(f"src/unit_{number}.py" for number in range(100))
    assert len(files.named_by(" ".join(f"src/unit_{number}.py" for number in range(100)))) == MOST
    assert files.named_by("x/" * 500_000) == []
    assert [one.path for one in files.named_by("é" * 300_000 + " src/unit_3.py")] == ["src/unit_3.py"]


def test_data_without_a_blank_names_nothing() -> None:
    files = Files(["a.py"])
    assert files.named_by("a." * 500_000) == []
    assert [one.path for one in files.named_by(f"{'a.' * 5_000} in a.py")] == ["a.py"]

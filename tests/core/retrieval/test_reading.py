"""What of a report says what it is about."""

from __future__ import annotations

import pytest

from swecli.core.retrieval.index import Document, FileState, build, document
from swecli.core.retrieval.ranking import parts_of, query_of
from swecli.core.retrieval.retrieve import retrieve

REPORT = """Totals are wrong when a voucher expires
<!--
Thank you for the report! Read the guidelines first.
-->
- [x] I have searched for duplicates
- [ ] I read the contributing guide

### Describe the bug
The basket keeps the voucher.

### Steps to reproduce
```python
basket.redeem(voucher)
```

```
Traceback (most recent call last):
  File "/usr/lib/python3.11/site-packages/shop/basket.py", line 12, in redeem
    raise VoucherError(voucher)
shop.errors.VoucherError: expired yesterday
```

### Environment
- OS: Ubuntu 22.04
- terminal emulator of the desktop

```
numpy 1.26.0
pandas==2.1.0
```

## Expected behavior
Python version: 3.11.4
It is refused.
"""


def test_a_form_its_machine_and_its_boxes_say_nothing() -> None:
    parts = [(part, line) for part, line in parts_of(REPORT) if line.strip()]
    assert parts == [
        ("title", "Totals are wrong when a voucher expires"),
        ("words", "The basket keeps the voucher."),
        ("code", "basket.redeem(voucher)"),
        ("output", "Traceback (most recent call last):"),
        ("output", '  File "/usr/lib/python3.11/site-packages/shop/basket.py", line 12, in redeem'),
        ("output", "    raise VoucherError(voucher)"),
        ("words", "shop.errors.VoucherError: expired yesterday"),
        ("words", "It is refused."),
    ]


@pytest.mark.parametrize(
    "text",
    [
        *("", "\n\n", "```", "a\n```python\nx", "a\n<!-- never closed", "\0\ud800\n\0"),
        *("t\n" + "> " * 5_000, "t\n" + "-" * 200_000, "t\n" + "a b " * 50_000, "t\n" + "<details>" * 9_000),
        *("t\n" + "version " * 20_000, "t\n" + "issue" * 18 + "!:", "t\n" + " and" * 22 + ":"),
        "t\n" + " " * 90_000 + "x",
    ],
)
def test_any_text_is_read(text: str) -> None:
    assert next(part for part, _ in parts_of(text)) == "title"
    assert query_of(text).kinds


def test_a_heading_that_is_a_subject_is_kept() -> None:
    assert ("words", "## Voucher expiry") in list(parts_of("Title\n## Voucher expiry\nx"))


def test_the_subject_is_found_below_much_output() -> None:
    files = [
        document(FileState("shop/voucher.py"), "def redeem_voucher(): ...\n"),
        document(FileState("shop/logs.py"), "def write_log(worker, request, status): ...\n" * 3),
        *(document(FileState(f"shop/o{n}.py"), f"def other_{n}(): ...\n") for n in range(20)),
    ]
    log = "\n".join(f"worker request status write log {n}" for n in range(300))
    found = retrieve(build(files), f"Voucher is redeemed twice\n\n```\n{log}\n```\n")
    assert found.ranked[0].path == "shop/voucher.py"


def test_frames_of_the_installed_project_point_to_its_files() -> None:
    files: list[Document] = [document(FileState(path), "x = 1\n") for path in ("src/shop/basket.py", "src/shop/api.py")]
    found = retrieve(build(files), REPORT)
    assert [(one.path, one.line, one.sure) for one in found.named] == [("src/shop/basket.py", 0, False)]
    assert found.ranked[0].path == "src/shop/basket.py"
    other = REPORT.replace("site-packages/shop", "site-packages/store")
    assert retrieve(build(files), other).named == ()


def test_words_of_the_title_count_most_and_names_in_output_are_no_names() -> None:
    query = query_of(REPORT)
    assert query.terms["vouch"] == max(query.terms.values())
    assert "emulat" not in query.terms
    assert "VoucherError" in query.names


@pytest.mark.parametrize(
    "address",
    [
        *("ann@voucher.org", "<ann@voucher.org>", "(see:ann@voucher.org", "ann@voucher@basket.org", "@@voucher.org"),
        *("https://voucher.org/basket", "#4711"),
    ],
)
def test_an_address_says_nothing(address: str) -> None:
    assert query_of(f"Tax is wrong\n\nAsk {address} about it.").terms == query_of("Tax is wrong\n\nAsk about it.").terms

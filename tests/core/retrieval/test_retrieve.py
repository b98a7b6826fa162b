"""What a text is about, and when nothing is said."""

from __future__ import annotations

import pytest

from swecli.core.retrieval.building import Commit, history_of
from swecli.core.retrieval.index import Document, FileState, Index, build, document
from swecli.core.retrieval.project import OpenProject, open_project
from swecli.core.retrieval.ranking import query_of
from swecli.core.retrieval.retrieve import MOST_POINTERS, MOST_TOKENS, retrieve
from swecli.core.retrieval.terms import terms_of
from tests.core.retrieval.project import made


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> OpenProject:
    return open_project(made(tmp_path_factory.mktemp("shop")), None)


@pytest.mark.parametrize(
    ("text", "path", "symbol"),
    [
        ("checking a password takes too long", "src/auth/login.py", "check_password"),
        ("revoke expired tokens", "src/auth/tokens.py", "revoke_token"),
        ("the invoice printer renders the wrong currency", "src/billing/invoice.py", "InvoicePrinter"),
        ("rank documents by score", "src/search/ranking.ts", "rankDocuments"),
        ("writeBlob fails", "src/storage/blob.go", "WriteBlob"),
        ("smtp relay: deliver the envelope twice", "src/mail/smtp.py", "SmtpRelay"),
    ],
)
def test_words_lead_to_the_file_and_its_definition(shop: OpenProject, text: str, path: str, symbol: str) -> None:
    first = shop.retrieval(text).ranked[0]
    assert (first.path, first.symbol) == (path, symbol)


def test_documents_that_repeat_every_name_make_no_name_common() -> None:
    """Generated pages of a project's documentation list all names in their margins."""
    words = ("retry", "cache", "upload", "stream", "cookie", "socket", "redirect", "header")
    names = [f"{word}{kind}" for word in words for kind in ("Policy", "Task", "Event", "Store", "Pool", "Queue", "Log")]
    files = {f"src/{name}.py": f"class {name}: ...\ndef run(value): ...\n" for name in names}
    files |= {f"docs/page{number}.html": " ".join(f"<li>{name}</li>" for name in names) for number in range(60)}
    index = build([document(FileState(path), text) for path, text in files.items()])
    text = "Add a jitter to `cachePolicy`, so that not all of them ask at the same moment when a server has come back"
    found = retrieve(index, text)
    assert found.ranked[0].path == "src/cachePolicy.py"
    assert found.pointers[0].path == "src/cachePolicy.py"


def spoken() -> Index:
    """Files that are commented in many languages."""
    texts = {
        "orders.py": "# 计算订单的折扣价格\ndef discount(order): ...\n",
        "users.py": "# 用户登录与注册\ndef login(user): ...\n",
        "options.py": "# 設定ファイルを保存する\ndef save(options): ...\n",
        "reset.py": "# 사용자 비밀번호를 재설정한다\ndef reset(user): ...\n",
        "creer.py": "# Création du fichier de paramètres réglés\ndef creer(nom): ...\n",
    }
    texts |= {f"m{n}.py": f"# Compute thing {n} for a value\ndef fn{n}(value): ...\n" for n in range(60)}
    return build([document(FileState(name), text) for name, text in texts.items()])


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("订单折扣怎么计算", "orders.py"),
        ("修复用户登录的问题", "users.py"),
        ("設定の保存に失敗する", "options.py"),
        ("비밀번호 재설정이 안됩니다", "reset.py"),
        ("请修复login函数的用户登录", "users.py"),
        ("la création des paramètres échoue", "creer.py"),
    ],
)
def test_words_of_any_language_lead_to_their_file(text: str, path: str) -> None:
    assert [one.path for one in retrieve(spoken(), text).pointers] == [path]


@pytest.mark.parametrize("text", ["请帮我修改这个文件的代码", "してください", "파일을 수정해주세요", "这是什么"])
def test_such_words_that_say_nothing_get_no_pointers_either(text: str) -> None:
    assert retrieve(spoken(), text).pointers == ()


def test_an_accent_does_not_make_a_word_a_name_of_code() -> None:
    assert terms_of("création") == ("création",)
    assert query_of("où est créé le paramètre général").names == frozenset()
    assert terms_of("écranTitre") == terms_of("écran_titre") == ("écran", "titr", "écrantitre")
    assert terms_of("СохранитьФайл") == ("сохранить", "файл", "сохранитьфайл")
    assert query_of("请修复getUserName函数").names == {"getUserName"}


@pytest.mark.parametrize(
    "text", ["hi", "", "thanks!", "run the tests", "continue", "fix the value", "\0\ud800", "?" * 999]
)
def test_words_that_say_nothing_get_no_pointers(shop: OpenProject, text: str) -> None:
    assert shop.retrieval(text).pointers == ()


def test_few_words_and_common_ones_need_more_to_be_pointed_by() -> None:
    def corpus(having: int) -> Index:
        texts = ("zebra yoghurt" if n < 8 else "zebra" if n < having else f"other_{n}" for n in range(400))
        return build([document(FileState(f"o{n}.py"), f"# {text}\n") for n, text in enumerate(texts)])

    seldom = corpus(16)  # rarities of 3.2 and 3.9
    assert retrieve(seldom, "zebra yoghurt").pointers == ()
    assert retrieve(seldom, "the zebra eats yoghurt every quiet morning").pointers != ()
    assert retrieve(corpus(200), "the zebra eats yoghurt every quiet morning").evidence < 4.0


def test_tests_come_behind_unless_they_are_asked_for(shop: OpenProject) -> None:
    assert shop.retrieval("check password").ranked[0].path == "src/auth/login.py"
    assert shop.retrieval("fix the failing test test_check_password").ranked[0].path == "tests/test_login.py"


def test_pointers_are_few_and_short() -> None:
    names = [f"{'very_long_folder_name/' * 4}unit_{number}.py" for number in range(40)]
    text = "def calibrate_gyroscope_sensor_drift(): pass\n"
    others = [document(FileState(f"o{n}.py"), f"def other_{n}(): pass\n") for n in range(400)]
    found = retrieve(
        build([*others, *(document(FileState(name), text) for name in names)]), "calibrate gyroscope drift sensor"
    )
    assert 0 < len(found.pointers) < MOST_POINTERS
    assert found.tokens <= MOST_TOKENS
    assert found.named == ()


def test_a_file_that_is_named_comes_first(shop: OpenProject) -> None:
    found = shop.retrieval("deliver the envelope as tokens.py does")
    assert found.mentioned_paths == ("src/auth/tokens.py",)
    assert "src/auth/tokens.py" in [one.path for one in found.ranked[:2]]
    assert "src/auth/tokens.py" not in [one.path for one in found.pointers]


def test_equal_texts_give_equal_answers(shop: OpenProject) -> None:
    assert shop.retrieval("revoke the coupon") == shop.retrieval("revoke the coupon")


def test_a_query_leaves_out_addresses_and_trailers() -> None:
    query = query_of("Fix gyroscope (#12)\n\nhttps://example.org/zebra\nCo-authored-by: Walrus <w@example.org>")
    assert set(query.terms) == {"fix", "gyroscop", "fixgyroscope"}
    assert set(query_of("shell config").terms) == {"shell", "config", "shellconfig"}


def change(message: str, *paths: str) -> Commit:
    return Commit(message, message, paths)


def plain(count: int) -> list[Document]:
    texts = (f"def step_{number}(value): return value + {number}\n" for number in range(count))
    return [document(FileState(f"src/plain/unit_{number}.py"), text) for number, text in enumerate(texts)]


def test_a_commit_with_a_like_message_leads_to_its_files() -> None:
    files = plain(50)
    commits = [change("Keep the gyroscope drift small on cold starts", "src/plain/unit_7.py")]
    commits += [change(f"Tidy step {n}", f"src/plain/unit_{n}.py") for n in range(50)]
    index = build(files, history_of(commits, [one.state.path for one in files]))
    assert retrieve(index, "gyroscope drift after cold starts").ranked[0].path == "src/plain/unit_7.py"


def test_what_lies_beside_the_best_files_comes_before_the_rest() -> None:
    near = [
        document(FileState("src/gyro/drift.py"), "def gyroscope_drift(): pass\n"),
        document(FileState("src/gyro/sensor.py"), "def calibrate_sensor(): pass\n"),
        document(FileState("src/other/sensor.py"), "def calibrate_sensor(): pass\n"),
    ]
    ranked = [one.path for one in retrieve(build([*plain(50), *near]), "gyroscope drift: calibrate").ranked]
    assert ranked[:3] == ["src/gyro/drift.py", "src/gyro/sensor.py", "src/other/sensor.py"]


def test_a_file_that_has_every_word_comes_before_one_that_repeats_some() -> None:
    every = document(
        FileState("src/a/one.py"), "def gyroscope(): drift = calibrate = horizon = 0\n" + "filler = 1\n" * 40
    )
    some = document(FileState("src/b/two.py"), "gyroscope = drift = gyroscope = drift\n" * 3 + "filler = 1\n" * 40)
    index = build([*plain(50), every, some])
    assert retrieve(index, "gyroscope drift: calibrate the horizon").ranked[0].path == "src/a/one.py"

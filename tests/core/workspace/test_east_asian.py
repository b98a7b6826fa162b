"""Which bytes are taken for a text in an East Asian encoding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swecli.core.workspace.text_file import decode

JAPANESE = "# 設定ファイルを読み込みます\nprint('こんにちは、世界')\n# カタカナのテスト\n"
SIMPLIFIED = "# 读取配置文件，如果失败则退出\nprint('你好，世界')  # 请不要修改\n"
TRADITIONAL = "# 讀取設定檔，如果失敗就結束\nprint('您好，世界')  # 請不要修改\n"
KOREAN = "# 설정 파일을 읽습니다\nprint('안녕하세요, 세계')\n"
EAST_ASIAN_TEXTS = (
    ("cp932", JAPANESE),
    ("euc_jp", JAPANESE),
    ("gbk", SIMPLIFIED),
    ("big5", TRADITIONAL),
    ("cp949", KOREAN),
)


@pytest.mark.parametrize(("codec", "text"), EAST_ASIAN_TEXTS)
def test_a_text_is_read_and_each_piece_has_its_own_bytes(codec: str, text: str) -> None:
    file = decode(text.encode(codec))
    assert (file.codec, file.text) == (codec, text)
    assert b"".join(map(file.encode, text)) == file.raw


@pytest.mark.parametrize(
    ("codec", "text"),
    [
        ("latin-1", "Größe, Änderung, äöü ÄÖÜ, ß"),
        ("latin-1", "été où êtes-vous déjà à la fête, ÉTÉ ÀÉ «Ça»"),
        ("latin-1", "20°C 30°C 40°C °C 50°C"),
        ("latin-1", "¿Qué? ¡Sí! niño ÁÉÍÓÚ"),
        ("latin-1", "smørrebrød på ÆØÅ æøå, Þórður Ýmir æðÞ"),
        ("cp1252", "“quoted” ‘text’ — and … €5 ™"),
        ("cp1251", "Привет, мир. Это тест русского текста"),
        ("koi8-r", "Привет, мир. Это тест русского текста"),
        ("iso-8859-2", "Příliš žluťoučký kůň úpěl ďábelské ódy"),
        ("iso-8859-7", "Καλημέρα κόσμε, αυτό είναι ένα τεστ"),
        ("cp1255", "שלום עולם זה מבחן"),
        ("cp1256", "مرحبا بالعالم هذا اختبار"),
        ("cp874", "สวัสดีชาวโลก ทดสอบภาษาไทย"),
        ("gbk", "// 测"),  # too little to tell
    ],
)
def test_anything_else_remains_a_single_byte_encoding(codec: str, text: str) -> None:
    assert decode(f"{text}\n".encode(codec)).codec in ("latin-1", "cp1252")


@pytest.mark.parametrize(
    ("codec", "text"),
    [
        ("cp932", '# -*- coding: shift_jis -*-\nx = "漢字"\n'),
        ("gbk", "# vim: set fileencoding=gb2312 :\n# 测试\n"),
        ("euc_jp", '<?xml version="1.0" encoding="EUC-JP"?>\n<a>漢字</a>\n'),
        ("cp949", '<meta http-equiv="Content-Type" content="text/html; charset=euc-kr">한글 문서\n'),
        ("big5", '<meta charset="Big5">測試\n'),
    ],
)
def test_a_text_that_names_its_encoding_needs_few_letters(codec: str, text: str) -> None:
    file = decode(text.encode(codec))
    assert (file.codec, file.text) == (codec, text)


@pytest.mark.parametrize("text", ["# coding: shift_jis\nGröße, é\n", "# coding: latin-1\n# äöüÄÖÜ\n"])
def test_a_wrong_or_other_name_changes_nothing(text: str) -> None:
    assert decode(text.encode("latin-1")).codec == "latin-1"


@given(st.binary(max_size=200))
def test_no_byte_is_lost(raw: bytes) -> None:
    file = decode(raw)
    assert file.bom + file.encode(file.text) + file.tail == raw


def test_a_letter_that_the_encoding_lacks_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        decode(JAPANESE.encode("cp932")).encode_new("é")

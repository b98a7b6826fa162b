"""Definitions by pattern, in each language."""

from __future__ import annotations

import time

import pytest

from swecli.core.retrieval.definitions import MOST, definitions

SOURCES = [
    ("a.py", "LIMIT = 3\nclass A(B):\n    async def go(self):\n        pass\n", [("LIMIT", 1), ("A", 2), ("go", 3)]),
    (
        "a.ts",
        "export default class Shop {\n  private items: Item[] = []\n  async buy(item: Item): Promise<void> {\n  }\n}\n"
        "export const open = () => 1\ninterface Item {}\nexport type Id = string\n  if (x) {\n",
        [("Shop", 1), ("items", 2), ("buy", 3), ("open", 6), ("Item", 7), ("Id", 8)],
    ),
    ("a.jsx", "function App() {}\nvar x = 1\n", [("App", 1), ("x", 2)]),
    (
        "a.go",
        "package a\nfunc Plain() {}\nfunc (s *Store) Save(x int) error {\n}\ntype Store struct {\n}\nvar Max = 1\n",
        [("Plain", 2), ("Save", 3), ("Store", 5), ("Max", 7)],
    ),
    (
        "a.rs",
        "pub(crate) async fn run() {}\nstruct A;\npub enum B {}\nimpl A {\n    pub fn b(&self) {}\n}\n"
        "macro_rules! m {}\n",
        [("run", 1), ("A", 2), ("B", 3), ("b", 5), ("m", 7)],
    ),
    (
        "a.java",
        "public final class Gson {\n  private final int x;\n  public <T> T fromJson(String json) {\n  }\n}\n"
        "enum E {}\n",
        [("Gson", 1), ("fromJson", 3), ("E", 6)],
    ),
    (
        "a.c",
        "#define SIZE 3\nstatic int grow(struct buf *b,\n                int n)\n{\n}\nstruct buf {\n};\n",
        [("SIZE", 1), ("grow", 2), ("buf", 6)],
    ),
    ("a.cpp", "namespace net {\nclass Socket {\n};\nvoid Socket::open(int port) {\n}\n}\n", ["net", "Socket", "open"]),
    ("a.rb", "module Jekyll\n  class Site\n    def self.make(x)\n    def read?\n", ["Jekyll", "Site", "make", "read?"]),
    ("b.rb", "class A\n  private def go\n", ["A", "go"]),
    (
        "a.php",
        "<?php\nfinal class Pool\n{\n    public const LIMIT = 3;\n    public function add(int $x)\n",
        [("Pool", 2), ("LIMIT", 4), ("add", 5)],
    ),
    ("a.kt", "data class User(val x: Int)\nfun User.greet() {}\n", ["User", "greet"]),
    (
        "kinds.kt",
        "enum class Color { RED }\nfun interface Action\nannotation class Slow\nvalue class Id(val id: Int)\n"
        "public expect fun now(): Long\nprivate inline fun <reified T> List<T?>.firstOf(): T =\n"
        "@JvmField internal val TYPES = 1\nclass A {\n  override val size: Int\n  companion object {\n"
        "    const val MAX = 3\n  fun go() {\n    val local = 1\n",
        ["Color", "Action", "Slow", "Id", "now", "firstOf", "TYPES", "A", "size", "MAX", "go"],
    ),
    (
        "a.swift",
        "protocol Retrier {}\npublic struct Policy: Retrier {\n    public let limit: Int\n    func retry(_ n: Int) {\n"
        "        let local = 1\n    static func make() {}\n    class func shared() {}\n"
        "    @discardableResult func undo() {}\nextension Policy {\nactor Store {}\nindirect enum Tree {}\n"
        "typealias Done = () -> Void\n",
        ["Retrier", "Policy", "limit", "retry", "make", "shared", "undo", "Store", "Tree", "Done"],
    ),
    ("a.sh", "build() {\n  true\n}\n", [("build", 1)]),
    ("a.md", "# Shop\n\n## Install it\n", ["Shop", "Install it"]),
]


@pytest.mark.parametrize(("path", "text", "expected"), SOURCES, ids=[path for path, _, _ in SOURCES])
def test_names_and_lines(path: str, text: str, expected: list[object]) -> None:
    found = definitions(path, text)
    assert (found if isinstance(expected[0], tuple) else [name for name, _ in found]) == expected


def test_a_file_of_another_kind_defines_nothing() -> None:
    assert definitions("a.json", '{"class": 1}') == []
    assert definitions("Makefile", "def x") == []


@pytest.mark.parametrize("ending", ["py", "ts", "go", "rs", "java", "cpp", "rb", "php"])
@pytest.mark.parametrize(
    "piece", ["a ", "public ", "x(", "((((", "\t", "def ", "void x(\n", "static int\n", "const a: "]
)
def test_no_text_takes_long(ending: str, piece: str) -> None:
    started = time.process_time()
    assert len(definitions(f"a.{ending}", (piece * 20_000)[:60_000])) <= MOST
    assert len(definitions(f"a.{ending}", ((piece * 150)[:300] + "\n") * 200)) <= MOST
    assert time.process_time() - started < 2.0

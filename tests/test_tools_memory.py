"""What an agent remembers: stored, found by its words in any script, forgotten, and open to file tools."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import each
from toolcrib import Toolbox
from toolcrib.errors import ToolError
from toolcrib.tools import EditFile, Grep, ReadFile
from toolcrib.tools.backends import Delete, Write
from toolcrib.tools.memory import Forget, MemoryFiles, MemoryStore, Recall, Remember

DAY = 86_400


class Clock:
    """The time in nanoseconds, which stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_800_000_000 * 10**9

    def __call__(self) -> int:
        return self.now

    def pass_days(self, days: float) -> None:
        self.now += int(days * DAY * 10**9)


@pytest.fixture
def store(tmp_path: Path) -> MemoryStore:
    return MemoryStore(tmp_path / "memory.db", user="ada", project="/work")


def box_of(store: MemoryStore) -> Toolbox:
    return Toolbox([Remember(store), Recall(store), Forget(store)], autonomy="full")


def test_what_was_stored_is_recalled_replaced_and_forgotten(store: MemoryStore) -> None:
    box = box_of(store)
    stored = {"name": "Database choice", "content": "PostgreSQL, for its JSON type.", "category": "decisions"}
    assert box.call_sync("memory_store", stored).text == "Remembered as decisions/database-choice.md."
    assert box.call_sync("memory_store", stored).text == "decisions/database-choice.md says so already."
    assert box.call_sync("memory_recall", {"query": "which database"}).text == (
        "decisions/database-choice.md (today): PostgreSQL, for its JSON type."
    )
    replaced = box.call_sync("memory_store", {**stored, "content": "SQLite.", "days": 3}).text
    assert replaced == (
        "Remembered as decisions/database-choice.md for 3 days, in place of: PostgreSQL, for its JSON type."
    )
    assert "for 3 more days" in box.call_sync("memory_recall", {"category": "decisions"}).text
    gone = box.call_sync("memory_forget", {"path": "decisions/database-choice.md"})
    assert gone.text == "Forgot decisions/database-choice.md, which said: SQLite."
    assert box.call_sync("memory_recall", {}).text == "[Nothing has been remembered yet.]"


@each(
    "name, arguments, words",
    [
        ("memory_store", {"name": "a", "content": "  "}, "content is empty"),
        ("memory_store", {"name": "?!", "content": "x"}, "no letters or digits"),
        ("memory_store", {"name": "a", "content": "x" * 4_001}, "content"),
        ("memory_store", {"name": "a", "content": "x", "days": 0}, "days"),
        ("memory_store", {"name": "a", "content": "x", "scope": "world"}, "scope"),
        ("memory_forget", {"path": "notes/b.md"}, "There is no file notes/b.md. Did you mean notes/a.md?"),
        ("memory_forget", {"path": "../a"}, "outside"),
    ],
)
def test_wrong_arguments_are_refused_in_words(
    tmp_path: Path, name: str, arguments: dict[str, object], words: str
) -> None:
    store = MemoryStore(tmp_path / "memory.db")
    store.remember("notes/a.md", "x")
    result = box_of(store).call_sync(name, arguments)
    assert result.is_error and words in result.text, result.text
    assert "categories: notes" in box_of(store).call_sync("memory_recall", {"query": "zebra"}).text


TEXTS = {
    "a/tokyo.md": "東京都の天気は晴れです。",
    "a/beijing.md": "用户喜欢用深色主题，数据库是北京的。",
    "a/kana.md": "コーヒーが好き",
    "a/seoul.md": "사용자는 서울에 산다",
    "a/latin.md": "The user prefers naïve approaches and running tests.",
    "a/wide.md": "ＡＢＣ　port ８０８０",
}


@each(
    "query, path",
    [
        ("天気", "a/tokyo.md"),
        ("東京", "a/tokyo.md"),
        ("都", "a/tokyo.md"),
        ("深色主题", "a/beijing.md"),
        ("北", "a/beijing.md"),
        ("コーヒー", "a/kana.md"),
        ("서울", "a/seoul.md"),
        ("naive", "a/latin.md"),
        ("run the test", "a/latin.md"),
        ("8080", "a/wide.md"),
        ("abc", "a/wide.md"),
    ],
)
def test_texts_are_found_in_every_script(store: MemoryStore, query: str, path: str) -> None:
    for name, text in TEXTS.items():
        store.remember(name, text)
    assert [one.path for one in store.recall(query)][:1] == [path], store.recall(query)


def test_rare_words_and_newer_memories_come_first(tmp_path: Path) -> None:
    clock = Clock()
    store = MemoryStore(tmp_path / "memory.db", clock=clock)
    for number in range(8):
        store.remember(f"log/{number}.md", f"The deployment went well, number {number}.")
    store.remember("log/x.md", "The deployment failed because of the zookeeper.")
    assert store.recall("deployment zookeeper")[0].path == "log/x.md"
    store.remember("rules/old.md", "Deploy with the blue script on Fridays.")
    clock.pass_days(400)
    store.remember("rules/new.md", "Deploy with the green script on Fridays.")
    assert [one.path for one in store.recall("script Fridays")] == ["rules/new.md", "rules/old.md"]


def test_a_memory_expires(tmp_path: Path) -> None:
    clock = Clock()
    store = MemoryStore(tmp_path / "memory.db", clock=clock)
    store.remember("a/short.md", "The build is broken", expires=clock.now / 10**9 + 2 * DAY)
    store.remember("a/long.md", "The build uses make")
    store.apply([Write("a/short.md", b"The build is broken still")])  # an edit does not make it stay
    clock.pass_days(1)
    assert len(store.recall("build")) == 2
    clock.pass_days(1.1)
    assert [one.path for one in store.recall("build")] == ["a/long.md"]
    assert store.load("a/short.md") is None and [path for path, _ in store.below("a")] == ["a/long.md"]
    store.remember("a/other.md", "x")
    with sqlite3.connect(store.path) as database:  # it is removed, not only hidden
        assert database.execute("SELECT count(*) FROM memories WHERE path LIKE '%short%'").fetchone() == (0,)
        assert database.execute("SELECT count(*) FROM words WHERE text LIKE '%broken%'").fetchone() == (0,)


def test_users_and_projects_are_kept_apart(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    ada_here = MemoryStore(path, user="ada", project="/here")
    ada_there = MemoryStore(path, user="ada", project="/there")
    bob_here = MemoryStore(path, user="bob", project="/here")
    box_of(ada_here).call_sync("memory_store", {"name": "tabs", "content": "Likes tabs", "scope": "user"})
    box_of(ada_here).call_sync("memory_store", {"name": "port", "content": "The port is 80"})
    assert [one.path for one in ada_here.recall("")] == ["notes/port.md", "user/notes/tabs.md"]
    assert [one.path for one in ada_there.recall("")] == ["user/notes/tabs.md"]
    assert bob_here.recall("") == [] and bob_here.below(".") == []
    assert bob_here.load("notes/port.md") is None
    with pytest.raises(ToolError):
        bob_here.apply([Delete("notes/port.md")])
    assert ada_here.recall("port")[0].category == ada_there.recall("tabs")[0].category == "notes"


def test_file_tools_open_the_same_store(store: MemoryStore) -> None:
    box = Toolbox(
        [Remember(store), Recall(store), ReadFile(store), EditFile(store), Grep(store)], autonomy="full"
    )
    box.call_sync("memory_store", {"name": "port", "content": "The port is 80", "category": "facts"})
    edit = {"path": "facts/port.md", "old_string": "80", "new_string": "8080"}
    assert not box.call_sync("edit_file", edit).is_error
    assert "The port is 8080" in box.call_sync("memory_recall", {"query": "8080"}).text
    assert "The port is 8080" in box.call_sync("read_file", {"path": "facts/port.md"}).text
    assert "facts/port.md" in box.call_sync("grep", {"pattern": "8080"}).text


def test_queries_of_any_characters_break_nothing(store: MemoryStore) -> None:
    store.remember("a/b.md", 'He said "hello" AND (NEAR) *')

    @settings(max_examples=150)
    @given(st.text(max_size=30))
    def check(query: str) -> None:
        store.recall(query)

    check()
    assert store.recall('"hello" AND (')[0].path == "a/b.md"


def test_every_word_and_every_character_of_an_unspaced_run_is_found(store: MemoryStore) -> None:
    @settings(max_examples=60)
    @given(st.text("日本語中文字的東京大学天気", min_size=1, max_size=8), st.data())
    def check(run: str, data: st.DataObject) -> None:
        store.remember("a/text.md", f"x {run} y")
        start = data.draw(st.integers(0, len(run) - 1))
        end = data.draw(st.integers(start + 1, len(run)))
        assert store.recall(run[start:end]), run[start:end]

    check()


def test_threads_and_processes_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = MemoryStore(path)
    script = (
        "import sys; from toolcrib.tools.memory import MemoryStore\n"
        "store = MemoryStore(sys.argv[1])\n"
        "for number in range(20): store.remember(f'p{sys.argv[2]}/{number}.md', f'text {number}')\n"
    )
    processes = [
        subprocess.Popen([sys.executable, "-c", script, str(path), str(number)]) for number in range(2)
    ]
    threads = [
        threading.Thread(target=lambda top=top: [store.remember(f"t{top}/{n}.md", "x") for n in range(20)])  # type: ignore[misc]
        for top in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [process.wait(60) for process in processes] == [0, 0]
    assert len(store.below(".")) == 100 and len(store.recall("text", limit=100)) == 40


def test_the_database_is_private_and_another_one_is_refused(tmp_path: Path) -> None:
    store = MemoryStore(tmp_path / "memory.db")
    if os.name == "posix":
        assert Path(store.path).stat().st_mode & 0o777 == 0o600
    with sqlite3.connect(tmp_path / "other.db") as database:
        database.execute("CREATE TABLE people (name TEXT)")
    with pytest.raises(ValueError, match="holds no memories"):
        MemoryStore(tmp_path / "other.db")


def test_without_a_full_text_index_words_are_still_found(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.remember("a/one.md", "The database is PostgreSQL")
    store.remember("a/two.md", "東京都の天気")
    monkeypatch.setattr(store, "searchable", False)
    assert [one.path for one in store.recall("which database")] == ["a/one.md"]
    assert [one.path for one in store.recall("京都")] == ["a/two.md"]


def test_the_memories_are_files_for_anthropics_memory_tool(store: MemoryStore) -> None:
    box = Toolbox([Remember(store), Recall(store), MemoryFiles(store)], autonomy="full")

    def memory(**arguments: object) -> str:
        return box.call_sync("memory", arguments).text

    assert memory(command="view", path="/memories") == "There are no files in /memories yet."
    created = memory(command="create", path="/memories/notes/plan.md", file_text="one\ntwo\n")
    assert created == "File created successfully at: /memories/notes/plan.md"
    assert "exists" in memory(command="create", path="/memories/notes/plan.md", file_text="x")
    memory(command="insert", path="/memories/notes/plan.md", insert_line=1, insert_text="between")
    memory(command="str_replace", path="/memories/notes/plan.md", old_str="two", new_str="three")
    shown = memory(command="view", path="/memories/notes/plan.md", view_range=[2, 3])
    assert shown.endswith("     2\tbetween\n     3\tthree")
    assert "between" in box.call_sync("memory_recall", {"query": "between"}).text
    box.call_sync("memory_store", {"name": "tabs", "content": "Likes tabs", "scope": "user"})
    assert memory(command="view", path="/memories").endswith(
        "/memories/notes/plan.md\n/memories/user/notes/tabs.md"
    )
    memory(command="rename", old_path="/memories/notes", new_path="/memories/plans")
    assert [one.path for one in store.recall("between")] == ["plans/plan.md"]
    assert memory(command="delete", path="/memories/plans") == "Successfully deleted /memories/plans: 1 file"
    assert store.recall("between") == []


def test_the_memory_tool_inserts_at_the_lines_that_it_shows(store: MemoryStore) -> None:
    box = Toolbox([MemoryFiles(store)], autonomy="full")
    store.remember("a.md", "one\u2028\x0c\r still one\ntwo")
    box.call_sync(
        "memory",
        {"command": "insert", "path": "/memories/a.md", "insert_line": 1, "insert_text": "between"},
    )
    shown = box.call_sync("memory", {"command": "view", "path": "/memories/a.md"}).text
    assert shown.endswith("still one\n     2\tbetween\n     3\ttwo")


@each(
    "arguments, words",
    [
        ({"command": "view"}, "needs path"),
        ({"command": "rename", "old_path": "/memories/a"}, "needs new_path"),
        ({"command": "view", "path": "/etc/passwd"}, "must be /memories or lie below it"),
        ({"command": "view", "path": "/memories/../etc"}, "must be /memories or lie below it"),
        ({"command": "create", "path": "/memories", "file_text": "x"}, "cannot be changed"),
        ({"command": "view", "path": "/memories/none.md"}, "does not exist"),
        ({"command": "delete", "path": "/memories/none.md"}, "does not exist"),
        (
            {"command": "str_replace", "path": "/memories/a.md", "old_str": "x", "new_str": "y"},
            "occurs 2 times",
        ),
        (
            {"command": "str_replace", "path": "/memories/a.md", "old_str": "", "new_str": "y"},
            "does not occur",
        ),
        (
            {"command": "insert", "path": "/memories/a.md", "insert_line": 9, "insert_text": "y"},
            "within 0 and 1",
        ),
        ({"command": "view", "path": "/memories/a.md", "view_range": [2, 9]}, "within 1 and 1"),
        ({"command": "create", "path": "/memories/b.md", "file_text": "y" * 100_001}, "100,001 bytes long"),
        (
            {"command": "insert", "path": "/memories/a.md", "insert_line": 0, "insert_text": "y" * 99_999},
            "100,003 bytes long",
        ),
        ({"command": "edit", "path": "/memories/a.md"}, "command"),
    ],
)
def test_wrong_commands_of_the_memory_tool_are_refused(
    tmp_path: Path, arguments: dict[str, object], words: str
) -> None:
    store = MemoryStore(tmp_path / "memory.db")
    store.remember("a.md", "x x")
    result = Toolbox([MemoryFiles(store)], autonomy="full").call_sync("memory", arguments)
    assert result.is_error and words in result.text, result.text
    assert store.recall("")[0].text == "x x"


def test_looking_at_memories_asks_nobody_and_changing_them_does(store: MemoryStore) -> None:
    box = Toolbox([MemoryFiles(store)])
    assert not box.call_sync("memory", {"command": "view", "path": "/memories"}).is_error
    refused = box.call_sync("memory", {"command": "create", "path": "/memories/a.md", "file_text": "x"})
    assert refused.is_error and store.recall("") == []

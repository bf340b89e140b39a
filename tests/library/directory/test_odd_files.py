"""Files of a directory store: texts of tools, and files that are odd."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from agentkit import Episode, ToolDefinition, open_store
from agentkit.errors import DefinitionError, StoreError, StoreFormatError, StoreUnavailableError
from agentkit.library import LibraryChange
from agentkit.library.directory import DirectoryStore, open_directory
from agentkit.library.directory.files import file_stem, from_yaml, to_yaml
from agentkit.library.directory.folder import Folder


@pytest.fixture
def secret(tmp_path):
    """A file outside of the store."""
    path = tmp_path / "secret"
    path.write_text("name: ping\npassword: hunter2\n")
    return path


@pytest.mark.parametrize("name", ["ping", "new"])
def test_of_a_link_nothing_is_told(workshop, make_tool, secret, name):
    """A link to a file elsewhere is a fault, its text is told nowhere, and the file stays."""
    path, text = workshop.file(name), secret.read_text()
    path.unlink(missing_ok=True)
    path.symlink_to(secret)
    assert workshop.store.edits() == {path: "it is a link; put a copy of the file here"}
    assert "hunter2" not in str([fault.message for fault in workshop.store.check()])
    with pytest.raises(StoreError, match="edited by hand"):
        workshop.put(make_tool(name, "New."))
    assert path.is_symlink()
    assert secret.read_text() == text


def lead_to_a_device(path):
    """What git can bring: a link to a file without end."""
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [os.mkfifo, lead_to_a_device, os.mkdir])
@pytest.mark.parametrize("name", ["ping", "new"])
def test_what_never_ends_is_not_read(workshop, make_tool, make, name):
    """A pipe, a device and a folder in the place of a tool's file are faults, and left alone."""
    path = workshop.file(name)
    path.unlink(missing_ok=True)
    make(path)
    ((told, why),) = workshop.store.edits().items()
    assert (told, why.startswith("it is ")) == (path, True)
    with pytest.raises(StoreError, match="edited by hand"):
        workshop.put(make_tool(name, "New."))
    workshop.put(make_tool("other", "Newer."))
    assert workshop.again().load().version == 2


@pytest.mark.parametrize(
    "name", ["../../x", "/etc/passwd", "a\\b", "..", "CON", "nul.txt", "x\n", "A", "a" * 300, ".a"]
)
def test_a_hostile_name_stays_in_the_folder(workshop, name):
    """Whatever a tool is called, its file lies in the folder, and both come back."""
    before = {path for path in workshop.path.parent.rglob("*") if workshop.path not in path.parents}
    names = {name, name.swapcase()}
    workshop.put(*(ToolDefinition(name=one) for one in names))
    after = {path for path in workshop.path.parent.rglob("*") if workshop.path not in path.parents}
    files = [path.name.casefold() for path in (workshop.path / "tools").iterdir()]
    assert (after, len(files)) == (before, len(set(files)))
    assert names <= {tool.name for tool in workshop.again().load()}
    assert workshop.store.edits() == {}


EDIT_WHILE_THE_STORE_WRITES = """
import sys
from pathlib import Path

from agentkit import ToolDefinition
from agentkit.library import LibraryChange
from agentkit.library.directory import DirectoryStore

store = DirectoryStore(sys.argv[1])
ping, pong = (store.path / "tools" / f"{name}.yaml" for name in ("ping", "pong"))


def edit(event, told):
    if event == "os.rename" and str(told[1]) == str(ping):
        pong.write_text("name: pong\\ndescription: {summary: Mine.}\\n")


sys.addaudithook(edit)
tools = (ToolDefinition(name="ping"), ToolDefinition(name="pong"))
if sys.argv[2] == "change":
    change = LibraryChange(proposal_id="2", upserts=tools)
else:
    change = LibraryChange(proposal_id="2", upserts=tools[:1], removals=("pong",))
store.commit(change, expected_version=1)
"""


@pytest.mark.parametrize("what", ["change", "removal"])
def test_an_edit_between_plan_and_writing_stays(workshop, what):
    """Whoever saves a file while others are written keeps the text, and the library its own."""
    command = [sys.executable, "-c", EDIT_WHILE_THE_STORE_WRITES, str(workshop.path), what]
    subprocess.run(command, check=True)
    assert workshop.again().edits() == {workshop.file("pong"): ""}
    assert "Mine." in workshop.file("pong").read_text()


@pytest.mark.parametrize("name", ["local", "tools"])
@pytest.mark.parametrize("is_dangling", [False, True])
def test_a_link_in_place_of_a_folder_is_refused(workshop, make_tool, tmp_path, name, is_dangling):
    """A link that git put in the place of one of the folders is refused; nothing lands behind it."""
    victim = tmp_path / "victim"
    if not is_dangling:
        victim.mkdir()
    place = workshop.path / name
    place.rename(tmp_path / "away")
    place.symlink_to("../victim")
    episode = Episode(episode_id="e", request="secret words")
    change = LibraryChange(proposal_id="2", upserts=(make_tool("new"),))
    for use in (
        lambda: workshop.store.append(episode),
        lambda: workshop.store.commit(change, expected_version=1),
        workshop.again,
    ):
        with pytest.raises(StoreError, match=f"{name} is a link"):
            use()
    assert not is_dangling or not victim.exists()
    assert is_dangling or list(victim.iterdir()) == []


@pytest.mark.parametrize("what", ["link", "device", "pipe"])
def test_a_log_that_is_no_plain_file_is_refused(workshop, tmp_path, what):
    """A link that git kept leads outside, or to what never ends; it is refused, not read."""
    entry = workshop.path / "log.jsonl"
    content = entry.read_bytes()
    entry.unlink()
    if what == "pipe":
        os.mkfifo(entry)
    else:
        (tmp_path / "away.json").write_bytes(content)
        entry.symlink_to(tmp_path / "away.json" if what == "link" else "/dev/zero")
    with pytest.raises(StoreError, match="is not a plain file"):
        workshop.again().load()


@pytest.mark.parametrize("name", ["local", "local/episodes.db", "local/lock"])
def test_a_link_that_came_after_opening_is_refused(tmp_path, make_tool, name):
    """An open store looks again before it writes, for git may have put a link there meanwhile."""
    folder = tmp_path / "library"
    store = open_store(f"dir:{folder}")
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).symlink_to(tmp_path / "victim")
    change = LibraryChange(proposal_id="1", upserts=(make_tool("ping"),))
    with pytest.raises(StoreError, match="is a link"):
        store.append(Episode(episode_id="e", request="secret words"))
    with pytest.raises(StoreError, match="is a link"):
        store.commit(change, expected_version=0)
    store.close()
    assert not (tmp_path / "victim").exists()


@pytest.mark.parametrize("name", ["lock", "episodes.db", "episodes.db-wal", "draft-1.tmp"])
def test_a_pipe_in_the_local_folder_is_refused(workshop, make_tool, name):
    """A pipe that an archive brought is refused by name by all who would wait at it."""
    path = workshop.path / "local" / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    change = LibraryChange(proposal_id="2", upserts=(make_tool("new"),))
    for use in (
        lambda: workshop.store.append(Episode(episode_id="e", request="secret words")),
        lambda: workshop.store.commit(change, expected_version=1),
        workshop.again,
    ):
        with pytest.raises(StoreError, match=f"{name} is a pipe or a device"):
            use()


@pytest.mark.parametrize("folder", ["tools", "."])
def test_a_file_of_holes_is_not_read(workshop, folder):
    """A terabyte of nothing, which an archive holds in a kilobyte, is refused by its size."""
    path = min(one for one in (workshop.path / folder).iterdir() if one.is_file())
    with path.open("rb+") as file:
        file.truncate(1 << 40)
    with pytest.raises(StoreError, match="more than a store writes"):
        workshop.again().edits()


def refused(workshop, match: str) -> None:
    """Opening raises a StoreFormatError and changes nothing."""
    before = workshop.contents()
    with pytest.raises(StoreFormatError, match=match):
        workshop.again()
    assert workshop.contents() == before


def rewrite(workshop, change):
    """Change the lines of the log, each with its end."""
    log = workshop.path / "log.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(change(lines)))


def test_a_change_that_was_altered_is_found_out(workshop, make_tool):
    """Its definitions have other digests; and the line behind does not follow it any more."""
    workshop.put(make_tool("ping", "New."))
    log = workshop.path / "log.jsonl"
    whole = log.read_text()
    log.write_text(whole.replace("Ping a host.", "Pay the bill."))
    refused(workshop, "changed after it was written")
    log.write_text(whole.replace('"proposal_id": "change-0"', '"proposal_id": "change-7"'))
    refused(workshop, "forked")
    log.write_text(whole)
    rewrite(workshop, lambda lines: [lines[0], *lines[2:]])
    refused(workshop, "forked")
    log.write_text(whole)
    assert list(workshop.again().check()) == []


def test_a_newer_format_is_refused(workshop):
    """What a newer agentkit wrote is refused with the way out."""
    rewrite(workshop, lambda lines: [lines[0].replace("2", "3"), *lines[1:]])
    refused(workshop, "format 3.*pip install --upgrade agentkit-evolve")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{\n", "damaged"),
        ("[]\n", "no JSON object"),
        ('{"a": 1}\n', "forked"),
        ("<<<<<<< ours\n", "could not merge"),
    ],
)
def test_a_damaged_line_is_named(workshop, line, why):
    """A log with a line that cannot be read is refused, and left as it is."""
    rewrite(workshop, lambda lines: [*lines, line])
    refused(workshop, rf"log\.jsonl.*{why}|{why}.*log\.jsonl")


def test_the_folder_of_another_program_is_refused(tmp_path):
    """A folder with tools that are not ours is left alone, and one with other files is not."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "hammer.yaml").write_text("mine")
    with pytest.raises(StoreError, match="not from a store"):
        open_directory(f"dir:{tmp_path}")
    (tmp_path / "other").mkdir()
    for content in ("anything", '{"pages": []}\n'):
        (tmp_path / "other" / "log.jsonl").write_text(content)
        with pytest.raises(StoreFormatError, match="not written by agentkit"):
            open_directory(f"dir:{tmp_path / 'other'}")


def test_looking_makes_nothing(tmp_path):
    """A folder is made with the first change or episode, not by reading."""
    store = open_store(f"dir:{tmp_path / 'library'}")
    store.load()
    list(store.select())
    assert (store.get("x"), store.edits(), list(store.check())) == (None, {}, [])
    assert not (tmp_path / "library").exists()
    store.append(Episode(episode_id="e", request="?"))
    assert [path.name for path in (tmp_path / "library").iterdir()] == ["local"]
    store.close()


def test_without_pyyaml_the_extra_is_named(tmp_path):
    """Where PyYAML is absent, the error says what to install."""
    program = (
        "import sys; sys.modules['yaml'] = None  # as if it were absent\n"
        "from agentkit.library.directory import open_directory\n"
        f"open_directory('dir:{tmp_path}/yaml')"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert "MissingExtraError" in ran.stderr
    assert 'pip install "agentkit-evolve[dir]"' in ran.stderr


def test_a_lock_that_is_held_for_too_long_is_told(workshop, make_tool):
    """A writer that is kept waiting raises, nothing is changed, and readers go on."""
    impatient = DirectoryStore(workshop.path, timeout_seconds=0.05)
    late = LibraryChange(proposal_id="late", upserts=(make_tool("late"),))
    with Folder(workshop.path, timeout_seconds=1).locked():
        with pytest.raises(StoreUnavailableError, match=r"locked.*0\.05 s"):
            impatient.commit(late, expected_version=1)
        assert impatient.load().version == 1
    assert impatient.commit(late, expected_version=1) == 2
    impatient.close()


TRAPS = [
    *("no", "y", "NULL", "~", "true", "1e3", "1_000", "0x1f", "010", ".5", ".inf", "190:20:30"),
    *("2024-01-01", "=", "<<", "-", "- a", "? a", "a: b", "a:", "a #b", "#", "---", "...", "%a"),
    *("!!str a", "&a", "*a", "@a", "`a", "|", ">", '"', "'", "\\", "[a", "{a", "a, b", "", " "),
    *(" a", "a ", "a\n", "a\n\n", "\n", "\na", "\n\na\n", "  a\n b", "a\n  b\n", "\ta", "a\n\tb"),
    *("a \nb", "a\n \nb", "a\rb", "\u0085", "a\u2028b", "\ufeffa", "\u00a0", "a\u202eb", "\x00"),
    *("天気", "e\u0301", "🌦️", "\U0010ffff"),
]
CHARACTERS = st.one_of(
    st.characters(exclude_categories=["Cs"]), st.sampled_from(" \n\t:#-'\"\\|>\u0085[]{},aA1é天")
)
WORDS = st.sampled_from(
    [
        "word ",
        "Sentence. ",
        "Next ",
        "e.g. ",
        "\n",
        "\n\n",
        "- a",
        "# b",
        "  ",
        "\t",
        "é天",
        "a" * 99,
    ]
)
TEXTS = st.one_of(
    st.sampled_from(TRAPS), st.text(CHARACTERS), st.lists(WORDS, max_size=60).map("".join)
)
NUMBERS = st.one_of(
    st.integers(-(10**40), 10**40), st.floats(allow_nan=False, allow_infinity=False)
)
DATA = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXTS, DATA, min_size=1, max_size=4)


def same(one: object, other: object) -> bool:
    """Whether data are equal to the letter: order of keys, and ``1`` is not ``1.0``."""
    return json.dumps(one) == json.dumps(other)


@settings(deadline=None)
@given(OBJECTS)
def test_any_data_come_back_from_yaml(record):
    """What JSON can hold is read back exactly, by us and by a reader of YAML 1.1."""
    text = to_yaml(record)
    assert same(from_yaml(text), record)
    assert same(yaml.safe_load(text), record)


def test_what_nobody_sees_is_written_out():
    """Characters that hide from a reviewer stand as their numbers."""
    shown = to_yaml({"summary": "a\u200bb\u202ec\u00a0d"})
    assert shown == 'summary: "a\\u200bb\\u202ec\\u00a0d"\n'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: [1", "line 2"),
        ("a: &x 1\nb: *x", "stands for another part"),
        ("a: 1\na: 2", "a second time"),
        ("1: a", "is not text"),
        ("a: !!python/object/apply:os.system [ls]", "tag"),
        ("a: 1\n---\nb: 2", "another document"),
        ("\x00", "not allowed"),
        ("a: " + "[" * 3000, "nest"),
        ("a: " + "[" * 100_000 + "]" * 100_000, "nest"),
        (f"a: {'9' * 5000}", "cannot be read"),
        ("a: !!bool zz", "cannot be read"),
        ("a: !!int ''", "cannot be read"),
        ("a: !!float ''", "cannot be read"),
        ("a: !!set [1]", "expected a mapping|cannot be read"),
        ("%TAG !a! tag:x,1:\n---\na: 1", "line 1: no line may begin with '%'"),
        ("\ufeff%x\n---\na: 1", "line 1: no line may begin with '%'"),
        ("a: 1\r...\r%TAG !a! tag:x,1:\r---\rb: 1", "no line may begin with '%'"),
        ("a: [" + "".join(f"&a{at} 1, " for at in range(1_001)) + "]", "more than 1,000 parts"),
    ],
)
def test_what_json_does_not_have_is_refused(text, why):
    """Anchors, doubled keys, foreign types and broken lines are told, and nothing is run."""
    with pytest.raises(DefinitionError, match=why):
        from_yaml(text)


def test_very_many_values_are_refused():
    """A file that is all values would take a hundred times its size in memory; none is built."""
    with pytest.raises(DefinitionError, match="it holds more than"):
        from_yaml("a: [" + "1," * 400_000 + "1]")


def test_a_person_means_letters():
    """``no``, dates and sexagesimal numbers that a person writes are texts, as they look."""
    assert from_yaml("a: no\nb: 2024-01-01\nc: 1:30\nd: 010\ne: 1e3\nf: ~") == {
        "a": "no",
        "b": "2024-01-01",
        "c": "1:30",
        "d": "010",
        "e": 1000.0,
        "f": None,
    }
    assert from_yaml("%YAML 1.1\n---\na: 5%\nb: &b |\n  % c\n") == {"a": "5%", "b": "% c\n"}


NAMES = st.one_of(
    st.text(min_size=1),
    st.text(st.sampled_from("aAbBéÉ-_./ 1"), min_size=1, max_size=6),
    st.text("ab", min_size=60, max_size=300),
)


def as_a_file_system_sees(stem: str) -> str:
    """What a file system compares that sees neither case nor the form of accents."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", stem).casefold())


@given(NAMES, NAMES)
def test_two_names_never_share_a_file(one, other):
    """Names that differ have files that differ, also where case and accents do not count."""
    if one != other:
        assert as_a_file_system_sees(file_stem(one)) != as_a_file_system_sees(file_stem(other))


@given(NAMES)
def test_a_name_is_safe_everywhere(name):
    """No name leaves the folder, is hidden, is too long or means a device."""
    stem = file_stem(name)
    assert not set(stem) & set('/\\:*?"<>|\0 ')
    assert stem.isprintable()
    assert not stem.startswith((".", "-"))
    assert not stem.endswith(".")
    assert len(f"{stem}.yaml".encode()) <= 255
    assert stem.split(".")[0] not in {"con", "nul", "aux", "prn", "com1", "lpt9"}

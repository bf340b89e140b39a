"""Edits by hand are seen and never overwritten, and a commit that is killed anywhere was made, or was not."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from agentkit.errors import StoreError, StoreFormatError
from agentkit.library import LibraryChange
from agentkit.library.checking import check_store
from agentkit.library.copying import copy_store
from agentkit.library.directory import DirectoryStore
from agentkit.tools.definition import Description, ToolDefinition


def test_an_untouched_folder_has_no_edits(workshop):
    """What the store wrote itself is no edit, also when it is written or saved once more."""
    assert workshop.store.edits() == {}
    workshop.file("ping").write_bytes(workshop.file("ping").read_bytes())
    os.utime(workshop.file("pong"), (0, 0))
    assert workshop.again().edits() == {}


@pytest.mark.parametrize(
    "dressed",
    [
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: b"# read me\n" + text,
        lambda text: text.replace(b"Ping a host.", b"'Ping a host.'"),
    ],
)
def test_other_words_of_yaml_are_no_edit(workshop, make_tool, dressed):
    """Line ends of another system, comments and quotes change no definition."""
    workshop.file("ping").write_bytes(dressed(workshop.file("ping").read_bytes()))
    assert workshop.store.edits() == {}
    workshop.put(make_tool("ping", "Ping twice."))
    assert "Ping twice." in workshop.file("ping").read_text()
    assert workshop.store.edits() == {}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("Ping a host.", '"Ping', "line "),
        ("summary:", "sumary:", "did you mean `summary`"),
        (
            "summary: Ping a host.",
            "summary: 7",
            "description.summary` must be a string, got the number",
        ),
        ("name: ping", "name: ping\nname: ping", "a second time"),
        ("type: object", "type: objekt", "signature.parameters: `type`"),
        ("format: 1", "format: 99", "format 99"),
        ("Ping a host.", "a\n<<<<<<< HEAD\n b\n=======\n c\n>>>>>>> theirs", "could not merge"),
    ],
)
def test_what_is_wrong_with_an_edit_is_told(workshop, old, new, why):
    """A file that cannot be taken is an edit with the reason; the tool goes on as it is."""
    workshop.edit("ping", old, new)
    (told,) = workshop.store.edits().values()
    assert why in told
    assert len(workshop.store.load()) == 2


def test_a_readable_file_is_taken_in(workshop, make_tool):
    """A commit of what an edited or a new file says is made; the file of another name is told."""
    workshop.edit("ping", "Ping a host.", "Ping a host by its name.")
    assert workshop.store.edits() == {workshop.file("ping"): ""}
    workshop.put(make_tool("ping", "Ping a host by its name."))
    text = workshop.file("ping").read_text().replace("name: ping", "name: pang")
    workshop.file("pang").write_text(text)
    workshop.file("mine").write_text(text)
    workshop.put(make_tool("pang", "Ping a host by its name."))
    assert workshop.store.edits() == {workshop.file("mine"): ""}
    assert workshop.file("mine").read_text() == text


def test_a_deleted_file_is_an_edit(workshop):
    """The tool stays until a commit takes it out."""
    workshop.file("ping").unlink()
    assert workshop.again().edits() == {workshop.file("ping"): ""}
    assert "ping" in workshop.store.load()
    workshop.put(remove=("ping",))
    assert workshop.store.edits() == {}


def tool(name, summary=""):
    """A tool of some words."""
    return ToolDefinition(name=name, description=Description(summary=summary))


def by_hand(workshop):
    """A text by hand."""
    workshop.edit("ping", "Ping a host.", "Ping by hand.")


def put_back(workshop):
    """What an earlier version said, as git restores it."""
    old = workshop.file("ping").read_bytes()
    workshop.put(tool("ping", "New."))
    workshop.file("ping").write_bytes(old)


def deleted(workshop):
    """No file any more."""
    workshop.file("ping").unlink()


def in_the_way(workshop):
    """A file for a tool that a commit is about to add."""
    text = workshop.file("ping").read_text().replace("name: ping", "name: pang")
    workshop.file("pang").write_text(text)


@pytest.mark.parametrize(
    ("edit", "names", "remove"),
    [
        (by_hand, ("ping", "pong"), ()),
        (by_hand, ("pong",), ("ping",)),
        (put_back, ("ping",), ()),
        (deleted, ("ping",), ()),
        (in_the_way, ("pang",), ()),
    ],
)
def test_a_commit_overwrites_no_edit(workshop, edit, names, remove):
    """A change of a tool whose file somebody edited is refused whole; another one is made."""
    edit(workshop)
    before, version = workshop.contents(), workshop.store.load().version
    with pytest.raises(StoreError, match=r"was edited by hand.*git checkout"):
        workshop.put(*(tool(name, "By program.") for name in names), remove=remove)
    assert (workshop.contents(), workshop.store.load().version) == (before, version)
    workshop.put(tool("other"))
    (left,) = workshop.again().edits()
    assert left.stem == ("pang" if edit is in_the_way else "ping")


def test_foreign_files_are_left_alone(workshop, make_tool):
    """Files of other programs stay as they are."""
    places = ["notes.txt", "tools/README.md", "tools/.ping.yaml.swp"]
    for place in places:
        (workshop.path / place).write_text("mine")
    workshop.put(make_tool("ping", "New."), make_tool("more"))
    assert [(workshop.path / place).read_text() for place in places] == ["mine"] * 3
    assert (workshop.store.edits(), list(workshop.store.check())) == ({}, [])


def test_a_check_tells_of_edits(workshop):
    """An edit is a note of ``check``; one that cannot be read is a fault, with the reasons."""
    workshop.edit("ping", "Ping a host.", "Ping by hand.")
    workshop.edit("pong", "summary:", "sumary:")
    ping, pong = workshop.store.check()
    assert (ping.place, ping.is_note) == ("ping.yaml", True)
    assert f"agentkit tools import {workshop.file('ping')} --on-conflict" in ping.advice
    assert (pong.place, pong.is_note) == ("pong.yaml", False)
    assert "`description.sumary` is not a field" in pong.message


@pytest.fixture
def git(workshop):
    """Runs git in a checkout around the store, whose files are committed."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")

    def run(*arguments: str, fails: bool = False) -> str:
        names = [
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@example.com",
            "-c",
            "core.hooksPath=/dev/null",
        ]
        done = subprocess.run(
            ["git", *names, *arguments],
            cwd=workshop.path.parent,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode != 0) is fails, done.stdout + done.stderr
        return done.stdout

    run("init", "--quiet", "--initial-branch=main", ".")
    run("add", ".")
    run("commit", "--quiet", "-m", "first")
    return run


def fork(workshop, make_tool, git) -> None:
    """Two branches that both made version 2; the checkout is on ``main``."""
    git("checkout", "--quiet", "-b", "theirs")
    workshop.put(make_tool("ping", "Ping of theirs."))
    git("add", ".")
    git("commit", "--quiet", "-m", "theirs")
    git("checkout", "--quiet", "main")
    workshop.put(make_tool("pong", "Pong of ours."))
    git("add", ".")
    git("commit", "--quiet", "-m", "ours")


def test_git_sees_what_is_to_be_reviewed(workshop, make_tool, git):
    """A commit changes the tool's file, and adds a line to the log; the rest git never sees."""
    workshop.put(make_tool("ping", "Ping a host by its name."))
    changed = git("status", "--short", "--untracked-files=all").split("\n")
    assert [line[3:] for line in changed if line] == [
        "library/log.jsonl",
        "library/tools/ping.yaml",
    ]
    diff = git("diff", "--unified=0", "library/tools").splitlines()
    assert [line for line in diff if line.startswith(("-  ", "+  "))] == [
        "-  summary: Ping a host.",
        "+  summary: Ping a host by its name.",
    ]


def test_another_branch_is_another_store(workshop, make_tool, git):
    """An open store follows git to another branch, back in time too, and commits there."""
    fork(workshop, make_tool, git)
    store = workshop.store
    assert store.load()["pong"].definition.description.summary == "Pong of ours."
    git("checkout", "--quiet", "theirs")
    assert store.load()["ping"].definition.description.summary == "Ping of theirs."
    assert store.load(2)["pong"].definition.description.summary == "Answer."
    git("checkout", "--quiet", "theirs~1")
    assert (store.load().version, store.edits()) == (1, {})
    assert workshop.put(make_tool("ping", "Once more.")) == 2
    assert list(workshop.again().check()) == []


def test_two_branches_that_made_one_version_are_named(workshop, make_tool, git):
    """What git could not merge is refused, named, and left as it is."""
    fork(workshop, make_tool, git)
    git("merge", "theirs", fails=True)
    before = workshop.contents()
    for use in (workshop.store.load, workshop.again):
        with pytest.raises(StoreFormatError, match=r"log\.jsonl.*could not merge"):
            use()
    assert workshop.contents() == before


def test_a_forked_history_is_recognised(workshop, make_tool, git):
    """A line of one branch behind a line of another is no history."""
    fork(workshop, make_tool, git)
    workshop.put(make_tool("pong", "More of ours."))
    log = workshop.path / "log.jsonl"
    *_, last = log.read_text().splitlines(keepends=True)
    git("checkout", "theirs", "--", "library/log.jsonl")
    log.write_text(log.read_text() + last)
    before = workshop.contents()
    with pytest.raises(StoreFormatError, match="forked"):
        workshop.again()
    assert workshop.contents() == before


PROGRAM = Path(__file__).with_name("kill_at_each_step.py")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_commit_may_be_killed_at_every_step(tmp_path):
    """Whoever opens next ends what was begun, around an edit by hand, and a retry is safe."""
    ran = subprocess.run(
        [sys.executable, PROGRAM, tmp_path], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["made"] > 3
    assert found["not made"] > 3
    assert found["made"] + found["not made"] == found["steps"]


def test_half_a_line_is_laid_aside(workshop, make_tool):
    """What a writer that was killed left behind the last line is no change, and is not lost."""
    log = workshop.path / "log.jsonl"
    with log.open("ab") as file:
        file.write(b'{"previous": "a killed wri')
    assert workshop.again().load().version == 1
    (note,) = workshop.store.check()
    assert "half a change" in note.message
    assert workshop.put(make_tool("ping", "New.")) == 2
    assert workshop.again().load(2)["ping"].definition.description.summary == "New."
    (aside,) = (workshop.path / "local").glob("log-*.part")
    assert aside.read_bytes() == b'{"previous": "a killed wri'
    assert list(workshop.store.check()) == []


def test_a_line_that_only_lacks_its_newline_is_a_line(workshop, make_tool):
    """An editor that takes the last newline away takes no change away; the next one writes it."""
    workshop.put(make_tool("ping", "New."))
    log = workshop.path / "log.jsonl"
    whole = log.read_bytes()
    log.write_bytes(whole.removesuffix(b"\n"))
    for opened in (lambda: workshop.store, workshop.again):
        store = opened()
        assert store.load()["ping"].definition.description.summary == "New."
        assert (store.load().version, list(store.check())) == (2, [])
    with log.open("ab") as file:
        file.write(b"\n")
    assert (workshop.store.load().version, list(workshop.store.check())) == (2, [])
    log.write_bytes(whole.removesuffix(b"\n"))
    assert workshop.put(make_tool("ping", "Newest.")) == 3
    assert log.read_bytes().startswith(whole)
    assert [one.version for one in workshop.again().changes()] == [1, 2, 3]
    assert not list((workshop.path / "local").glob("log-*"))


def test_a_read_only_checkout_tells_of_edits(workshop, make_tool):
    """Where nothing can be written, as in a fresh clone, edits are told and nothing is made."""
    workshop.put(make_tool("ping", "New."), make_tool("more"))
    workshop.edit("pong", "Answer.", "Answer by hand.")
    shutil.rmtree(workshop.path / "local")
    before = workshop.contents()
    assert workshop.again().edits() == {workshop.file("pong"): ""}
    assert {fault.place for fault in workshop.store.check()} == {"pong.yaml"}
    assert (workshop.contents(), (workshop.path / "local").exists()) == (before, False)


OLD = Path(__file__).parents[2] / "formats" / "written_2026_11" / "directory"


def test_a_store_of_format_1_is_brought_up_to_date(tmp_path, make_tool):
    """Opening it writes the log, with every version and event; files of tools stay."""
    shutil.copytree(OLD, tmp_path / "library")
    file = tmp_path / "library" / "tools" / "with_tax.yaml"
    file.write_text(file.read_text() + "# a word of mine\n")
    with closing(DirectoryStore(tmp_path / "library")) as store:
        changes, events = list(store.changes()), store.events()
        assert (store.edits(), list(store.check())) == ({}, [])
        assert file.read_text().endswith("# a word of mine\n")
        change = LibraryChange(proposal_id="new", upserts=(make_tool("new"),))
        assert store.commit(change, expected_version=len(changes)) == len(changes) + 1
    names = sorted(path.name for path in (tmp_path / "library").iterdir())
    assert names == ["local", "log.jsonl", "tools"]
    with closing(DirectoryStore(tmp_path / "library")) as store:
        assert list(store.changes())[:-1] == changes
        assert store.events() == events
        assert check_store(store).is_sound


def test_a_store_of_json_files_is_read_and_copied(workshop, make_tool, tmp_path):
    """Its library loads; writing is refused with the command that makes a store of YAML files."""
    log = workshop.path / "log.jsonl"
    first, second = log.read_bytes().splitlines()
    head = first.replace(b"yaml", b"json")
    old, new = (hashlib.sha256(one).hexdigest().encode() for one in (first, head))
    log.write_bytes(head + b"\n" + second.replace(old, new) + b"\n")
    store = workshop.again()
    assert (len(store.load()), store.edits()) == (2, {})
    with pytest.raises(StoreError, match="agentkit store copy dir:"):
        workshop.put(make_tool("new"))
    with closing(DirectoryStore(tmp_path / "copy")) as other:
        assert copy_store(store, other).versions == 1
        written = sorted((tmp_path / "copy" / "tools").iterdir())
        assert [one.name for one in written] == ["ping.yaml", "pong.yaml"]

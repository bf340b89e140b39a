"""A store in a git checkout: git may do with it what it does, and the store never touches git."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from agentkit.errors import StoreFormatError

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def git(workshop):
    """Runs git in a checkout around the store, whose files are committed."""

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


def test_a_clone_is_the_store(workshop, make_tool, git, tmp_path):
    """A clone loads, takes edits and commits like the folder that it was made from."""
    git("clone", "--quiet", ".", str(tmp_path / "clone"))
    other = type(workshop)(tmp_path / "clone" / "library")
    assert other.store.load().definitions == workshop.store.load().definitions
    assert (other.store.edits(), list(other.store.check())) == ((), [])
    assert other.put(make_tool("ping", "New.")) == 2
    other.store.close()


def test_another_branch_is_another_store(workshop, make_tool, git):
    """An open store follows git to another branch, back in time too, and commits there."""
    fork(workshop, make_tool, git)
    store = workshop.store
    assert store.load()["pong"].definition.description.summary == "Pong of ours."
    git("checkout", "--quiet", "theirs")
    assert store.load()["ping"].definition.description.summary == "Ping of theirs."
    assert store.load(2)["pong"].definition.description.summary == "Answer."
    git("checkout", "--quiet", "theirs~1")
    assert (store.load().version, store.edits()) == (1, ())
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


def test_the_other_side_comes_as_edits(workshop, make_tool, git):
    """With the folder of one side and the tools of both, the other side's texts are edits."""
    fork(workshop, make_tool, git)
    git("merge", "theirs", fails=True)
    git("checkout", "--ours", "library/log.jsonl")
    store = workshop.again()
    (edit,) = store.edits()  # git merged the files of tools
    assert (edit.name, edit.is_conflict) == ("ping", False)
    assert edit.after == make_tool("ping", "Ping of theirs.")
    assert workshop.put(edit.after) == 3
    assert list(store.check()) == []


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

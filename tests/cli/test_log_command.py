"""``agentkit log``: reading the chain of events, and finding what was changed in it."""

import sqlite3
from contextlib import closing

import pytest

from agentkit import ToolDefinition, open_store
from agentkit.library import Author, LibraryChange
from agentkit.library.chain import read_signer
from agentkit.library.events import EventDraft, chained

SECRET = "0123456789abcdef0123456789abcdef"
ADA = Author(kind="person", name="Ada")
MANAGER = Author(kind="program", name="manager")
MODEL = Author(kind="model", name="judge-1", prompt_hash="ab" * 32)
PERIODS = ToolDefinition(name="periods")


def said(kind, author, reason, **parts):
    """A draft about a proposal for the tool ``periods``."""
    about = {"proposal_id": "evidence-3f2a", "tool_name": "periods", "library_version": 1}
    return EventDraft(kind=kind, author=author, reason=reason, **{**about, **parts})


DAYS = {
    "2026-11-20T09:58:01.000001+00:00": [
        said("written", ADA, "import", proposal_id="", digest_after=PERIODS.digest)
    ],
    "2026-11-21T10:03:12.000001+00:00": [
        said("proposed", MODEL, "a rule " * 60, evidence=("e1", "e2")),
        said("approved", ADA, "\u202ereads \x1b[31mwell", facts={"答": [1, 2]}),
    ],
    "2026-11-21T10:04:00.000001+00:00": [
        said("proposed", MODEL, "other", proposal_id="feedback-1", tool_name="天気"),
        said("rejected", MANAGER, "unknown tool", proposal_id="feedback-1", tool_name="天気"),
    ],
}


def fill(url, signer=None):
    """Five events over two days, the first with a tool."""
    store, last = open_store(url), None
    for at, drafts in DAYS.items():
        events = chained(last, drafts, at=at, signer=signer)
        upserts = () if last else (PERIODS,)
        change = LibraryChange(proposal_id=at, upserts=upserts, events=events)
        store.commit(change, expected_version=store.load().version)
        last = events[-1]
    store.close()


@pytest.fixture
def filled(store_url):
    """The store of the test, with five events."""
    fill(store_url)


@pytest.mark.usefixtures("filled")
def test_events_are_listed(invoke):
    """The list says when, what, which tool, who and why, without colours in a pipe."""
    told = invoke("log").stdout
    first = "1 2026-11-20 09:58:01 written periods 1 Ada"
    assert " ".join(told.splitlines()[2].split()).startswith(first)
    assert "judge-1 (model)" in told
    assert "天気" in told
    assert "\x1b" not in told
    assert not [line for line in told.splitlines() if line != line.rstrip()]


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        ((), [1, 2, 3, 4, 5]),
        (("--tool", "天気"), [4, 5]),
        (("--limit", "2"), [4, 5]),
    ],
)
def test_events_are_picked(as_json, options, numbers):
    """By tool, and the newest ones."""
    assert [event["sequence"] for event in as_json("log", *options)] == numbers


@pytest.mark.usefixtures("filled")
def test_one_event_is_shown_whole(invoke, as_json):
    """An event shows its facts, its hash and the one before it; an absent one is an error."""
    told = invoke("log", "3").stdout
    record = as_json("log", "3")
    assert record["hash"] in told
    assert record["previous"] in told
    assert '"答": [' in told
    assert "e1\n                 e2" in invoke("log", "2").stdout
    missing = invoke("log", "6")
    assert (missing.exit_code, "no event 6" in missing.stderr) == (2, True)


@pytest.mark.usefixtures("filled")
def test_a_whole_trail_is_verified(invoke, as_json):
    """Without a fault the exit status is 0, and what was not looked at is said."""
    result = invoke("log", "--verify")
    assert result.exit_code == 0
    assert "5 events: the log is intact" in result.stdout
    assert "signatures were not checked" in result.stderr
    assert "--expect HEAD" in result.stderr
    report = as_json("log", "--verify")
    assert (report["is_whole"], report["faults"], report["notes"]) == (True, [], [])


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("DELETE FROM library_events WHERE sequence = 3", "gap"),
        ("DELETE FROM library_events WHERE sequence = 5", "head"),
    ],
)
def test_what_was_changed_in_the_file_is_found(invoke, tmp_path, statement, code):
    """A dropped event, or one cut off at the end: exit status 1, and a reason."""
    head = invoke("log", "--head").stdout.strip()
    with closing(sqlite3.connect(tmp_path / "library.db")) as raw, raw:
        raw.execute("DROP TRIGGER library_events_delete")  # which keeps programs from accidents
        raw.execute(statement)
    result = invoke("log", "--verify", "--expect", head, "--json")
    assert (result.exit_code, f'"code": "{code}"' in result.stdout) == (1, True)
    told = invoke("log", "--verify", "--expect", head)
    assert (told.exit_code, "was changed after it was written" in told.stdout) == (1, True)


def test_signatures_are_checked_with_a_key(invoke, store_url, tmp_path, monkeypatch):
    """A key from a file or from the environment checks all signatures; another finds all wrong."""
    fill(store_url, read_signer(SECRET))
    assert "not checked" in invoke("log", "--verify").stderr
    (tmp_path / "audit.key").write_text(f"{SECRET}\n")
    (tmp_path / "other.key").write_text(SECRET[::-1])
    assert invoke("log", "--verify", "--key-file", "audit.key").exit_code == 0
    both = ("--key-file", "other.key", "--key-file", "audit.key")
    assert invoke("log", "--verify", *both).exit_code == 0
    assert invoke("log", "--verify", "--key-file", "other.key").exit_code == 1
    monkeypatch.setenv("AGENTKIT_AUDIT_KEY", SECRET)
    result = invoke("log", "--verify")
    assert (result.exit_code, "not checked" in result.stderr) == (0, False)

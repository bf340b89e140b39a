"""``agentkit review``, ``rollback`` and ``log``, with signatures."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from support.cost import check_cost
from support.episodes import episode_of

from agentkit import Agent, ToolDefinition, open_store, tool
from agentkit._waiting import wait_for
from agentkit.cli.review_view import Line, text_diff
from agentkit.evolution import ToolManager
from agentkit.evolution.proposal import Proposal
from agentkit.evolution.serving import running, share_of
from agentkit.evolution.validation.report import TextOrigin
from agentkit.library import LibraryChange
from agentkit.library.chain import read_signer, verify_chain, verify_library
from agentkit.library.events import Author, EventDraft, chained
from agentkit.messages import ToolCall, ToolFailure
from agentkit.testing import ScriptedModel
from agentkit.tools.rules import OneOf

MODEL = Author(kind="model", name="small-model", prompt_hash="0" * 64)


@tool(effects=["reads"])
def loan_offer(amount: float, periods: int) -> float:
    """Calculate the monthly instalment of a car loan.

    Args:
        amount: Sum of the loan in euros.
        periods: Number of months.
    """
    return amount / periods


@pytest.fixture
def manager(store_url):
    """A manager over the store that the commands open, with one tool."""
    store = open_store(store_url)
    manager = ToolManager(store, tools=[loan_offer])
    manager.register([loan_offer], reason="first import")
    yield manager
    store.close()


@pytest.fixture
def proposal_id(manager):
    """A validated proposal: a reworded summary and a learned rule."""
    base = manager.library["loan_offer"].definition
    words = replace(
        base.description, summary="Calculate the monthly instalment of a car loan in euros."
    )
    rules = (OneOf(parameter="periods", values=(36, 48, 60)),)
    candidate = replace(
        base, description=words, specification=replace(base.specification, rules=rules)
    )
    proposal = Proposal.of(
        base,
        candidate,
        stream="evidence",
        author=Author(kind="program", name="evidence"),
        reason="12 of 14 calls gave other terms",
        evidence=("e1", "e2"),
        origins=[TextOrigin(text=words.summary, kind="code")],
    )
    record = manager.submit(proposal)
    assert record.state == "validated", record.failed
    return record.proposal_id


def test_a_person_takes_a_proposal_through(invoke, as_json, proposal_id, store_url):
    """list, approve, rollback: the whole way, every decision an event."""
    (waits,) = as_json("review")
    assert waits["state"] == "validated"
    assert waits["waits_for"] == "waits for a comparison on held-out tasks or a person's approval"
    assert waits["commands"][0] == f"agentkit review approve {proposal_id}"
    done = as_json("review", "approve", "loan_offer", "--reason", "as in the contract")
    assert (done["proposal_id"], done["state"]) == (proposal_id, "active")
    assert done["library_version"] == 2
    assert "one of 36, 48, 60" in invoke("tools", "show", "loan_offer").stdout
    taken = as_json("rollback", "loan_offer", "--reason", "24 months are offered too")
    assert (taken["taken_back"], taken["library_version"]) == ([proposal_id], 3)
    enum = [one for one in taken["changes"]["loan_offer"] if one["keyword"] == "enum"]
    assert [(one["before"], one["after"]) for one in enum] == [([36, 48, 60], None)]
    store = open_store(store_url)
    first, *_, last = store.history("loan_offer")
    assert first.definition.digest == last.definition.digest
    kinds = [event.kind for event in store.events()]
    assert kinds == ["written", "proposed", "validated", "approved", "active", "rolled_back"]
    assert store.events()[3].author.kind == "person"
    assert not verify_chain(store.events())
    assert not verify_library(store, store.events())
    store.close()


def refusals(store, version, wrong, right):
    """Conversations with one library version; the tool refused the first of them."""
    refused = ToolFailure(kind="retry_requested", rule="no such term", path="periods")
    for at in range(wrong + right):
        call = ("loan_offer", {"periods": 24}, refused if at < wrong else 1)
        store.append(episode_of(call, episode_id=f"{version}-{at}", library_version=version))


def test_a_promotion_tells_what_it_is_worth(invoke, as_json, proposal_id, store_url):
    """On its page and in the log of its tool, once there is traffic with it; nothing before."""
    invoke("review", "approve", proposal_id, "--reason", "as in the contract")
    with closing(open_store(store_url)) as store:
        refusals(store, 1, 8, 2)
        assert as_json("review", "show", proposal_id)["worth"] is None
        refusals(store, 2, 1, 9)
    worth = as_json("review", "show", proposal_id)["worth"]
    assert (worth["control_wrong"], worth["later_wrong"], worth["against"]) == (8, 1, "before")
    page = invoke("review", "show", proposal_id).stdout
    assert "Worth on later traffic" in page
    assert "not a comparison" in " ".join(page.split())
    (event,) = [one for one in as_json("log", "--tool", "loan_offer") if one["kind"] == "active"]
    assert event["worth"] == worth
    assert "points gained" in " ".join(invoke("log", "--tool", "loan_offer").stdout.split())
    assert not any("worth" in one for one in as_json("log"))


def test_the_page_for_people(invoke, proposal_id, keep):
    """What models see, why, the failing conversation with its wrong argument, and what is next."""
    call = ("loan_offer", {"amount": 9000, "periods": 50}, "!periods must be one of 36, 48, 60")
    keep(episode_of(call, episode_id="e2", request="50 months, ann@example.org"))
    page = invoke("review", "show", proposal_id[:12]).stdout
    assert page.startswith(
        "loan_offer: passed the checks, waiting\nperiods may only be 36, 48 or 60."
    )
    assert "    - Calculate the monthly instalment of a car loan.\n" not in page
    assert "  + Calculate the monthly instalment of a car loan in euros.\n" in page
    assert "    periods may only be 36, 48 or 60.\n    + enum: [36, 48, 60]\n" in page
    assert "12 of 14 calls gave other terms" in page
    assert "Conversations that failed (1 of 2)" in page
    assert '"50 months, <email>"' in page
    assert "      periods = 50   <- wrong\n      amount = 9000\n" in page
    assert "the tool answered: periods must be one of 36, 48, 60" in page
    assert page.endswith(
        f"    agentkit review approve {proposal_id}\n    agentkit evolve --tasks FILE\n"
        f"    agentkit review canary {proposal_id}\n"
        f"    agentkit review reject {proposal_id} --reason WHY\n"
    )


@pytest.mark.parametrize(
    "text", ["\n" * 30_000, "a\nb\n" * 10_000, "\n".join(map(str, range(9_000)))]
)
def test_long_texts_are_not_compared_line_by_line(text):
    """What changes in a text of very many lines is shown whole, at once."""
    after = f"new\n{text}\nend"
    shown: list[Line] = []
    check_cost(lambda: (shown.clear(), shown.extend(text_diff(text, after))), len(text))
    assert [one.text[:1] for one in shown].count("+") == len(after.splitlines())
    rows = "\n" * 2_400
    check_cost(lambda: list(text_diff(rows, f"x\n{rows}y")), len(rows))
    short = [line.text for line in text_diff("a\nb\nc", "a\nx\nc")]
    assert short == ["  a", "- b", "+ x", "  c"]


def test_words_that_steer_the_terminal(invoke, manager):
    """What a model wrote is shown without doing anything to the terminal."""
    base = manager.library["loan_offer"].definition
    words = replace(base.description, summary="Sure!\x1b]0;owned\x07")
    record = manager.submit(
        Proposal.of(
            base,
            replace(base, description=words),
            stream="feedback",
            author=replace(MODEL, name="m\x1b[31m\nApproved by Ada"),
            reason="because \x1b[2J\nstate: active",
        )
    )
    page = invoke("review", "show", record.proposal_id).stdout
    assert "\x1b" not in page
    assert "⟨U+001B⟩]0;owned" in page
    lines = [line.strip() for line in page.splitlines()]
    assert not any(line.startswith(("Approved by Ada", "state: active")) for line in lines)
    assert "because ⟨U+001B⟩[2J state: active" in lines
    assert "\x1b" not in invoke("review", "list", "--all").output


def test_pins(as_json, invoke, proposal_id):
    """Pin and unpin tell what is pinned; what is pinned is not put into use."""
    pinned = as_json("rollback", "--pin", "1", "--tool", "loan_offer")
    assert pinned["pins"] == {"loan_offer": 1}
    waits = invoke("review", "approve", proposal_id)
    assert "'loan_offer' is pinned to library version 1" in waits.stderr
    assert "agentkit rollback --unpin --tool loan_offer" in waits.stderr
    assert "loan_offer is pinned to version 1" in invoke("review").stderr
    assert as_json("rollback", "--unpin", "--tool", "loan_offer")["pins"] == {}
    assert as_json("review", "approve", proposal_id)["state"] == "active"
    held = invoke("rollback", "--pin", "1").stdout
    assert held.startswith("the whole library is pinned to version 1\nlibrary version 1\n")
    assert "- enum: [36, 48, 60]" in held
    assert "nothing is pinned" in invoke("rollback", "--unpin").stdout


def test_typed_alone_the_last_change_is_taken_back(invoke, proposal_id, as_json):
    """It says which, takes it back, shows what models see, and then goes on with the one before."""
    as_json("review", "approve", proposal_id)
    done = invoke("rollback")
    assert done.exit_code == 0
    assert f"the promotion of {proposal_id} of loan_offer" in done.stderr
    assert done.stdout.startswith("library version 3\n")
    assert "  - periods must be one of 36, 48, 60.\n" in done.stdout
    assert (
        "library version 1 (loan_offer) changed 1 tool: first import" in invoke("rollback").stderr
    )
    assert "nothing is left to take back" in invoke("rollback").stderr


@pytest.mark.parametrize(("typed", "share"), [((), 0.1), (("--share", "25"), 0.25)])
def test_a_canary_serves_a_share(as_json, manager, proposal_id, typed, share):
    """The share stands in the event, where every router finds it; rollback ends the canary."""
    moved = as_json("review", "canary", "loan_offer", *typed)
    assert moved["state"] == "canary"
    manager.refresh()
    (experiment,) = running(manager.ledger, "canary")
    assert (experiment.proposal_id, share_of(experiment)) == (proposal_id, share)
    again = as_json("review", "canary", "loan_offer")
    assert again["waits_for"] == "serves a share of the sessions until its numbers decide"
    assert as_json("rollback", "loan_offer")["taken_back"] == [proposal_id]


SECRET = "0123456789abcdef0123456789abcdef"
ADA = Author(kind="person", name="Ada")
MANAGER = Author(kind="program", name="manager")
JUDGE = Author(kind="model", name="judge-1", prompt_hash="ab" * 32)
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
        said("proposed", JUDGE, "a rule " * 60, evidence=("e1", "e2")),
        said("approved", ADA, "\u202ereads \x1b[31mwell", facts={"答": [1, 2]}),
    ],
    "2026-11-21T10:04:00.000001+00:00": [
        said("proposed", JUDGE, "other", proposal_id="feedback-1", tool_name="天気"),
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
def test_events_are_listed(invoke, as_json):
    """The list says when, what, which tool, who and why, and picks by tool and the newest."""
    told = invoke("log").stdout
    first = "1 2026-11-20 09:58:01 written periods 1 Ada"
    assert " ".join(told.splitlines()[2].split()).startswith(first)
    assert "judge-1 (model)" in told
    assert "天気" in told
    assert "\x1b" not in told
    assert not [line for line in told.splitlines() if line != line.rstrip()]
    for options in (("--tool", "天気"), ("--limit", "2")):
        assert [event["sequence"] for event in as_json("log", *options)] == [4, 5]


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


TOOLS = '''
from agentkit import tool

@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b
'''


@pytest.fixture
def without_a_key(tmp_path, monkeypatch):
    """A file of tools, and no key but what a test sets."""
    for name in ("AGENTKIT_AUDIT_KEY", "AGENTKIT_AUDIT_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "own.py").write_text(TOOLS)


def signed(tmp_path):
    """Whether each event of the store is signed."""
    with closing(open_store(tmp_path / "library.db")) as store:
        return [bool(event.signature) for event in store.events()]


@pytest.mark.usefixtures("without_a_key")
@pytest.mark.parametrize("key", ["", SECRET])
def test_events_are_signed_where_there_is_a_key(invoke, tmp_path, monkeypatch, key):
    """What is written, and the kill switch; ``log --verify`` then wants all of it signed."""
    monkeypatch.setenv("AGENTKIT_AUDIT_KEY", key)
    assert invoke("tools", "add", "own.py:add").exit_code == 0
    assert invoke("rollback", "--pin", "1", "--reason", "to see").exit_code == 0
    monkeypatch.setenv("AGENTKIT_AUDIT_KEY", SECRET)
    assert signed(tmp_path) == [bool(key)] * 2
    assert invoke("log", "--verify").exit_code == (0 if key else 1)


REFUNDS = '''
from agentkit import tool

@tool(effects=["destructive"])
def refund(order: str) -> str:
    """Refund an order."""
    return f"{order} is refunded"
'''


def test_calls_that_wait_are_listed_and_decided(invoke, as_json, store_url, script, tmp_path):
    """The run goes on with its tools and its model; a decision counts once."""
    (tmp_path / "refunds.py").write_text(REFUNDS)

    @tool(effects=["destructive"])
    def refund(order: str) -> str:
        """Refund an order."""
        raise AssertionError("nobody approved it")

    with closing(open_store(store_url)) as store:
        call = ToolCall(call_id="c1", name="refund", arguments={"order": "A17"})
        agent = Agent(ScriptedModel([[call], [call]]), tools=[refund], store=store, name="desk")
        for who in ("Ada", "Ben"):
            agent.run_sync("Refund A17", metadata={"user": who, "key": "shop"})
        wait_for(agent.close())
    assert 'refund(order="A17")' in invoke("review", "calls").stdout
    listed, other = as_json("review", "calls")
    assert (listed["agent"], listed["user"], listed["request"]) == ("desk", "Ada", "Refund A17")
    assert listed["key"] == "shop"  # which no client chooses
    agent = ["--tools", "refunds.py", "--model", "script:a"]
    assert invoke("review", "calls", "nothing", "--decide", "approve", *agent).exit_code == 2
    script("It is done.")
    decided = invoke("review", "calls", listed["run"], "--decide", "approve", *agent)
    assert decided.stdout == "It is done.\n", decided.stderr
    last = as_json("episodes", "show", "last")
    assert last["turns"][0]["results"][0]["value"] == "A17 is refunded"
    script("Then not.")
    no = ("--decide", "reject", "--reason", "too much")
    assert invoke("review", "calls", other["run"], *no, *agent).exit_code == 0
    (denied,) = as_json("episodes", "show", "last")["turns"][0]["results"]
    assert (denied["status"], "too much" in json.dumps(denied)) == ("denied", True)
    assert as_json("review", "calls") == []
    assert "no call waits for you" in invoke("review", "calls").stderr

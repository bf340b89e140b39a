"""Proposals in the browser: listed, read with their evidence, and decided by named people."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

import pytest
from support.cost import check_cost

from agentkit import Agent, Instructions
from agentkit.errors import UsageError
from agentkit.evolution import Proposal, ToolManager
from agentkit.library.chain import verify_chain
from agentkit.library.events import Author
from agentkit.testing import ScriptedModel
from agentkit_studio import Access, create_studio
from agentkit_studio.views import lines, words


def last_event(store):
    """The newest event of the library."""
    return list(store.events())[-1]


def test_an_empty_inbox_says_what_to_type(studio):
    """Nobody has to know the next command."""
    page = studio().get("/")
    assert "Nothing waits for you." in page.text
    assert "agentkit evolve" in page.text


def test_a_proposal_is_listed_and_explained(studio, proposal_id):
    """Both sides of what the model sees, the failing argument, and why."""
    client = studio("vera")
    assert f'href="/inbox/{proposal_id}"' in client.get("/").text
    page = client.get(f"/inbox/{proposal_id}").text
    assert "periods may only be 24, 36 or 48." in page
    assert "<ins>\nperiods must be one of 24, 36, 48.</ins>" in page
    assert "<ins>only 24, 36 or 48</ins>" in page
    assert "&#34;enum&#34;: [" in re.sub("</?ins>", "", page)
    assert '<tr class="wrong"><th scope="row">periods</th>' in page
    assert "The tool answered: <q>periods must be one of 24, 36, 48</q>" in page
    assert "Every check passed:" in page


def test_what_strangers_wrote_is_text(studio, proposal_id):
    """Markup is escaped, and characters that steer or turn round are written out."""
    page = studio().get(f"/inbox/{proposal_id}").text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert "⟨U+202E⟩" in page


def test_an_approval_is_an_event_of_a_person(studio, act, store, manager, proposal_id):
    """The change serves at once, and the log names who agreed."""
    answer = act(studio("rita"), "approve")
    assert "loan_offer: in use" in answer.text
    manager.refresh()
    assert "one of 24, 36, 48" in manager.library["loan_offer"].definition.text
    named = {(event.kind, event.author.kind, event.author.name) for event in store.events()}
    assert ("approved", "person", "rita") in named
    verify_chain(store.events())


def test_a_promotion_shows_what_it_is_worth(studio, act, store, proposal_id):
    """Refusals before and after, once there is traffic with it."""
    act(studio("rita"), "approve")
    address = f"/inbox/{proposal_id}"
    assert "Worth on later traffic" not in studio("vera").get(address).text
    [refused, *_] = (one for one in store.select() if one.results[0].failure is not None)
    store.append(replace(refused, episode_id="later", library_version=2))
    assert "1 of 1 conversations since" in studio("vera").get(address).text


def test_a_rejection_needs_a_reason(studio, act, proposal_id, proposals):
    """Without one nothing happens; with one it stands in the log and on the page."""
    client = studio("rita")
    refused = act(client, "reject", reason="  ")
    assert refused.status_code == 400
    assert "Say why" in refused.text
    answer = act(client, "reject", reason="we offer 12 months, too")
    assert "we offer 12 months, too" in answer.text
    assert proposals()[proposal_id].state == "rejected"
    assert proposal_id in client.get("/?state=decided").text


def test_instructions_are_decided_like_tools(studio, store, manager, post):
    """A proposal of other instructions shows both texts, and a person's yes puts it to use."""
    said = Instructions(name="desk", text="You answer customers.")
    Agent(ScriptedModel([]), store=store, instructions=said)
    base = manager.refresh()["instructions/desk"].definition
    words = replace(base.description, summary="You answer customers. Be brief.")
    critic = Author(kind="model", name="critic")
    mine = Proposal.of(base, replace(base, description=words), stream="feedback", author=critic)
    manager.submit(mine)
    client, address = studio("rita"), f"/inbox/{mine.proposal_id}"
    assert "instructions/desk" in client.get("/").text
    page = client.get(address).text
    assert "<ins> Be brief.</ins>" in page
    assert "a judge or a person must agree" in page
    assert client.get("/tools").status_code == 200
    assert "You answer customers." in client.get("/tools/instructions/desk").text
    answer = post(client, f"{address}/approve")
    assert "instructions/desk: in use" in answer.text


def test_a_canary_serves_a_share(studio, act, proposal_id, proposals):
    """The share is a percentage; anything else is refused."""
    client = studio("rita")
    for share in ("0", "101", "many"):
        assert "percentage" in act(client, "canary", share=share).text
    act(client, "canary", share="25")
    assert proposals()[proposal_id].state == "canary"


def test_a_manager_without_the_policy_is_refused(store):
    """Its canary would serve everybody, unnoticed."""
    access = Access(user_header="x-user")
    with pytest.raises(UsageError, match="leaves out the policy that it is given"):
        create_studio(lambda _: ToolManager(store), store, access=access)
    with pytest.raises(UsageError, match="managed gave None; return a ToolManager"):
        create_studio(lambda _: None, store, access=access)


def test_what_serves_is_rolled_back(studio, act, manager, proposal_id):
    """By an operator; the tool says what it said before."""
    act(studio("rita"), "approve")
    act(studio("olga"), "rollback", reason="too strict")
    manager.refresh()
    assert "one of 24" not in manager.library["loan_offer"].definition.text


def test_the_second_of_two_decisions_is_told_of_the_first(studio, act, proposal_id, proposals):
    """Nothing is decided twice."""
    one, other = studio("rita"), studio("olga")
    act(one, "reject", reason="no")
    late = act(other, "approve")
    assert late.status_code == 409
    assert "Nothing was changed." in late.text
    assert proposals()[proposal_id].state == "rejected"


def test_long_texts_are_compared_in_little_time():
    """Two texts of few different words, on lines of very many, are no work for the page."""
    chance = Random(1)
    old, new = ("\n".join(" ".join(chance.choices("ab", k=700)) for _ in range(20)) for _ in "ab")
    check_cost(lambda: [*lines(old, new)], len(old))
    check_cost(lambda: words(old[:1_300], new[:1_300]), len(old))
    rows = "a\n" * 1_400
    check_cost(lambda: [*lines(rows, f"b\n{rows}b")], len(rows))

"""Redaction reaches every text of an episode and nothing else, and doing it twice is doing it once."""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, strategies as st

from agentkit import Episode, File
from agentkit.episodes import RetrievalTrace, Turn
from agentkit.episodes.redaction import Redaction
from agentkit.errors import UsageError
from agentkit.media import Media
from agentkit.messages import AssistantMessage, ProviderItem, ToolCall, ToolResult

MAIL = "ann@example.org"

KEPT = {  # ids, names, digests and fixed words
    "episode_id", "model", "library_digest", "session_id", "resumes", "started_at", "call_id",
    "name", "stage", "goal", "shortlist", "offered", "cards", "ranked", "tool", "verifier", "cause",
    "metrics", "library_names", "episode", "arguments of recoveries", "protocol",
    "shortened", "program",
}  # fmt: skip


def full(hint: Any, where: str = "") -> Any:  # noqa: PLR0911 - one answer a kind of type
    """A value of a type in which each text is an address."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint is str:
        return MAIL
    if hint is Media:
        return File(data=MAIL.encode(), name=MAIL)
    if hint is Any:
        return {MAIL: [MAIL, 1, None, {"deep": MAIL}]}
    if hint in {int, float, bool}:
        return hint(1)
    if origin is Literal:
        return parts[0]
    if origin in {Union, types.UnionType}:
        return full(next(part for part in parts if part is not type(None)), where)
    if origin is tuple:
        return (full(parts[0], where),)
    if origin is not None and issubclass(origin, Mapping):
        return {MAIL: full(parts[1], where)}
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        return hint(**{one.name: full(hints[one.name], one.name) for one in fields(hint)})
    raise TypeError(f"{where} has a type that this test does not know: {hint}")


def texts(value: Any, field: str = "") -> list[tuple[str, str]]:
    """Each text of a value with the innermost field of a record that it is in."""
    if isinstance(value, str):
        return [(field, value)]
    if is_dataclass(value):
        is_recovery = type(value).__name__ == "Recovery"
        found = [(one.name, getattr(value, one.name)) for one in fields(value)]
        return [
            text
            for name, part in found
            for text in texts(
                part, f"{name} of recoveries" if is_recovery and name == "arguments" else name
            )
        ]
    if isinstance(value, Mapping):
        return [text for pair in value.items() for part in pair for text in texts(part, field)]
    if isinstance(value, list | tuple):
        return [text for part in value for text in texts(part, field)]
    return []


def everywhere() -> Episode:
    """An episode with an address in each text that its types have room for."""
    return replace(full(Episode), format=3)


def test_every_text_is_reached():
    """The address is gone from all fields but ids, names and digests; new fields are noticed."""
    left = {field for field, text in texts(Redaction()(everywhere())) if MAIL in text}
    assert left == KEPT - {"protocol"}  # the whole part of a provider went, as it would change
    assert {field for field, _ in texts(everywhere())} > left
    assert Redaction()(everywhere()).turns[0].tokens is None  # the texts once more


def test_an_episode_without_findings_is_equal():
    """What holds nothing personal is not changed."""
    call = ToolCall(call_id="1", name="add", arguments={"a": 2, "when": "2026-03-02"})
    result = ToolResult(call_id="1", name="add", status="ok", value=[4, 1.5, True], text="v1.2.3.4")
    turn = Turn(message=AssistantMessage(text="4", tool_calls=(call,)), results=(result,))
    episode = Episode(episode_id="e1", request="2 + 2?", turns=(turn,), metadata={"user": "u1"})
    assert Redaction()(episode) == episode


def test_fields_that_are_called_secrets_hold_none():
    """A password is one whatever it looks like, in a list too; with the pattern off it stays."""
    arguments = {
        "password": "horse", "db_password": "battery", "apiKey": "staple", "access_token": ["a", "b"],
        "passcode": 1234, "authorization": {"kind": "x"}, "secret": True, "token": "", "key": "C major", "primary_key": "id",
        "next_page_token": "p2",
    }  # fmt: skip
    call = ToolCall(call_id="1", name="login", arguments=arguments)
    episode = Episode(
        episode_id="e", request="", turns=(Turn(message=AssistantMessage(tool_calls=(call,))),)
    )
    assert Redaction()(episode).calls[0].arguments == arguments | {
        "password": "<secret>", "db_password": "<secret>", "apiKey": "<secret>",
        "access_token": ["<secret>", "<secret>"], "passcode": "<secret>",
    }  # fmt: skip
    assert Redaction(patterns=["email"])(episode) == episode


def test_numbers_of_cards_are_found_without_quotes():
    """A card as a JSON number becomes a placeholder; other numbers stay numbers."""
    output = {"card": 4111111111111111, "time": 1700000000000, "count": 7, "yes": True}
    redacted = Redaction()(Episode(episode_id="e", request="", output=output))
    assert redacted.output == output | {"card": "<card>"}


def test_keys_that_become_equal_are_told_apart():
    """No entry of an object is lost because its key was personal."""
    output = {"a@example.org": 1, "b@example.org": 2, 3: "c@example.org"}
    once = Redaction()(Episode(episode_id="e", request="", output=output))
    assert once.output == {"<email>": 1, "<email> 2": 2, 3: "<email>"}
    assert Redaction()(once) == once


def test_words_of_what_was_taken_out_go_too():
    """Search terms of a redacted query that are no words of it any more are left out."""
    trace = RetrievalTrace(
        query=f"mail {MAIL} tickets",
        shortlist=(),
        offered=(),
        unmatched=("ann", "example", "ticket"),
    )
    turn = Turn(message=AssistantMessage(), retrieval=trace)
    redacted = Redaction()(Episode(episode_id="e", request="", turns=(turn,)))
    assert redacted.turns[0].retrieval.query == "mail <email> tickets"
    assert redacted.turns[0].retrieval.unmatched == ("ticket",)


def test_parts_of_a_provider_stay_whole_or_go():
    """A part that would change is left out, for its provider would not take it; others stay."""
    clean = ProviderItem(protocol="p", data={"signature": "abc", "text": "hm"})
    message = AssistantMessage(provider_items=(clean, ProviderItem(protocol="p", data={"t": MAIL})))
    redacted = Redaction()(Episode(episode_id="e", request="", turns=(Turn(message=message),)))
    assert redacted.turns[0].message.provider_items == (clean,)


def test_patterns_of_your_own():
    """What a pattern of your own finds is called by its name, beside what ours find."""
    redact = Redaction(more={"staff": re.compile(r"\bE-\d{4}\b")})
    assert redact.text(f"E-1234 and {MAIL}") == "<staff> and <email>"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"patterns": ["mail"]}, "'mail'"),
        ({"patterns": "email"}, "there are"),
        ({"more": {"Staff": re.compile("x")}}, "Staff"),
        ({"more": {"email": re.compile("x")}}, "email"),
    ],
)
def test_what_can_not_be_meant_is_refused(wrong, said):
    """An unknown pattern or a bad name is a mistake and says so."""
    with pytest.raises(UsageError, match=said):
        Redaction(**wrong)


def test_text_that_goes_on_turning_up_more_goes_as_a_whole():
    """A pattern that finds its own placeholders has an end, and the end is stable."""
    redact = Redaction(more={"all": re.compile(r"\w+")})
    assert redact.text("a b") == redact.text(redact.text("a b")) == "<redacted>"


PIECES = st.sampled_from(
    [MAIL, "+1 415 555 0100", "4111111111111111", "DE89370400440532013000", "178.34.55.101",
     "2001:db8::ff00:42:8329", "078-05-1120", "sk-abcdefghijklmnop1234", "password=", '"password": "',
     "Bearer ", "<email>", "<", ">", ":", "<secret>", "@", ".", "-", " ", "+", "415-555-0100", "4111 ",
     "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "hunter2", "v"]
)  # fmt: skip
TEXTS = st.lists(PIECES | st.text(max_size=6), max_size=8).map("".join)


VALUES = st.recursive(
    TEXTS | st.integers() | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@given(request=TEXTS, output=VALUES, name=TEXTS, session=st.none() | TEXTS)
def test_ids_never_change(request, output, name, session):
    """Whatever an episode holds, its ids and the names of its tools stay, and twice is once."""
    call = ToolCall(call_id=name, name=name, arguments={"x": output})
    turn = Turn(message=AssistantMessage(text=request, tool_calls=(call,)))
    episode = Episode(
        episode_id=name,
        request=request,
        turns=(turn,),
        output=output,
        session_id=session,
        resumes=name,
    )
    redact = Redaction()
    once = redact(episode)
    assert (once.episode_id, once.session_id, once.resumes) == (name, session, name)
    assert [(one.call_id, one.name) for one in once.calls] == [(name, name)]
    assert redact(once) == once

"""Which tools are offered, and how a model asks for more of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from agentkit import Agent, Library, Tool, ToolDefinition, tool
from agentkit.agent import SelectionPolicy, ToolPolicy
from agentkit.agent.types import Limits
from agentkit.episodes import Episode
from agentkit.messages import ToolCall
from agentkit.models.anthropic import AnthropicCodec
from agentkit.retrieval import CascadeRetriever, default_stages, estimate_tokens, schema_text
from agentkit.testing import ScriptedModel


def catalogue(count):
    schema = {"type": "object", "properties": {}}
    filler = [ToolDefinition.from_schema(f"tool_{i}", f"Report {i}.", schema) for i in range(count)]
    return Library(
        [*filler, ToolDefinition.from_schema("weather", "Weather forecast for a city.", schema)]
    )


def names(request):
    return [definition.name for definition in request.tools]


async def test_small_libraries_are_offered_whole():
    """Up to 32 tools nothing is ranked."""
    model = ScriptedModel(["a"])

    result = await Agent(model, library=catalogue(31)).run("weather forecast")

    assert len(model.requests[0].tools) == 32
    assert result.episode.turns[0].retrieval is None


async def test_larger_libraries_are_ranked():
    """Beyond that only the best few are offered, and the episode says how they were found."""
    model = ScriptedModel(["a"])

    result = await Agent(model, library=catalogue(40)).run("weather forecast")

    trace = result.episode.turns[0].retrieval
    assert names(model.requests[0])[:2] == ["search_tools", "weather"]
    assert len(model.requests[0].tools) < 10
    assert trace.offered[0] == "weather"
    assert trace.stages[-1].survivors >= 1


async def test_a_used_tool_stays_offered():
    """A follow-up that names no tool can still use the one from before."""
    call = ToolCall(call_id="1", name="weather")
    model = ScriptedModel([[call], "and tomorrow?"])
    agent = Agent(model, library=catalogue(40))
    first = await agent.run("weather forecast")

    history = (await agent.resume(first, values={"1": "sunny"})).messages
    model2 = ScriptedModel(["b"])
    await Agent(model2, library=catalogue(40)).run("report 7 please", history=history)

    assert names(model2.requests[0])[:2] == ["search_tools", "weather"]


WORDS_ALONE = CascadeRetriever(stages=default_stages(embedder=None))
"""The same order whether or not word vectors are installed."""

SUBJECTS = ("weather", "mail", "flight", "hotel", "invoice", "song", "recipe", "stock")


def answering(name, text):
    schema = {
        "type": "object",
        "properties": {"place": {"type": "string", "description": "Where."}},
        "required": ["place"],
    }
    definition = ToolDefinition.from_schema(name, text, schema)
    return Tool(definition=definition, function=lambda place: f"{name} in {place}")


@pytest.fixture(scope="module")
def library():
    """Six tools on each of eight subjects."""
    verbs = ("find", "list", "count", "delete", "update", "share")
    return Library(
        answering(f"{verb}_{subject}", f"{verb.capitalize()} the {subject} of a place.")
        for subject in SUBJECTS
        for verb in verbs
    )


def search_text(request):
    return request.tools[0].text


async def test_what_is_found_can_be_called_from_the_next_step_on(library, call):
    """A search offers its best matches in full, and the model calls one of them."""
    model = ScriptedModel(
        [
            [call("search_tools", query="share an invoice")],
            [call("share_invoice", place="Rome")],
            "Shared.",
        ]
    )

    result = await Agent(model, library=library).run("find the weather")

    assert "share_invoice" not in names(model.requests[0])
    assert "share_invoice" in names(model.requests[1])
    assert [one.status for one in result.episode.results] == ["ok", "ok"]
    assert result.episode.results[1].value == "share_invoice in Rome"


async def test_the_result_of_a_search_is_a_line_for_each_tool(library, call):
    """What can be called stands first; of the rest the model learns name, parameters, purpose."""
    model = ScriptedModel([[call("search_tools", query="song", limit=6)], "ok"])

    result = await Agent(model, library=library, retriever=WORDS_ALONE).run("find the weather")

    text = result.episode.results[0].text
    head, *cards = text.splitlines()
    assert head == "You can call these now:"
    assert cards[0].startswith("count_song(place: string)  # Count the song of a place.")
    assert cards[5].startswith("These match less;")
    assert len(cards) == 7


async def test_a_tool_seen_as_a_card_can_be_called_at_once(library, call):
    """No search is needed for a tool whose card lists its parameters."""
    model = ScriptedModel([[call("update_weather", place="Rome")], "ok"])

    result = await Agent(model, library=library, retriever=WORDS_ALONE).run("weather of a place")

    assert "update_weather" not in names(model.requests[0])
    assert "update_weather(place: string)" in search_text(model.requests[0])
    assert result.episode.results[0].value == "update_weather in Rome"
    assert names(model.requests[1])[-1] == "update_weather"


async def test_a_tool_that_no_retriever_gave_is_refused(library, call):
    """A retriever may leave tools out on purpose; guessing a name does not get round it."""

    class NoDeletions:
        async def retrieve(self, query, library):
            found = await CascadeRetriever().retrieve(query, library)
            hits = tuple(h for h in found.hits if "delete" not in h.definition.name)
            offered = tuple(d for d in found.offered if "delete" not in d.name)
            return replace(found, hits=hits, offered=offered)

    model = ScriptedModel(
        [[call("search_tools", query="delete_mail")], [call("delete_mail", place="Rome")], "ok"]
    )

    result = await Agent(model, library=library, retriever=NoDeletions()).run("read mail")

    assert result.episode.results[1].failure.kind == "unknown_tool"
    again = ScriptedModel(["ok"])
    await Agent(again, library=library, retriever=NoDeletions()).run("mail", history=result)
    assert "delete_mail" not in names(again.requests[0])


async def test_nothing_found_says_so(library, call):
    """The model learns which of its words no tool has."""
    model = ScriptedModel([[call("search_tools", query="zebra")], "ok"])

    result = await Agent(model, library=library).run("find the weather")

    assert result.episode.results[0].text == (
        "No tool matches 'zebra'. No tool has the words zebra. Try other words, or go on without."
    )
    assert model.requests[0].tools is model.requests[1].tools


async def test_bad_arguments_are_answered_like_those_of_any_tool(library, call):
    """The schema holds, and a limit in text is mended."""
    model = ScriptedModel(
        [[call("search_tools", "1")], [call("search_tools", "2", query="song", limit="2")], "ok"]
    )

    result = await Agent(model, library=library, tool_policy=ToolPolicy(retries=3)).run(
        "find the weather"
    )

    assert [one.status for one in result.episode.results] == ["failed", "ok"]
    assert "query" in result.episode.results[0].text


async def test_searches_count_against_the_limits(library, call):
    """A model that only ever searches comes to an end."""
    model = ScriptedModel([[call("search_tools", str(n), query="song")] for n in range(4)])

    result = await Agent(model, library=library, limits=Limits(max_steps=4, max_calls=2)).run("hi")

    assert result.stop_reason == "step_limit"
    assert [one.status for one in result.episode.results] == ["ok", "ok", "failed", "failed"]


async def test_the_start_of_the_prompt_stays_the_same(library, store, call):
    """Over a session each request begins with the tools of the one before, in the same words."""
    model = ScriptedModel(
        [
            "Sunny.",
            [call("search_tools", query="share an invoice")],
            "Shared.",
            [call("update_stock", place="Rome")],
            "Updated.",
        ]
    )

    for request in ("find the weather", "and the invoice", "update the stock"):
        agent = Agent(model, library=library, store=store)  # a new process
        await agent.run(request, session_id="s")

    offers = [[schema_text(one) for one in request.tools] for request in model.requests]
    for before, after in pairwise(offers):
        assert after[: len(before)] == before
    assert len(offers[-1]) > len(offers[0])


async def test_models_of_anthropic_get_what_is_found_by_reference(library, store, call):
    """Over a session the tools of the prompt stay; each found tool is referred to once."""
    model = ScriptedModel(
        [
            [call("search_tools", query="share an invoice")],
            [call("search_tools", query="share an invoice"), call("share_invoice", place="Rome")],
            "Shared.",
            [call("share_invoice", place="Oslo")],
            "Shared again.",
        ]
    )
    for request in ("find the weather", "and in Oslo"):
        agent = Agent(model, library=library, store=store)
        result = await agent.run(request, session_id="s")
    assert result.episode.results[0].value == "share_invoice in Oslo"
    sent = [AnthropicCodec(request).encode("m") for request in model.requests[:3]]
    plain = [[t for t in one["tools"] if not t.get("defer_loading")] for one in sent]
    assert plain[0] == plain[1] == plain[2]
    last = AnthropicCodec(model.requests[-1]).encode("m")
    blocks = [b for m in last["messages"] for b in m["content"] if b["type"] == "tool_result"]
    referred = [
        part["tool_name"]
        for block in blocks
        for part in (block["content"] if isinstance(block["content"], list) else ())
    ]
    deferred = [tool["name"] for tool in last["tools"] if tool.get("defer_loading")]
    assert "share_invoice" in referred
    assert sorted(referred) == sorted(deferred)
    assert len(set(referred)) == len(referred)
    assert not any("cache_control" in tool for tool in last["tools"] if tool.get("defer_loading"))
    whole = AnthropicCodec(model.requests[-1], refers=False).encode("m")
    assert not any("defer_loading" in tool for tool in whole["tools"])
    assert len(whole["tools"]) == len(last["tools"])


async def test_a_result_as_history_keeps_the_offer(library, call):
    """Without a store, the last result carries on what was offered and listed."""
    model = ScriptedModel([[call("search_tools", query="share_invoice")], "a", "b", "c"])
    agent = Agent(model, library=library)

    first = await agent.run("find the weather")
    second = await agent.run("and the mail", history=first)
    await agent.run("thanks", history=second)

    offers = [[schema_text(one) for one in request.tools] for request in model.requests]
    for before, after in pairwise(offers):
        assert after[: len(before)] == before
    assert model.requests[-1].messages[:-1] == second.messages


async def test_the_episode_tells_what_was_searched(library, call):
    """Each search is recorded with its turn, and what was offered after it."""
    model = ScriptedModel([[call("search_tools", query="share_invoice")], "ok"])

    result = await Agent(model, library=library).run("find the weather")

    first, second = result.episode.turns
    (search,) = first.searches
    assert search.query == "share_invoice"
    assert search.shortlist[0] == "share_invoice"
    assert search.offered == tuple(names(model.requests[1])[1:])
    assert first.retrieval.offered == tuple(names(model.requests[0])[1:])
    assert set(first.retrieval.cards).isdisjoint(first.retrieval.offered)
    assert second.searches == ()
    assert Episode.from_json(result.episode.to_json()) == result.episode


async def test_cards_and_schemas_stay_within_the_budget(library):
    """What the retriever may show covers the list that ``search_tools`` holds."""
    model = ScriptedModel(["ok"])
    retriever = CascadeRetriever(token_budget=400)

    await Agent(model, library=library, retriever=retriever).run("find the weather of a place")

    search, *offered = model.requests[0].tools
    cards = "\n".join(search.text.splitlines()[2:])
    assert estimate_tokens(cards) + sum(estimate_tokens(schema_text(d)) for d in offered) <= 400


async def test_the_search_can_be_switched_off(library, call):
    """Then a call to it is one to an unknown tool."""
    model = ScriptedModel([[call("search_tools", query="song")], "ok"])

    result = await Agent(model, library=library, selection=SelectionPolicy(search_tool=False)).run(
        "find the weather"
    )

    assert "search_tools" not in names(model.requests[0])
    assert result.episode.results[0].failure.kind == "unknown_tool"


async def test_a_tool_of_ones_own_by_that_name_wins(library, call):
    """It is ranked, offered and run like any other."""

    @tool
    def search_tools(query: str) -> str:
        """Search the shed for hand tools."""
        return f"a hammer for {query}"

    model = ScriptedModel([[call("search_tools", query="nails")], "ok"])
    agent = Agent(model, library=library.with_tools([search_tools]))

    result = await agent.run("search the shed for hand tools")

    assert result.episode.results[0].value == "a hammer for nails"
    assert [name for name in names(model.requests[0]) if name == "search_tools"] == ["search_tools"]


@pytest.mark.parametrize("kind", ["json_schema", "mcp", "openapi"])
async def test_a_tool_from_elsewhere_by_that_name_takes_no_place(library, call, kind):
    """Whether it can be called or not, models go on searching with the runtime's own tool."""
    made = answering("search_tools", "Share an invoice.")
    origin = replace(made.definition.origin, kind=kind)
    made = made.with_definition(replace(made.definition, origin=origin))
    foreign = Tool(definition=made.definition) if kind == "json_schema" else made
    model = ScriptedModel([[call("search_tools", query="share an invoice")], "ok"])
    result = await Agent(model, library=library.with_tools([foreign])).run("share an invoice")
    assert names(model.requests[0]).count("search_tools") == 1
    assert "share_invoice" in result.episode.results[0].text
    assert "search_tools" not in result.episode.results[0].text

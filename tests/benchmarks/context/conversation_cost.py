"""What a conversation costs in prompt tokens, by the way in which its tools are offered.

    python tests/benchmarks/context/conversation_cost.py --tools FILE... --queries FILE...

Each conversation asks a few questions one after the other of one random part of the catalogue that
holds their gold tools. The model is a function that knows the right tool: it calls it when it has
it, in full or as a card, else searches for it with the words of the question. Compared are:

* *all*: every schema in every prompt;
* *anew*: each question is retrieved for, only tools that were called stay, no search;
* *kept*: what was offered stays, new tools come behind, the model can search (the default);
* *kept, no cards*: the same, but ``search_tools`` lists no cards.

Counted are the tokens of all prompts (tools, then messages), and those of them that a provider with
a prompt cache has to read anew: what comes after the longest beginning that the prompt before had
too. Tokens are the estimate of four bytes each.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from agentkit import Agent, Library, Tool, ToolDefinition
from agentkit.agent import SelectionPolicy
from agentkit.agent.types import RunResult
from agentkit.messages import Message, ToolCall, ToolMessage, message_to_json
from agentkit.models.base import ModelRequest
from agentkit.retrieval import estimate_tokens, schema_text
from agentkit.testing import FunctionModel
from agentkit_bench.retrieval import RetrievalQuery, load_corpus
from agentkit_bench.retrieval.corpus import RetrievalCorpus

SEED = 7
WAYS: Mapping[str, Mapping[str, Any]] = {
    "all": {"retriever": None},
    "anew": {"selection": SelectionPolicy(search_tool=False)},
    "kept": {},
    "kept, no cards": {"selection": SelectionPolicy(show_cards=False)},
}


@dataclass(kw_only=True)
class Asked:
    """A model that knows which tools a question needs, and what its prompts cost."""

    arguments: Mapping[str, Mapping[str, Any]]
    gold: Sequence[str] = ()
    question: str = ""
    prompts: int = 0
    tokens: int = 0
    uncached: int = 0
    called: set[str] = field(default_factory=set)
    before: str = ""

    def answer(self, request: ModelRequest) -> str | list[ToolCall]:
        """Call what is there of the right tools; search once for the rest; then answer."""
        self._count(request)
        cards = request.tools[0].text if request.tools else ""
        results = [m for m in request.messages if isinstance(m, ToolMessage)]
        seen = "\n".join((cards, *(m.text for m in results)))
        offered = {definition.name for definition in request.tools}
        missing = [name for name in self.gold if name not in self.called]
        ready = [name for name in missing if name in offered or f"\n{name}(" in seen]
        if ready:
            self.called.update(ready)
            return [_call(name, self.prompts, self.arguments[name]) for name in ready]
        if missing and "search_tools" in offered and "search_tools" not in self.called:
            self.called.add("search_tools")
            return [_call("search_tools", self.prompts, {"query": self.question})]
        return "Done."

    def _count(self, request: ModelRequest) -> None:
        tools = "\n".join(map(schema_text, request.tools))
        said = "\n".join(json.dumps(message_to_json(message)) for message in request.messages)
        prompt = f"{tools}\n{said}"
        pairs = zip(self.before, prompt, strict=False)
        kept = next((at for at, (one, other) in enumerate(pairs) if one != other), len(self.before))
        self.before = prompt
        self.prompts += 1
        self.tokens += estimate_tokens(prompt)
        self.uncached += estimate_tokens(prompt[kept:])


def _call(name: str, number: int, arguments: Mapping[str, Any]) -> ToolCall:
    return ToolCall(call_id=f"{name}-{number}", name=name, arguments=arguments)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """One conversation."""

    prompts: int
    tokens: int
    uncached: int
    offered: int
    reached: float


async def converse(way: str, library: Library, questions: Sequence[RetrievalQuery]) -> Cost:
    """Ask all questions in one conversation."""
    asked = Asked(arguments={one.name: _arguments(one) for one in library.definitions})
    reached = []
    agent = Agent(FunctionModel(asked.answer), library=library, **WAYS[way])
    result: RunResult | None = None
    for question in questions:
        asked.gold, asked.question, asked.called = sorted(question.gold), question.text, set()
        history: Sequence[Message] | RunResult = () if result is None else result
        if way == "anew" and result is not None:
            history = result.messages
        result = await agent.run(question.text, history=history)
        reached.append(len(asked.called & question.gold) / len(question.gold))
    assert result is not None
    offered = asked.before.count('"parameters"')
    return Cost(
        prompts=asked.prompts,
        tokens=asked.tokens,
        uncached=asked.uncached,
        offered=offered,
        reached=fmean(reached),
    )


_VALUES: Mapping[str, Any] = {
    "string": "x",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "array": [],
    "object": {},
}


def _arguments(definition: ToolDefinition) -> dict[str, Any]:
    """Values that fit the required parameters, more or less."""
    schema = definition.signature.parameters
    properties = schema.get("properties") or {}
    required = {name: properties.get(name, {}) for name in schema.get("required") or ()}
    return {
        name: (one.get("enum") or [_VALUES.get(str(one.get("type")), "x")])[0]
        for name, one in required.items()
    }


def part(
    corpus: RetrievalCorpus, questions: Sequence[RetrievalQuery], size: int, chance: random.Random
) -> Library:
    """A random library of ``size`` tools that holds the gold tools, each of which does nothing."""
    first = {key: name for name, key in reversed(list(corpus.keys.items()))}
    gold = sorted({key for question in questions for key in question.gold})
    keys = [*gold, *chance.sample(sorted(first.keys() - set(gold)), size - len(gold))]
    chance.shuffle(keys)
    definitions = (corpus.library[first[key]].definition for key in keys)
    return Library(Tool(definition=one, function=lambda **_: "done") for one in definitions)


async def measure(corpus: RetrievalCorpus, size: int, turns: int, count: int) -> None:
    """Print a row for each way."""
    print("| tools are offered | prompt tokens | read anew | tools at the end | gold reached |")
    print("|---|---|---|---|---|")
    for way in WAYS:
        costs = []
        for number in range(count):
            chance = random.Random(f"{SEED} {number}")
            questions = chance.sample(corpus.queries, turns)
            costs.append(await converse(way, part(corpus, questions, size, chance), questions))
        print(
            f"| {way} | {fmean(c.tokens for c in costs):,.0f} "
            f"| {fmean(c.uncached for c in costs):,.0f} "
            f"| {fmean(c.offered for c in costs):.0f} "
            f"| {100 * fmean(c.reached for c in costs):.1f}% |"
        )


def main() -> None:
    """Measure and print a Markdown table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tools", nargs="+", type=Path, required=True)
    parser.add_argument("--queries", nargs="+", type=Path, required=True)
    parser.add_argument("--size", type=int, default=500, help="tools in the library")
    parser.add_argument("--turns", type=int, default=10, help="questions a conversation")
    parser.add_argument("--conversations", type=int, default=20)
    arguments = parser.parse_args()
    corpus = load_corpus(arguments.tools, arguments.queries, by="name").of_split("test")
    size, turns, count = arguments.size, arguments.turns, arguments.conversations
    asyncio.run(measure(corpus, size, turns, count))


if __name__ == "__main__":
    main()

"""What finding tools costs in tokens, as the library grows from 50 tools to thousands (docs/retrieval.md).

    python tests/benchmarks/context/context_cost.py --tools FILE... --queries FILE... [--out DIR]

Questions are asked of random parts of the catalogue that hold their gold tools, tools of one name
counted as one. Compared are:

* *flat library*: every schema is in the prompt;
* *text hierarchy*: a tree of text summaries; the summaries that are read, cards and schemas count;
* *paper*: CoCoDA's Algorithm 2 with a planner model at L2, L3 and L4; its prompts and answers, cards
  and schemas count. The model is a stand-in that ranks by shared words, as cost depends on the
  prompts only. *paper, right types*: the same, told the types of the right tools;
* *default*: what an agent uses; cards and schemas count, as no model is asked.

Tokens are the estimate of four bytes each. The text hierarchy needs the extra ``vectors``.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

sys.path.append(str(Path(__file__).resolve().parents[1]))

from harness import arguments, machine
from planner import overlap_model, typed_plan

from agentkit.library import Library
from agentkit.retrieval import CascadeRetriever, Retrieval, Retriever, estimate_tokens
from agentkit.retrieval.word_vectors import packaged_embedder
from agentkit_bench import FlatLibrary, Hierarchy, variant
from agentkit_bench.retrieval import RetrievalCorpus, RetrievalQuery, load_corpus, recall_at

SIZES = (50, 100, 200, 400, 800, 1600, 3200, 6400, 10000)
SEED = 7
GOLD_SHARE = 4
"""Of a part at most one tool in four is gold of a question that is asked of it."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One method at one size, means over the questions.

    Attributes:
        method: Its name.
        tools: Tools in the library.
        tokens: Everything that a language model reads and writes to find tools, and is then shown.
        shown: The part of it that the agent's model is shown: cards and schemas.
        offered_recall: Gold tools among those given in full.
        shown_recall: Gold tools among those given in full or as a card.
    """

    method: str
    tools: int
    tokens: float
    shown: float
    offered_recall: float
    shown_recall: float


@dataclass(frozen=True, kw_only=True)
class Part:
    """A library that holds the gold tools of the questions asked of it."""

    library: Library
    queries: tuple[RetrievalQuery, ...]


Spent = Callable[[RetrievalQuery, Library], Awaitable[int]]
"""Tokens that a method spends beyond those of its ``Retrieval``."""


def parts(corpus: RetrievalCorpus, size: int) -> Iterator[Part]:
    """Random libraries of ``size`` tools; as many questions share one as have room in it."""
    chance = random.Random(f"{SEED} {size}")
    by_key: dict[str, list[str]] = {}
    for name, key in corpus.keys.items():
        by_key.setdefault(key, []).append(name)
    for queries in _groups(corpus.queries, max(1, size // GOLD_SHARE)):
        # one definition a key: the library of a size holds that many different tools
        gold = sorted({key for query in queries for key in query.gold})
        rest = sorted(by_key.keys() - set(gold))
        keys = [*gold, *chance.sample(rest, min(len(rest), max(size - len(gold), 0)))]
        chance.shuffle(keys)
        yield Part(library=Library(corpus.library[by_key[key][0]] for key in keys), queries=queries)


def _groups(
    queries: Sequence[RetrievalQuery], most_gold: int
) -> Iterator[tuple[RetrievalQuery, ...]]:
    group: list[RetrievalQuery] = []
    for query in queries:
        if group and sum(len(one.gold) for one in (*group, query)) > most_gold:
            yield tuple(group)
            group = []
        group.append(query)
    if group:
        yield tuple(group)


def methods(corpus: RetrievalCorpus) -> dict[str, tuple[Retriever, Spent | None]]:
    """What is compared, with what each spends beside what it reports."""
    by_key = {key: name for name, key in reversed(corpus.keys.items())}
    plans = {
        query.text: typed_plan(
            query.text, (corpus.library[by_key[key]].definition for key in sorted(query.gold))
        )
        for query in corpus.queries
    }
    found: dict[str, tuple[Retriever, Spent | None]] = {
        "flat library": (FlatLibrary(token_budget=None), None),
        "paper": (variant("paper", model=overlap_model()), None),
        "paper, right types": (variant("paper", model=overlap_model(plans)), None),
    }
    embedder = packaged_embedder()
    if embedder is None:
        print("Leaving out the text hierarchy, which needs the extra vectors", file=sys.stderr)
    else:
        hierarchy = Hierarchy(embedder)

        async def summaries(query: RetrievalQuery, library: Library) -> int:
            read = hierarchy.summaries(query.text, library)
            return sum(estimate_tokens(text + "\n") for text in read)

        found["text hierarchy"] = (CascadeRetriever(stages=[hierarchy]), summaries)
    found["default"] = (variant("default"), None)
    return found


async def measure(
    name: str, retriever: Retriever, spent: Spent | None, size: int, corpus: RetrievalCorpus
) -> Row:
    """Ask all questions of libraries of one size."""
    found: list[tuple[RetrievalQuery, Retrieval, int]] = []
    for part in parts(corpus, size):
        answer = None
        for query in part.queries:
            if name != "flat library" or answer is None:  # it gives everyone the same
                answer = await retriever.retrieve(query.text, part.library)
            more = 0 if spent is None else await spent(query, part.library)
            found.append((query, answer, more + model_tokens(answer)))
    return Row(
        method=name,
        tools=size,
        tokens=fmean(answer.tokens + more for _, answer, more in found),
        shown=fmean(answer.tokens for _, answer, _ in found),
        offered_recall=fmean(
            recall_at(query.gold, keys(corpus, [tool.name for tool in answer.offered]), sys.maxsize)
            for query, answer, _ in found
        ),
        shown_recall=fmean(
            recall_at(
                query.gold, keys(corpus, [hit.definition.name for hit in answer.hits]), sys.maxsize
            )
            for query, answer, _ in found
        ),
    )


def keys(corpus: RetrievalCorpus, names: Sequence[str]) -> list[str]:
    """What tools of the library count as."""
    return [corpus.keys[name] for name in names]


def model_tokens(found: Retrieval) -> int:
    """What the stages spent on a language model."""
    return found.usage.prompt_tokens + found.usage.completion_tokens


def picture(rows: Sequence[Row], path: Path) -> None:
    """Tokens and recall against size, side by side as SVG (matplotlib is part of the extra ``dev``)."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator

    names = list(dict.fromkeys(row.method for row in rows))
    # text stays text, and the same figures give the same file
    with rc_context(
        {"svg.fonttype": "none", "svg.hashsalt": "context", "font.family": "sans-serif"}
    ):
        figure = Figure(figsize=(10, 4.1), layout="constrained")
        tokens, shown = figure.subplots(1, 2)
        for place, name in enumerate(names):
            own = [row for row in rows if row.method == name]
            sizes = [row.tools for row in own]
            style = {"marker": "s^vDo"[place], "linewidth": 2.5 if name == names[-1] else 1.5}
            tokens.plot(sizes, [row.tokens for row in own], label=name, **style)
            shown.plot(sizes, [100 * row.shown_recall for row in own], **style)
        tokens.set(title="Tokens a query", yscale="log")
        shown.set(title="Right tools shown to the model, %", ylim=(0, None))
        for axes in (tokens, shown):
            axes.set(xlabel="tools in the library", xscale="log")
            axes.xaxis.set_major_locator(FixedLocator(SIZES))
            axes.xaxis.set_minor_locator(FixedLocator([]))
            axes.xaxis.set_major_formatter("{x:,.0f}")
            axes.yaxis.set_major_formatter("{x:,.0f}")
        figure.legend(loc="outside lower center", ncols=len(names), frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None})


def table(rows: Sequence[Row]) -> str:
    """Tokens and the share of gold tools shown, as a Markdown table."""
    names = list(dict.fromkeys(row.method for row in rows))
    by_place = {(row.method, row.tools): row for row in rows}
    lines = ["| tools | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for size in dict.fromkeys(row.tools for row in rows):
        cells = (by_place[name, size] for name in names)
        shown = (f"{row.tokens:,.0f} ({100 * row.shown_recall:.0f})" for row in cells)
        lines.append(f"| {size:,} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = arguments(__doc__, rounds=None)
    parser.add_argument("--tools", nargs="+", type=Path, required=True)
    parser.add_argument("--queries", nargs="+", type=Path, required=True)
    parser.add_argument(
        "--questions", type=int, default=60, help="an even sample of the test split"
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--out", type=Path, help="folder for context.json and context.svg")
    options = parser.parse_args()
    corpus = load_corpus(options.tools, options.queries, by="name")
    corpus = corpus.of_split("test").sample(options.questions)
    rows = [
        asyncio.run(measure(name, retriever, spent, size, corpus))
        for size in options.sizes
        for name, (retriever, spent) in methods(corpus).items()
    ]
    print(table(rows))
    if options.out:
        questions, found = len(corpus.queries), [asdict(row) for row in rows]
        record = {"machine": machine(), "questions": questions, "rows": found}
        text = json.dumps(record, indent=1) + "\n"
        (options.out / "context.json").write_text(text, encoding="utf-8")
        picture(rows, options.out / "context.svg")

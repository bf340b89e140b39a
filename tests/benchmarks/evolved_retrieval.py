"""Does retrieval find more with definitions that evolved from episodes, on requests held out?

    python tests/benchmarks/evolved_retrieval.py --corpus nestful=FOLDER [--corpus ...]
        [--by-name bfcl] [--methods examples,words] [--answers FILE] [--json FILE]

A folder holds the files that ``bench_learning.py`` reads. The dev questions of a corpus were used
to choose the retriever's settings, so they are left alone: each seed splits the test questions in
halves. One half is lived, as episodes with their gold calls and a verdict that passed, and
definitions evolve from them in one of these ways:

* examples   worked examples from ``ToolManager.learn``;
* words      words that users said more than once about one tool, and that its text lacks, as tags;
* added      the words again, where all three libraries have the examples already;
* model      texts by the evolution stream and a language model, for a few drawn tools;
* form       the same, the model held in the form of a block by a grammar.

The other half is asked with three libraries: ``fixed`` as the corpus has it, ``evolved``, and
``shuffled``, in which each tool has what another tool learned. Questions that differ only in
numbers stay on one side. ``--answers`` keeps what the model says, so that a run can go on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean

from bench_learning import episodes_of, rankings

from agentkit import Episode, Library, ToolDefinition
from agentkit.episodes import Verdict
from agentkit.errors import ModelError
from agentkit.evolution import ToolManager
from agentkit.evolution.gates import GateReport, PairedSelection, regression_gate
from agentkit.evolution.proposal import UnreadableProposal
from agentkit.evolution.proposer import Observations
from agentkit.evolution.proposers.streams import EvolutionStream
from agentkit.evolution.usage import words_of
from agentkit.evolution.validation import validate
from agentkit.evolution.validation.report import ProposedChange
from agentkit.library.memory import MemoryStore
from agentkit.messages import AssistantMessage
from agentkit.metrics.intervals import Interval, Observation, bootstrap_interval
from agentkit.models.base import ChatModel, ModelRequest, ModelResponse, ModelSettings
from agentkit.models.resolve import resolve_model
from agentkit.retrieval.words import terms
from agentkit.testing import ReplayModel
from agentkit.tools.definition import Description, Example
from agentkit_bench.retrieval.corpus import RetrievalQuery, load_corpus
from agentkit_bench.retrieval.scores import recall_at

ARMS = ("fixed", "evolved", "shuffled")
METHODS = ("examples", "words", "added", "model", "form")
MEASURES: Mapping[str, Callable[[AbstractSet[str], Sequence[str]], float]] = {
    "@5": lambda gold, found: recall_at(gold, found, 5),
    "@10": lambda gold, found: recall_at(gold, found, 10),
    "full@10": lambda gold, found: float(recall_at(gold, found, 10) == 1),
}
DEPTH = 10
MOST_WORDS = 8
SHOWN_EPISODES = 2  # a small model reads slowly
LONGEST_ANSWER = 256
BLOCK = {
    "summary": {"type": "string", "maxLength": 240},
    "usage_rules": {
        "type": "array",
        "items": {"type": "string", "maxLength": 120},
        "minItems": 1,
        "maxItems": 2,
    },
}


@dataclass(frozen=True, kw_only=True)
class RuleSuggestion:
    """What one tool learned, apart from the tool, so that it can be laid on another.

    Attributes:
        examples: Worked examples to add.
        tags: Tags to add.
        texts: Summary, rules on use and texts of parameters in place of the present ones.
    """

    examples: tuple[Example, ...] = ()
    tags: tuple[str, ...] = ()
    texts: Description | None = None

    def laid_on(self, tool: ToolDefinition) -> ToolDefinition:
        """The tool with it; texts of parameters that the tool does not have are left out."""
        old = tool.description
        new = self.texts or old
        named = {path: text for path, text in new.parameters.items() if path in old.parameters}
        return replace(
            tool,
            examples=(*tool.examples, *self.examples),
            description=replace(
                old,
                summary=new.summary,
                usage_rules=new.usage_rules,
                parameters={**old.parameters, **named},
                tags=(*old.tags, *self.tags),
            ),
        )


@dataclass(frozen=True, kw_only=True)
class Evolution:
    """What a method made of one half.

    Attributes:
        lessons: By name of the tool in the library.
        before: Lessons that the fixed definitions have too.
        counts: What became of suggestions: ``asked``, ``readable``, ``proposed`` to the checks,
            ``valid``, and the codes of what was wrong.
        about: Names of the tools that could learn, where these were drawn; only questions that
            need one of them are asked.
    """

    lessons: Mapping[str, RuleSuggestion]
    before: Mapping[str, RuleSuggestion] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    about: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Row:
    """One held-out question of one seed.

    Attributes:
        question: Its id.
        gold: Keys of the right tools.
        taught: Those of them that learned something.
        is_new: Whether no question that was lived needs just these tools.
        found: By arm the first ten keys.
    """

    question: str
    gold: frozenset[str]
    taught: frozenset[str]
    is_new: bool
    found: Mapping[str, tuple[str, ...]]

    def gain(self, arm: str, measure: str) -> float:
        """How much more an arm finds than the fixed definitions."""
        score = MEASURES[measure]
        return score(self.gold, self.found[arm]) - score(self.gold, self.found["fixed"])


@dataclass(frozen=True, kw_only=True)
class Seed:
    """All that one seed gave; ``Figures`` says what each number means."""

    lived: int
    taught: int
    counts: Mapping[str, int]
    together: int
    rows: tuple[Row, ...]


def halves(
    queries: Iterable[RetrievalQuery], seed: int
) -> tuple[list[RetrievalQuery], list[RetrievalQuery]]:
    """Questions to live and questions to ask; those that differ only in numbers stay together."""
    alike: dict[frozenset[str], list[RetrievalQuery]] = defaultdict(list)
    for query in queries:
        alike[words_of(query.text, {})].append(query)
    groups = sorted(alike.values(), key=lambda group: group[0].query_id)
    random.Random(seed).shuffle(groups)
    half = len(groups) // 2
    return [one for group in groups[:half] for one in group], [
        one for group in groups[half:] for one in group
    ]


def deranged(
    names: Iterable[str], together: Callable[[str, str], bool], seed: int
) -> dict[str, str]:
    """To each name another one, drawn at random, none of them twice and none its own.

    Two that belong ``together``, such as tools that one question needs, are kept apart as far as
    swapping can: a lesson that is right for both would be no wrong one.
    """
    order = sorted(names)
    chance = random.Random(seed)
    chance.shuffle(order)
    takers = order[1:] + order[:1]

    def clash(giver: str, taker: str) -> bool:
        return giver == taker or together(giver, taker)

    for at, giver in enumerate(order):
        if not clash(giver, takers[at]):
            continue
        for other in chance.sample(range(len(order)), len(order)):
            if not clash(giver, takers[other]) and not clash(order[other], takers[at]):
                takers[at], takers[other] = takers[other], takers[at]
                break
    return dict(zip(order, takers, strict=True)) if len(order) > 1 else {}


def in_same_episode(episodes: Iterable[Episode]) -> Callable[[str, str], bool]:
    """Whether two tools were called for one request."""
    pairs = {
        (one.name, other.name)
        for episode in episodes
        for one in episode.calls
        for other in episode.calls
    }
    return lambda one, other: (one, other) in pairs


def perfect(episodes: Iterable[Episode]) -> list[Episode]:
    """The episodes as the evolution stream asks for them: finished, with a score of 1."""
    verdict = Verdict(passed=True, score=1.0)
    return [replace(episode, stop_reason="finished", verdict=verdict) for episode in episodes]


def both(
    first: Mapping[str, RuleSuggestion], second: Mapping[str, RuleSuggestion]
) -> dict[str, RuleSuggestion]:
    """Two lessons for each tool that has two; texts of the second go first."""
    none = RuleSuggestion()
    return {
        name: RuleSuggestion(
            examples=first.get(name, none).examples + second.get(name, none).examples,
            tags=first.get(name, none).tags + second.get(name, none).tags,
            texts=second.get(name, none).texts or first.get(name, none).texts,
        )
        for name in {**first, **second}
    }


def with_lessons(library: Library, lessons: Mapping[str, RuleSuggestion]) -> Library:
    """The library with each lesson on its tool."""
    return Library(
        lessons[one.name].laid_on(one) if one.name in lessons else one
        for one in library.definitions
    )


async def from_examples(library: Library, episodes: Sequence[Episode]) -> Evolution:
    """What ``ToolManager.learn`` adds."""
    manager = ToolManager(MemoryStore())
    manager.register(library.definitions)
    report = manager.learn(episodes)
    lessons = {name: RuleSuggestion(examples=tuple(new)) for name, new in report.added.items()}
    return Evolution(lessons=lessons, counts=Counter(proposed=len(lessons), valid=len(lessons)))


def from_words(library: Library, episodes: Sequence[Episode]) -> Evolution:
    """The users' words as tags, where every check lets them pass."""
    requests = tuple(episode.request for episode in episodes)
    lessons, counts = {}, Counter[str]()
    for name, words in recurring(library, episodes).items():
        lesson = RuleSuggestion(tags=words)
        if passes(library, name, lesson, requests, counts):
            lessons[name] = lesson
    return Evolution(lessons=lessons, counts=counts)


def recurring(library: Library, episodes: Sequence[Episode]) -> dict[str, tuple[str, ...]]:
    """The words that at least two requests for a tool share and that its own text lacks.

    At least half of all requests that say a word must be for the tool, so that "please" and "find"
    belong to none. What was passed on as an argument is no word of a request. At most eight a tool,
    those said most often.
    """
    everywhere: Counter[str] = Counter()
    by_tool: dict[str, Counter[str]] = defaultdict(Counter)
    for episode in episodes:
        given = {str(at): call.arguments for at, call in enumerate(episode.calls)}
        words = {word for word in words_of(episode.request, given) if word.isalpha()}
        everywhere.update(words)
        for name in {call.name for call in episode.calls}:
            by_tool[name].update(words)
    found = {}
    for name, counts in sorted(by_tool.items()):
        own = set(terms(f"{name} {library[name].definition.text}"))
        fit = [
            word
            for word, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
            if count >= 2 and 2 * count >= everywhere[word] and word not in own
        ]
        if fit:
            found[name] = tuple(fit[:MOST_WORDS])
    return found


def passes(
    library: Library,
    name: str,
    lesson: RuleSuggestion,
    requests: tuple[str, ...],
    counts: Counter[str],
) -> bool:
    """Whether every check lets a changed definition pass; ``counts`` gets what they said."""
    base = library[name].definition
    change = ProposedChange(
        base=base, candidate=lesson.laid_on(base), library=library, sources=requests
    )
    report = validate(change)
    counts["proposed"] += 1
    counts["valid"] += report.is_valid
    counts.update({one.code for one in report.failed})
    return report.is_valid


class InForm:
    """A model whose answers a grammar holds in the form of one block.

    A very small model does not keep to a form that it is told of; so it can be seen what its words
    are worth, apart from that.

    Args:
        model: The model, which has to decode under a schema.
        tool: The tool that it is asked about.
    """

    def __init__(self, model: ChatModel, tool: str) -> None:
        self._model = model
        self._schema = {
            "type": "object",
            "properties": {"tool": {"const": tool}, **BLOCK},
            "required": ["tool", *BLOCK],
            "additionalProperties": False,
        }

    @property
    def name(self) -> str:
        """The model's name."""
        return self._model.name

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """The answer as a block.

        Raises:
            ModelError: The model could not answer.
        """
        response = await self._model.complete(replace(request, output_schema=self._schema))
        text = f"<description>{response.message.text}</description>"
        return replace(response, message=AssistantMessage(text=text))


@dataclass(frozen=True, kw_only=True)
class Asking:
    """How a language model is asked.

    Attributes:
        model: The model; its answers are kept.
        tools: How many tools it is asked about for a seed.
        seeds: Over how many seeds a corpus' tools are dealt out.
    """

    model: ChatModel
    tools: int
    seeds: int

    def drawn(self, episodes: Sequence[Episode], library: Library, seed: int) -> list[str]:
        """Tools with three or more episodes, drawn at random, and others for each seed."""
        counts = Counter(name for one in episodes for name in {call.name for call in one.calls})
        order = [one.name for one in library.definitions]
        random.Random(0).shuffle(order)
        return [name for name in order[seed :: self.seeds] if counts[name] >= 3][: self.tools]

    async def evolution(
        self, library: Library, episodes: Sequence[Episode], seed: int, *, in_form: bool
    ) -> Evolution:
        """What the evolution stream suggests for the drawn tools, where checks let it pass."""
        requests = tuple(episode.request for episode in episodes)
        lessons, counts = {}, Counter[str]()
        names = self.drawn(episodes, library, seed)
        for name in names:
            model = InForm(self.model, name) if in_form else self.model
            lesson = await self._asked(model, library, episodes, name, seed, counts)
            if lesson and passes(library, name, lesson, requests, counts):
                lessons[name] = lesson
        return Evolution(lessons=lessons, counts=counts, about=frozenset(names))

    async def _asked(
        self,
        model: ChatModel,
        library: Library,
        episodes: Sequence[Episode],
        name: str,
        seed: int,
        counts: Counter[str],
    ) -> RuleSuggestion | None:
        """The first readable suggestion for one tool."""
        settings = ModelSettings(temperature=0.2, max_tokens=LONGEST_ANSWER, seed=seed)
        stream = EvolutionStream(model, settings=settings, max_episodes=SHOWN_EPISODES)
        seen = Observations(library=library, episodes=tuple(episodes), tools=(name,))
        counts["asked"] += 1
        try:
            suggested = await stream.propose(seen)
        except ModelError as error:  # such as a question longer than the model can read
            counts[type(error).__name__] += 1
            return None
        for one in suggested:
            if isinstance(one, UnreadableProposal):
                counts.update(f"unreadable: {failed.code}" for failed in one.failed)
            else:
                counts["readable"] += 1
                return RuleSuggestion(texts=one.candidate.description)
        return None


async def evolution_of(
    method: str, library: Library, episodes: Sequence[Episode], seed: int, asking: Asking | None
) -> Evolution:
    """What one method makes of the episodes."""
    if method == "examples":
        return await from_examples(library, episodes)
    if method == "added":
        before = await from_examples(library, episodes)
        words = from_words(library, episodes)
        return replace(words, before=before.lessons)
    if method == "words":
        return from_words(library, episodes)
    assert asking is not None, "a model needs --answers"
    return await asking.evolution(library, episodes, seed, in_form=method == "form")


class Corpus:
    """A corpus, and what each of its test questions finds with the definitions as they are."""

    def __init__(self, name: str, folder: Path, *, by_name: bool, most: int | None) -> None:
        questions = load_corpus(
            [folder / "tools.jsonl.gz"],
            [folder / "retrieval.jsonl.gz"],
            by="name" if by_name else "id",
        ).of_split("test")
        self.name = name
        self.questions = questions if most is None else questions.sample(most)
        lived = perfect(episodes_of(self.questions, folder))
        self._episodes = {episode.episode_id: episode for episode in lived}
        self._fixed: dict[str, tuple[str, ...]] = {}

    @property
    def library(self) -> Library:
        """The tools as they are."""
        return self.questions.library

    def episodes(self, queries: Iterable[RetrievalQuery]) -> list[Episode]:
        """The episodes of some questions; those without a gold call have none."""
        ids = [query.query_id for query in queries]
        return [self._episodes[one] for one in ids if one in self._episodes]

    async def found(
        self, queries: Sequence[RetrievalQuery], lessons: Mapping[str, RuleSuggestion]
    ) -> list[tuple[str, ...]]:
        """The keys of the first tools found for each question, with lessons on the library."""
        if lessons:
            library = with_lessons(self.library, lessons)
            return await self._ranked(queries, library)
        new = [query for query in queries if query.query_id not in self._fixed]
        if new:
            ranked = await self._ranked(new, self.library)
            self._fixed.update(zip([query.query_id for query in new], ranked, strict=True))
        return [self._fixed[query.query_id] for query in queries]

    async def _ranked(
        self, queries: Sequence[RetrievalQuery], library: Library
    ) -> list[tuple[str, ...]]:
        if not queries:
            return []
        ranked, _ = await rankings(self.questions.with_queries(queries), library)
        return [tuple(keys[:DEPTH]) for keys in ranked]


async def lived_and_asked(corpus: Corpus, method: str, seed: int, asking: Asking | None) -> Seed:
    """One seed: definitions evolve from one half, the other is asked with three libraries."""
    to_live, held_out = halves(corpus.questions.queries, seed)
    episodes = corpus.episodes(to_live)
    evolution = await evolution_of(method, corpus.library, episodes, seed, asking)
    keys = corpus.questions.keys
    about = {keys[name] for name in evolution.about}
    to_ask = [query for query in held_out if not about or query.gold & about]
    together = in_same_episode(episodes)
    takers = deranged(evolution.about or evolution.lessons, together, seed)
    laid: Mapping[str, Mapping[str, RuleSuggestion]] = {
        "fixed": {},
        "evolved": evolution.lessons,
        "shuffled": {takers[name]: one for name, one in evolution.lessons.items() if takers},
    }
    found = {
        arm: await corpus.found(to_ask, both(evolution.before, lessons))
        for arm, lessons in laid.items()
    }
    return Seed(
        lived=len(episodes),
        taught=len(evolution.lessons),
        counts=evolution.counts,
        together=sum(together(giver, taker) for giver, taker in takers.items()),
        rows=rows_of(
            to_ask,
            found,
            taught={keys[name] for name in evolution.lessons},
            lived={query.gold for query in to_live},
        ),
    )


def rows_of(
    queries: Sequence[RetrievalQuery],
    found: Mapping[str, Sequence[tuple[str, ...]]],
    *,
    taught: AbstractSet[str],
    lived: AbstractSet[frozenset[str]],
) -> tuple[Row, ...]:
    """A row for each question that was asked.

    Args:
        queries: The questions.
        found: By arm the keys found for each of them.
        taught: Keys of the tools that learned something.
        lived: The sets of tools that questions which were lived need.
    """
    return tuple(
        Row(
            question=query.query_id,
            gold=query.gold,
            taught=query.gold & taught,
            is_new=query.gold not in lived,
            found={arm: found[arm][at] for arm in ARMS},
        )
        for at, query in enumerate(queries)
    )


def gain(rows: Sequence[Row], arm: str, measure: str) -> Interval | None:
    """The mean paired difference with an interval over questions; None without any.

    A question that several seeds ask counts once, with the mean of its differences.
    """
    observed = [Observation(value=row.gain(arm, measure), task=row.question) for row in rows]
    return bootstrap_interval(observed, resamples=5_000) if observed else None


def gain_of_tools(rows: Sequence[Row], arm: str, *, taught: bool) -> Interval | None:
    """How much more often a right tool is among the first five, tool by tool.

    Each tool counts the same, and the interval resamples tools: it says what to expect of others.

    Args:
        rows: The questions.
        arm: Instead of the fixed definitions.
        taught: Whether tools that learned something are meant, or the others.
    """
    observed = [
        Observation(
            value=float(key in row.found[arm][:5]) - float(key in row.found["fixed"][:5]), task=key
        )
        for row in rows
        for key in (row.taught if taught else row.gold - row.taught)
    ]
    return bootstrap_interval(observed, resamples=5_000) if observed else None


def bystanders(rows: Iterable[Row]) -> list[Row]:
    """The questions none of whose tools learned anything."""
    return [row for row in rows if not row.taught]


def gate(rows: Iterable[Row], arm: str) -> GateReport:
    """What the bystander gate says of all lessons at once, by the first five tools found."""
    selections = (
        PairedSelection(
            task=row.question,
            control=("right",),
            candidate=("right" if row.gold <= set(row.found[arm][:5]) else "wrong",),
        )
        for row in bystanders(rows)
        if row.gold <= set(row.found["fixed"][:5])
    )
    return regression_gate(selections, tool="")


@dataclass(frozen=True, kw_only=True)
class Figures:
    """One method on one corpus.

    Attributes:
        corpus: Its name.
        method: What definitions evolved by.
        seeds: How many splits.
        lived: Episodes learned from, mean over seeds.
        taught: Tools that learned something, mean over seeds.
        asked: Different questions asked.
        known: Share of the tools asked for that were taught.
        together: Lessons that the shuffle could not keep from a tool used with their own.
        counts: What became of suggestions, all seeds.
        recall: Means over questions, by arm and measure.
        gains: Paired differences to the fixed definitions, by what is compared and arm.
        gates: What the bystander gate says, by arm, one a seed.
    """

    corpus: str
    method: str
    seeds: int
    lived: float
    taught: float
    asked: int
    known: float
    together: int
    counts: Mapping[str, int]
    recall: Mapping[str, Mapping[str, float]]
    gains: Mapping[str, Mapping[str, Interval | None]]
    gates: Mapping[str, Sequence[GateReport]]


def figures_of(corpus: str, method: str, seeds: Sequence[Seed]) -> Figures:
    """The figures of all seeds together."""
    rows = [row for one in seeds for row in one.rows]
    return Figures(
        corpus=corpus,
        method=method,
        seeds=len(seeds),
        lived=fmean(one.lived for one in seeds),
        taught=fmean(one.taught for one in seeds),
        asked=len({row.question for row in rows}),
        known=fmean([len(row.taught) / len(row.gold) for row in rows if row.gold] or [0.0]),
        together=sum(one.together for one in seeds),
        counts=dict(sum((Counter(one.counts) for one in seeds), Counter[str]())),
        recall={arm: {name: mean(rows, arm, name) for name in MEASURES} for arm in ARMS},
        gains=gains_of(rows),
        gates={arm: [gate(one.rows, arm) for one in seeds] for arm in ARMS[1:]},
    )


def gains_of(rows: Sequence[Row]) -> dict[str, dict[str, Interval | None]]:
    """Paired differences of all questions by measure, and of parts of them in recall@5."""
    parts = {
        "taught questions": [row for row in rows if row.taught],
        "new combinations": [row for row in rows if row.taught and row.is_new],
        "bystanders": bystanders(rows),
    }
    found = {name: {arm: gain(rows, arm, name) for arm in ARMS[1:]} for name in MEASURES}
    found |= {
        name: {arm: gain(some, arm, "@5") for arm in ARMS[1:]} for name, some in parts.items()
    }
    for name, taught in (("taught tools", True), ("other tools", False)):
        found[name] = {arm: gain_of_tools(rows, arm, taught=taught) for arm in ARMS[1:]}
    return found


def mean(rows: Sequence[Row], arm: str, measure: str) -> float:
    """The mean over questions, each of which counts once."""
    values: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        values[row.question].append(MEASURES[measure](row.gold, row.found[arm]))
    return fmean([fmean(several) for several in values.values()] or [0.0])


def lines(figures: Figures) -> Iterator[str]:
    """The figures for people."""
    yield (
        f"{figures.corpus}, {figures.method}: {figures.lived:.0f} episodes lived, "
        f"{figures.taught:.0f} tools taught, {figures.asked} questions, "
        f"{figures.known:.0%} of the tools asked for were taught"
    )
    yield f"  suggestions {figures.counts}; shuffled among tools used together {figures.together}"
    for arm in ARMS:
        shown = "  ".join(f"{name} {figures.recall[arm][name]:.3f}" for name in MEASURES)
        yield f"  {arm:18} {shown}"
    for what, by_arm in figures.gains.items():
        shown = "  ".join(f"{arm} {in_points(one):24}" for arm, one in by_arm.items())
        yield f"  {what:18} {shown.rstrip()}"
    for arm, reports in figures.gates.items():
        decisions = dict(Counter(one.decision for one in reports))
        yield f"  gate, {arm:12} {decisions}; {reports[0].reason}"


def in_points(one: Interval | None) -> str:
    """A difference in percentage points."""
    if one is None:
        return "none"
    return f"{100 * one.value:+.1f} ({100 * one.low:+.1f}, {100 * one.high:+.1f})"


async def experiment(
    corpus: Corpus, methods: Sequence[str], seeds: int, asking: Asking | None
) -> list[Figures]:
    """All methods on one corpus."""
    figures = []
    for method in methods:
        done = [await lived_and_asked(corpus, method, seed, asking) for seed in range(seeds)]
        figures.append(figures_of(corpus.name, method, done))
        print(*lines(figures[-1]), sep="\n", flush=True)
    return figures


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--corpus", action="append", required=True, metavar="NAME=FOLDER")
    parser.add_argument("--by-name", action="append", default=[], metavar="NAME")
    parser.add_argument("--methods", default="examples,words")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--questions", type=int, help="an even sample of so many")
    parser.add_argument("--model", default="local:smollm2-135m")
    parser.add_argument("--answers", type=Path, help="keeps what the model answers")
    parser.add_argument("--tools", type=int, default=2, help="to ask the model about, a seed")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    methods = options.methods.split(",")
    if unknown := set(methods) - set(METHODS):
        parser.error(f"unknown methods {sorted(unknown)}; there are {', '.join(METHODS)}")
    asking = None
    if options.answers:
        model = ReplayModel(options.answers, resolve_model(options.model), mode="auto")
        asking = Asking(model=model, tools=options.tools, seeds=options.seeds)
    elif set(methods) & {"model", "form"}:
        parser.error("model and form need --answers, a file that keeps what the model says")
    figures = []
    for entry in options.corpus:
        name, _, folder = entry.partition("=")
        corpus = Corpus(name, Path(folder), by_name=name in options.by_name, most=options.questions)
        figures += asyncio.run(experiment(corpus, methods, options.seeds, asking))
    if options.json:
        text = json.dumps([asdict(one) for one in figures], indent=1)
        options.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

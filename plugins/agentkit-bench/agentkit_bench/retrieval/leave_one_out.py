"""Settings chosen on all corpora but one, and reported on that one: no figure flatters itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from agentkit.errors import DatasetError, UsageError
from agentkit.retrieval.cascade import default_stages
from agentkit.retrieval.ranking import TextRanker
from agentkit.retrieval.retriever import Retriever
from agentkit_bench.retrieval.corpus import Identity, RetrievalCorpus, load_corpus
from agentkit_bench.retrieval.measure import ranked_keys, recall_at
from agentkit_bench.retrieval.methods import DEEP, Equipment, cascade, find_method

AT = (5, 32)
CHOSEN = "default, settings chosen on the others"

_TO_CHOOSE = 400
"""Questions of each corpus that settings are chosen with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """What is chosen: the two numbers of the default that public catalogues decide.

    Attributes:
        meaning: How much word vectors count, words the rest.
        together: The power of the number of shared words.
    """

    meaning: float
    together: float


GRID = tuple(
    Setting(meaning=meaning, together=together)
    for meaning in (0.5, 0.6, 0.65, 0.7)
    for together in (0.25, 0.5, 0.75)
)


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOut:
    """The figures of one corpus.

    Attributes:
        corpus: The name of its folder.
        tools: How many tools it has.
        questions: How many questions were asked.
        setting: What was chosen on the other corpora.
        recall: By method, recall at 5 and at 32.
    """

    corpus: str
    tools: int
    questions: int
    setting: Setting
    recall: Mapping[str, tuple[float, ...]]


def read_folders(folders: Sequence[Path], *, by: Identity) -> dict[str, RetrievalCorpus]:
    """The corpora of some folders, each with ``tools.jsonl`` and ``retrieval.jsonl`` (or ``.gz``).

    Raises:
        DatasetError: A folder lacks one of the files.
        UsageError: Fewer than two folders.
    """
    if len(folders) < 2:
        raise UsageError(f"leaving one out takes at least two folders, got {len(folders)}")
    return {
        folder.name: load_corpus(
            [_file(folder, "tools.jsonl")], [_file(folder, "retrieval.jsonl")], by=by
        )
        for folder in folders
    }


def _file(folder: Path, name: str) -> Path:
    found = next((path for end in ("", ".gz") if (path := folder / (name + end)).is_file()), None)
    if found is None:
        raise DatasetError(f"{folder} has no {name} or {name}.gz; a corpus is a folder with both")
    return found


async def leave_one_out(
    corpora: Mapping[str, RetrievalCorpus],
    methods: Sequence[str],
    *,
    max_queries: int | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[LeftOut, ...]:
    """Leave each corpus out in turn.

    Args:
        corpora: At least two, by name.
        methods: What to report beside the default, see ``find_method``.
        max_queries: Ask at most this many questions of a corpus, an even sample.
        progress: Told what is measured.
    """
    gained: dict[str, dict[Setting, float]] = {}
    for name, corpus in corpora.items():
        progress(f"Trying {len(GRID)} settings on {name}")
        sample = corpus.sample(_TO_CHOOSE)
        gained[name] = {one: (await _recall(_default(one), sample))[0] for one in GRID}
    found = []
    for name, corpus in corpora.items():
        progress(f"Leaving {name} out")
        others = [one for other, one in gained.items() if other != name]
        setting = max(GRID, key=lambda one: fmean(scores[one] for scores in others))
        asked = corpus if max_queries is None else corpus.sample(max_queries)
        retrievers = {CHOSEN: _default(setting)}
        retrievers |= {one: find_method(one).build(DEEP, Equipment()) for one in methods}
        recall = {one: await _recall(retriever, asked) for one, retriever in retrievers.items()}
        found.append(
            LeftOut(
                corpus=name,
                tools=len(corpus.library),
                questions=len(asked.queries),
                setting=setting,
                recall=recall,
            )
        )
    return tuple(found)


def table(found: Sequence[LeftOut]) -> Iterator[str]:
    """The lines of a Markdown table, a row for each corpus and method."""
    yield "| corpus left out | method | recall@5 | recall@32 |"
    yield "|---|---|---|---|"
    for one in found:
        yield (
            f"| **{one.corpus}**: {one.tools:,} tools, {one.questions:,} questions | "
            f"meaning {one.setting.meaning}, together {one.setting.together} | | |"
        )
        for method, recall in one.recall.items():
            figures = " | ".join(f"{share:.3f}".removeprefix("0") for share in recall)
            yield f"| | {method} | {figures} |"


def _default(setting: Setting) -> Retriever:
    ranker = TextRanker(
        keep=DEEP.shortlist, cut=False, meaning=setting.meaning, together=setting.together
    )
    usual = default_stages(DEEP.shortlist)
    return cascade(DEEP, [ranker if isinstance(one, TextRanker) else one for one in usual])


async def _recall(retriever: Retriever, corpus: RetrievalCorpus) -> tuple[float, ...]:
    found = []
    for query in corpus.queries:
        keys = ranked_keys(await retriever.retrieve(query.text, corpus.library), corpus)
        found.append([recall_at(query.gold, keys, depth) for depth in AT])
    return tuple(fmean(column) for column in zip(*found, strict=True))

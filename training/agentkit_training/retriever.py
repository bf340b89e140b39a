"""Word vectors that learn a catalogue: fine-tuned on what was asked and which tools answered.

The static word vectors of retrieval know which words mean the same in general. What users of one
store call its tools they learn here, contrastively: a request is to be nearer to the tools that
answered it than to other tools of the same library (InfoNCE, van den Oord et al. 2018). Each piece
of a word has a vector and a weight, and a text is the weighted sum of its pieces.

Nothing is believed that held-back requests do not bear out. A first training leaves out some of
the requests, and every request for some of the tools. The whole retriever is then asked for both:
the vectors must find more of the first, and lose next to nothing of the second, whose tools have
learned nothing. Only then are they trained again, on everything.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import chain
from operator import le
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from agentkit import __version__
from agentkit.episodes import Episode
from agentkit.errors import DatasetError
from agentkit.evaluation.task_files import read_json_lines, read_records
from agentkit.evolution.learning import uses_of
from agentkit.library import Library
from agentkit.retrieval import CascadeRetriever, StaticEmbedder, default_stages
from agentkit.retrieval.vectors import vector_text
from agentkit.retrieval.word_vectors import VECTORS_FORMAT, TrainedVectors, digest_of
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.sources.json_records import definition_from_json
from agentkit_training.errors import TrainingError

if TYPE_CHECKING:
    import torch

_Kind: TypeAlias = Literal["held_back", "bystanders"]

_LONGEST = 200
"""Pieces of a text that are read."""

_FEWEST = 40
"""Requests that training needs; fewer say nothing that could be measured."""

_MOST_ASKED = 500
"""Requests that the whole retriever is asked, of either kind."""

_WORTH = 0.005
_HARM = 0.003
"""What vectors must gain on held-back requests, and may cost the bystanders: recall at 5."""

_MEANINGS = (0.65, 0.8, 0.9)
_AT = (5, 32)


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What somebody asked, and the tools whose calls answered it.

    Attributes:
        text: The words.
        tools: Names of the tools.
    """

    text: str
    tools: frozenset[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrieverSettings:
    """How word vectors are trained.

    Attributes:
        epochs: Most passes over the requests; training ends sooner, see ``patience``.
        patience: So many passes may go by without a gain on the held-back requests.
        learning_rate: Of the vectors, for Adam.
        weight_learning_rate: Of the weights of pieces, for Adam.
        batch: Requests in a step.
        negatives: Other tools with requests that a request is compared with.
        temperature: What cosines are divided by.
        held_back: The share of the requests that the trial does not learn from.
        bystanders: The share of the tools of which the trial learns nothing.
        seed: Of what is drawn.
    """

    epochs: int = 60
    patience: int = 4
    learning_rate: float = 5e-3
    weight_learning_rate: float = 1e-2
    batch: int = 128
    negatives: int = 384
    temperature: float = 0.05
    held_back: float = 0.2
    bystanders: float = 0.15
    seed: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrieverReport:
    """What came of training.

    Attributes:
        requests: How many requests there were.
        tools: How many tools they asked for.
        figures: Recall at 5 and 32, by ``held_back`` or ``bystanders``, then ``before`` or
            ``after``, such as ``held_back.after@5``.
        meaning: How much vectors count beside words, as chosen by the held-back requests.
        why: Why nothing was written; empty when the vectors are worth having.
        vectors: The vectors; None when they are not worth having.
    """

    requests: int
    tools: int
    figures: Mapping[str, float]
    meaning: float
    why: str = ""
    vectors: TrainedVectors | None = None

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object, without the vectors."""
        return {
            "requests": self.requests,
            "tools": self.tools,
            "figures": dict(self.figures),
            "meaning": self.meaning,
            "is_written": self.vectors is not None,
            "why": self.why,
            "digest": self.vectors.digest if self.vectors is not None else "",
        }


def requests_of(episodes: Iterable[Episode]) -> tuple[Request, ...]:
    """The requests of episodes that passed, each with the tools whose calls served its words."""
    served: dict[tuple[str, str], set[str]] = {}
    for use in uses_of(episodes):
        if use.query.strip():
            served.setdefault((use.episode_id, use.query), set()).add(use.tool)
    return tuple(
        Request(text=query, tools=frozenset(tools)) for (_, query), tools in served.items()
    )


def read_requests(path: Path, names: Mapping[str, str]) -> tuple[Request, ...]:
    """Requests from JSON lines, plain or compressed: ``query``, and ``gold`` or ``gold_tools``.

    Args:
        path: The file.
        names: The library's name of each tool, by what the file may call it.

    Raises:
        DatasetError: A line is no such object, or no line names a tool of the library.
    """
    found = []
    for line in read_json_lines(path):
        record = line.record or {}
        gold = record.get("gold", record.get("gold_tools"))
        if not isinstance(record.get("query"), str) or not isinstance(gold, list):
            why = line.reason or 'it needs "query" (a text) and "gold" (a list of tools)'
            raise DatasetError(f"{path}, line {line.number}: {why}")
        tools = frozenset(names[str(one)] for one in gold if str(one) in names)
        if tools:
            found.append(Request(text=record["query"], tools=tools))
    if not found:
        raise DatasetError(f"no line of {path} names a tool of the library")
    return tuple(found)


def read_catalogue(path: Path) -> tuple[Library, Mapping[str, str]]:
    """A library from JSON lines with a tool each, and its name for each id and name in the file.

    Of several tools of one name the first is taken, as a library holds a name once.

    Raises:
        DatasetError: A line is no object.
        DefinitionError: A line is no tool.
    """
    definitions: dict[str, ToolDefinition] = {}
    names: dict[str, str] = {}
    for record in read_records(path):
        one = definition_from_json(record)
        definitions.setdefault(one.name, one)
        names |= {one.name: one.name, str(record.get("id", one.name)): one.name}
    return Library(definitions.values()), names


def train_retriever(
    library: Library,
    requests: Sequence[Request],
    *,
    settings: RetrieverSettings = RetrieverSettings(),
    base: StaticEmbedder | None = None,
    source: str = "",
    tell: Callable[[str], None] = lambda _: None,
) -> RetrieverReport:
    """Train the word vectors on requests, and measure what the whole retriever gains by it.

    Args:
        library: The tools.
        requests: What was asked for; requests for tools that the library lacks are left out.
        settings: How.
        base: The word vectors to begin with; by default those of the extra ``vectors``.
        source: Where the requests are from, for the file.
        tell: Told of each step, in words.

    Raises:
        TrainingError: There are too few requests, or they are all for one tool.
        MissingExtraError: The word vectors are not installed.
    """
    asked = _usable(library, requests)
    trial = _divided(asked, settings)
    tell(
        f"{len(asked):,} requests; a trial learns from {len(trial.training):,}, and nothing of "
        f"{len(trial.bystanders):,} tools"
    )
    base = base or StaticEmbedder()
    model = _Model(base, library, asked, settings)
    epochs = model.fit(trial.training, stop_by=trial.of("held_back"), tell=tell)
    figures, meaning, why = _measured(library, trial, base, model.vectors(1.0), tell)
    report = RetrieverReport(
        requests=len(asked),
        tools=len(frozenset().union(*(one.tools for one in asked))),
        figures=figures,
        meaning=meaning,
        why=why,
    )
    if report.why:
        return report
    tell(f"Training on all requests, {epochs} times")
    model = _Model(base, library, asked, settings)
    model.fit(asked, epochs=epochs)
    told = {
        "source": source,
        "requests": str(report.requests),
        "tools": str(report.tools),
        "library": library.digest,
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "made_by": f"agentkit-training {__version__}",
    }
    return replace(report, vectors=model.vectors(meaning, provenance=told, figures=figures))


def write_vectors(vectors: TrainedVectors, path: Path) -> None:
    """Write trained vectors as a safetensors file, for ``TrainedVectors.read``."""
    from safetensors.numpy import save_file

    arrays: dict[str, Any] = {
        "pieces": vectors.pieces,
        "scales": vectors.scales,
        "rows": vectors.rows,
    }
    save_file(
        arrays,
        str(path),
        metadata={
            "format": VECTORS_FORMAT,
            "digest": vectors.digest,
            "base": vectors.base,
            "meaning": repr(vectors.meaning),
            "provenance": json.dumps(dict(vectors.provenance)),
            "figures": json.dumps(dict(vectors.figures)),
        },
    )


# --- What is held back ----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class _Trial:
    """The requests of a trial.

    Attributes:
        training: Those to learn from, without the bystanders among their tools.
        asked: The others, with all their tools.
        bystanders: Tools of which nothing is learned.
    """

    training: Sequence[Request]
    asked: Sequence[Request]
    bystanders: frozenset[str]

    def of(self, kind: _Kind) -> list[Request]:
        """What is asked, with the tools of one kind."""
        wanted = [
            Request(
                text=one.text,
                tools=one.tools & self.bystanders
                if kind == "bystanders"
                else one.tools - self.bystanders,
            )
            for one in self.asked
        ]
        return [one for one in wanted if one.tools][:_MOST_ASKED]


def _usable(library: Library, requests: Sequence[Request]) -> list[Request]:
    """Each text once, with the tools that the library has."""
    tools: dict[str, set[str]] = {}
    for one in requests:
        known = {name for name in one.tools if name in library}
        if known and one.text.strip():
            tools.setdefault(one.text, set()).update(known)
    found = [Request(text=text, tools=frozenset(names)) for text, names in tools.items()]
    wanted = frozenset().union(*(one.tools for one in found))
    if len(found) < _FEWEST or len(wanted) < 2:
        raise TrainingError(
            f"{len(found)} different requests for {len(wanted)} tools of the library are too few "
            f"to learn from; it takes {_FEWEST} requests for at least 2 tools, in episodes that "
            "passed (agentkit episodes) or in a file (--requests)"
        )
    return found


def _divided(requests: Sequence[Request], settings: RetrieverSettings) -> _Trial:
    """Tools and requests by hashes, so that the same are held back at the next training."""
    tools = frozenset().union(*(one.tools for one in requests))
    quiet = frozenset(name for name in tools if _share(name, settings.seed) < settings.bystanders)
    training, asked = [], []
    for one in requests:
        if one.tools <= quiet or _share(one.text, settings.seed) < settings.held_back:
            asked.append(one)
        else:
            training.append(replace(one, tools=one.tools - quiet))
    return _Trial(training=training, asked=asked, bystanders=quiet)


def _share(text: str, seed: int) -> float:
    """A number between 0 and 1 that a text always has."""
    found = hashlib.sha256(f"{seed}/{text}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(found[:4], "big") / 2**32


# --- What the whole retriever makes of it ---------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class _Outcome:
    """What the whole retriever finds with some vectors.

    Attributes:
        at_5: Recall at 5 of each request, by kind.
        at_32: Its mean at 32, by kind.
    """

    at_5: Mapping[_Kind, Sequence[float]]
    at_32: Mapping[_Kind, float]

    def gain(self, earlier: _Outcome, kind: _Kind) -> tuple[float, float]:
        """The mean gain at 5 over ``earlier``, and its standard error; zeros without requests."""
        pairs = zip(self.at_5[kind], earlier.at_5[kind], strict=True)
        gains = [now - before for now, before in pairs]
        if len(gains) < 2:
            return (fmean(gains) if gains else 0.0), 0.0
        return fmean(gains), stdev(gains) / math.sqrt(len(gains))

    def harms(self, earlier: _Outcome) -> bool:
        """Whether bystanders lose more than may be, and more than chance."""
        gain, error = self.gain(earlier, "bystanders")
        return -gain > max(_HARM, error)


def _measured(
    library: Library,
    trial: _Trial,
    base: StaticEmbedder,
    trained: TrainedVectors,
    tell: Callable[[str], None],
) -> tuple[dict[str, float], float, str]:
    """The figures, the weight of meaning, and why the vectors are not worth having, if so.

    The smallest weight is taken that is no worse than the best by more than one standard error of
    their difference (Breiman et al. 1984 choose trees so).
    """
    unseen = _without_examples(library, trial.asked)
    before = _outcome(unseen, trial, base)
    tried = {
        meaning: _outcome(unseen, trial, replace(base, trained=replace(trained, meaning=meaning)))
        for meaning in _MEANINGS
    }
    harmless = {key: one for key, one in tried.items() if not one.harms(before)} or tried
    best = max(harmless.values(), key=lambda one: fmean(one.at_5["held_back"]))
    meaning = next(key for key, one in harmless.items() if le(*best.gain(one, "held_back")))
    after = tried[meaning]
    figures = _figures(before, "before") | _figures(after, "after")
    for name, outcome in [("before", before), *((f"meaning {one}", tried[one]) for one in tried)]:
        shown = (f"{key} {value:.3f}" for key, value in _figures(outcome, "").items())
        tell(f"{name}: {', '.join(shown)}")
    return figures, meaning, _why_not(before, after)


def _why_not(before: _Outcome, after: _Outcome) -> str:
    """Why vectors are not worth having; empty when they are."""
    gain = 100 * after.gain(before, "held_back")[0]
    if gain < 100 * _WORTH:
        return (
            f"recall@5 of held-back requests changed by {gain:+.1f} points, and must rise by "
            f"{100 * _WORTH}"
        )
    if after.harms(before):
        lost = 100 * after.gain(before, "bystanders")[0]
        return (
            f"recall@5 of tools that learned nothing changed by {lost:+.1f} points, and may fall "
            f"by {100 * _HARM}"
        )
    return ""


def _figures(outcome: _Outcome, when: str) -> dict[str, float]:
    """Recall at 5 and 32 by kind of request, of those kinds that were asked."""
    return {
        f"{kind}{when and '.'}{when}@{at}": round(share, 4)
        for kind, of_requests in outcome.at_5.items()
        if of_requests
        for at, share in zip(_AT, (fmean(of_requests), outcome.at_32[kind]), strict=True)
    }


def _outcome(library: Library, trial: _Trial, embedder: StaticEmbedder) -> _Outcome:
    found = {
        kind: asyncio.run(_recall(library, trial.of(kind), embedder)) for kind in get_args(_Kind)
    }
    return _Outcome(
        at_5={kind: [one for one, _ in shares] for kind, shares in found.items()},
        at_32={kind: fmean([one for _, one in shares] or [1.0]) for kind, shares in found.items()},
    )


async def _recall(
    library: Library, requests: Sequence[Request], embedder: StaticEmbedder
) -> list[tuple[float, ...]]:
    """Recall at 5 and at 32 of the default stages, for each request."""
    stages = default_stages(max(_AT), embedder=embedder)
    retriever = CascadeRetriever(stages=stages, shortlist=max(_AT), offer=1)
    found = []
    for one in requests:
        hits = (await retriever.retrieve(one.text, library)).hits
        names = [hit.definition.name for hit in hits]
        found.append(tuple(len(one.tools & {*names[:at]}) / len(one.tools) for at in _AT))
    return found


def _without_examples(library: Library, asked: Sequence[Request]) -> Library:
    """The library without the examples that it has learned from what it is asked now."""
    texts = {one.text for one in asked}
    return Library(
        replace(one, examples=tuple(known for known in one.examples if known.query not in texts))
        for one in library.definitions
    )


# --- The model ------------------------------------------------------------------------------------


class _Model:
    """A vector and a weight for each piece of a word that the tools or the requests hold.

    Args:
        base: The word vectors to begin with.
        library: The tools.
        requests: All that will be asked.
        settings: How to train.
    """

    def __init__(
        self,
        base: StaticEmbedder,
        library: Library,
        requests: Sequence[Request],
        settings: RetrieverSettings,
    ) -> None:
        import numpy as np
        import torch

        torch.manual_seed(settings.seed)
        self._settings = settings
        self._base = base
        self._names = [one.name for one in library.definitions]
        tools = [base.pieces_of(vector_text(one))[:_LONGEST] for one in library.definitions]
        asked = {one.text: base.pieces_of(one.text)[:_LONGEST] for one in requests}
        self._used = np.unique(np.array([*chain(*tools, *asked.values())], np.int32))
        place = {piece: at for at, piece in enumerate(self._used.tolist())}
        self._tools = [[place[piece] for piece in one] for one in tools]
        self._asked = {text: [place[piece] for piece in one] for text, one in asked.items() if one}
        vectors = torch.tensor(base.vectors_of(self._used))
        self._vectors = torch.nn.Embedding(len(vectors), vectors.shape[1], _weight=vectors)
        self._weights = torch.nn.Parameter(torch.zeros(len(self._used)))
        self._taught: list[int] = []

    def fit(
        self,
        requests: Sequence[Request],
        *,
        epochs: int | None = None,
        stop_by: Sequence[Request] = (),
        tell: Callable[[str], None] = lambda _: None,
    ) -> int:
        """Train, and keep the best epoch by recall at 5 of vectors alone.

        Args:
            requests: What to learn from.
            epochs: Exactly so many passes; without it as many as gain on ``stop_by``.
            stop_by: Held-back requests.
            tell: Told of the end.

        Returns:
            How many passes were kept.
        """
        import torch

        settings, draw = self._settings, random.Random(self._settings.seed)  # noqa: S311 - drawing, no secret
        learned = [one for one in requests if one.text in self._asked]
        stop_by = [one for one in stop_by if one.text in self._asked]
        self._taught = sorted({number for one in learned for number in self._numbers(one)})
        optimizer = torch.optim.Adam(
            [
                {"params": self._vectors.parameters(), "lr": settings.learning_rate},
                {"params": [self._weights], "lr": settings.weight_learning_rate},
            ]
        )
        best, kept, before = 0, self._state(), self._alone(stop_by)
        highest = before
        for epoch in range(1, (epochs or settings.epochs) + 1):
            draw.shuffle(learned)
            for start in range(0, len(learned), settings.batch):
                loss = self._loss(learned[start : start + settings.batch], draw)
                optimizer.zero_grad()
                torch.autograd.backward(loss)
                optimizer.step()
            if epochs is not None:
                continue
            found = self._alone(stop_by)
            if found > highest:
                best, kept, highest = epoch, self._state(), found
            elif epoch - best >= settings.patience:
                break
        if epochs is not None:
            return epochs
        self._restore(kept)
        tell(
            f"Vectors alone, recall@5 of held-back requests: {before:.3f} -> {highest:.3f}, "
            f"after {best} passes"
        )
        return best

    def vectors(
        self,
        meaning: float,
        *,
        provenance: Mapping[str, str] | None = None,
        figures: Mapping[str, float] | None = None,
    ) -> TrainedVectors:
        """What was learned, each vector with its weight, in 8 bits."""
        import numpy as np
        import torch

        with torch.no_grad():
            rows = (self._vectors.weight * torch.exp(self._weights)[:, None]).numpy()
        scales = (np.abs(rows).max(axis=1, initial=0.0) / 127).astype(np.float32)
        codes = np.rint(rows / np.maximum(scales, 1e-12)[:, None]).astype(np.int8)
        return TrainedVectors(
            pieces=self._used,
            scales=scales,
            rows=codes,
            meaning=meaning,
            digest=digest_of(self._used, scales, codes),
            base=self._base.fingerprint,
            provenance=provenance or {},
            figures=figures or {},
        )

    def _embedded(self, texts: Sequence[Sequence[int]]) -> torch.Tensor:
        """float32[texts, dimensions]: the weighted sums of pieces, at length 1."""
        import torch
        from torch.nn.functional import embedding_bag, normalize

        flat = torch.tensor([*chain(*texts)], dtype=torch.long)
        lengths = torch.tensor([0, *map(len, texts)][:-1], dtype=torch.long)
        weights = torch.exp(self._weights[flat])
        summed = embedding_bag(
            flat, self._vectors.weight, lengths.cumsum(0), mode="sum", per_sample_weights=weights
        )
        return normalize(summed, dim=-1)

    def _loss(self, requests: Sequence[Request], draw: random.Random) -> torch.Tensor:
        """How far requests are from one of their tools, compared with other tools.

        These are the tools of the other requests of the step, and some drawn from all tools that
        learn. A tool that nobody asked for yet is never among them: it would be pushed away from
        every request (on MetaTool such tools lost 28 points of recall at 5, and so they lose
        none). Other tools that the request itself asks for are not counted against it.
        """
        import torch
        from torch.nn.functional import cross_entropy

        right = [draw.choice(sorted(self._numbers(one))) for one in requests]
        many = min(self._settings.negatives, len(self._taught))
        pool = [*dict.fromkeys([*right, *draw.sample(self._taught, many)])]
        place = {tool: at for at, tool in enumerate(pool)}
        asked = self._embedded([self._asked[one.text] for one in requests])
        cosines = asked @ self._embedded([self._tools[tool] for tool in pool]).T
        aside = torch.zeros(cosines.shape, dtype=torch.bool)
        for row, (one, tool) in enumerate(zip(requests, right, strict=True)):
            for other in self._numbers(one) - {tool}:
                if other in place:
                    aside[row, place[other]] = True
        scores = (cosines / self._settings.temperature).masked_fill(aside, float("-inf"))
        return cross_entropy(scores, torch.tensor([place[tool] for tool in right]))

    def _alone(self, requests: Sequence[Request]) -> float:
        """Recall at 5 of vectors alone."""
        import torch

        if not requests:
            return 0.0
        with torch.no_grad():
            asked = self._embedded([self._asked[one.text] for one in requests])
            cosines = asked @ self._embedded(self._tools).T
            nearest = cosines.topk(min(_AT[0], len(self._tools))).indices.tolist()
        wanted = [self._numbers(one) for one in requests]
        return fmean(
            len(tools & {*found}) / len(tools) for tools, found in zip(wanted, nearest, strict=True)
        )

    def _numbers(self, request: Request) -> set[int]:
        return {self._number[name] for name in request.tools}

    @cached_property
    def _number(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(self._names)}

    def _state(self) -> tuple[torch.Tensor, torch.Tensor]:
        return self._vectors.weight.detach().clone(), self._weights.detach().clone()

    def _restore(self, state: tuple[torch.Tensor, torch.Tensor]) -> None:
        import torch

        with torch.no_grad():
            self._vectors.weight.copy_(state[0])
            self._weights.copy_(state[1])

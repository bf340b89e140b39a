"""The methods that are compared: what each needs and how its retriever is made."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import Literal

from agentkit.errors import MissingExtraError, ModelNotFoundError, UsageError
from agentkit.library import Library
from agentkit.models.base import ChatModel, ModelRequest, ModelResponse, resolve_model
from agentkit.retrieval.candidates import Stage
from agentkit.retrieval.cascade import CascadeRetriever, default_stages
from agentkit.retrieval.embedders import Embedder, as_embedder
from agentkit.retrieval.retriever import Retrieval, Retriever
from agentkit.retrieval.word_vectors import StaticEmbedder, packaged_folder
from agentkit_bench.retrieval_variants import Flat, FlatLibrary, variant

Need = Literal["embedder", "model", "vectors"]

HINTS: Mapping[Need, str] = {
    "embedder": "an embedding model: --embedder NAME",
    "model": "a language model: --model NAME",
    "vectors": 'word vectors: pip install "agentkit-evolve[vectors]"',
}
"""How to give a method what it needs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How many tools a retriever names and gives in full, and for how many tokens."""

    shortlist: int = 32
    offer: int = 5
    token_budget: int = 1600


DEEP = Limits(shortlist=100, offer=1, token_budget=10**9)
"""Limits that show the ranking itself, deeper than 32: tools of one name collapse into one."""


@dataclass(frozen=True, kw_only=True)
class Equipment:
    """Models by name, opened when a method asks for them, once.

    Attributes:
        embedder_name: ``module:attribute`` of an embedding function or model (called without
            arguments when it is a class), or the name or folder of a sentence-transformers model.
        model_name: As for ``resolve_model``, or ``module:attribute`` of a ``ChatModel``.
    """

    embedder_name: str | None = None
    model_name: str | None = None

    @cached_property
    def embedder(self) -> Embedder:
        """The embedding model.

        Raises:
            UsageError: None was named, or what was named is none.
            MissingExtraError: sentence-transformers is needed and not installed.
        """
        name = self.embedder_name
        if name is None:
            raise UsageError("this method needs an embedding model; name one with --embedder")
        place, _, attribute = name.partition(":")
        if attribute and not Path(name).exists():
            return as_embedder(load_attribute(place, attribute))
        return as_embedder(_sentence_transformer(name))

    @property
    def embedder_or_none(self) -> Embedder | None:
        """The embedding model, if one was named."""
        return None if self.embedder_name is None else self.embedder

    @cached_property
    def model(self) -> ChatModel:
        """The language model; what it answered once it is not asked again.

        So that the ranking of a question can be looked at beyond what the budget shows.

        Raises:
            UsageError: None was named.
            ModelNotFoundError: Nobody answers for the name.
        """
        name = self.model_name
        if name is None:
            raise UsageError("this method needs a language model; name one with --model")
        place, _, attribute = name.partition(":")
        try:
            return RememberingModel(resolve_model(name))
        except ModelNotFoundError:
            found = load_attribute(place, attribute) if attribute else None
            if not isinstance(found, ChatModel):
                raise
            return RememberingModel(found)


class RememberingModel:
    """A model that is asked each request once; its answers, usage included, are kept.

    Args:
        model: Who is asked.
    """

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self._answers: dict[str, ModelResponse] = {}

    @property
    def name(self) -> str:
        """As the model calls itself."""
        return self._model.name

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """The kept answer, or a new one."""
        key = repr((request.messages, request.settings))
        if key not in self._answers:
            self._answers[key] = await self._model.complete(request)
        return self._answers[key]


def load_attribute(place: str, attribute: str) -> object:
    """What a module calls ``attribute``; modules of the working directory are found.

    A class is called without arguments.

    Raises:
        UsageError: There is no such module, or nothing of that name in it.
    """
    if "" not in sys.path:
        sys.path.insert(0, "")  # modules of the working directory, as 'python -m' finds them
    try:
        value: object = getattr(importlib.import_module(place), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"{place}:{attribute} can not be loaded: {error}") from error
    return value() if isinstance(value, type) else value


def _sentence_transformer(name: str) -> object:
    try:
        module = importlib.import_module("sentence_transformers")
    except ImportError as error:
        raise MissingExtraError(
            f"the embedding model {name!r}",
            package="sentence-transformers",
            install="pip install sentence-transformers",
        ) from error
    model: object = module.SentenceTransformer(name)
    return model


@dataclass(frozen=True, kw_only=True, slots=True)
class Method:
    """One way to find tools.

    Attributes:
        name: What tables call it.
        summary: What it does, in a line.
        build: Makes the retriever within limits.
        needs: What has to be in the equipment.
    """

    name: str
    summary: str
    build: Callable[[Limits, Equipment], Retriever]
    needs: frozenset[Need] = frozenset()

    def missing(self, equipment: Equipment) -> frozenset[Need]:
        """What the method needs and the equipment lacks."""
        given = {
            "embedder": equipment.embedder_name,
            "model": equipment.model_name,
            "vectors": packaged_folder() or equipment.embedder_name,
        }
        return frozenset(need for need in self.needs if given[need] is None)


class SameForAll:
    """A retriever whose answer does not depend on the query: it is asked once a library."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever
        self._answer: tuple[Library, Retrieval] | None = None

    async def retrieve(self, query: str, library: Library) -> Retrieval:
        """The answer to the first query."""
        if self._answer is None or self._answer[0] is not library:
            self._answer = library, await self._retriever.retrieve(query, library)
        return self._answer[1]


def cascade(limits: Limits, stages: Sequence[Stage]) -> Retriever:
    """A retriever of these stages within limits."""
    return CascadeRetriever(stages=stages, **asdict(limits))


def _variant(
    name: str, limits: Limits, *, embedder: Embedder | None = None, model: ChatModel | None = None
) -> Retriever:
    return variant(name, model=model, embedder=embedder, **asdict(limits))


def _flat(limits: Limits, embedder: Embedder | None) -> Retriever:
    return cascade(limits, [Flat(embedder, words=True, keep=limits.shortlist)])


METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        Method(
            name="default",
            summary="what an agent uses",
            build=lambda limits, _: _variant("default", limits),
        ),
        Method(
            name="no_vectors",
            summary="the default without word vectors",
            build=lambda limits, _: cascade(
                limits, default_stages(limits.shortlist, embedder=None)
            ),
        ),
        Method(
            name="embedding",
            summary="the default with the embedding model beside the word vectors",
            build=lambda limits, given: _variant("default", limits, embedder=given.embedder),
            needs=frozenset({"embedder"}),
        ),
        Method(
            name="lexical",
            summary="shared words alone",
            build=lambda limits, _: _flat(limits, None),
        ),
        Method(
            name="vectors",
            summary="static word vectors alone",
            build=lambda limits, _: _variant("flat_dense", limits),
            needs=frozenset({"vectors"}),
        ),
        Method(
            name="half_and_half",
            summary="shared words and static word vectors, each divided by its best, added",
            build=lambda limits, _: _flat(limits, StaticEmbedder()),
            needs=frozenset({"vectors"}),
        ),
        Method(
            name="dense",
            summary="vectors of the embedding model alone",
            build=lambda limits, given: _variant("flat_dense", limits, embedder=given.embedder),
            needs=frozenset({"embedder"}),
        ),
        Method(
            name="text_hierarchy",
            summary="a tree of summaries, descended by vectors of the embedding model or static",
            build=lambda limits, given: _variant(
                "text_hierarchy", limits, embedder=given.embedder_or_none
            ),
            needs=frozenset({"vectors"}),
        ),
        Method(
            name="flat_library",
            summary="no retrieval: every tool in full, whatever it costs",
            build=lambda *_: SameForAll(FlatLibrary(token_budget=None)),
        ),
        Method(
            name="planned",
            summary="the default for each step that the language model plans",
            build=lambda limits, given: _variant("default", limits, model=given.model),
            needs=frozenset({"model"}),
        ),
        Method(
            name="paper",
            summary="CoCoDA's Algorithm 2, the language model plans and judges",
            build=lambda limits, given: _variant("paper", limits, model=given.model),
            needs=frozenset({"model"}),
        ),
    )
}


def find_method(name: str) -> Method:
    """The method of that name.

    Args:
        name: One of ``METHODS``, or ``module:attribute`` of a retriever of your own, or of a
            function that makes one when called with the fields of ``Limits`` as keywords.

    Raises:
        UsageError: There is no such method.
    """
    if ":" in name:
        return Method(
            name=name, summary="a retriever of yours", build=lambda limits, _: _yours(name, limits)
        )
    if name not in METHODS:
        raise UsageError(
            f"there is no method {name!r}; there are: {', '.join(METHODS)}, or module:attribute "
            "of a retriever of yours"
        )
    return METHODS[name]


def _yours(name: str, limits: Limits) -> Retriever:
    place, _, attribute = name.partition(":")
    found = load_attribute(place, attribute)
    if callable(found) and not isinstance(found, Retriever):
        try:
            bound = signature(found).bind(**asdict(limits))
        except TypeError as error:
            raise UsageError(
                f"{name} makes a retriever only if it takes shortlist, offer and token_budget as "
                f"keywords ({error})"
            ) from error
        found = found(*bound.args, **bound.kwargs)
    if not isinstance(found, Retriever):
        raise UsageError(
            f"{name} is a {type(found).__name__} and no retriever: it has no method 'retrieve'"
        )
    return found

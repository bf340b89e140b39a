"""What some methods need beside the library: an embedding model, a language model."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from agentkit.errors import MissingExtraError, ModelNotFoundError, UsageError
from agentkit.models.base import ChatModel, ModelRequest, ModelResponse, resolve_model
from agentkit.retrieval.embedders import Embedder, as_embedder


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

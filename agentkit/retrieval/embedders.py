"""Turn text into vectors: the seam to embedding models, and static word vectors without torch.

Whatever turns texts into rows of an array will do: ``as_embedder`` takes an ``Embedder``, an object
with an ``encode`` method as sentence-transformers has it, or a plain function.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard

from agentkit.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    FloatRows: TypeAlias = NDArray[np.float32]

_PROBES = ("weather forecast for a city", "convert 10 dollars to euros", "send a message")
"""Texts whose vectors tell one model from another."""


class Embedder(Protocol):
    """Turns texts into vectors whose cosine says how alike the texts are."""

    @property
    def fingerprint(self) -> str:
        """Names the model and its settings: equal fingerprints mean equal vectors.

        Indexes saved by one process are used by another only where this is the same.
        """
        ...

    def embed(self, texts: Sequence[str]) -> FloatRows:
        """One row a text, in order; any length, as rows are normalised where they are used.

        A row of zeros says that nothing is known about the text.

        Returns:
            An array of shape ``(len(texts), dimensions)``.
        """
        ...


class FunctionEmbedder:
    """An embedding function as an ``Embedder``.

    Args:
        function: Takes a list of texts, returns one vector a text: an array, or rows of numbers.
        name: What the model is called, so that saved vectors are found again. Without a name the
            model is identified by the vectors of three fixed texts, computed once.

    Example:
        >>> embedder = FunctionEmbedder(lambda texts: [[len(text), 1.0] for text in texts])
        >>> embedder.embed(["one", "three"]).tolist()
        [[3.0, 1.0], [5.0, 1.0]]
    """

    def __init__(self, function: Callable[[list[str]], Any], *, name: str | None = None) -> None:
        self._function = function
        self._name = name

    @cached_property
    def fingerprint(self) -> str:
        """The name, or else a digest of what the function answers to fixed texts."""
        return self._name or probed(self)

    def embed(self, texts: Sequence[str]) -> FloatRows:
        """The function's result, checked.

        Raises:
            UsageError: It is not one row of finite numbers a text.
        """
        return checked_rows(self._function(list(texts)), len(texts))


def checked_rows(rows: object, count: int) -> FloatRows:
    """An embedding model's result for ``count`` texts, as an array.

    Raises:
        UsageError: It is not one row of finite numbers a text.
    """
    import numpy as np

    try:
        with np.errstate(over="ignore"):  # what does not fit into 32 bits is infinite, see below
            array = np.asarray(rows, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"the embedding function returned {type(rows).__name__} that is not an array of "
            f"numbers: {error}; it must return one vector a text, shape (texts, dimensions)"
        ) from error
    if array.ndim != 2 or len(array) != count:
        raise UsageError(
            f"the embedding function returned an array of shape {array.shape} for "
            f"{count} texts; it must return one vector a text, shape (texts, dimensions)"
        )
    if not np.isfinite(array).all():
        raise UsageError(
            "the embedding function returned numbers that are not finite (nan or infinity); "
            "return zeros for a text that it cannot embed"
        )
    return array


def as_embedder(model: object) -> Embedder:
    """Convert the argument to an ``Embedder``.

    Args:
        model: An ``Embedder``; an object with an ``encode(list of texts)`` method, such as a
            sentence-transformers model; or a function from a list of texts to their vectors.

    Raises:
        UsageError: It is none of these.
    """
    if _is_embedder(model):
        return model
    encode = getattr(model, "encode", None)
    if callable(encode) and not isinstance(model, str):  # which has a method of that name
        return FunctionEmbedder(encode)
    if callable(model):
        return FunctionEmbedder(model)
    raise UsageError(
        f"{model!r} is not an embedding model: pass a function that turns a list of texts into "
        "rows of numbers, an object with such a method called encode, or an Embedder"
    )


def _is_embedder(model: object) -> TypeGuard[Embedder]:
    """Whether it has both members, without asking for the fingerprint, which may be costly."""
    named = hasattr(type(model), "fingerprint") or "fingerprint" in getattr(model, "__dict__", {})
    return named and callable(getattr(model, "embed", None))


def probed(embedder: Embedder) -> str:
    """A digest of the model's vectors for fixed texts, rounded so that a rerun gives the same."""
    import numpy as np

    rows = embedder.embed(_PROBES)
    scale = float(np.abs(rows).max(initial=0.0)) or 1.0
    rounded = np.rint(rows / scale * 50).astype(np.int8)
    shape = "x".join(map(str, rounded.shape))
    return f"probe:{shape}:{hashlib.sha256(rounded.tobytes()).hexdigest()[:16]}"

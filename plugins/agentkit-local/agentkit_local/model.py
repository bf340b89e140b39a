"""``LocalModel``: a local engine that can call tools."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import unquote

from agentkit.errors import UsageError
from agentkit.models.base import ModelEvent, ModelRequest, ModelResponse
from agentkit.models.prompt_format import PromptFormat
from agentkit.models.prompted import PromptedModel
from agentkit_local import weights
from agentkit_local.engine import LocalEngine

_KEYS = ("adapter", "scale", "constrained")
_WITH_OPTIONS = re.compile(rf"(?P<model>.+?)\?(?P<options>(?:{'|'.join(_KEYS)})=.*)", re.DOTALL)
"""Only these words begin options, since a file's name may hold a question mark."""


class LocalModel:
    """A small language model in this process that can call tools.

    Tools travel in the prompt, and by default the answer is decoded under a grammar made from
    their schemas, so that each call is well-formed and names an offered tool. Without tools, with
    ``tool_choice="none"`` and with ``constrained=False`` the model writes freely.

    Example:
        ```python
        with LocalModel("smollm2-135m") as model:
            result = Agent(model, tools=[get_weather]).run_sync("How warm is it in Oslo?")
        ```
    """

    reports_cost = True
    """It costs nothing, so a limit on costs is held."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        adapter: str | os.PathLike[str] | None = None,
        adapter_scale: float = 1.0,
        threads: int | None = None,
        context_tokens: int = 4096,
        max_tokens: int = 512,
        constrained: bool = True,
        format: PromptFormat = "json",  # noqa: A002 - the word of the field
        max_calls: int = 1,
        verbose: bool = False,
    ) -> None:
        """Prepare a model; its file is loaded at the first request.

        Args:
            path: A name of ``agentkit_local.weights.available()``, or the path of a GGUF file.
            adapter: A GGUF file with a LoRA adapter that was trained on these weights, as
                ``agentkit-training`` exports it; ``"calls"``, which comes with this plugin for
                ``smollm2-135m``; None for none.
            adapter_scale: How strongly it counts: 1 as it was trained, 0 not at all.
            threads: Threads to compute with; None takes ``default_threads()``.
            context_tokens: Longest prompt and answer together.
            max_tokens: Longest answer, unless a request's settings say otherwise.
            constrained: Whether calls are decoded under a grammar.
            format: How tools and calls are written in prompts.
            max_calls: Most calls in one constrained answer. A very small model repeats itself
                when it may call more than once; raise it for a larger one.
            verbose: Let llama.cpp report on stderr.

        Raises:
            ModelNotFoundError: The weights are not installed, there is no such file, or the
                adapter is none for them.
            UsageError: ``threads`` is not positive, or ``adapter_scale`` no number.
        """
        file, name = _located(path)
        self.engine = LocalEngine(
            file,
            name=f"local:{name}",
            adapter=None if adapter is None else os.fspath(adapter),
            adapter_scale=adapter_scale,
            threads=threads,
            context_tokens=context_tokens,
            max_tokens=max_tokens,
            verbose=verbose,
        )
        self._is_constrained = constrained
        self._prompted = PromptedModel(
            self.engine, format=format, constrained=constrained, max_calls=max_calls
        )

    @property
    def name(self) -> str:
        """The model's name, for records: ``local:smollm2-135m``.

        With an adapter ``local:smollm2-135m+shop@1a2b3c4d``: its file, and the start of its
        digest. ``?constrained=no`` follows where calls are written without a grammar.
        """
        return self.engine.name if self._is_constrained else f"{self.engine.name}?constrained=no"

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Answer one request; see ``LocalEngine.complete`` for what can go wrong."""
        return await self._prompted.complete(request)

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield text as it is computed, then the whole response; see ``PromptedModel.stream``."""
        return self._prompted.stream(request)

    def close(self) -> None:
        """Stop what is being computed and free the memory."""
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def resolve(name: str) -> LocalModel:
    """The model that ``local:<name>`` means; called through the entry point ``agentkit.models``.

    Args:
        name: What follows ``local:``: the model, perhaps with options behind a question mark, an
            adapter and its scale, or that calls are written without a grammar:
            ``smollm2-135m?adapter=shop.gguf&scale=0.5``, ``smollm2-135m?adapter=calls``,
            ``smollm2-135m?constrained=no``. In the adapter's path ``%``, ``&`` and ``?`` are
            written ``%25``, ``%26`` and ``%3F``.

    Raises:
        ModelNotFoundError: The weights are not installed, there is no such file, or the adapter is
            none for them.
        UsageError: What stands behind the question mark cannot be meant.
    """
    asked = _WITH_OPTIONS.fullmatch(name)
    if asked is None:
        return LocalModel(name)
    options = _options(name, asked["options"])
    if "scale" in options and "adapter" not in options:
        raise UsageError(f"local:{name} gives a scale and no adapter; write ?adapter=FILE&scale=X")
    scale, constrained = options.get("scale", "1"), options.get("constrained", "yes")
    if constrained not in {"yes", "no"}:
        raise UsageError(f"constrained is yes or no, not {constrained!r}, in local:{name}")
    try:
        factor = float(scale)
    except ValueError as error:
        raise UsageError(
            f"the scale of an adapter is a number such as 0.5, not {scale!r}"
        ) from error
    adapter = options.get("adapter")
    return LocalModel(
        asked["model"],
        adapter=None if adapter is None else unquote(adapter),
        adapter_scale=factor,
        constrained=constrained == "yes",
    )


def _options(name: str, text: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in text.split("&"):
        key, _, value = part.partition("=")
        if key not in _KEYS or not value or key in options:
            raise UsageError(
                f"{part!r} in local:{name} is not understood; write one adapter, such as "
                "local:smollm2-135m?adapter=shop.gguf&scale=0.5"
            )
        options[key] = value
    return options


def _located(path: str | os.PathLike[str]) -> tuple[Path, str]:
    """The file, and the name for records. What looks like a path is one; else it is a name."""
    text = os.fspath(path)
    if isinstance(path, str) and not text.endswith(".gguf") and not {"/", os.sep} & set(text):
        return weights.path(text), text
    file = Path(text).expanduser()
    return file, file.stem

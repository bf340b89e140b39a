"""From a model's name to a model: ``resolve_model``."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from agentkit.errors import MissingExtraError, ModelNotFoundError, UsageError
from agentkit.models.base import ChatModel

ENTRY_POINT_GROUP = __name__.rpartition(".")[0]  # "agentkit.models", as this package
"""Plugins name a callable here that takes the rest of the name and gives a ``ChatModel``."""

_BUILT_IN = {
    "anthropic": "agentkit.models.anthropic:anthropic_model",
    "litellm": "agentkit.models.litellm:litellm_model",
    "openai": "agentkit.models.openai_compatible:openai_model",
    "openai-compatible": "agentkit.models.openai_compatible:own_server_model",
}

_KNOWN_PLUGINS = {"local": "agentkit-local"}


def resolve_model(model: ChatModel | str) -> ChatModel:
    """The model behind a name; a ``ChatModel`` is passed through.

    Names are ``scheme:rest``:

    * ``openai:gpt-4o-mini``, ``anthropic:claude-sonnet-5-5``: hosted models, without an SDK;
    * ``litellm:provider/model``: every provider that litellm knows, an extra of agentkit;
    * ``openai-compatible:MODEL@URL``: any server that speaks chat completions, without an SDK;
    * ``local:smollm2-135m``, ``local:/path/to.gguf``: in this process, through ``agentkit-local``;
    * any other scheme that a plugin names in the entry-point group ``agentkit.models``.

    Raises:
        ModelNotFoundError: The name has no scheme, or nobody answers for it.
        MissingExtraError: The scheme needs a package that is not installed.
        UsageError: ``model`` is neither a name nor a model.

    Example:
        >>> resolve_model("openai-compatible:qwen3@http://localhost:8080/v1").name
        'qwen3'
    """
    if not isinstance(model, str):
        return _checked(model)
    scheme, _, rest = model.partition(":")
    if not rest or rest.startswith("//"):
        raise ModelNotFoundError(
            f"{model!r} is not a model name; write scheme:name, such as 'openai:gpt-4o-mini', "
            "'openai-compatible:qwen3@http://localhost:8080/v1' or 'local:smollm2-135m'"
        )
    opened: ChatModel = _opener(scheme, model)(rest)
    return opened


def _opener(scheme: str, model: str) -> Callable[[str], ChatModel]:
    target = _BUILT_IN.get(scheme)
    if target is not None:
        module, _, name = target.partition(":")
        built_in: Callable[[str], ChatModel] = getattr(import_module(module), name)
        return built_in
    from importlib.metadata import entry_points

    plugins = {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}
    if scheme in plugins:
        opener: Callable[[str], ChatModel] = plugins[scheme].load()
        return opener
    if scheme in _KNOWN_PLUGINS:
        package = _KNOWN_PLUGINS[scheme]
        raise MissingExtraError(repr(model), package=package, install=f"pip install {package}")
    raise ModelNotFoundError(_unknown(scheme, model, sorted({*_BUILT_IN, *plugins})))


def _unknown(scheme: str, model: str, known: list[str]) -> str:
    """No pip line: a name that we make up may be anybody's package."""
    from difflib import get_close_matches

    near = get_close_matches(scheme, [*known, *_KNOWN_PLUGINS], n=1)
    advice = f"Did you mean {near[0]!r}?" if near else "If a plugin provides it, install that"
    return (
        f"no model for {model!r}: the scheme {scheme!r} is not among the installed ones "
        f"({', '.join(known)}). {advice}"
    )


def _checked(model: ChatModel) -> ChatModel:
    if isinstance(model, ChatModel):
        return model
    raise UsageError(
        f"{model!r} is not a model: a model has a name and an async method 'complete' (see "
        "agentkit.models.ChatModel); give one, or a name such as 'openai:gpt-4o-mini'"
    )

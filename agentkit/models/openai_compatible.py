"""``openai:`` and ``openai-compatible:``: any server that speaks OpenAI's chat completions.

OpenAI itself, llama.cpp, vLLM, Ollama, LM Studio, and the compatible endpoints of most providers,
without an SDK.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Set as AbstractSet
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from agentkit._version import __version__
from agentkit.errors import UsageError
from agentkit.models.base import DOCUMENTS, IMAGES, SPEECH, ModelRequest
from agentkit.models.chat_completions import (
    CompletionAssembler,
    MaxTokensField,
    RequestEncoder,
    decode_completion,
)
from agentkit.models.http_model import Exchange, HttpModel
from agentkit.models.prices import Prices, listed_media
from agentkit.models.retries import DEFAULT_RETRY, RetryPolicy
from agentkit.models.status import Endpoint
from agentkit.models.transport import TransportName, open_transport, place

if TYPE_CHECKING:
    import httpx

OPENAI_URL = "https://api.openai.com/v1"
_OPENAI_HOST = "api.openai.com"
_BARE_HOST = re.compile(r".+@((localhost|[\w.-]+:\d+)(/.*)?)")
_HEARS = re.compile(r"\baudio\b")
_READS_ONLY = re.compile(
    r"\b(gpt-3\.5|gpt-4(-\d{4}|-32k|$)|o1-(mini|preview)|o3-mini|davinci|babbage)"
)
_NAME_AT_URL = re.compile(r"(?P<model>.+?)@(?P<url>https?://.+)", re.DOTALL)


class OpenAICompatibleModel(HttpModel):
    """A model behind a chat-completions endpoint.

    Connections are kept and reused, one pool for each event loop; a pool is closed with its loop,
    or by ``close()``. May be shared by any number of concurrent runs.

    Args:
        model: The model's name at the server.
        base_url: What ``/chat/completions`` is added to, such as ``http://localhost:8080/v1``;
            None takes ``OPENAI_BASE_URL``, then OpenAI's own.
        api_key: Sent as a bearer token; None takes ``OPENAI_API_KEY``, and sends none when that
            is not set (fine for a server of your own). An empty string sends none.
        client: An ``httpx.AsyncClient`` to send through; the caller closes it.
        transport: ``auto`` takes aiohttp when it is installed (the ``fast`` extra; about a third
            of the CPU time per request) and httpx otherwise.
        headers: Further headers, such as ``{"api-key": ...}`` for Azure.
        retry: When to send a request again.
        timeout_seconds: Longest wait for an answer, and for the next piece of a streamed one;
            ``ModelSettings.timeout_seconds`` wins.
        prices: To report what an answer cost; without them ``Usage.cost_usd`` stays None.
        max_tokens_field: What the server calls ``ModelSettings.max_tokens``; None takes
            ``max_completion_tokens`` for OpenAI itself and ``max_tokens`` for everybody else.
        accepts: What the model accepts beside text, such as ``{"image/*"}`` (see
            ``agentkit.models.accepted_media``), or a function that returns it. None looks the
            name up in the table of an installed litellm, then knows OpenAI's own models by their
            names; others accept text only.

    Raises:
        UsageError: OpenAI itself is meant and there is no key; or the URL is not one.
        MissingExtraError: aiohttp was asked for and is not installed.

    Example:
        >>> model = OpenAICompatibleModel("qwen3", base_url="http://localhost:8080/v1")
        >>> model
        OpenAICompatibleModel('qwen3', base_url='http://localhost:8080/v1')
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        client: httpx.AsyncClient | None = None,
        transport: TransportName = "auto",
        headers: Mapping[str, str] | None = None,
        retry: RetryPolicy = DEFAULT_RETRY,
        timeout_seconds: float = 60.0,
        prices: Prices | None = None,
        max_tokens_field: MaxTokensField | None = None,
        accepts: AbstractSet[str] | Callable[[], AbstractSet[str]] | None = None,
    ) -> None:
        base_url = base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
        url, is_openai = endpoint_url(base_url, "/chat/completions")
        endpoint = api_endpoint(model, url, api_key, is_openai=is_openai)
        own_field: MaxTokensField = "max_completion_tokens" if is_openai else "max_tokens"
        encoder = RequestEncoder(model, max_tokens_field=max_tokens_field or own_field)

        def begin(request: ModelRequest, stream: bool) -> Exchange:  # noqa: FBT001
            body, names = encoder.encode(request, stream=stream)
            return Exchange(
                body=body,
                decode=partial(decode_completion, names=names),
                assembler=CompletionAssembler(),
            )

        super().__init__(
            model,
            provider_name="openai",
            begin=begin,
            url=url,
            endpoint=endpoint,
            headers=api_headers(endpoint.api_key, headers or {}),
            transport=open_transport(transport, client, url=url),
            prices=prices,
            media=partial(media_by_name, model, is_openai) if accepts is None else accepts,
            retry=retry,
            timeout_seconds=timeout_seconds,
        )

    def __repr__(self) -> str:
        base = self.endpoint.place.removesuffix("/chat/completions")
        return f"{type(self).__name__}({self.name!r}, base_url={base!r})"


def endpoint_url(base_url: str, path: str) -> tuple[str, bool]:
    """The URL to post to, its query kept (Azure's api-version), and whether it is OpenAI's.

    Raises:
        UsageError: It is not an http(s) URL.
    """
    parts = urlsplit(base_url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageError(
            f"base_url={base_url!r} is not an http(s) URL; give something like "
            "'http://localhost:8080/v1'"
        )
    whole = f"{parts.path.rstrip('/')}{path}"
    url = urlunsplit((parts.scheme, parts.netloc, whole, parts.query, ""))
    return url, parts.hostname == _OPENAI_HOST


def media_by_name(model: str, is_openai: bool = True) -> AbstractSet[str]:  # noqa: FBT001, FBT002
    """What a model accepts beside text, by its name."""
    listed = listed_media(model)
    if listed is not None:
        return listed
    if not is_openai or _READS_ONLY.search(model):
        return frozenset()
    return SPEECH if _HEARS.search(model) else IMAGES | DOCUMENTS


def api_endpoint(model: str, url: str, api_key: str | None, *, is_openai: bool) -> Endpoint:
    """The endpoint for error messages, with the key: that given, or ``OPENAI_API_KEY``.

    Raises:
        UsageError: OpenAI itself is meant and there is no key.
    """
    source = "the api_key that was passed to the model"
    if api_key is None:
        api_key, source = os.environ.get("OPENAI_API_KEY"), "the variable OPENAI_API_KEY"
    if not api_key:
        if is_openai:
            raise UsageError(
                f"no API key for {model!r} at OpenAI: set OPENAI_API_KEY, or give the key"
            )
        source = "none was sent; set OPENAI_API_KEY, or give the key"
    return Endpoint(place=place(url), model=model, key_source=source, api_key=api_key or None)


def api_headers(api_key: str | None, further: Mapping[str, str]) -> dict[str, str]:
    """The headers of every request; the further ones win."""
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Accept-Encoding": "identity",
        "User-Agent": f"agentkit/{__version__}",
    }
    if api_key is not None:
        headers["Authorization"] = f"Bearer {api_key}"
    names = {name.lower() for name in further}
    return {k: v for k, v in headers.items() if k.lower() not in names} | dict(further)


def openai_model(model: str, *, retry: RetryPolicy = DEFAULT_RETRY) -> OpenAICompatibleModel:
    """A model of OpenAI through chat completions.

    Reads the variables of OpenAI's SDK: ``OPENAI_API_KEY``, ``OPENAI_BASE_URL``, ``OPENAI_ORG_ID``
    and ``OPENAI_PROJECT_ID``. For anything else make an ``OpenAICompatibleModel``.

    Args:
        model: The model's name, such as ``gpt-4o-mini``.
        retry: When to send a request again.

    Raises:
        UsageError: There is no key.
    """
    if not os.environ.get("OPENAI_API_KEY"):
        raise UsageError(f"no API key for {f'openai:{model}'!r}: set OPENAI_API_KEY")
    return OpenAICompatibleModel(
        model, headers=account_headers(), retry=retry, accepts=partial(media_by_name, model)
    )


def account_headers() -> dict[str, str]:
    """The organisation and the project at OpenAI, as far as variables name them."""
    chosen = {
        "OpenAI-Organization": os.environ.get("OPENAI_ORG_ID"),
        "OpenAI-Project": os.environ.get("OPENAI_PROJECT_ID"),
    }
    return {name: value for name, value in chosen.items() if value}


def own_server_model(rest: str) -> OpenAICompatibleModel:
    """The model of a name such as ``qwen3@http://localhost:8080/v1``.

    Without ``@URL`` the URL is that of ``OPENAI_BASE_URL``, or OpenAI's own; the key is that of
    ``OPENAI_API_KEY``. A model's name may hold ``@`` itself.

    Raises:
        UsageError: The URL is not one, or OpenAI itself is meant and there is no key.
    """
    model, url = name_and_url(rest)
    return OpenAICompatibleModel(model, base_url=url)


def name_and_url(rest: str) -> tuple[str, str | None]:
    """The two parts of ``qwen3@http://localhost:8080/v1``; None for a URL that is not given.

    Raises:
        UsageError: What follows ``@`` is an address without a scheme.
    """
    match = _NAME_AT_URL.fullmatch(rest)
    if match is None and (bare := _BARE_HOST.fullmatch(rest)):
        raise UsageError(f"the model's address needs a scheme: write @http://{bare[1]}")
    return (rest, None) if match is None else (match["model"], match["url"])

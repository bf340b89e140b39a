"""``openai-compatible:MODEL@URL``: a server of one's own, without an SDK."""

from __future__ import annotations

import re

from agentkit.errors import UsageError
from agentkit.models.openai_compatible import OpenAICompatibleModel

_BARE_HOST = re.compile(r".+@((localhost|[\w.-]+:\d+)(/.*)?)")
_NAME_AT_URL = re.compile(r"(?P<model>.+?)@(?P<url>https?://.+)", re.DOTALL)


def own_server_model(rest: str) -> OpenAICompatibleModel:
    """The model of a name such as ``qwen3@http://localhost:8080/v1``.

    Without ``@URL`` the URL is that of ``OPENAI_BASE_URL``, or OpenAI's own; the key is that of
    ``OPENAI_API_KEY``. A model's name may hold ``@`` itself.

    Raises:
        UsageError: The URL is not one, or OpenAI itself is meant and there is no key.
    """
    match = _NAME_AT_URL.fullmatch(rest)
    if match is None and (bare := _BARE_HOST.fullmatch(rest)):
        raise UsageError(f"the model's address needs a scheme: write @http://{bare[1]}")
    if match is None:
        return OpenAICompatibleModel(rest)
    return OpenAICompatibleModel(match["model"], base_url=match["url"])

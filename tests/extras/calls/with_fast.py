"""The extra ``fast``: our own adapter sends through aiohttp, when told to and by itself."""

import sys

from shared import ask, check, provider

from agentkit.models import OpenAICompatibleModel

for transport in ("aiohttp", "auto"):
    with provider() as server:
        model = OpenAICompatibleModel("gpt", base_url=server.base_url, transport=transport)
        check(ask(model), 144, f"transport={transport!r}", "aiohttp")
assert "httpx" not in sys.modules, "the other transport was taken"

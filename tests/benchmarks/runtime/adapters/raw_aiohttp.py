"""Floor: a hand-written loop on aiohttp that splices the serialised tools into each request."""

from __future__ import annotations

import json
from typing import Any

from raw_httpx import answer, schema_of

VENV = "floors"
DISTS = ["aiohttp"]
IMPORT = IMPORT_FULL = "import aiohttp"


def build(base_url: str, tools: list[Any]) -> dict[str, Any]:
    """A session and the tools as bytes."""
    import aiohttp

    return {
        "session": aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)),
        "url": f"{base_url}/chat/completions",
        "functions": {tool.__name__: tool for tool in tools},
        "tools": json.dumps([schema_of(tool) for tool in tools]).encode(),
    }


async def run(agent: dict[str, Any], question: str) -> str:
    """One run."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": question},
    ]
    headers = {"Content-Type": "application/json"}
    while True:
        parts = (json.dumps(messages).encode(), agent["tools"])
        body = b'{"model":"gpt-4o-mini","messages":%s,"tools":%s}' % parts
        async with agent["session"].post(agent["url"], data=body, headers=headers) as response:
            message = json.loads(await response.read())["choices"][0]["message"]
        if not message.get("tool_calls"):
            return str(message["content"])
        messages.append(message)
        messages.extend(answer(agent["functions"], call) for call in message["tool_calls"])

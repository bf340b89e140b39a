"""Floor: a hand-written loop on httpx that sends a list of schemas made once."""

from __future__ import annotations

import json
from typing import Any

VENV = "floors"
DISTS = ["httpx"]
IMPORT = IMPORT_FULL = "import httpx"


def build(base_url: str, tools: list[Any]) -> dict[str, Any]:
    """A client and the tools as JSON data."""
    import httpx

    limits = httpx.Limits(max_connections=1000, max_keepalive_connections=100)
    return {
        "client": httpx.AsyncClient(timeout=60, limits=limits),
        "url": f"{base_url}/chat/completions",
        "functions": {tool.__name__: tool for tool in tools},
        "tools": [schema_of(tool) for tool in tools],
    }


def schema_of(function: Any) -> dict[str, Any]:
    """What the loop sends for one of the benchmark's tools, whose parameters are all alike."""
    kinds = {"city": "string", "days": "integer", "unit": "string", "detailed": "boolean"}
    properties = {name: {"type": kind, "description": "Text."} for name, kind in kinds.items()}
    parameters = {"type": "object", "properties": properties, "required": ["city", "days"]}
    record = {"name": function.__name__, "description": function.__doc__, "parameters": parameters}
    return {"type": "function", "function": record}


async def run(agent: dict[str, Any], question: str) -> str:
    """One run."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": question},
    ]
    while True:
        body = {"model": "gpt-4o-mini", "messages": messages, "tools": agent["tools"]}
        response = await agent["client"].post(agent["url"], json=body)
        message = response.json()["choices"][0]["message"]
        if not message.get("tool_calls"):
            return str(message["content"])
        messages.append(message)
        messages.extend(answer(agent["functions"], call) for call in message["tool_calls"])


def answer(functions: dict[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    """Run one call and word its message."""
    value = functions[call["function"]["name"]](**json.loads(call["function"]["arguments"]))
    return {"role": "tool", "tool_call_id": call["id"], "content": value}

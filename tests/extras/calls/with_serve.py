"""The extra ``serve``: ``agentkit serve`` answers a question with a call, and ends on a signal."""

import json
import signal
import subprocess
import sys

import httpx
from shared import AGENTKIT, TOOLS, provider, tell

QUESTION = {"model": "agent", "messages": [{"role": "user", "content": "What is 12 squared?"}]}


def url_of(process: subprocess.Popen[str]) -> str:
    """Where the server listens, as it says; ends with what it says instead."""
    said = process.stdout.readline()
    if not said:
        sys.exit(process.stderr.read())
    return json.loads(said)["url"]


with provider() as theirs:
    model = f"openai-compatible:gpt@{theirs.base_url}"
    command = [AGENTKIT, "serve", "--port", "0", "--store", "memory:", "--tools", TOOLS, "--json"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    ours = subprocess.Popen([*command, "--model", model], **pipes)
    try:
        url = url_of(ours)
        answer = httpx.post(f"{url}/chat/completions", json=QUESTION, trust_env=False).json()
    finally:
        ours.send_signal(signal.SIGTERM)
        last_words = ours.communicate(timeout=60)[1]
result = theirs.requests[1].body["messages"][-1]
assert (result["role"], result["content"]) == ("tool", "144"), result
assert answer["choices"][0]["message"]["content"] == "144", answer
assert (ours.returncode, "Stopped" in last_words) == (0, True), last_words
tell("agentkit serve: 144", "starlette", "uvicorn")

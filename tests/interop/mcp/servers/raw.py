"""A server on stdio without any library, which starts at once.

It lists the JSON that it is given, well-formed or not, in both ways of the protocol: after a
handshake, and without one. Every tool answers with the id of the process, but for those that
overwhelm their client: ``die`` ends the process, ``broken`` and ``halved``
answer with what nobody can read, ``crowd`` and ``group`` answer in very many parts, ``stray``
writes lines that are not messages, ``long`` one long line, ``endless`` a line without an end, and
``asks`` and ``tells`` send requests and notifications without an end and read nothing more;
``deaf`` neither answers nor reads; ``quiz_3`` asks the user three questions before it answers.
"""

import json
import os
import sys
import time

LISTED = json.loads(sys.argv[1])
ANSWERS = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "raw", "version": "1"},
    },
    "server/discover": {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "raw", "version": "1"},
        "ttlMs": 0,
        "cacheScope": "private",
    },
    "tools/list": {"resultType": "complete", "tools": LISTED, "ttlMs": 0, "cacheScope": "private"},
    "tools/call": {"content": [{"type": "text", "text": str(os.getpid())}]},
}


def quiz(name: str) -> dict[str, object]:
    """An answer of so many questions to the user."""
    form = {"type": "object", "properties": {"size": {"type": "integer"}}}
    question = {"mode": "form", "message": "Which size?", "requestedSchema": form}
    one = {"method": "elicitation/create", "params": question}
    asks = {str(number): one for number in range(int(name[5:]))}
    return {"resultType": "input_required", "requestState": "s", "inputRequests": asks}


def overwhelm(name: str) -> dict[str, object]:
    """What a call of that name answers, after what it writes beside that."""
    if name == "die":
        os._exit(3)
    if name == "deaf":
        time.sleep(600)
    if name == "stray":
        for _ in range(200_000):
            sys.stdout.write("a line that is no message\n")
    if name == "endless":
        while True:
            sys.stdout.write("x" * 65_536)
    while name in {"asks", "tells"}:
        method = "ping" if name == "asks" else "notifications/message"
        message = {"jsonrpc": "2.0", "method": method, "params": {}}
        if name == "asks":
            message["id"] = "1"
        sys.stdout.write((json.dumps(message) + "\n") * 1_000)
    part = {"type": "text", "text": ""}
    if name == "long":
        return {"content": [{"type": "text", "text": "x" * 3_000_000}]}
    parts = {"crowd": 300_000, "group": 20_000}
    return {"content": [part] * parts[name]} if name in parts else ANSWERS["tools/call"]


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked and asked["method"] in ANSWERS:  # nobody is told of changes
        called = asked["method"] == "tools/call"
        if called and asked["params"]["name"] in {"broken", "halved"}:
            head = '{"jsonrpc": "2.0", ' + (
                f'"id": {asked["id"]}, ' * (asked["params"]["name"] == "broken")
            )
            sys.stdout.write(head + '"result": {"content": \n')
            sys.stdout.flush()
            continue
        result = overwhelm(asked["params"]["name"]) if called else ANSWERS[asked["method"]]
        if called and asked["params"]["name"].startswith("quiz_"):
            is_told = "inputResponses" in asked["params"]
            result = (
                {**result, "resultType": "complete"} if is_told else quiz(asked["params"]["name"])
            )
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": result}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()

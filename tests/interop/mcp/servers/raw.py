"""A server on stdio without any library, which starts at once.

It lists the JSON that it is given, well-formed or not, in both ways of the protocol: after a
handshake, and without one. Every tool answers with the id of the process, but ``die`` ends it.
"""

import json
import os
import sys

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

for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "tools/call" and asked["params"]["name"] == "die":
        os._exit(3)
    if "id" in asked:
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": ANSWERS[asked["method"]]}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()

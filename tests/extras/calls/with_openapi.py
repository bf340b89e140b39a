"""The extra ``openapi``: an API describes itself in YAML, and its operation is called."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
from shared import SQUARE_12, caller, check

from agentkit import Agent
from agentkit.interop.openapi import openapi_tools

DESCRIPTION = b"""
openapi: 3.1.0
info: {title: Squares, version: "1"}
paths:
  /squares/{n}:
    get:
      operationId: square
      parameters: [{name: n, in: path, required: true, schema: {type: integer}}]
      responses:
        200:
          description: The square of n.
          content: {application/json: {schema: {type: integer}}}
"""


class Squares(BaseHTTPRequestHandler):
    """The API: its description at one path, its operation at another."""

    def do_GET(self) -> None:
        _, kind, *n = self.path.split("/")
        is_call = kind == "squares"
        self.send_response(200)
        self.send_header("Content-Type", "application/json" if is_call else "application/yaml")
        self.end_headers()
        self.wfile.write(str(int(n[0]) ** 2).encode() if is_call else DESCRIPTION)

    def log_message(self, *_: object) -> None:
        """Say nothing of requests."""


with ThreadingHTTPServer(("127.0.0.1", 0), Squares) as server:
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/openapi.yaml"
    api = openapi_tools(httpx.get(url, trust_env=False).text, reference=url)
    result = Agent(caller(SQUARE_12), tools=api).run_sync("What is 12 squared?")
    server.shutdown()
check(result, 144, str(api.report.summary), "pyyaml")

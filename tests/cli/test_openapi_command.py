"""API descriptions on the command line: imported into the store, and called in a run."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

SPEC = """\
openapi: 3.1.0
info: {title: Pets, version: "1"}
paths:
  /pets/{id}:
    get:
      operationId: getPet
      summary: Look up one pet.
      parameters:
        - {name: id, in: path, required: true, schema: {type: integer}}
      security: [{key: []}]
    delete:
      operationId: deletePet
      parameters:
        - {name: pet, in: path, required: true, schema: {type: integer}}
  /old:
    get: {operationId: old, deprecated: true}
components:
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Key}
"""


@pytest.fixture
def spec(tmp_path):
    """A description as YAML in the working directory."""
    path = tmp_path / "pets.yaml"
    path.write_text(SPEC)
    return path.name


class Pets(BaseHTTPRequestHandler):
    """Answers with the path and the key that came."""

    def do_GET(self):
        """One pet."""
        body = json.dumps({"path": self.path, "key": self.headers.get("X-Key")}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def pets():
    """The base URL of a server of the API."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pets)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_description_is_recognised_and_reported(invoke, as_json, spec):
    """What can be mapped is in the library; what can not is told, and the exit status is 1."""
    result = invoke("tools", "import", spec)
    assert result.exit_code == 1
    assert result.stdout == "1 added; library version 1\n"
    assert (
        "Pets 1 (OpenAPI 3.1.0): 1 of 3 operations mapped, 1 unusable, 1 deprecated"
        in result.stderr
    )
    assert "DELETE /pets/{id} is not mapped: the path has the placeholder {id}" in result.stderr
    shown = as_json("tools", "show", "getPet")
    assert shown["origin"] == {"kind": "openapi", "reference": "pets.yaml#/paths/~1pets~1{id}/get"}

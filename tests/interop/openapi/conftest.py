"""A small API of our own, served over real HTTP, and its description."""

import asyncio
import base64
import json
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import httpx
import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from agentkit.interop.openapi import openapi_tools

TEXT = {"type": "string"}


def parameter(name, place, schema=None, **more):
    """A parameter object."""
    return {
        "name": name,
        "in": place,
        "schema": schema or TEXT,
        "required": place == "path",
        **more,
    }


def answered(schema=None):
    """The responses object of an operation that answers with JSON."""
    return {"200": {"description": "", "content": {"application/json": {"schema": schema or {}}}}}


def document(paths, *, version="3.0.3", **components):
    """A whole document around some paths."""
    return {
        "openapi": version,
        "info": {"title": "Test", "version": "1"},
        "servers": [{"url": "https://api.example.com/v1"}],
        "paths": paths,
        "components": components,
    }


def operation(method="get", path="/x", *, version="3.0.3", components=None, **body):
    """A document with one operation named ``it``."""
    shaped = {"operationId": "it", "responses": answered(), **body}
    return document({path: {method: shaped}}, version=version, **(components or {}))


@pytest.fixture
def make():
    """What the tests build documents with."""
    return SimpleNamespace(
        parameter=parameter, answered=answered, document=document, operation=operation
    )


async def echo(request):
    """What arrived, as JSON."""
    body = await request.body()
    return JSONResponse(
        {
            "method": request.method,
            "path": request.scope["raw_path"].decode(),
            "query": request.scope["query_string"].decode(),
            "headers": dict(request.headers),
            "body": base64.b64encode(body).decode(),
        }
    )


class Api:
    """Answers as its tests want: echoes, or gives the next of the planned answers."""

    def __init__(self):
        self.planned = []
        self.seen = []

    async def app(self, scope, receive, send):
        """Every path of the application leads to one answer."""
        answer = await self.answer(Request(scope, receive))
        await answer(scope, receive, send)

    async def answer(self, request):
        """The next planned answer, or what arrived."""
        self.seen.append((request.method, str(request.url), dict(request.headers)))
        if not self.planned:
            return await echo(request)
        planned = self.planned.pop(0)
        if isinstance(planned, float):
            await asyncio.sleep(planned)
            return PlainTextResponse("late")
        return planned


def json_answer(data, status=200, **headers):
    """A JSON answer; header names are written with ``_``."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return JSONResponse(data, status_code=status, headers=named)


@pytest.fixture
def answers():
    """Makers of planned answers."""
    return SimpleNamespace(
        json=json_answer, raw=Response, text=PlainTextResponse, to=RedirectResponse
    )


@pytest.fixture
def api():
    """The API, spoken to without a socket; ``api.call(document, **arguments)`` makes one call."""
    found = Api()

    def tools(given, **options):
        client = httpx.AsyncClient(transport=httpx.ASGITransport(found.app))
        return openapi_tools(given, client=client, **options)

    async def call(given, /, *, options=None, **arguments):
        return await tools(given, **(options or {}))["it"](**arguments)

    found.tools, found.call = tools, call
    return found


@contextmanager
def served(app):
    """Serve an application on a free port of this machine."""
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, log_level="critical", lifespan="off", interface="asgi3")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)


@pytest.fixture
def live():
    """The API on a real socket, with its base URL as ``live.url``."""
    found = Api()
    with served(found.app) as url:
        found.url = url
        yield found


@pytest.fixture
def another():
    """A second API on another port: another origin."""
    found = Api()
    with served(found.app) as url:
        found.url = url
        yield found


@pytest.fixture
async def bound():
    """``openapi_tools`` whose connections are closed when the test ends."""
    made = []

    def make_tools(given, **options):
        made.append(openapi_tools(given, **options))
        return made[-1]

    yield make_tools
    for each in made:
        await each.close()


@pytest.fixture
def body_of():
    """The body that an echoing answer tells of, decoded."""

    def decoded(echoed):
        raw = base64.b64decode(echoed["body"])
        try:
            return json.loads(raw)
        except ValueError:
            return raw.decode()

    return decoded

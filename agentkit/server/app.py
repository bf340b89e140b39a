"""``create_app``: an agent as an ASGI application."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentkit.agent.agent import Agent
from agentkit.errors import MissingExtraError, UsageError
from agentkit.library.replicas import replica_of
from agentkit.models.base import accepted_media
from agentkit.server.approvals import ApprovalsEndpoint
from agentkit.server.chat import CHAT_PATH, RESPONSES_PATH, ChatCompletions
from agentkit.server.chat_request import Reader
from agentkit.server.feedback import FeedbackEndpoint
from agentkit.server.keys import Keys
from agentkit.server.limits import RateLimiter, ServerLimits
from agentkit.server.metrics import CONTENT_TYPE, Metrics, store_gauges
from agentkit.server.middleware import (
    LOCAL_NAMES,
    SCOPE_KEY,
    Exchange,
    Front,
    Receive,
    RequestError,
    Scope,
    Send,
    stopping,
)
from agentkit.server.runs import Readiness, Runs
from agentkit.tools.invocation import DepsFactory

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

FEEDBACK_PATH = "/v1/feedback"
APPROVALS_PATH = "/v1/approvals"
APPROVAL_PATH = "/v1/approvals/{episode_id}"
MODELS_PATH = "/v1/models"
HEALTH_PATH = "/healthz"
READY_PATH = "/readyz"
METRICS_PATH = "/metrics"

Endpoint = Callable[[Exchange, Scope], Awaitable[None]]
"""Answers a request that was admitted."""


def create_app(
    agent: Agent,
    *,
    keys: Keys | None = None,
    limits: ServerLimits = ServerLimits(),  # noqa: B008 - immutable
    model_name: str | None = None,
    approvers: Collection[str] = (),
    allowed_hosts: Sequence[str] | None = None,
    deps_factory: DepsFactory | None = None,
    media_urls: bool = False,
) -> Starlette:
    """An agent behind OpenAI's chat completions, as an ASGI application.

    ========================  ===============================================================
    POST /v1/chat/completions  an answer, whole or as a stream of server-sent events
    POST /v1/responses         the same in the dialect of OpenAI's Responses API
    POST /v1/feedback          what a client says of an answer, kept as a late verdict
    GET /v1/approvals          calls that wait for a person
    GET /v1/approvals/{id}     those of one run, whole
    POST /v1/approvals/{id}    a decision on them; the run then resumes
    GET /v1/models             the one model that there is
    GET /healthz               the process lives
    GET /readyz                it takes requests: episodes can be kept and no stop was asked for;
                               answers within a second
    GET /metrics               numbers in Prometheus' text format
    ========================  ===============================================================

    The library that is served is the newest where the agent's store is a ``Replica``.

    Every run that begins leaves an episode in the agent's store, whatever becomes of it; a good
    answer ends only after its episode is kept. When the application is shut down, runs under way
    may end, the others are cut and kept as cancelled, and then the agent is closed.

    Args:
        agent: Answers. Its tools, settings and limits are those of its owner; clients choose what
            is said.
        keys: Who may use it; None allows everybody.
        limits: What is taken on.
        model_name: The model's name for clients; None takes the agent's name.
        approvers: Names of keys that decide about the calls of all runs.
        allowed_hosts: Host names that requests may be addressed to, ``*`` for any; None takes
            those of this machine for an application without keys, and any for one with keys.
        deps_factory: Creates the ``deps`` of each run from Starlette's ``Request``, for instance a
            database handle and who the user is; sync or async. An ``HTTPException`` of it
            refuses the request.
        media_urls: Whether clients may send https URLs of images. They are passed on to the
            model's provider and never fetched here; leave it off where the provider is a server
            of your own that can reach what clients must not.

    Raises:
        UsageError: An approver is not among the keys.
        MissingExtraError: Starlette is not installed.

    Example:
        >>> from agentkit.testing import ScriptedModel
        >>> app = create_app(Agent(ScriptedModel(["Hello."])), keys=Keys({"me": "sk-" + "x" * 32}))
    """
    try:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.middleware import Middleware
        from starlette.routing import Route
    except ImportError as error:
        raise missing("starlette") from error
    if unknown := set(approvers).difference(keys.names if keys else ()):
        raise UsageError(
            f"approvers are names of keys, and there is no key {min(unknown)!r}; add it to keys"
        )
    name, runs = model_name or agent.name, Runs()
    metrics = _metrics(agent, runs)
    chat = ChatCompletions(
        agent=agent,
        reader=Reader(
            model=name,
            max_messages=limits.max_messages,
            output_schema=agent.output_schema,
            alias=agent.model.name,
            accepts=accepted_media(agent.model),
            media_urls=media_urls,
        ),
        runs=runs,
        metrics=metrics,
        limits=limits,
        keys=keys,
        deps_factory=deps_factory,
        has_clients=len(set(keys.names if keys else ()).difference(approvers)) > 1,
    )
    feedback = FeedbackEndpoint(store=agent.store, queue=agent.queue, bodies=chat.bodies)
    held: dict[str, tuple[list[str], Endpoint]] = {
        CHAT_PATH: (["POST"], chat.answer),
        RESPONSES_PATH: (["POST"], chat.answer),
        FEEDBACK_PATH: (["POST"], feedback.take),
    }
    if approvers:
        approvals = ApprovalsEndpoint(chat=chat, approvers=frozenset(approvers))
        held[APPROVALS_PATH] = (["GET"], approvals.list_waiting)
        held[APPROVAL_PATH] = (["GET", "POST"], approvals.answer_one)
    rates = RateLimiter(limits.requests_per_minute)
    routes = [
        Route(path, _Held(endpoint=endpoint, runs=runs, rates=rates), methods=methods)
        for path, (methods, endpoint) in held.items()
    ]
    routes += [
        Route(path, _Free(endpoint), methods=["GET"])
        for path, endpoint in _watching(agent, runs, metrics, name).items()
    ]
    hosts = LOCAL_NAMES if allowed_hosts is None and keys is None else tuple(allowed_hosts or ())
    front = Middleware(
        Front,
        keys=keys,
        open_paths=frozenset({HEALTH_PATH, READY_PATH}),
        hosts=() if "*" in hosts else tuple(host.lower() for host in hosts),
        metrics=metrics,
        routes=frozenset(route.path for route in routes),
        send_seconds=limits.send_seconds,
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await runs.drain(limits.drain_seconds)
            await agent.close()

    app = Starlette(
        routes=routes,
        middleware=[front],
        exception_handlers={HTTPException: _refused},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # one path for each thing
    app.state.runs, app.state.limits, app.state.has_keys = runs, limits, keys is not None
    return app


@dataclass(frozen=True, slots=True)
class _Free:
    """An endpoint as an ASGI application."""

    endpoint: Endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.endpoint(scope[SCOPE_KEY], scope)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Held:
    """An endpoint as an ASGI application that is drained, and holds each key to its rate."""

    endpoint: Endpoint
    runs: Runs
    rates: RateLimiter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange: Exchange = scope[SCOPE_KEY]
        if self.runs.is_draining:
            raise stopping()
        self.rates.take(exchange.key)
        with self.runs.entered():
            await self.endpoint(exchange, scope)


def _watching(agent: Agent, runs: Runs, metrics: Metrics, name: str) -> dict[str, Endpoint]:
    """What is there to read, by path."""
    model = {"id": name, "object": "model", "created": int(time.time()), "owned_by": "agentkit"}
    readiness = Readiness(agent, runs)

    def always(value: object) -> Endpoint:
        async def answer(exchange: Exchange, scope: Scope) -> None:  # noqa: ARG001 - an Endpoint
            await exchange.answer(json.dumps(value).encode())

        return answer

    async def answer_ready(exchange: Exchange, scope: Scope) -> None:  # noqa: ARG001
        ready = await readiness.state()
        status = 503 if ready["status"] == "unavailable" else 200
        await exchange.answer(json.dumps(ready).encode(), status=status)

    async def count(exchange: Exchange, scope: Scope) -> None:  # noqa: ARG001
        await exchange.answer(metrics.text().encode(), content_type=CONTENT_TYPE.encode())

    return {
        MODELS_PATH: always({"object": "list", "data": [model]}),
        HEALTH_PATH: always({"status": "ok"}),
        READY_PATH: answer_ready,
        METRICS_PATH: count,
    }


def _metrics(agent: Agent, runs: Runs) -> Metrics:
    return Metrics(
        {
            "agentkit_runs_in_flight": ("Runs that are under way.", lambda: len(runs)),
            "agentkit_draining": ("1 while the server is to stop.", lambda: runs.is_draining),
            "agentkit_library_version": (
                "Version that runs begin with.",
                lambda: agent.library.version,
            ),
            **store_gauges(agent.queue, replica_of(agent.store)),
        }
    )


async def _refused(request: Request, error: Exception) -> Response:
    """Starlette's own errors (no such path, no such method) in our form."""
    status = getattr(error, "status_code", 500)
    words = {404: ("no such path", "not_found"), 405: ("no such method here", "bad_method")}
    message, code = words.get(status, ("the request cannot be answered", "http_error"))
    request_line = f"{request.method} {request.url.path[:200]}"
    raise RequestError(status=status, message=f"{message}: {request_line}", code=code) from error


def missing(package: str) -> MissingExtraError:
    """The error for a server without its packages."""
    return MissingExtraError(
        "serving an agent", package=package, install='pip install "agentkit-evolve[serve]"'
    )

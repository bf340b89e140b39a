"""``create_app``: an agent as an ASGI application."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentkit.agent.agent import Agent
from agentkit.errors import AgentKitError, MissingExtraError, UsageError
from agentkit.library.replicas import replica_of
from agentkit.library.store import Store, append_all
from agentkit.models.base import accepted_media
from agentkit.server.approvals import ApprovalsEndpoint
from agentkit.server.chat import ChatCompletions, Dialect
from agentkit.server.chat_answer import Completion
from agentkit.server.chat_request import Asked, Reader
from agentkit.server.feedback import FeedbackEndpoint
from agentkit.server.keys import Keys
from agentkit.server.limits import Bodies, RateLimiter, ServerLimits
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
from agentkit.server.responses import ResponsesReader, ResponseWriter
from agentkit.server.runs import MinuteLog, Probe, Runs
from agentkit.tools.invocation import DepsFactory, run_in_daemon_thread

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

_LOG = logging.getLogger(__name__)

CHAT_PATH = "/v1/chat/completions"
RESPONSES_PATH = "/v1/responses"
FEEDBACK_PATH = "/v1/feedback"
APPROVALS_PATH = "/v1/approvals"
APPROVAL_PATH = "/v1/approvals/{episode_id}"
MODELS_PATH = "/v1/models"
HEALTH_PATH = "/healthz"
READY_PATH = "/readyz"
METRICS_PATH = "/metrics"
_SLOW_SECONDS = 1.0
"""An episode that has waited longer for its store says that the store is in trouble."""

Endpoint = Callable[[Exchange, Scope], Awaitable[None]]
"""Answers a request that was admitted."""


def create_app(
    agent: Agent,
    *,
    keys: Keys | None = None,
    limits: ServerLimits = ServerLimits(),  # noqa: B008 - immutable
    model_name: str | None = None,
    client_approval: bool = False,
    approvers: Collection[str] = (),
    open_metrics: bool = False,
    allowed_hosts: Sequence[str] | None = None,
    refresh_seconds: float | None = 30.0,
    close_agent: bool = True,
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

    Every run that begins leaves an episode in the agent's store, whatever becomes of it; a good
    answer ends only after its episode is kept. When the application is shut down, runs under way
    may end, the others are cut and kept as cancelled, and then the agent is closed.

    Args:
        agent: Answers. Its tools, settings and limits are those of its owner; clients choose what
            is said.
        keys: Who may use it; None allows everybody.
        limits: What is taken on.
        model_name: The model's name for clients; None takes the agent's name.
        client_approval: Whether a client may say that a call that needs approval may run, for its
            own runs.
        approvers: Names of keys that decide about the calls of all runs.
        open_metrics: Whether ``/metrics`` needs no key.
        allowed_hosts: Host names that requests may be addressed to, ``*`` for any; None takes
            those of this machine for an application without keys, and any for one with keys.
        refresh_seconds: How often to load new versions of the library from the store; None
            for never. A ``Replica`` refreshes itself; this has no effect on it.
        close_agent: Whether the agent is closed at the end.
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
    if unknown := set(approvers).difference(keys.names if keys else ()):
        raise UsageError(
            f"approvers are names of keys, and there is no key {min(unknown)!r}; add it to keys"
        )
    service = _Service(agent, limits)
    name = model_name or agent.name
    bodies = Bodies(limits, keys)
    reader = Reader(
        model=name,
        max_messages=limits.max_messages,
        output_schema=agent.output_schema,
        alias=agent.model.name,
        accepts=accepted_media(agent.model),
        media_urls=media_urls,
    )
    chat = ChatCompletions(
        agent=agent,
        dialects=_dialects(reader),
        runs=service.runs,
        bodies=bodies,
        metrics=service.metrics,
        limits=limits,
        keys=keys,
        takes_approvals=client_approval,
        deps_factory=deps_factory,
        has_clients=len(set(keys.names if keys else ()).difference(approvers)) > 1,
    )
    feedback = FeedbackEndpoint(store=agent.store, queue=agent.queue, bodies=bodies)
    model = {"id": name, "object": "model", "created": int(time.time()), "owned_by": "agentkit"}
    routes: dict[str, tuple[str, Endpoint]] = {
        CHAT_PATH: ("POST", chat.answer),
        RESPONSES_PATH: ("POST", chat.answer),
        FEEDBACK_PATH: ("POST", feedback.take),
    }
    if approvers or client_approval:
        approvals = ApprovalsEndpoint(
            chat=chat, approvers=frozenset(approvers), takes_approvals=client_approval
        )
        routes[APPROVALS_PATH] = ("GET", approvals.list_waiting)
        routes[APPROVAL_PATH] = ("GET POST", approvals.answer_one)
    app = _application(
        routes,
        models={"object": "list", "data": [model]},
        keys=keys,
        service=service,
        open_metrics=open_metrics,
        allowed_hosts=allowed_hosts,
        lifespan=lambda _: service.lifespan(
            refresh_seconds=refresh_seconds, close_agent=close_agent
        ),
    )
    app.state.runs = service.runs
    app.state.model_name = name
    return app


def _dialects(reader: Reader) -> Mapping[str, Dialect]:
    """How each endpoint reads and answers."""

    def completion(episode_id: str, asked: Asked) -> Completion:
        return Completion(
            episode_id=episode_id,
            model=reader.model,
            not_honoured=asked.not_honoured,
            include_usage=asked.include_usage,
        )

    def response(episode_id: str, asked: Asked) -> ResponseWriter:
        return ResponseWriter(episode_id=episode_id, model=reader.model, asked=asked)

    return {
        CHAT_PATH: Dialect(read=reader.read, writer=completion),
        RESPONSES_PATH: Dialect(read=ResponsesReader(reader=reader).read, writer=response),
    }


@dataclass(frozen=True, kw_only=True, slots=True)
class _Admitted:
    """An endpoint as an ASGI application that is drained, and holds each key to its rate."""

    endpoint: Endpoint
    runs: Runs
    rates: RateLimiter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange: Exchange = scope[SCOPE_KEY]
        if self.runs.is_draining:
            raise stopping()
        self.rates.check(exchange.key)
        with self.runs.entered():
            await self.endpoint(exchange, scope)


def _application(
    routes: Mapping[str, tuple[str, Endpoint]],
    *,
    models: Mapping[str, object],
    keys: Keys | None,
    service: _Service,
    open_metrics: bool,
    allowed_hosts: Sequence[str] | None,
    lifespan: Callable[[Any], AbstractAsyncContextManager[None]],
) -> Starlette:
    """An application of endpoints, with models, health, readiness and metrics beside them.

    Raises:
        MissingExtraError: Starlette is not installed.
    """
    try:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.middleware import Middleware
        from starlette.responses import JSONResponse, Response
        from starlette.routing import Route
    except ImportError as error:
        raise missing("starlette") from error

    async def say(request: Request) -> Response:
        return JSONResponse(answers[request.scope[SCOPE_KEY].path])

    async def answer_ready(_: Request) -> Response:
        readiness = await service.ready()
        return JSONResponse(
            readiness, status_code=503 if readiness["status"] == "unavailable" else 200
        )

    async def count(_: Request) -> Response:
        return Response(service.metrics.text(), media_type=CONTENT_TYPE)

    answers = {HEALTH_PATH: {"status": "ok"}, MODELS_PATH: models}
    rates, limits = RateLimiter(service.limits.requests_per_minute), service.limits
    every: dict[str, tuple[str, Any]] = {
        **{
            path: (method, _Admitted(endpoint=endpoint, runs=service.runs, rates=rates))
            for path, (method, endpoint) in routes.items()
        },
        **dict.fromkeys(answers, ("GET", say)),
        READY_PATH: ("GET", answer_ready),
        METRICS_PATH: ("GET", count),
    }
    hosts = LOCAL_NAMES if allowed_hosts is None and keys is None else tuple(allowed_hosts or ())
    front = Middleware(
        Front,
        keys=keys,
        open_paths=frozenset({HEALTH_PATH, READY_PATH, *((METRICS_PATH,) if open_metrics else ())}),
        hosts=() if "*" in hosts else tuple(host.lower() for host in hosts),
        metrics=service.metrics,
        routes=every,
        send_seconds=limits.send_seconds,
    )
    app = Starlette(
        routes=[Route(path, to, methods=methods.split()) for path, (methods, to) in every.items()],
        middleware=[front],
        exception_handlers={HTTPException: _refused},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # one path for each thing
    app.state.limits = limits
    app.state.has_keys = keys is not None
    return app


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


class _Service:
    """The parts that the endpoints share."""

    def __init__(self, agent: Agent, limits: ServerLimits) -> None:
        self._agent = agent
        self.limits = limits
        self._queue = agent.queue
        self._log = MinuteLog(_LOG)
        self._probe = Probe(lambda: run_in_daemon_thread(lambda: _ask(agent.store)))
        self._replica = replica_of(agent.store)
        self.runs = Runs()
        self.metrics = Metrics(
            {
                "agentkit_runs_in_flight": ("Runs that are under way.", lambda: len(self.runs)),
                "agentkit_draining": (
                    "1 while the server is about to stop.",
                    lambda: self.runs.is_draining,
                ),
                "agentkit_library_version": (
                    "Version that runs begin with.",
                    lambda: agent.library.version,
                ),
                **store_gauges(agent.queue, self._replica),
            }
        )

    async def ready(self) -> Mapping[str, str]:
        """Whether it can take a request, though maybe not with the newest library."""
        why = await self._not_ready()
        if why:
            return {"status": "unavailable", "reason": why}
        status = None if self._replica is None else self._replica.status
        if status is None or status.state == "current":
            return {"status": "ok"}
        return {"status": "degraded", "reason": status.summary}

    async def _not_ready(self) -> str:
        if self.runs.is_draining:
            return "stopping"
        state = self._queue.state
        if state.failures or state.oldest_seconds > _SLOW_SECONDS:
            return "store"
        if self._agent.store is not None:
            error = await self._probe.error()
            if error is not None:
                self._log.error("not ready, the store does not answer", error)
                return "store"
        return ""

    @asynccontextmanager
    async def lifespan(
        self, *, refresh_seconds: float | None, close_agent: bool
    ) -> AsyncIterator[None]:
        """Serve from the first request to the last."""
        refreshing = None
        if refresh_seconds is not None and self._agent.store is not None and not self._replica:
            refreshing = asyncio.create_task(self._refreshed(refresh_seconds))
        try:
            yield
        finally:
            if refreshing is not None:
                refreshing.cancel()
            await self.runs.drain(self.limits.drain_seconds)
            if close_agent:
                await self._agent.close()

    async def _refreshed(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await asyncio.to_thread(self._agent.refresh)
            except AgentKitError as error:
                self._log.error("the library stays as it was, the store cannot be read", error)


def _ask(store: Store | None) -> None:
    """See whether the store can be read, and written to: nothing is appended to it."""
    if store is not None:
        store.get("")
        append_all(store, ())

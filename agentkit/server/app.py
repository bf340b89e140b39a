"""``create_app``: an agent as an ASGI application."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from agentkit.agent.agent import Agent
from agentkit.errors import AgentKitError, MissingExtraError, UsageError
from agentkit.library.episode_stores import append_all
from agentkit.library.episode_writer import writer_of
from agentkit.library.replicas import replica_of
from agentkit.library.store import Store
from agentkit.server.chat import ChatCompletions
from agentkit.server.chat_request import Reader
from agentkit.server.feedback import FeedbackEndpoint
from agentkit.server.keys import Keys
from agentkit.server.limits import Bodies, ServerLimits
from agentkit.server.metrics import CONTENT_TYPE, Measures
from agentkit.server.middleware import LOCAL_NAMES, Admission, Front, Problem
from agentkit.server.runs import MinuteLog, Probe, Runs
from agentkit.tools.invocation import run_in_daemon_thread

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.requests import Request
    from starlette.responses import Response

_LOG = logging.getLogger(__name__)

CHAT_PATH = "/v1/chat/completions"
FEEDBACK_PATH = "/v1/feedback"
MODELS_PATH = "/v1/models"
HEALTH_PATH = "/healthz"
READY_PATH = "/readyz"
METRICS_PATH = "/metrics"
_SLOW_SECONDS = 1.0
"""An episode that has waited longer for its store says that the store is in trouble."""

_PATHS = (CHAT_PATH, FEEDBACK_PATH, MODELS_PATH, HEALTH_PATH, READY_PATH, METRICS_PATH)


def create_app(
    agent: Agent,
    *,
    keys: Keys | None = None,
    limits: ServerLimits = ServerLimits(),  # noqa: B008 - immutable
    model_name: str | None = None,
    client_approval: bool = False,
    open_metrics: bool = False,
    allowed_hosts: Sequence[str] | None = None,
    cors_origins: Sequence[str] = (),
    refresh_seconds: float | None = 30.0,
    close_agent: bool = True,
) -> Starlette:
    """An agent behind OpenAI's chat completions, as an ASGI application.

    ========================  ===============================================================
    POST /v1/chat/completions  an answer, whole or as a stream of server-sent events
    POST /v1/feedback          what a client says of an answer, kept as a late verdict
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
        keys: Who may use it; None lets everybody in.
        limits: What is taken on.
        model_name: The model's name for clients; None takes the agent's name.
        client_approval: Whether a client may say that a call that needs approval may run.
        open_metrics: Whether ``/metrics`` needs no key.
        allowed_hosts: Host names that requests may be addressed to, ``*`` for any; None takes
            those of this machine for an application without keys, and any for one with keys.
        cors_origins: Origins whose pages may call it from a browser; none by default.
        refresh_seconds: How often to take up new versions of the library from the store; None
            for never. A ``Replica`` does so by itself, and this makes no difference to it.
        close_agent: Whether the agent is closed at the end.

    Raises:
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
    if cors_origins and keys is None:
        raise UsageError("cors_origins without keys would let any such page use the agent")
    service = _Service(agent, keys=keys, limits=limits, model_name=model_name or agent.name)
    chat = service.chat(takes_approvals=client_approval)
    admission = admitting(keys, allowed_hosts, open_metrics=open_metrics)
    app = Starlette(
        routes=[
            Route(CHAT_PATH, chat, methods=["POST"]),
            Route(FEEDBACK_PATH, service.feedback(), methods=["POST"]),
            Route(MODELS_PATH, service.models),
            Route(HEALTH_PATH, service.healthy),
            Route(READY_PATH, service.ready),
            Route(METRICS_PATH, service.metrics),
        ],
        middleware=[
            *_cross_origin(cors_origins),
            Middleware(
                Front,
                admission=admission,
                measures=service.measures,
                routes=_PATHS,
                send_seconds=limits.send_seconds,
            ),
        ],
        exception_handlers={HTTPException: as_problem},
        lifespan=lambda _: service.lifespan(
            refresh_seconds=refresh_seconds, close_agent=close_agent
        ),
    )
    app.router.redirect_slashes = False  # one path for each thing
    app.state.runs = service.runs
    app.state.limits = limits
    app.state.model_name = model_name or agent.name
    app.state.has_keys = keys is not None
    return app


def admitting(
    keys: Keys | None, allowed_hosts: Sequence[str] | None, *, open_metrics: bool
) -> Admission:
    """Who gets into an application; its health needs no key."""
    hosts = LOCAL_NAMES if allowed_hosts is None and keys is None else tuple(allowed_hosts or ())
    return Admission(
        keys=keys,
        open_paths=frozenset({HEALTH_PATH, READY_PATH, *((METRICS_PATH,) if open_metrics else ())}),
        hosts=() if "*" in hosts else tuple(host.lower() for host in hosts),
    )


def missing(package: str) -> MissingExtraError:
    """The error for a server without its packages."""
    return MissingExtraError(
        "serving an agent", package=package, install='pip install "agentkit-evolve[serve]"'
    )


class _Service:
    """The parts that the endpoints share."""

    def __init__(
        self, agent: Agent, *, keys: Keys | None, limits: ServerLimits, model_name: str
    ) -> None:
        self._agent = agent
        self._keys = keys
        self._limits = limits
        self._model_name = model_name
        self._queue = agent.queue
        self._log = MinuteLog(_LOG)
        self._probe = Probe(lambda: run_in_daemon_thread(lambda: _ask(agent.store)))
        self._began = int(time.time())
        self._replica = replica_of(agent.store)
        self._writer = writer_of(agent.store)
        self.runs = Runs()
        self._bodies = Bodies(limits, keys)
        self.measures = Measures(
            in_flight=lambda: len(self.runs),
            draining=lambda: self.runs.is_draining,
            library_version=lambda: agent.library.version,
            queue=self._queue,
            replica=self._replica,
            writer=self._writer,
        )

    def chat(self, *, takes_approvals: bool) -> ChatCompletions:
        """The main endpoint."""
        reader = Reader(
            model=self._model_name,
            max_messages=self._limits.max_messages,
            output_schema=self._agent.output_schema,
            alias=self._agent.model.name,
        )
        return ChatCompletions(
            self._agent,
            reader=reader,
            runs=self.runs,
            bodies=self._bodies,
            measures=self.measures,
            limits=self._limits,
            keys=self._keys,
            takes_approvals=takes_approvals,
        )

    def feedback(self) -> FeedbackEndpoint:
        """Where clients say what they think of an answer."""
        return FeedbackEndpoint(
            self._agent.store,
            queue=self._queue,
            runs=self.runs,
            bodies=self._bodies,
            limits=self._limits,
        )

    async def models(self, request: Request) -> Response:
        """The list of the one model."""
        model = {
            "id": self._model_name,
            "object": "model",
            "created": self._began,
            "owned_by": "agentkit",
        }
        return json_response({"object": "list", "data": [model]})

    async def healthy(self, request: Request) -> Response:
        """The process runs its event loop."""
        return json_response({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """It can take a request, though maybe not with the newest library."""
        why = await self._not_ready()
        if why:
            return json_response({"status": "unavailable", "reason": why}, status=503)
        status = None if self._replica is None else self._replica.status
        reasons = [] if status is None or status.state == "current" else [status.summary]
        if self._writer is not None and self._writer.state.failures:
            reasons.append("episodes wait for their store")
        if reasons:
            return json_response({"status": "degraded", "reason": "; ".join(reasons)})
        return json_response({"status": "ok"})

    async def metrics(self, request: Request) -> Response:
        """What was counted."""
        from starlette.responses import Response

        return Response(self.measures.text(), media_type=CONTENT_TYPE)

    async def _not_ready(self) -> str:
        if self.runs.is_draining:
            return "stopping"
        if self._replica is not None and self._replica.status.refuses:
            return "stale"
        state = self._queue.state
        if state.failures or state.oldest_seconds > _SLOW_SECONDS:
            return "store"
        if self._agent.store is not None and self._writer is None:  # a writer takes them anyway
            error = await self._probe.error()
            if error is not None:
                self._log.error("not ready, the store does not answer", error)
                return "store"
        return ""

    @asynccontextmanager
    async def lifespan(
        self, *, refresh_seconds: float | None, close_agent: bool
    ) -> AsyncIterator[None]:
        """From the first request to the last one."""
        refreshing = None
        if refresh_seconds is not None and self._agent.store is not None and not self._replica:
            refreshing = asyncio.create_task(self._refreshed(refresh_seconds))
        try:
            yield
        finally:
            if refreshing is not None:
                refreshing.cancel()
            await self.runs.drain(self._limits.drain_seconds)
            if close_agent:
                await self._agent.close()

    async def _refreshed(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await asyncio.to_thread(self._agent.refresh)
            except AgentKitError as error:
                self._log.error("the library stays as it was, the store can not be read", error)


def _ask(store: Store | None) -> None:
    """See whether the store can be read, and written to: nothing is appended to it."""
    if store is not None:
        store.get("")
        append_all(store, ())


def json_response(value: object, *, status: int = 200) -> Response:
    """A small answer of JSON."""
    from starlette.responses import Response

    return Response(json.dumps(value), status_code=status, media_type="application/json")


async def as_problem(request: Request, error: Exception) -> Response:
    """Starlette's own errors (no such path, no such method) in our form."""
    from starlette.responses import Response

    status = getattr(error, "status_code", 500)
    words = {404: ("no such path", "not_found"), 405: ("no such method here", "bad_method")}
    message, code = words.get(status, ("the request can not be answered", "http_error"))
    asked = f"{request.method} {request.url.path[:200]}"
    problem = Problem(status=status, message=f"{message}: {asked}", code=code)
    headers = getattr(error, "headers", None)
    return Response(
        problem.encoded(), status_code=status, headers=headers, media_type="application/json"
    )


def _cross_origin(origins: Sequence[str]) -> list[Middleware]:
    from starlette.middleware import Middleware
    from starlette.middleware.cors import CORSMiddleware

    headers = ["authorization", "content-type", "x-request-id", "x-session-id"]
    methods = ["GET", "POST"]
    allowing = Middleware(
        CORSMiddleware, allow_origins=origins, allow_headers=headers, allow_methods=methods
    )
    return [allowing] if origins else []

"""Running a tool's function: with the context of its run, beside the event loop, and its result."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import os
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Protocol,
    TypeAlias,
    TypeGuard,
    get_args,
    get_origin,
)

from agentkit.errors import UsageError
from agentkit.media import Media
from agentkit.messages import Usage, clean

if TYPE_CHECKING:  # defaults of type variables are typing_extensions' up to Python 3.12
    from typing_extensions import TypeVar

    DepsT = TypeVar("DepsT", default=Any)
    OutputT = TypeVar("OutputT", default=Any)
else:
    from typing import TypeVar

    DepsT = TypeVar("DepsT")
    OutputT = TypeVar("OutputT")
T = TypeVar("T")
_SHOWN = 300


TOOL_ERRORS = BaseException
"""Errors by which a tool may fail, if ``is_tool_error`` agrees."""


def is_tool_error(error: BaseException) -> bool:
    """Whether an exception is a tool's failure, and no wish of somebody else to end.

    Such wishes are Ctrl-C, the cancellation of the task that asks, and the end of its coroutine.
    A tool that raises ``CancelledError`` or ``GeneratorExit`` itself has failed.

    Example:
        >>> is_tool_error(SystemExit(1)), is_tool_error(KeyboardInterrupt())
        (True, False)
        >>> is_tool_error(BaseExceptionGroup("both", [ValueError(), SystemExit()]))
        True
    """
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if isinstance(one, BaseExceptionGroup):
            waiting.extend(one.exceptions)
        elif isinstance(one, KeyboardInterrupt):
            return False
        elif isinstance(one, asyncio.CancelledError | GeneratorExit):
            task = _current_task()
            if task is None or task.cancelling():
                return False
    return True


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs
        return None


@contextmanager
def contained(what: str) -> Iterator[None]:
    """Inside, what would end the event loop, and all that it serves, is an error like any other.

    Args:
        what: Whose code runs inside.

    Raises:
        RuntimeError: It raised what is no ``Exception``, such as ``SystemExit``.
    """
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        if not is_tool_error(error):
            raise
        raise RuntimeError(f"{what} raised {described(error)}; raise an Exception") from error


async def run_in_daemon_thread(function: Callable[[], T]) -> T:
    """Await ``function`` in a daemon thread that nothing else uses meanwhile.

    ``asyncio.to_thread`` is not used because its pool is joined when the loop closes: one tool
    that hangs would keep the program from ending long after its timeout was reported. A thread
    whose caller was cancelled is abandoned; its result is dropped. Threads that are done serve
    again for a while, which is cheaper than starting one for each call.

    Raises:
        BaseException: Whatever ``function`` raises, unchanged.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def deliver(value: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)  # type: ignore[arg-type]  # no error means there is a value

    def work(done: Callable[[], None]) -> None:
        value: T | None = None
        error: BaseException | None = None
        try:
            value = context.run(function)
        except (StopIteration, asyncio.CancelledError, KeyboardInterrupt, GeneratorExit) as raised:
            # A future refuses StopIteration, and whoever awaits it takes the others for a wish
            # that it should end; no Ctrl-C arrives in this thread.
            error = RuntimeError(f"the function raised {described(raised)}")
            error.__cause__ = raised
        except BaseException as raised:  # noqa: BLE001 - carried over to the awaiting task
            error = raised
        done()
        if not loop.is_closed():
            _post(loop, lambda: deliver(value, error))

    _hand_to_a_thread(work)
    return await future


_Work: TypeAlias = Callable[[Callable[[], None]], None]
_IDLE: deque[SimpleQueue[_Work]] = deque()
"""The inboxes of threads that wait for work, the last one first."""
_IDLE_SECONDS = 5.0

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_IDLE.clear)  # a child has none of these threads


def _hand_to_a_thread(work: _Work) -> None:
    try:
        inbox = _IDLE.pop()
    except IndexError:
        inbox = SimpleQueue()
        threading.Thread(target=_serve, args=(inbox,), name="agentkit-tool", daemon=True).start()
    inbox.put(work)


def _serve(inbox: SimpleQueue[_Work]) -> None:
    """Work until there is none for a while."""
    while True:
        try:
            work = inbox.get(timeout=_IDLE_SECONDS)
        except Empty:
            try:
                _IDLE.remove(inbox)
            except (ValueError, IndexError):  # somebody took it and is about to put work
                continue
            return
        work(lambda: _IDLE.append(inbox))
        del work  # and with it what the call held


def _post(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        if not loop.is_closed():  # closed between the check and the call: no one waits any more
            raise


class UnserialisableError(ValueError):
    """A tool returned something that JSON cannot hold."""


def encode_result(value: object) -> tuple[Any, str]:
    """JSON data and model text of a returned value.

    Text is passed on as it is; plain data become compact JSON. Pydantic models, dataclasses,
    dates, decimals, enums, sets and paths are converted first, keys become texts, and halves of
    surrogate pairs, which no record or digest takes, replacement characters. Media become
    references; ``encode_shown`` returns the media as well.

    Raises:
        UnserialisableError: JSON cannot hold the value: NaN, a cycle, an open file.
    """
    data, text, _ = encode_shown(value)
    return data, text


def encode_shown(value: object) -> tuple[Any, str, tuple[Media, ...]]:
    """JSON data, model text and media of a returned value.

    In the data, media are references (``Media.reference``). In the text, a medium alone or in a
    list with texts is its label, and text files are included, so that the limit of texts holds.

    Raises:
        UnserialisableError: As for ``encode_result``.
    """
    if isinstance(value, str):
        value = clean(value)
        return value, value, ()
    try:
        written = _dumps(value)
        return json.loads(written), written, ()  # what the record holds, and nobody can change
    except TypeError:  # not plain data
        media: list[Media] = []
        converted = _converted(_referring(value, media))
        text = _told(value) if media else None
        if text is None:
            text = converted if isinstance(converted, str) else _dumps(converted)
        text = clean("\n".join((text, *(one.words for one in media if one.is_text))))
        return converted, text, tuple(one for one in media if not one.is_text)
    except (ValueError, RecursionError) as error:
        raise UnserialisableError(_complaint(value, error)) from error


def _referring(value: Any, media: list[Media]) -> Any:
    """The data with references in place of media, which are appended to the list."""
    if isinstance(value, Media):
        media.append(value)
        return value.reference()
    if isinstance(value, Mapping):
        return {key: _referring(item, media) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_referring(item, media) for item in value]
    return value


def with_media(value: Any, media: Mapping[str, Media]) -> Any:
    """The value with media in place of their references, so that the model sees them.

    Args:
        value: The data that a program returned.
        media: The media by their digests.
    """
    if isinstance(value, Mapping):
        known = media.get(str(value.get("sha256")))
        return known or {key: with_media(one, media) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [with_media(one, media) for one in value]
    return value


def _told(value: Any) -> str | None:
    """A medium, or a list of texts and media, as text; None for other data."""
    parts = value if isinstance(value, list | tuple) else [value]
    texts = [one.label if isinstance(one, Media) else one for one in parts]
    return "\n".join(texts) if all(isinstance(one, str) for one in texts) else None


def described(error: BaseException) -> str:
    """Kind and text of an exception, whose text may be anything."""
    try:
        text = str(error)
    except Exception as broken:  # noqa: BLE001 - ``str`` runs code of the exception's author
        text = f"its text cannot be read, {type(broken).__name__}"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def shortened(text: str) -> str:
    """A text that fits a message."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _dumps(value: object) -> str:
    return clean(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")))


def _converted(value: object) -> Any:
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        converted = to_jsonable_python(value, inf_nan_mode="constants")
        return json.loads(_dumps(converted))
    except (PydanticSerializationError, ValueError, TypeError, RecursionError) as error:
        raise UnserialisableError(_complaint(value, error)) from error


def _complaint(value: object, error: Exception) -> str:
    return f"It returned a {type(value).__name__} that JSON cannot hold ({str(error)[:200]})"


async def called(call: Callable[[], Any], *, is_async: bool) -> Any:
    """What a call of a function gives; one that is not async runs in a daemon thread."""
    if is_async:
        return await call()
    made = await run_in_daemon_thread(call)
    return await made if inspect.isawaitable(made) else made


# --- the context of a run -------------------------------------------------------------------------

DepsFactory: TypeAlias = Callable[[Any], Any]
"""Makes the deps of a run from the request that a server got; sync or async."""


async def made_deps(factory: DepsFactory | None, request: object) -> Any:
    """The factory's deps for a request; None without a factory."""
    if factory is None:
        return None
    with contained("deps_factory"):
        made = factory(request)
        return await made if inspect.isawaitable(made) else made


class SpendingLimits(Protocol):
    """The limits of a run, as far as it shares them with runs that it asks."""

    @property
    def max_cost_usd(self) -> float | None:
        """Most that it may cost; None for no bound."""
        ...

    @property
    def max_calls(self) -> int:
        """Most calls."""
        ...

    @property
    def max_tokens(self) -> int | None:
        """Most tokens; None for no bound."""
        ...

    def reached(self, *, steps: int, usage: Usage) -> Any:
        """The limit that stops it, or None."""
        ...


_ASK_AT_ONCE = 4
"""Runs below a bounded one that ask models at a time; each may go over what is left once."""


@dataclass(kw_only=True, slots=True)
class RunFacts:
    """State shared by the contexts of one run.

    Attributes:
        deps: What the caller gave the run.
        run_id: Id of the episode that the run will be.
        session_id: Its conversation, if any.
        metadata: Labels of its episode.
        library_version: The snapshot that it is pinned to.
        usage: All model use so far.
        media: What the user sent beside the text.
        returned: Media that children of composites returned, by digest.
        is_over: Whether the run has ended.
        on_progress: Called with a call's progress: its id, its tool, and a text; may be None.
        hand_over: Lets another agent answer in its place; None where there is no run.
        limits: Bound what it spends; None for nothing.
        calls_left: How many calls may still be started; None for any number.
        within: The run that asked for this one, which spends what this one spends; None for none.
        asking: Lets in the runs below that ask models now; None before the first.
    """

    deps: Any = None
    run_id: str = ""
    session_id: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    library_version: int = 0
    usage: Usage = field(default_factory=Usage)
    media: tuple[Media, ...] = ()
    returned: dict[str, Media] = field(default_factory=dict)
    is_over: bool = False
    on_progress: Callable[[str, str, str], None] | None = None
    hand_over: Callable[[Any], Awaitable[Any]] | None = None
    limits: SpendingLimits | None = None
    calls_left: int | None = None
    within: RunFacts | None = None
    asking: asyncio.Semaphore | None = None

    @property
    def lineage(self) -> Iterator[RunFacts]:
        """The run, and those that it spends for."""
        one: RunFacts | None = self
        while one is not None:
            yield one
            one = one.within

    def spend(self, usage: Usage) -> None:
        """Count model use."""
        for one in self.lineage:
            one.usage += usage

    def reached(self, steps: int = 0) -> Any:
        """The limit that the run, or one that it spends for, has come to; None for none."""
        own = self.limits and self.limits.reached(steps=steps, usage=self.usage)
        return own or (self.within and self.within.reached())

    @property
    def bounds_cost(self) -> bool:
        """Whether somebody bounds what it costs."""
        return any(one.limits and one.limits.max_cost_usd is not None for one in self.lineage)

    def turn_to_ask(self) -> AbstractAsyncContextManager[None]:
        """Of the runs below one whose tokens or costs are bounded, few ask models at a time."""
        gate: AbstractAsyncContextManager[None] = nullcontext()
        for one in self.lineage:
            bounds = one.limits and (one.limits.max_tokens, one.limits.max_cost_usd)
            if one is not self and bounds and bounds != (None, None):
                gate = one.asking = one.asking or asyncio.Semaphore(_ASK_AT_ONCE)
        return gate


class RunContext(Generic[DepsT]):
    """The run that calls a tool, as its first parameter; hidden from the model.

    Args:
        deps: What the caller gave the run.
        run: What all contexts of the run share; a test can leave it out.
        attempt: Number of the attempt at this call, from 1.
        call_id: The call; empty where instructions or guardrails are given the context.
        tool_name: The tool called. In a composite, call, attempt and token are the composite's.

    Attributes:
        run_id: Id of the episode that the run will be.
        session_id: The conversation that the run belongs to, if any.
        metadata: Labels of the run's episode.
        library_version: The library snapshot that the run is pinned to.
        cancel_token: Is set when the call is given up: its time is over, or the run was cancelled.
            Async tools are cancelled as usual; a blocking one has to look for itself.

    Example:
        >>> from agentkit import RunContext, tool
        >>> @tool
        ... def my_orders(ctx: RunContext[dict[str, str]], limit: int = 5) -> str:
        ...     '''List the customer's orders.'''
        ...     return f"{limit} orders of {ctx.deps['user']}"
        >>> list(my_orders.definition.signature.properties)
        ['limit']
        >>> my_orders(RunContext({"user": "Ada"}))  # as a test calls it
        '5 orders of Ada'
    """

    def __init__(
        self,
        deps: DepsT | None = None,
        *,
        run: RunFacts | None = None,
        attempt: int = 1,
        call_id: str = "",
        tool_name: str = "",
    ) -> None:
        self._run = facts = run or RunFacts(deps=deps)
        self.run_id, self.session_id = facts.run_id, facts.session_id
        self.metadata, self.library_version = facts.metadata, facts.library_version
        self.attempt = attempt
        self.call_id = call_id
        self.tool_name = tool_name
        self.cancel_token = threading.Event()

    @property
    def deps(self) -> DepsT:
        """The caller's dependencies for the run, such as a database handle or the user."""
        deps: DepsT = self._live.deps
        return deps

    @property
    def usage(self) -> Usage:
        """The run's usage of models so far."""
        return self._live.usage

    @property
    def media(self) -> tuple[Media, ...]:
        """The images, audio and files of the request."""
        return self._live.media

    def progress(self, text: str) -> None:
        """Report this call's progress to the run's listeners: a ``ToolProgress`` event.

        It costs nothing where nobody listens, and may be called from any thread. The model and the
        episode do not see it.
        """
        on_progress = self._live.on_progress
        if on_progress is not None:
            on_progress(self.call_id, self.tool_name, text)

    async def hand_over(self, agent: Any) -> Any:
        """Let another agent go on with the conversation; see ``Agent.handoff``.

        Raises:
            UsageError: No run calls the tool.
        """
        if self._live.hand_over is None:
            raise UsageError("a conversation is handed over by a run; there is none here")
        return await self._live.hand_over(agent)

    def add_usage(self, usage: Usage) -> None:
        """Count what a tool itself spent on models, for the limits and the record of the run."""
        self._live.spend(usage)

    @property
    def facts(self) -> RunFacts:
        """What all contexts of the run share."""
        return self._live

    @property
    def _live(self) -> RunFacts:
        if self._run.is_over:
            raise UsageError(
                f"the run {self._run.run_id} is over, and with it the RunContext that it gave "
                f"{self.tool_name or 'this function'}; what outlives the run must be handed over "
                "as a value"
            )
        return self._run


_CURRENT: contextvars.ContextVar[RunContext[Any] | None] = contextvars.ContextVar(
    "agentkit_run_context", default=None
)


def current_context(tool_name: str) -> RunContext[Any]:
    """The context of the call that is under way.

    It travels as a context variable, so the children of composites have it, too, in whichever
    thread or task they run.

    Raises:
        UsageError: No run called the tool.
    """
    context = _CURRENT.get()
    if context is None:
        raise UsageError(
            f"{tool_name} takes a RunContext, and no run calls it here; call it as a function with "
            "RunContext(deps)"
        )
    return context


def note_media(media: Iterable[Media]) -> None:
    """Remember media that a composite's child returned, for the composite's result."""
    context = _CURRENT.get()
    if context is not None:
        context._run.returned.update((one.sha256, one) for one in media)  # noqa: SLF001 - ours


@contextmanager
def entered(context: RunContext[Any]) -> Iterator[None]:
    """Calls inside have this context; one that fails is cancelled."""
    token = _CURRENT.set(context)
    try:
        yield
    except BaseException:
        context.cancel_token.set()
        raise
    finally:
        _CURRENT.reset(token)


def is_context(annotation: object) -> bool:
    """Whether an annotation is ``RunContext`` or ``RunContext[...]``."""
    return annotation is RunContext or get_origin(annotation) is RunContext


ANY_DEPS: type[Any] = object
"""The ``deps_type`` of an agent that does not say what its runs are given."""


def check_deps(deps: object, deps_type: object) -> None:
    """See that a run is given what its tools rely on.

    Raises:
        UsageError: It is not.
    """
    if _is_class(deps_type) and not isinstance(deps, deps_type):
        actual = "nothing" if deps is None else f"a {type(deps).__name__}"
        raise UsageError(
            f"deps is to be a {deps_type.__name__}, as deps_type says, and the run was given "
            f"{actual}; pass deps=... to the run"
        )


def check_tool_deps(tool_name: str, annotation: object, deps_type: object) -> None:
    """See that an agent's ``deps_type`` is what the context of a tool says.

    Raises:
        UsageError: It is not.
    """
    (expected,) = get_args(annotation) or (None,)
    if not _is_class(expected) or expected in (object, Any, type(None)):
        return
    if _is_class(deps_type) and not issubclass(deps_type, expected):
        actual = "none" if deps_type is ANY_DEPS else deps_type.__name__
        raise UsageError(
            f"the tool {tool_name} takes RunContext[{expected.__name__}], and deps_type of the "
            f"agent is {actual}; make it with deps_type={expected.__name__}"
        )


def _is_class(value: object) -> TypeGuard[type]:
    """Whether values can be checked against this type; not of a protocol or ``dict[str, str]``."""
    return isinstance(value, type) and not getattr(value, "_is_protocol", False)

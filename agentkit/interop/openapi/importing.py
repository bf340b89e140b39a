"""``openapi_tools``: an API description becomes tools, and a report of what could not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self

from agentkit.errors import UsageError
from agentkit.interop.openapi.arguments import (
    Arguments,
    Names,
    read_body,
    read_parameters,
    tool_name,
)
from agentkit.interop.openapi.documents import (
    Document,
    OpenedDocument,
    Operation,
    ReferenceSpace,
    Unmappable,
    operations_of,
    read_document,
)
from agentkit.interop.openapi.http_client import CallPolicy, HttpClient
from agentkit.interop.openapi.public_addresses import chosen_server, is_remote, same_origin
from agentkit.interop.openapi.requests import (
    Env,
    RequestPlan,
    SecurityScheme,
    check_auth,
    leaves_its_path,
    read_schemes,
    requirements_of,
    secret_parameters,
)
from agentkit.interop.openapi.schemas import Budget, SchemaPool
from agentkit.tools.definition import Description, Effects, Origin, Signature, ToolDefinition
from agentkit.tools.schema import detach_descriptions
from agentkit.tools.tool import Tool

if TYPE_CHECKING:
    import httpx

MAX_SUMMARY = 1000
"""Longest text of a tool; some providers refuse more than 1,024 characters."""

MAX_SIZE = 12_000
"""Most characters of the schemas that the parameters of one tool refer to: some 3,000 tokens. A
model is shown them whenever it is shown the tool; without a bound it would be up to 37,000."""

MAX_OWN_SIZE = 100_000
"""Most characters of a tool's own schemas; a tool that takes more is not mapped."""

MAX_TAGS = 50

_FREE_SIZE, _EXPANSION, _AN_OPERATION = 600_000, 16, 4_000
"""Characters of schemas that any document may become, how many more for each of its own, and what
an operation counts besides its schemas."""

_EFFECTS: Mapping[str, Effects] = {
    "GET": Effects(reads=True, writes=False, idempotent=True, open_world=True),
    "HEAD": Effects(reads=True, writes=False, idempotent=True, open_world=True),
    "PUT": Effects(writes=True, idempotent=True, open_world=True),
    "DELETE": Effects(writes=True, destructive=True, idempotent=True, open_world=True),
    "POST": Effects(writes=True, idempotent=False, open_world=True),
    "PATCH": Effects(writes=True, idempotent=False, open_world=True),
}
"""What HTTP says of its methods (RFC 9110, section 9.2). DELETE is destructive, so that a person
is asked; PUT repeats safely, but overwrites, which only the API's author can judge."""

OperationStatus = Literal["mapped", "deprecated", "unselected", "unusable"]
"""``unselected``: left out by the caller's own choice of operations and tags."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OperationReport:
    """The outcome for one operation.

    Attributes:
        method: In capitals.
        path: The path as written, with its placeholders.
        pointer: Where it stands, as a JSON pointer into the document.
        status: Whether there is a tool for it, and why not.
        tool_name: The tool's name; None when there is no tool.
        reason: Why there is no tool, in a sentence; empty for a mapped operation.
        notes: What was changed, left out or could not be determined.
    """

    method: str
    path: str
    pointer: str
    status: OperationStatus
    tool_name: str | None = None
    reason: str = ""
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """Method and path, as people write an operation."""
        return f"{self.method} {self.path}"


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenApiReport:
    """What was mapped and what was not: each operation of the document is in it once.

    Attributes:
        title: The API's title.
        version: The API's version.
        openapi: The version of OpenAPI that the document is written in.
        reference: File or URL that it came from; empty when it was given as data.
        server: The base URL that calls go to, unless an operation names its own; empty if unknown.
        operations: Every operation, in document order.
        notes: What concerns the whole document.
    """

    title: str
    version: str
    openapi: str
    reference: str = ""
    server: str = ""
    operations: tuple[OperationReport, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def mapped(self) -> tuple[OperationReport, ...]:
        """The operations that there is a tool for."""
        return tuple(entry for entry in self.operations if entry.status == "mapped")

    @property
    def unusable(self) -> tuple[OperationReport, ...]:
        """The operations that could not be mapped, each with its reason."""
        return tuple(entry for entry in self.operations if entry.status == "unusable")

    @property
    def summary(self) -> str:
        """One line of counts.

        Example:
            >>> OpenApiReport(title="Pets", version="1", openapi="3.1.0").summary
            'Pets 1 (OpenAPI 3.1.0): 0 of 0 operations mapped'
        """
        counts = Counter(entry.status for entry in self.operations)
        mapped = counts.pop("mapped", 0)
        rest = "".join(f", {count:,} {status}" for status, count in counts.items())
        head = f"{self.title} {self.version}".strip() or "without a title"
        total = len(self.operations)
        return f"{head} (OpenAPI {self.openapi}): {mapped:,} of {total:,} operations mapped{rest}"

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class OpenApiTools:
    """The tools of an API, and what came of each of its operations.

    Iterating gives the tools, so that it can be handed to ``Agent(tools=...)``, ``Library(...)``
    and ``Library.bind(...)`` as it is.

    Attributes:
        tools: In the order of the document.
        report: What was mapped and what was not.
    """

    tools: tuple[Tool, ...]
    report: OpenApiReport
    _client: HttpClient = field(repr=False, compare=False)

    async def close(self) -> None:
        """Close the connections of the running event loop; those of other loops end with them.

        Also done by ``async with``. A client of the caller's own is left open.
        """
        await self._client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.tools)

    def __len__(self) -> int:
        return len(self.tools)

    def __getitem__(self, name: str) -> Tool:
        """The tool of a name."""
        found = next((tool for tool in self.tools if tool.name == name), None)
        if found is None:
            raise KeyError(name)
        return found

    @property
    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The tools as models see them."""
        return tuple(tool.definition for tool in self.tools)


def openapi_tools(
    document: Document,
    *,
    server: str | None = None,
    auth: Mapping[str, Env] | None = None,
    prefix: str = "",
    operations: Iterable[str] = (),
    tags: Iterable[str] = (),
    header_arguments: Iterable[str] = (),
    client: httpx.AsyncClient | None = None,
    policy: CallPolicy | None = None,
    reference: str = "",
) -> OpenApiTools:
    """Make tools of the operations of an OpenAPI 3.0, 3.1 or 3.2 description.

    An operation that cannot be mapped is in the report with its reason; it never fails the others.

    Args:
        document: A path, a text (JSON, or YAML with the extra ``openapi``), or decoded data.
        server: The base URL of all calls; by default the first of the document.
        auth: For each security scheme of the document the environment variable that holds the
            secret: ``{"api_key": Env("PETSTORE_KEY")}``. Read at each call.
        prefix: Comes before the name of every tool.
        operations: Only these: operation ids, or ``"GET /pets/{id}"``. Empty takes all but those
            that are deprecated.
        tags: Only operations with one of these tags. Empty takes all.
        header_arguments: Header parameters that a model may fill. By default these are a few
            harmless ones, such as ``If-Match``: a header can change the method, address or user
            of a call.
        client: An ``httpx.AsyncClient`` to send through, such as one with headers that the API
            wants; the caller closes it. By default each event loop has one of our own, which keeps
            no cookies.
        policy: Timeouts, sizes and retries of calls.
        reference: File or URL that a text or data came from. The servers of a description from a
            public URL must have public addresses, and get credentials only where it is on that
            URL's own host, unless the caller names the ``server``.

    Raises:
        DefinitionError: The document is no OpenAPI 3 description.
        MissingExtraError: It is YAML, and PyYAML is not installed.
        UsageError: An option does not fit the document.

    Example:
        >>> found = openapi_tools({
        ...     "openapi": "3.1.0", "info": {"title": "Pets", "version": "1"},
        ...     "servers": [{"url": "https://pets.example.com"}],
        ...     "paths": {"/pets/{id}": {"get": {
        ...         "operationId": "getPet", "summary": "One pet.",
        ...         "parameters": [{"name": "id", "in": "path", "required": True,
        ...                         "schema": {"type": "integer"}}]}}}})
        >>> found.report.summary
        'Pets 1 (OpenAPI 3.1.0): 1 of 1 operations mapped'
        >>> found["getPet"].definition.signature.required
        ('id',)
    """
    opened = read_document(document, reference=reference)
    rules = policy or CallPolicy()
    importer = _Importer(
        opened=opened,
        server=server,
        prefix=prefix,
        headers=frozenset(map(str.lower, _several(header_arguments, "header_arguments"))),
    )
    check_auth(auth or {}, importer.schemes)
    http_client = HttpClient(
        client=client,
        auth=auth or {},
        policy=rules,
        public_only=importer.is_foreign,
        withheld_from=importer.withheld_from,
    )
    importer.run(_several(operations, "operations"), _several(tags, "tags"))
    tools = tuple(
        Tool(
            definition=definition,
            function=partial(http_client.call, plan),
            is_async=True,
            timeout_seconds=rules.timeout_seconds + 1.0,  # a little after the call gives up itself
        )
        for definition, plan in importer.mapped
    )
    return OpenApiTools(tools=tools, report=importer.report(), _client=http_client)


def _several(names: Iterable[str], option: str) -> frozenset[str]:
    if isinstance(names, str):
        raise UsageError(f"{option} is a collection, not one string; write {option}=({names!r},)")
    return frozenset(names)


@dataclass(kw_only=True)
class _Importer:
    """One import."""

    opened: OpenedDocument
    server: str | None
    prefix: str
    headers: frozenset[str]
    mapped: list[tuple[ToolDefinition, RequestPlan]] = field(default_factory=list)
    entries: list[OperationReport] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.root, reference = self.opened.root, self.opened.reference
        self.space = ReferenceSpace(self.root)
        self.schemes: dict[str, SecurityScheme] = read_schemes(self.space)
        self.budget = Budget(left=_FREE_SIZE + _EXPANSION * self.opened.size)
        self._names = Names()
        self._pool = SchemaPool(self.space, budget=self.budget)
        self.base = chosen_server(self.root.get("servers"), self.server, reference=reference)
        self.is_foreign = self.server is None and is_remote(reference)
        is_home = not (self.is_foreign and self.base) or same_origin(reference, self.base)
        self.withheld_from = "" if is_home else self.base

    def run(self, chosen: frozenset[str], tags: frozenset[str]) -> None:
        """Go through the operations.

        Args:
            chosen: Ids of operations, or their labels; empty for all.
            tags: One of which each operation must have; empty for no such condition.
        """
        unknown = set(chosen)
        for operation in operations_of(self.space):
            labels = {operation.operation_id or "", f"{operation.method} {operation.path}"}
            unknown -= labels
            is_named = bool(chosen & labels)
            if (chosen and not is_named) or (tags and tags.isdisjoint(operation.tags)):
                self._report(operation, "unselected", reason="not among the chosen operations")
            elif operation.fault:
                self._report(operation, "unusable", reason=operation.fault)
            elif operation.source.value.get("deprecated") is True and not is_named:
                reason = "deprecated; name it in operations= to include it anyway"
                self._report(operation, "deprecated", reason=reason)
            else:
                self._take(operation)
        if unknown:
            raise UsageError(
                f"the document has no operation {min(unknown)!r}; name operations by their "
                "operationId or as 'GET /path'"
            )

    def _take(self, operation: Operation) -> None:
        arguments = Arguments(pool=self._pool, headers=self.headers)
        try:
            self.budget.spend(_AN_OPERATION)
            operation_id, method, path = operation.operation_id, operation.method, operation.path
            base = tool_name(operation_id, method, path, prefix=self.prefix)
            name = self._names.take(base)
            if name != base:
                arguments.notes.append(f"another operation is {base!r}, so this one is {name!r}")
            self.mapped.append(self._map(operation, name, arguments))
        except Unmappable as error:
            self._report(operation, "unusable", reason=str(error))
        else:
            notes = tuple(arguments.notes)
            self._report(operation, "mapped", tool_name=name, notes=notes)

    def _map(
        self, operation: Operation, name: str, arguments: Arguments
    ) -> tuple[ToolDefinition, RequestPlan]:
        """One operation as what a model sees, and as the plan of its requests.

        Raises:
            Unmappable: Its requests cannot be made, or its arguments cannot be described.
        """
        self._check_address(operation)
        security = requirements_of(operation, self.root, self.schemes)
        secret = secret_parameters(security)
        parameters = read_parameters(operation, arguments, secret)
        body = read_body(operation, arguments)
        schema, texts = _contract(arguments)
        effects, operation_id = _EFFECTS[operation.method], operation.operation_id
        definition = ToolDefinition(
            name=name,
            signature=Signature(parameters=schema, effects=effects),
            description=Description(
                summary=_summary(operation, arguments),
                tags=operation.tags[:MAX_TAGS],
                parameters=texts,
            ),
            origin=Origin(
                kind="openapi",
                reference=f"{self.opened.reference}#{operation.source.pointer}",
                original_name=operation_id if operation_id and operation_id != name else None,
            ),
        )
        plan = RequestPlan(
            tool_name=name,
            method=operation.method,
            server=self.base,
            path=operation.path,
            parameters=parameters,
            body=body,
            security=security,
            secret=secret,
            repeatable=effects.idempotent is True,
        )
        return definition, plan

    def _check_address(self, operation: Operation) -> None:
        """Refuse an operation that is elsewhere than at its path below the API's server."""
        if leaves_its_path(operation.path):
            raise Unmappable("its path leads out of the server's own, by a segment of dots alone")
        if set(operation.path) & {"?", "#"}:
            raise Unmappable("its path holds a query or a fragment, which are parameters")
        if not operation.servers or self.server is not None:
            return  # a URL of the caller's own is meant for every call
        try:
            found = chosen_server(operation.servers, None, reference=self.opened.reference)
        except UsageError as error:
            raise Unmappable(str(error)) from error
        if found != self.base:
            raise Unmappable(
                f"it has a server of its own ({found:.200}); import it apart, with "
                "operations= and server="
            )

    def _report(self, operation: Operation, status: OperationStatus, **more: Any) -> None:
        method, path, pointer = operation.method, operation.path, operation.source.pointer
        entry = OperationReport(method=method, path=path, pointer=pointer, status=status, **more)
        self.entries.append(entry)

    def report(self) -> OpenApiReport:
        """The outcome."""
        info = self.space.root.at("info").mapping
        if self.withheld_from:
            self.notes.append(
                f"calls go to {self.base}, which is not where the description came from: no "
                f"credentials are sent there without server={self.base!r}"
            )
        if not self.base:
            self.notes.append(
                "the document names no absolute server; calls need server='https://...'"
            )
        return OpenApiReport(
            title=str(info.get("title", ""))[:200],
            version=str(info.get("version", ""))[:200],
            openapi=str(self.root["openapi"]),
            reference=self.opened.reference,
            server=self.base,
            operations=tuple(self.entries),
            notes=tuple(self.notes),
        )


def _contract(arguments: Arguments) -> tuple[dict[str, Any], Mapping[str, str]]:
    """The parameters schema, and the words that were in it."""
    size = sum(one.size for one in arguments.converted)
    if size > MAX_OWN_SIZE:
        raise Unmappable(f"its parameters take {size:,} characters, over {MAX_OWN_SIZE:,}")
    definitions, cut = arguments.pool.closed(arguments.converted, budget=MAX_SIZE)
    if cut:
        arguments.notes.append(f"far schemas that allow anything: {', '.join(cut[:3])}")
    schema = arguments.schema(definitions)
    arguments.pool.check(schema, arguments.converted)
    return detach_descriptions(schema)


def _summary(operation: Operation, arguments: Arguments) -> str:
    sources = (operation.source.value.get(key) for key in ("summary", "description"))
    texts = [text[: 2 * MAX_SUMMARY].strip() for text in sources if isinstance(text, str)]
    text = "\n\n".join(dict.fromkeys(filter(None, texts)))
    if len(text) <= MAX_SUMMARY:
        return text or f"{operation.method} {operation.path[: MAX_SUMMARY // 2]}"
    arguments.notes.append(f"of the description {MAX_SUMMARY:,} characters are kept")
    return f"{text[: MAX_SUMMARY - 1].rsplit(maxsplit=1)[0]}…"

"""``openapi_tools``: an API description becomes tools, and a report of what could not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from agentkit.errors import UsageError
from agentkit.interop.openapi.calling import OperationCaller
from agentkit.interop.openapi.credentials import Credential, Credentials, Env
from agentkit.interop.openapi.documents import Document, read_document
from agentkit.interop.openapi.mapping import MappedOperation, Pools, map_operation
from agentkit.interop.openapi.parameters import free_name, tool_name
from agentkit.interop.openapi.plan import SecurityScheme
from agentkit.interop.openapi.public_addresses import chosen_server, is_remote, same_origin
from agentkit.interop.openapi.remote import (
    Operation,
    ReferenceSpace,
    RemoteReferences,
    Unmappable,
    operations_of,
)
from agentkit.interop.openapi.report import (
    OpenApiNote,
    OpenApiReport,
    OperationReport,
    OperationStatus,
)
from agentkit.interop.openapi.schemas import SchemaPool
from agentkit.interop.openapi.security import read_schemes, requirements_of
from agentkit.interop.openapi.sending import CallPolicy, Sender
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

if TYPE_CHECKING:
    import httpx


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
    _sender: Sender = field(repr=False, compare=False)

    async def close(self) -> None:
        """Close the connections of the running event loop; those of other loops end with them.

        Also done by ``async with``. A client of the caller's own is left open.
        """
        await self._sender.close()

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
        """What models see of the tools."""
        return tuple(tool.definition for tool in self.tools)


def openapi_tools(
    document: Document,
    *,
    server: str | int | None = None,
    server_variables: Mapping[str, str] | None = None,
    auth: Mapping[str, Credential] | None = None,
    headers: Mapping[str, str | Env] | None = None,
    prefix: str = "",
    operations: Iterable[str] = (),
    tags: Iterable[str] = (),
    include_deprecated: bool = False,
    remote: RemoteReferences | None = None,
    client: httpx.AsyncClient | None = None,
    policy: CallPolicy | None = None,
    reference: str = "",
) -> OpenApiTools:
    """Make tools of the operations of an OpenAPI 3.0, 3.1 or 3.2 description.

    An operation that can not be mapped is in the report with its reason; it never fails the others.

    Args:
        document: A path, a text (JSON, or YAML with the extra ``openapi``), or decoded data.
        server: The base URL of all calls, or the index among the document's servers; by default
            the first, and that of an operation which names its own.
        server_variables: Values of the variables in the URL of a server.
        auth: For each security scheme of the document the environment variable that holds the
            secret: ``{"api_key": Env("PETSTORE_KEY")}``. Read at each call.
        headers: Headers of every request, such as a version that the API wants.
        prefix: Comes before the name of every tool.
        operations: Only these: operation ids, or ``"GET /pets/{id}"``. Empty takes all.
        tags: Only operations with one of these tags. Empty takes all.
        include_deprecated: Whether deprecated operations become tools as well.
        remote: Leave to follow references into other documents; refused without.
        client: An ``httpx.AsyncClient`` to send through; the caller closes it. By default each
            event loop has one of our own, which keeps no cookies.
        policy: Timeouts, sizes and retries of calls.
        reference: File or URL that a text or data came from. The servers of a description from a
            public URL must have public addresses, unless ``server`` is a URL of the caller's; and
            credentials go to that URL's own host alone, unless the caller names another.

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
    space = ReferenceSpace(opened.root, base=opened.reference, remote=remote)
    notes: list[OpenApiNote] = []
    schemes = read_schemes(opened.root, space, notes)
    credentials = Credentials(auth=auth or {}, headers=headers or {}, schemes=schemes)
    importer = _Importer(
        root=opened.root,
        reference=opened.reference,
        space=space,
        schemes=schemes,
        server=server,
        variables=server_variables or {},
        hosts=frozenset(host.lower() for host in rules.credential_hosts),
        prefix=prefix,
        chosen=_Choice(operations=_several(operations, "operations"), tags=_several(tags, "tags")),
        include_deprecated=include_deprecated,
        notes=notes,
    )
    importer.run()
    sender = Sender(
        client=client,
        credentials=credentials,
        policy=rules,
        public_only=not isinstance(server, str) and is_remote(opened.reference),
    )
    tools = tuple(
        Tool(
            definition=mapped.definition,
            function=OperationCaller(plan=mapped.plan, sender=sender),
            is_async=True,
            timeout_seconds=sender.policy.longest_seconds,
        )
        for mapped in importer.mapped
    )
    return OpenApiTools(tools=tools, report=importer.report(), _sender=sender)


def _several(given: Iterable[str], option: str) -> frozenset[str]:
    if isinstance(given, str):
        raise UsageError(f"{option} is a collection, not one string; write {option}=({given!r},)")
    return frozenset(given)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Choice:
    """Which operations the caller wants."""

    operations: frozenset[str]
    tags: frozenset[str]

    def takes(self, operation: Operation) -> bool:
        labels = {operation.operation_id, f"{operation.method} {operation.path}"}
        named = not self.operations or bool(self.operations & labels)
        return named and (not self.tags or bool(self.tags.intersection(operation.tags)))


@dataclass(kw_only=True)
class _Importer:
    """One import."""

    root: Mapping[str, Any]
    reference: str
    space: ReferenceSpace
    schemes: Mapping[str, SecurityScheme]
    server: str | int | None
    variables: Mapping[str, str]
    hosts: frozenset[str]
    prefix: str
    chosen: _Choice
    include_deprecated: bool
    notes: list[OpenApiNote]
    mapped: list[MappedOperation] = field(default_factory=list)
    entries: list[OperationReport] = field(default_factory=list)
    base: str = ""
    _taken: set[str] = field(default_factory=set)
    _pools: Pools = field(init=False)

    def __post_init__(self) -> None:
        is_old = str(self.root["openapi"]).startswith("3.0")
        self._pools = Pools(
            request=SchemaPool(self.space, direction="request", is_old=is_old),
            response=SchemaPool(self.space, direction="response", is_old=is_old),
        )
        self.base = self._server(self.root.get("servers"), self.server)

    def _server(self, servers: object, choice: str | int | None) -> str:
        return chosen_server(
            servers, server=choice, variables=self.variables, reference=self.reference
        )

    def run(self) -> None:
        """Go through the operations."""
        seen: set[str] = set()
        for operation in operations_of(self.root, self.space):
            seen |= {operation.operation_id or "", f"{operation.method} {operation.path}"}
            self._take(operation)
        if unknown := sorted(self.chosen.operations - seen):
            raise UsageError(
                f"the document has no operation {unknown[0]!r}; name operations by their "
                "operationId or as 'GET /path'"
            )

    def _take(self, operation: Operation) -> None:
        if not self.chosen.takes(operation):
            self._report(operation, "unselected", reason="not among the chosen operations")
        elif operation.fault:
            self._report(operation, "unusable", reason=operation.fault)
        elif operation.body.get("deprecated") is True and not self.include_deprecated:
            self._report(
                operation, "deprecated", reason="deprecated; include_deprecated=True takes it"
            )
        else:
            self._map(operation)

    def _map(self, operation: Operation) -> None:
        wanted = tool_name(
            operation.operation_id, operation.method, operation.path, prefix=self.prefix
        )
        name = free_name(wanted, self._taken)
        try:
            server = self._own_server(operation)
            found = map_operation(
                operation,
                self._pools,
                name=name,
                server=server,
                is_known=self._is_known(server),
                security=requirements_of(operation, self.root, self.schemes),
                reference=self.reference,
            )
        except Unmappable as error:
            note = OpenApiNote(pointer=error.pointer, code="unusable", message=error.message)
            self._report(operation, "unusable", reason=error.message, notes=(note,))
            return
        self._taken.add(name)
        self.mapped.append(found)
        notes = found.notes
        if name != wanted:
            message = f"another operation is named {wanted!r}, so this one is {name!r}"
            renamed = OpenApiNote(pointer=operation.pointer, code="name_taken", message=message)
            notes = (renamed, *notes)
        self._report(operation, "mapped", tool=name, notes=notes)

    def _own_server(self, operation: Operation) -> str:
        if not operation.servers or isinstance(self.server, str):
            return self.base  # a URL of the caller's own is meant for every call
        try:
            return self._server(operation.servers, None) or self.base
        except UsageError as error:
            raise Unmappable(str(error), pointer=operation.pointer) from error

    def _is_known(self, server: str) -> bool:
        """Whether credentials may go to a server: the caller named it, or it is the document's.

        A document from a public URL could name any server as its own, so that only the one it came
        from is.
        """
        if isinstance(self.server, str) or urlsplit(server).netloc.lower() in self.hosts:
            return True
        is_chosen = self.server is not None or not is_remote(self.reference)
        home = self.base if is_chosen else self.reference
        return not server or (home != "" and same_origin(home, server))

    def _report(
        self,
        operation: Operation,
        status: OperationStatus,
        *,
        reason: str = "",
        tool: str | None = None,
        notes: tuple[OpenApiNote, ...] = (),
    ) -> None:
        entry = OperationReport(
            method=operation.method,
            path=operation.path,
            pointer=operation.pointer,
            status=status,
            operation_id=operation.operation_id,
            tool_name=tool,
            reason=reason,
            notes=notes,
        )
        self.entries.append(entry)

    def report(self) -> OpenApiReport:
        """What came of it."""
        info = self.root.get("info")
        told: Mapping[str, Any] = info if isinstance(info, Mapping) else {}
        notes = [*self.notes, *self._pools.request.notes, *self._pools.response.notes]
        if hooks := self.root.get("webhooks"):
            message = f"{len(hooks)} webhooks are requests that the API makes; they are not mapped"
            notes.append(
                OpenApiNote(pointer="/webhooks", code="webhooks_not_mapped", message=message)
            )
        notes += self._elsewhere()
        if not self.base:
            message = "the document names no absolute server; calls need server='https://...'"
            notes.append(OpenApiNote(pointer="/servers", code="no_server", message=message))
        return OpenApiReport(
            title=str(told.get("title", "")),
            version=str(told.get("version", "")),
            openapi=str(self.root["openapi"]),
            reference=self.reference,
            server=self.base,
            operations=tuple(self.entries),
            notes=tuple(dict.fromkeys(notes)),
            security={name: scheme.told for name, scheme in self.schemes.items()},
        )

    def _elsewhere(self) -> Iterator[OpenApiNote]:
        """Where operations lead that get no credentials."""
        plans = (mapped.plan for mapped in self.mapped)
        counts = Counter(plan.server for plan in plans if not plan.is_known)
        for server, count in counts.items():
            told = "1 operation goes" if count == 1 else f"{count:,} operations go"
            message = (
                f"{told} to {server}, which the description names: no credentials are sent there, "
                f"unless CallPolicy(credential_hosts=({urlsplit(server).netloc!r},)) lets them"
            )
            yield OpenApiNote(pointer="/servers", code="other_server", message=message)

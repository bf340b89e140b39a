"""``openapi_tools``: an API description becomes tools, and a report of what could not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from agentkit.errors import DefinitionError, UsageError
from agentkit.interop.openapi.arguments import (
    Arguments,
    free_name,
    read_body,
    read_parameters,
    tool_name,
)
from agentkit.interop.openapi.credentials import (
    Credential,
    Credentials,
    Env,
    SecurityScheme,
    read_schemes,
    requirements_of,
    secret_parameters,
)
from agentkit.interop.openapi.documents import (
    Document,
    Operation,
    ReferenceSpace,
    RemoteReferences,
    Unmappable,
    below,
    operations_of,
    read_document,
)
from agentkit.interop.openapi.http_client import CallPolicy, HttpClient
from agentkit.interop.openapi.public_addresses import chosen_server, is_remote, same_origin
from agentkit.interop.openapi.report import (
    Notes,
    OpenApiNote,
    OpenApiReport,
    OperationReport,
    OperationStatus,
)
from agentkit.interop.openapi.requests import Field, RequestPlan, kind_of
from agentkit.interop.openapi.schemas import SchemaPool
from agentkit.tools.definition import Description, Effects, Origin, Signature, ToolDefinition
from agentkit.tools.schema import check_bounds, detach_descriptions, inline_root, resolve_local
from agentkit.tools.tool import Tool

if TYPE_CHECKING:
    import httpx

MAX_SUMMARY = 1000
"""Longest text of a tool; some providers refuse more than 1,024 characters."""

MAX_SIZE = 12_000
"""Most characters of the schemas that the parameters of one tool refer to: some 3,000 tokens. A
model is shown them whenever it is shown the tool; without a bound it would be up to 37,000."""

MAX_RESULT_SCHEMA = 4_000
"""Most characters of the schemas that a result refers to; public APIs link all records."""

LARGE = 20_000
"""From how many characters on a tool's schema is worth a note: some 5,000 tokens."""

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

_CURSORS = (
    *("cursor", "page_token", "next_token", "continuation_token"),
    *("starting_after", "after", "marker", "start_cursor"),
)
_NUMBERS = ("page", "page_number", "offset", "skip", "start_index")
_SIZES = ("per_page", "page_size", "limit", "max_results", "page_limit", "count", "size", "top")
_NEXT = (
    *("next_cursor", "next_page_token", "next_token", "continuation_token"),
    *("end_cursor", "next_page", "next"),
)
_HOLDERS = ("meta", "pagination", "paging", "links", "response_metadata", "page_info", "_links")


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
    root, reference = read_document(document, reference=reference)
    rules = policy or CallPolicy()
    space = ReferenceSpace(root, base=reference, remote=remote)
    notes = Notes()
    schemes = read_schemes(space, notes)
    http_client = HttpClient(
        client=client,
        credentials=Credentials(auth=auth or {}, headers=headers or {}, schemes=schemes),
        policy=rules,
        public_only=not isinstance(server, str) and is_remote(reference),
    )
    importer = _Importer(
        root=root,
        reference=reference,
        space=space,
        schemes=schemes,
        server=server,
        variables=server_variables or {},
        hosts=frozenset(host.lower() for host in rules.credential_hosts),
        prefix=prefix,
        operations=_several(operations, "operations"),
        tags=_several(tags, "tags"),
        include_deprecated=include_deprecated,
        notes=notes,
    )
    importer.run()
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


def _several(given: Iterable[str], option: str) -> frozenset[str]:
    if isinstance(given, str):
        raise UsageError(f"{option} is a collection, not one string; write {option}=({given!r},)")
    return frozenset(given)


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
    operations: frozenset[str]
    tags: frozenset[str]
    include_deprecated: bool
    notes: Notes
    mapped: list[tuple[ToolDefinition, RequestPlan]] = field(default_factory=list)
    entries: list[OperationReport] = field(default_factory=list)
    base: str = ""
    _taken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        is_old = str(self.root["openapi"]).startswith("3.0")
        self._request = SchemaPool(self.space, direction="request", is_old=is_old)
        self._response = SchemaPool(self.space, direction="response", is_old=is_old)
        self.base = self._server(self.root.get("servers"), self.server)

    def _server(self, servers: object, choice: str | int | None) -> str:
        return chosen_server(
            servers, server=choice, variables=self.variables, reference=self.reference
        )

    def run(self) -> None:
        """Go through the operations."""
        seen: set[str] = set()
        for operation in operations_of(self.root, self.space):
            labels = {operation.operation_id or "", f"{operation.method} {operation.path}"}
            seen |= labels
            is_named = not self.operations or bool(self.operations & labels)
            if not is_named or (self.tags and self.tags.isdisjoint(operation.tags)):
                self._report(operation, "unselected", reason="not among the chosen operations")
            elif operation.fault:
                self._report(operation, "unusable", reason=operation.fault)
            elif operation.body.get("deprecated") is True and not self.include_deprecated:
                reason = "deprecated; include_deprecated=True takes it"
                self._report(operation, "deprecated", reason=reason)
            else:
                self._take(operation)
        if unknown := sorted(self.operations - seen):
            raise UsageError(
                f"the document has no operation {unknown[0]!r}; name operations by their "
                "operationId or as 'GET /path'"
            )

    def _take(self, operation: Operation) -> None:
        wanted = tool_name(
            operation.operation_id, operation.method, operation.path, prefix=self.prefix
        )
        name = free_name(wanted, self._taken)
        notes = Notes()
        if name != wanted:
            message = f"another operation is named {wanted!r}, so this one is {name!r}"
            notes.add("name_taken", message, operation.pointer)
        try:
            self.mapped.append(self._map(operation, name, notes))
        except Unmappable as error:
            note = OpenApiNote(pointer=error.pointer, code="unusable", message=error.message)
            self._report(operation, "unusable", reason=error.message, notes=[note])
        else:
            self._taken.add(name)
            self._report(operation, "mapped", tool=name, notes=notes)

    def _map(
        self, operation: Operation, name: str, notes: Notes
    ) -> tuple[ToolDefinition, RequestPlan]:
        """One operation as what a model sees, and as the plan of its requests.

        Raises:
            Unmappable: Its requests can not be made, or its arguments can not be described.
        """
        server = self._own_server(operation)
        security = requirements_of(operation, self.root, self.schemes)
        arguments = Arguments(pool=self._request, notes=notes)
        parameters = read_parameters(operation, arguments, secret_parameters(security))
        body = read_body(operation, arguments)
        schema, texts = _contract(operation, arguments)
        result, accept = read_answer(operation, self._response, notes)
        try:
            check_bounds(schema)
            check_bounds(result or {})
        except DefinitionError as error:
            raise Unmappable(str(error), pointer=operation.pointer) from error
        effects, given = _EFFECTS[operation.method], operation.operation_id
        rule = paging_rule(parameters, result)
        definition = ToolDefinition(
            name=name,
            signature=Signature(parameters=schema, result=result, effects=effects),
            description=Description(
                summary=_summary(operation, arguments),
                tags=operation.tags,
                parameters=texts,
                usage_rules=(rule,) if rule else (),
            ),
            origin=Origin(
                kind="openapi",
                reference=f"{self.reference}#{operation.pointer}",
                original_name=given if given and given != name else None,
            ),
        )
        if operation.body.get("callbacks"):
            message = "callbacks are requests that the API makes; they are not mapped"
            at = below(operation.pointer, "callbacks")
            notes.add("callbacks_not_mapped", message, at)
        plan = RequestPlan(
            tool_name=name,
            method=operation.method,
            server=server,
            path=operation.path.partition("#")[0],
            parameters=parameters,
            body=body,
            accept=accept,
            security=security,
            repeatable=effects.idempotent is True,
            is_known=self._is_known(server),
        )
        return definition, plan

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
        notes: Iterable[OpenApiNote] = (),
    ) -> None:
        entry = OperationReport(
            method=operation.method,
            path=operation.path,
            pointer=operation.pointer,
            status=status,
            operation_id=operation.operation_id,
            tool_name=tool,
            reason=reason,
            notes=tuple(notes),
        )
        self.entries.append(entry)

    def report(self) -> OpenApiReport:
        """What came of it."""
        info = self.root.get("info")
        told: Mapping[str, Any] = info if isinstance(info, Mapping) else {}
        notes = Notes([*self.notes, *self._request.notes, *self._response.notes])
        if hooks := self.root.get("webhooks"):
            message = f"{len(hooks)} webhooks are requests that the API makes; they are not mapped"
            notes.add("webhooks_not_mapped", message, "/webhooks")
        self._note_elsewhere(notes)
        if not self.base:
            message = "the document names no absolute server; calls need server='https://...'"
            notes.add("no_server", message, "/servers")
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

    def _note_elsewhere(self, notes: Notes) -> None:
        """Where operations lead that get no credentials."""
        counts = Counter(plan.server for _, plan in self.mapped if not plan.is_known)
        for server, count in counts.items():
            told = "1 operation goes" if count == 1 else f"{count:,} operations go"
            message = (
                f"{told} to {server}, which the description names: no credentials are sent there, "
                f"unless CallPolicy(credential_hosts=({urlsplit(server).netloc!r},)) lets them"
            )
            notes.add("other_server", message, "/servers")


def _contract(
    operation: Operation, arguments: Arguments
) -> tuple[dict[str, Any], Mapping[str, str]]:
    """The parameters schema, and the words that were in it."""
    definitions, cut = arguments.pool.closed(arguments.names, budget=MAX_SIZE, strict=True)
    if cut:
        message = f"far schemas that allow anything: {cut}"
        arguments.notes.add("parameters_cut", message, operation.pointer)
    bare, texts = detach_descriptions(arguments.schema(definitions))
    size = len(json.dumps(bare)) + sum(map(len, texts.values()))
    if size >= LARGE:
        message = (
            f"the parameters take {size:,} characters, some {size // 4:,} tokens whenever a model "
            "is shown the tool"
        )
        arguments.notes.add("large_parameters", message, operation.pointer)
    return bare, texts


def _summary(operation: Operation, arguments: Arguments) -> str:
    given = (operation.body.get(key) for key in ("summary", "description"))
    texts = [text.strip() for text in given if isinstance(text, str) and text.strip()]
    text = "\n\n".join(dict.fromkeys(texts)) or f"{operation.method} {operation.path}"
    if len(text) <= MAX_SUMMARY:
        return text
    message = f"the description has {len(text):,} characters, {MAX_SUMMARY:,} are kept"
    arguments.notes.add("description_shortened", message, operation.pointer)
    return f"{text[: MAX_SUMMARY - 1].rsplit(maxsplit=1)[0]}…"


def read_answer(
    operation: Operation, pool: SchemaPool, notes: Notes
) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """The schema of the first success that is JSON, and the media types of successes, JSON first.

    What is wrong with answers is a note: then the result stays undeclared.
    """
    schema: dict[str, Any] | None = None
    accept: list[str] = []
    given = operation.source.at("responses")
    codes = given.value if isinstance(given.value, Mapping) else {}
    successes = sorted(code for code in codes if code[:1] == "2" and len(code) == 3)
    for code in successes or [code for code in ("default",) if code in codes]:
        try:
            found = pool.space.followed(given.at(code)).at("content")
            content = found.value if isinstance(found.value, Mapping) else {}
            types = sorted(content, key=lambda name: kind_of(name) != "json")
            accept += types
            media = found.at(*types[:1], "schema")
            if schema is not None or media.value is None or kind_of(types[0]) != "json":
                continue
            converted = pool.convert(media)
        except Unmappable as error:
            message = f"the result stays undeclared: {error.message}"
            notes.add("result_undeclared", message, error.pointer)
            continue
        definitions, cut = pool.closed(converted.names, budget=MAX_RESULT_SCHEMA, strict=False)
        if cut:
            message = f"far or unusable schemas that allow anything: {cut}"
            notes.add("result_cut", message, media.pointer)
        schema = converted.schema or None
        if schema and definitions:
            schema = inline_root({**schema, "$defs": definitions})
    return schema, tuple(dict.fromkeys(accept))


def paging_rule(parameters: Iterable[Field], result: Mapping[str, Any] | None) -> str:
    """How an operation hands out its results in pages, as far as its names tell; empty for not.

    Args:
        parameters: Its parameters; those of the query count.
        result: The schema of its result.
    """
    by_name = {_plain(each.name): each.argument for each in parameters if each.location == "query"}
    cursor, size = _first(_CURSORS, by_name), _first(_SIZES, by_name)
    parameter = cursor or _first(_NUMBERS, by_name)
    if not parameter:
        return ""
    following = _next_field(result) if cursor and result else ""
    if following:
        told = f"pass the `{following}` of an answer as `{parameter}`"
    elif cursor:
        told = f"pass as `{parameter}` what an answer names as the place to go on from"
    else:
        told = f"raise `{parameter}`"
    held = f"; `{size}` sets how much a page holds" if size else ""
    return f"Results come in pages: {told} to get the next one{held}."


def _plain(name: str) -> str:
    """``pageToken``, ``page-token`` and ``page[token]`` as ``page_token``."""
    spaced = "".join(f"_{char.lower()}" if char.isupper() else char for char in name)
    spaced = "".join(char if char.isalnum() else "_" for char in spaced)
    return "_".join(part for part in spaced.split("_") if part)


def _first(names: Iterable[str], by_name: Mapping[str, str]) -> str:
    return next((by_name[name] for name in names if name in by_name), "")


def _next_field(result: Mapping[str, Any]) -> str:
    """The dotted path in a result of what leads to the next page; empty where none is seen."""
    fields = _properties(result, result)
    holders = {name: part for name, part in fields.items() if _plain(name) in _HOLDERS}
    for holder, inside in [
        ("", fields),
        *((h, _properties(p, result)) for h, p in holders.items()),
    ]:
        found = _first(_NEXT, {_plain(name): name for name in inside})
        if found:
            return f"{holder}.{found}" if holder else found
    return ""


def _properties(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str):
        schema = resolve_local(root, schema["$ref"])
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return found if isinstance(found, Mapping) else {}

"""The JSON form of an artifact: its sections, their digests, and back.

Digests are SHA-256 over canonical JSON (RFC 8785), as everywhere in agentkit. There is one for
each tool, one for each section and one over all of them, which is what a signature signs. So a
changed file is found out, and where it was changed; that whoever changed it made no new digests
is shown by a signature alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

from agentkit.errors import AgentKitError, ArtifactError
from agentkit.export.artifact import (
    FORMAT_VERSION,
    Artifact,
    ArtifactChange,
    dag_of,
)
from agentkit.export.evidence import GateEvidence
from agentkit.library.chain_faults import verify_chain
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.tools.canonical import digest
from agentkit.tools.definition import ToolDefinition

FORMAT_KEY = "agentkit_artifact"
"""The first key of an artifact, by which it is recognised; its value is the format version."""

SECTIONS = ("library", "dag", "licences", "evidence", "changes", "events")
_KEYS = (FORMAT_KEY, "made_with", *SECTIONS, "digests", "signature")


def to_record(artifact: Artifact) -> dict[str, Any]:
    """The artifact as a JSON object, with its digests.

    Raises:
        ArtifactError: It holds what JSON can not.
    """
    held = {one.name: one for one in artifact.library.definitions}
    sections: dict[str, Any] = {
        "library": {
            "version": artifact.library.version,
            "digest": artifact.library.digest,
            "definitions": [definition.to_json() for definition in held.values()],
        },
        "dag": artifact.dag,
        "licences": {licence: list(names) for licence, names in artifact.licences.items()},
        "evidence": [one.to_json() for one in artifact.evidence],
        "changes": [_change_to_record(change, held) for change in artifact.changes],
        "events": [event.to_json() for event in artifact.events],
    }
    head = {FORMAT_KEY: FORMAT_VERSION, "made_with": artifact.made_with}
    try:
        digests = {name: digest(section) for name, section in sections.items()}
        content = digest({**head, "sections": digests})
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"the library can not be written: {error}") from error
    tools = {name: definition.digest for name, definition in held.items()}
    told = {"content": content, "sections": digests, "tools": tools}
    record = {**head, **sections, "digests": told}
    return record | ({"signature": artifact.signature} if artifact.signature else {})


def from_record(record: Mapping[str, Any], *, expected: str = "") -> Artifact:
    """The inverse of ``to_record``; every digest is worked out anew.

    Args:
        record: The JSON object.
        expected: The digest of the content, where it is known from elsewhere.

    Raises:
        ArtifactError: It is no artifact, of a newer format, or not what its digests say.
    """
    _check_outline(record)
    told = record["digests"]
    library = _library(record["library"], told["tools"])
    _check_sections(record, told)
    content = told["content"]
    if expected and content != expected:
        _tampered("digests.content", expected, content)
    try:
        artifact = Artifact(
            library=library,
            changes=tuple(_changes(record["changes"], library)),
            events=tuple(map(LibraryEvent.from_json, record["events"])),
            evidence=tuple(map(GateEvidence.from_json, record["evidence"])),
            made_with=record["made_with"],
            signature=record.get("signature", ""),
        )
    except ArtifactError:
        raise
    except AgentKitError as error:
        raise ArtifactError(f"the artifact can not be read: {error}") from error
    _check_agreement(artifact, record)
    return artifact


def content_digest(record: Mapping[str, Any]) -> str:
    """The digest over everything but the signature, as the record tells it."""
    told: str = record["digests"]["content"]
    return told


def _change_to_record(change: ArtifactChange, held: Mapping[str, ToolDefinition]) -> dict[str, Any]:
    """A change; a definition that the library holds as it is stands there, and not again."""
    upserts: list[dict[str, Any]] = []
    for definition in change.upserts:
        entry: dict[str, Any] = {"name": definition.name, "digest": definition.digest}
        if not _is_same(definition, held.get(definition.name)):
            entry["definition"] = definition.to_json()
        upserts.append(entry)
    record: dict[str, Any] = {
        "version": change.version,
        "proposal_id": change.proposal_id,
        "author": change.author,
        "reason": change.reason,
        "evidence": list(change.evidence),
        "created_at": change.created_at,
        "upserts": upserts,
        "removals": list(change.removals),
    }
    return {name: value for name, value in record.items() if value not in ("", [])}


def _is_same(one: ToolDefinition, other: ToolDefinition | None) -> bool:
    """Whether two definitions are equal in everything, also in where they came from."""
    return other is not None and (other is one or (other == one and other.origin == one.origin))


def _check_outline(record: Mapping[str, Any]) -> None:
    form = record.get(FORMAT_KEY)
    if type(form) is not int or form < 1:
        raise ArtifactError(
            f"this is no artifact of agentkit: it has no {FORMAT_KEY!r}; 'agentkit export' "
            "makes one, and 'agentkit tools import' reads other files of tools"
        )
    if form > FORMAT_VERSION:
        raise ArtifactError(
            f"the artifact has format {form}, this agentkit reads up to {FORMAT_VERSION}; "
            "upgrade agentkit-evolve",
            place=FORMAT_KEY,
        )
    unknown = sorted(record.keys() - set(_KEYS))
    if unknown:
        raise ArtifactError(
            f"the artifact holds {', '.join(map(repr, unknown))}, which format {form} does not "
            "have and no digest covers; it was changed after it was written",
            place=unknown[0],
        )
    shapes: dict[str, type] = dict.fromkeys(("library", "dag", "licences", "digests"), dict)
    shapes |= dict.fromkeys(("evidence", "changes", "events"), list) | {"made_with": str}
    for name, kind in shapes.items():
        _expect(record, name, kind, name)
    _expect(record["digests"], "content", str, "digests.content")
    for name in ("sections", "tools"):
        _expect(record["digests"], name, dict, f"digests.{name}")
    if not isinstance(record.get("signature", ""), str):
        raise ArtifactError("the artifact's signature is no text", place="signature")


def _expect(record: Mapping[str, Any], name: str, kind: type, place: str) -> None:
    if not isinstance(record.get(name), kind):
        found = "is missing" if name not in record else f"is {type(record[name]).__name__}"
        raise ArtifactError(
            f"the artifact is damaged: {place} {found}; export it anew", place=place
        )


def _library(section: Mapping[str, Any], told: Mapping[str, Any]) -> Library:
    for name, kind in (("version", int), ("digest", str), ("definitions", list)):
        _expect(section, name, kind, f"library.{name}")
    if type(section["version"]) is not int or section["version"] < 0:
        raise ArtifactError("library.version is no version", place="library.version")
    found: dict[str, ToolDefinition] = {}
    for index, entry in enumerate(section["definitions"]):
        place = f"library.definitions[{index}]"
        definition = _definition(entry, place)
        if definition.name in found:
            raise ArtifactError(f"{place}: a second tool named {definition.name!r}", place=place)
        if definition.digest != told.get(definition.name):
            wanted = told.get(definition.name, "none")
            _tampered(f"{place} ({definition.name!r})", wanted, definition.digest)
        found[definition.name] = definition
    if missing := sorted(told.keys() - found.keys()):
        raise ArtifactError(
            f"the artifact lacks {', '.join(map(repr, missing[:5]))}, whose digests it lists; it "
            "was changed after it was written",
            place="library.definitions",
        )
    library = Library(found.values(), version=section["version"])
    if library.digest != section["digest"]:
        _tampered("library.digest", section["digest"], library.digest)
    return library


def _definition(entry: Any, place: str) -> ToolDefinition:
    try:
        definition = ToolDefinition.from_json(entry)
        _check_words(definition)
        _ = definition.digest
    except (AgentKitError, AttributeError, TypeError, ValueError, RecursionError) as error:
        raise ArtifactError(f"{place} is no tool definition: {error}", place=place) from error
    return definition


def _check_words(definition: ToolDefinition) -> None:
    """Refuse what reading lets pass, and what would fail in the middle of something else."""
    said, told = definition.description, definition.specification
    texts = (definition.name, said.summary, told.complexity, *said.tags, *said.usage_rules)
    more = (*said.parameters.values(), *told.pre, *told.post, *told.text)
    if not all(isinstance(text, str) for text in (*texts, *more)):
        raise TypeError("what should be text is not")
    signature = definition.signature
    schemas = (signature.parameters, {} if signature.result is None else signature.result)
    if not all(isinstance(schema, dict) for schema in schemas):
        raise TypeError("a schema is no object")


def _check_sections(record: Mapping[str, Any], told: Mapping[str, Any]) -> None:
    actual: dict[str, str] = {}
    for name in SECTIONS:
        try:
            actual[name] = digest(record[name])
        except (ValueError, RecursionError) as error:
            raise ArtifactError(f"{name} is no JSON data: {error}", place=name) from error
        if actual[name] != told["sections"].get(name):
            _tampered(name, told["sections"].get(name, "none"), actual[name])
    head = {FORMAT_KEY: record[FORMAT_KEY], "made_with": record["made_with"]}
    content = digest({**head, "sections": actual})
    if content != told["content"]:
        _tampered("digests.content", told["content"], content)


def _changes(records: Sequence[Any], library: Library) -> Iterator[ArtifactChange]:
    for index, record in enumerate(records):
        place = f"changes[{index}]"
        try:
            kept = {key: value for key, value in record.items() if key != "upserts"}
            upserts = [
                _upsert(entry, library, f"{place}.upserts[{at}]")
                for at, entry in enumerate(record.get("upserts", ()))
            ]
            removals, evidence = (tuple(kept.pop(name, ())) for name in ("removals", "evidence"))
            yield ArtifactChange(
                upserts=tuple(upserts), removals=removals, evidence=evidence, **kept
            )
        except (AttributeError, KeyError, TypeError) as error:
            raise ArtifactError(f"{place} is no change: {error}", place=place) from error


def _upsert(entry: Mapping[str, Any], library: Library, place: str) -> ToolDefinition:
    name, wanted = entry["name"], entry["digest"]
    if "definition" in entry:
        definition = _definition(entry["definition"], place)
    else:
        tool = library.get(name)
        if tool is None:
            raise ArtifactError(f"{place}: the library has no {name!r}", place=place)
        definition = tool.definition
    if (definition.name, definition.digest) != (name, wanted):
        _tampered(f"{place} ({name!r})", str(wanted), definition.digest)
    return definition


def _check_agreement(artifact: Artifact, record: Mapping[str, Any]) -> None:
    """The parts that follow from others say the same as these."""
    faults = [one for one in verify_chain(artifact.events) if not one.is_note]
    if faults:
        raise ArtifactError(f"the chain of events is broken: {faults[0].message}", place="events")
    if dag_of(artifact.library) != record["dag"]:
        raise ArtifactError(
            "the DAG is not the one of the definitions; export the library anew", place="dag"
        )
    replayed: dict[str, str] = {}
    last = 0
    for index, change in enumerate(artifact.changes):
        if type(change.version) is not int or change.version <= last:
            place = f"changes[{index}]"
            raise ArtifactError(f"{place} is out of order (version {change.version})", place=place)
        last = change.version
        for name in change.removals:
            replayed.pop(name, None)
        replayed |= {one.name: one.digest for one in change.upserts}
    if replayed != {one.name: one.digest for one in artifact.library.definitions}:
        raise ArtifactError(
            "the changes do not come to the library that the artifact holds", place="changes"
        )


def _tampered(place: str, told: str, actual: str) -> NoReturn:
    raise ArtifactError(
        f"the artifact was changed after it was written: {place} has digest {actual[:12]}, and "
        f"{str(told)[:12]} is what it says; get it again from where it came",
        place=place,
    )

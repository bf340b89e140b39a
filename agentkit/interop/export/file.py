"""Artifacts in files: one JSON document, an entry a line, the same bytes for the same content."""

from __future__ import annotations

import gzip
import json
import os
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from agentkit.errors import AgentKitError, ArtifactError, ReadingLimitError, ToolNotFoundError
from agentkit.interop.export.artifact import FORMAT_VERSION, Artifact
from agentkit.library.chain import verify_chain
from agentkit.library.events import LibraryEvent, Signer, Verifier
from agentkit.library.library import Library
from agentkit.library.store import AppliedChange, LibraryChange
from agentkit.reading import MOST_OF_A_FILE, open_plain, read_once, read_stored, unpacked
from agentkit.tools.canonical import digest, is_json
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.schema_validator import StepBudget, schema_errors
from agentkit.tools.sources.json_records import record_faults

FORMAT_KEY = "agentkit_artifact"
"""The first key of an artifact, by which it is recognised; its value is the format version."""

SECTIONS = ("library", "dag", "licences", "evidence", "changes", "events")


def to_record(artifact: Artifact) -> dict[str, Any]:
    """The artifact as a JSON object, with its digests.

    Raises:
        ArtifactError: It holds what JSON cannot.
    """
    held = {one.name: one for one in artifact.library.all_definitions}
    sections: dict[str, Any] = {
        "library": {
            "version": artifact.library.version,
            "digest": artifact.library.digest,
            "definitions": [definition.to_json() for definition in held.values()],
        },
        "dag": artifact.dag,
        "licences": {licence: list(names) for licence, names in artifact.licences.items()},
        "evidence": list(artifact.evidence),
        "changes": [_change_to_record(change, held) for change in artifact.changes],
        "events": [event.to_json() for event in artifact.events],
    }
    head = {FORMAT_KEY: FORMAT_VERSION, "made_with": artifact.made_with}
    try:
        digests = {name: digest(section) for name, section in sections.items()}
        content = digest({**head, "sections": digests})
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"the library cannot be written: {error}") from error
    tools = {name: definition.digest for name, definition in held.items()}
    digests_record = {"content": content, "sections": digests, "tools": tools}
    record = {**head, **sections, "digests": digests_record}
    return record | ({"signature": artifact.signature} if artifact.signature else {})


def from_record(record: Mapping[str, Any], *, expected: str = "") -> Artifact:
    """The inverse of ``to_record``.

    What was read is written again: each part, and each digest, has to be what the record says.

    Args:
        record: The JSON object.
        expected: The digest of the content, where it is known from elsewhere.

    Raises:
        ArtifactError: It is not an artifact, of a newer format, or not what its digests say.
    """
    _check_outline(record)
    library = _library(record["library"])
    try:
        artifact = Artifact(
            library=library,
            changes=tuple(_changes(record["changes"], library)),
            events=tuple(map(LibraryEvent.from_json, record["events"])),
            evidence=tuple(record["evidence"]),
            made_with=record["made_with"],
            signature=record.get("signature", ""),
        )
    except ArtifactError:
        raise
    except AgentKitError as error:
        raise ArtifactError(f"the artifact cannot be read: {error}") from error
    again = to_record(artifact)
    recorded, actual = record["digests"], again["digests"]
    places = {name: f"[{at}]" for at, name in enumerate(actual["tools"])}
    for name in (*places, *(recorded["tools"].keys() - places.keys())):
        at = places.get(name, "")
        known, found = recorded["tools"].get(name), actual["tools"].get(name)
        _compare(f"library.definitions{at} ({name!r})", known, found)
    for name in SECTIONS:
        _compare(name, recorded["sections"].get(name), actual["sections"][name])
        if record[name] != again[name]:
            said = digest(record[name]) if is_json(record[name]) else "no JSON"
            _compare(name, said, digest(again[name]))
    for content in (expected or recorded["content"], recorded["content"]):
        _compare("digests.content", content, actual["content"])
    _check_history(artifact)
    return artifact


def _compare(place: str, said: object, found: object) -> None:
    if said != found:
        raise ArtifactError(
            f"the artifact was changed after it was written: {place} has digest {found!s:.12}, and "
            f"{said!s:.12} is what it says; get it again from where it came",
            place=place,
        )


def _change_to_record(applied: AppliedChange, held: Mapping[str, ToolDefinition]) -> dict[str, Any]:
    """A change; a definition that the library holds as it is stands there, and not again."""
    change = applied.change
    upserts: list[dict[str, Any]] = []
    for definition in change.upserts:
        entry: dict[str, Any] = {"name": definition.name, "digest": definition.digest}
        if not _is_same(definition, held.get(definition.name)):
            entry["definition"] = definition.to_json()
        upserts.append(entry)
    record: dict[str, Any] = {
        "version": applied.version,
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
            f"this is not an artifact of agentkit: it has no {FORMAT_KEY!r}; 'agentkit export' "
            "makes one, and 'agentkit tools import' reads other files of tools"
        )
    if form > FORMAT_VERSION:
        raise ArtifactError(
            f"the artifact has format {form}, this agentkit reads up to {FORMAT_VERSION}; "
            "upgrade agentkit-evolve",
            place=FORMAT_KEY,
        )
    for error in schema_errors(record, _outline(), steps=StepBudget(sys.maxsize), limit=1):
        place = ".".join(map(str, (*error.path, *error.names[:1])))
        found = "is missing" if error.names else f"is {str(error.value)[:40]!r}"
        if error.keyword == "additionalProperties":
            found = f"is nothing that format {form} has, and no digest covers it"
        raise ArtifactError(
            f"the artifact is damaged: {place} {found}; export it again", place=place
        )


@cache
def _outline() -> Mapping[str, Any]:
    """The schema of an artifact, as far as its digests and readers do not say more."""
    text = Path(__file__).with_name("artifact.schema.json").read_text(encoding="utf-8")
    schema: Mapping[str, Any] = json.loads(text)
    return schema


def _library(section: Mapping[str, Any]) -> Library:
    found: dict[str, ToolDefinition] = {}
    for index, entry in enumerate(section["definitions"]):
        place = f"library.definitions[{index}]"
        definition = _definition(entry, place)
        if definition.name in found:
            raise ArtifactError(f"{place}: a second tool named {definition.name!r}", place=place)
        found[definition.name] = definition
    return Library(found.values(), version=int(section["version"]))


def _definition(entry: Any, place: str) -> ToolDefinition:
    try:
        definition = ToolDefinition.from_json(entry)
        faults = record_faults(entry)
        _ = definition.digest
    except (AgentKitError, AttributeError, TypeError, ValueError, RecursionError) as error:
        raise ArtifactError(f"{place} is not a tool definition: {error}", place=place) from error
    if faults:
        raise ArtifactError(f"{place} is not a tool definition: {faults[0]}", place=place)
    return definition


def _changes(records: Sequence[Any], library: Library) -> Iterator[AppliedChange]:
    for index, record in enumerate(records):
        place = f"changes[{index}]"
        try:
            upserts = [
                _definition(entry["definition"], place)
                if "definition" in entry
                else library[entry["name"]].definition
                for entry in record.get("upserts", ())
            ]
            version = record["version"]
            parts = {"proposal_id": f"restored-{version}", **record, "upserts": tuple(upserts)}
            parts |= {name: tuple(record.get(name, ())) for name in ("removals", "evidence")}
            del parts["version"]
            yield AppliedChange(version=version, change=LibraryChange(**parts))
        except (AttributeError, LookupError, TypeError, ToolNotFoundError) as error:
            raise ArtifactError(f"{place} is not a change: {error}", place=place) from error


def _check_history(artifact: Artifact) -> None:
    """The chain of events is whole, and the changes come to the library."""
    for fault in verify_chain(artifact.events):
        if not fault.is_note:
            raise ArtifactError(f"the chain of events is broken: {fault.message}", place="events")
    replayed: dict[str, str] = {}
    last = 0
    for index, applied in enumerate(artifact.changes):
        if type(applied.version) is not int or applied.version <= last:
            place = f"changes[{index}]"
            raise ArtifactError(f"{place} is out of order (version {applied.version})", place=place)
        last = applied.version
        for name in applied.change.removals:
            replayed.pop(name, None)
        replayed |= {one.name: one.digest for one in applied.change.upserts}
    if replayed != {one.name: one.digest for one in artifact.library.all_definitions}:
        raise ArtifactError(
            "the changes do not come to the library that the artifact holds", place="changes"
        )


_GZIP = b"\x1f\x8b"
_LISTED = frozenset({"definitions", "evidence", "changes", "events"})


def artifact_digest(artifact: Artifact) -> str:
    """SHA-256 of everything in an artifact but its signature."""
    content_digest: str = to_record(artifact)["digests"]["content"]
    return content_digest


def signed(artifact: Artifact, signer: Signer) -> Artifact:
    """The artifact with a signature of its content, such as with an ``HmacKey``.

    Keys are those of the audit trail, see ``agentkit.library.chain``. What is signed begins with
    a word of its own, so that no signature of an artifact serves as one of an event.
    """
    return replace(artifact, signature=signer.sign(_message(artifact_digest(artifact))))


def artifact_text(artifact: Artifact) -> str:
    """The artifact as the text of its file: ends with a line break, and holds no time of writing.

    Raises:
        ArtifactError: It holds what JSON in UTF-8 cannot, such as half a surrogate pair.
    """
    record = to_record(artifact)
    lines = [f"{_json(key)}: {''.join(_value(key, value))}" for key, value in record.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write_artifact(
    artifact: Artifact, path: str | os.PathLike[str], *, signer: Signer | None = None
) -> str:
    """Write an artifact into a file, whole or not at all.

    Args:
        artifact: What to write.
        path: The file; one that ends in ``.gz`` is compressed.
        signer: Signs it.

    Returns:
        The digest of its content, to be given to those who receive the file.

    Raises:
        ArtifactError: It holds what JSON cannot.
        OSError: The file cannot be written.
    """
    kept = artifact if signer is None else signed(artifact, signer)
    data = artifact_text(kept).encode()
    target = Path(path)
    if target.suffix == ".gz":
        data = gzip.compress(data, mtime=0)
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        draft.write_bytes(data)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
    return artifact_digest(kept)


def read_artifact(
    path: str | os.PathLike[str], *, verifier: Verifier | None = None, expected: str = ""
) -> Artifact:
    """The artifact in a file, plain or compressed; its digests are checked.

    Args:
        path: The file.
        verifier: Checks the signature, which then must be there. Without one it is not checked.
        expected: The digest of the content, where it is known from elsewhere.

    Raises:
        ArtifactError: The file is cut off, no artifact, of a newer format, changed after it was
            written, or not signed with that key.
        OSError: The file cannot be read.
    """
    try:
        with open_plain(path) as file:
            data = read_stored(file, most=MOST_OF_A_FILE)
        return parse_artifact(data, verifier=verifier, expected=expected)
    except ArtifactError as error:
        raise ArtifactError(f"{os.fspath(path)}: {error}", place=error.place) from error
    except ReadingLimitError as error:
        raise ArtifactError(f"{os.fspath(path)}: {error}") from error


def parse_artifact(
    data: bytes, *, verifier: Verifier | None = None, expected: str = ""
) -> Artifact:
    """The artifact in the bytes of a file; see ``read_artifact``."""
    record = _decoded(data)
    artifact = from_record(record, expected=expected)
    if verifier is not None:
        _check_signature(artifact.signature, record["digests"]["content"], verifier)
    return artifact


def _message(content: str) -> str:
    return f"artifact {content}"


def _check_signature(signature: str, content: str, verifier: Verifier) -> None:
    if not signature:
        raise ArtifactError("the artifact is not signed, and a key was given", place="signature")
    if not verifier.verify(_message(content), signature):
        raise ArtifactError(
            "the artifact's signature was made with another key, or for another content",
            place="signature",
        )


def _decoded(data: bytes) -> Mapping[str, Any]:
    try:
        plain = unpacked(data).decode("utf-8-sig")
        record = read_once(plain)
    except (OSError, EOFError, zlib.error) as error:
        raise ArtifactError(f"the compressed artifact is cut off or damaged: {error}") from error
    except ReadingLimitError as error:
        raise ArtifactError(f"this is not an artifact that agentkit reads: {error}") from error
    except UnicodeDecodeError as error:
        raise ArtifactError(f"this is not an artifact of agentkit: not UTF-8 ({error})") from error
    except ValueError as error:  # also a number of more digits than Python reads
        raise _broken(data, error) from error
    if not isinstance(record, dict):
        raise ArtifactError(f"this is not an artifact of agentkit: a JSON {type(record).__name__}")
    return record


def _broken(data: bytes, error: Exception) -> ArtifactError:
    if data.startswith(_GZIP) or f'"{FORMAT_KEY}"'.encode() in data[:200]:
        return ArtifactError(
            f"the artifact is cut off or damaged: {error}; get it again from where it came"
        )
    return ArtifactError(f"this is not an artifact of agentkit: not JSON ({error})")


def _value(key: str, value: Any) -> Iterator[str]:
    """A value on one line; lists of entries, and what holds one, an entry a line."""
    if key in _LISTED and value:
        yield "[\n" + ",\n".join(map(_json, value)) + "\n]"
    elif key == "library":
        inner = (f"{_json(name)}: {''.join(_value(name, part))}" for name, part in value.items())
        yield "{\n" + ",\n".join(inner) + "\n}"
    else:
        yield _json(value)


def _json(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ArtifactError(f"the artifact cannot be written: {error}") from error
    return text

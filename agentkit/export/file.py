"""Artifacts in files: one JSON document, an entry a line, the same bytes for the same content."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentkit.errors import ArtifactError, ReadingLimitError
from agentkit.export.artifact import Artifact
from agentkit.export.form import FORMAT_KEY, content_digest, from_record, to_record
from agentkit.library.chain import Signer, Verifier
from agentkit.reading import read_json, unpacked

_GZIP = b"\x1f\x8b"
_LISTED = frozenset({"definitions", "evidence", "changes", "events"})


def artifact_digest(artifact: Artifact) -> str:
    """SHA-256 of everything in an artifact but its signature."""
    return content_digest(to_record(artifact))


def signed(artifact: Artifact, signer: Signer) -> Artifact:
    """The artifact with a signature of its content, such as with an ``HmacKey``.

    Keys are those of the audit trail, see ``agentkit.library.signing``. What is signed begins with
    a word of its own, so that no signature of an artifact serves as one of an event.
    """
    return replace(artifact, signature=signer.sign(_message(artifact_digest(artifact))))


def artifact_text(artifact: Artifact) -> str:
    """The artifact as the text of its file: ends with a line break, and holds no time of writing.

    Raises:
        ArtifactError: It holds what JSON in UTF-8 can not, such as half a surrogate pair.
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
        The digest of its content, to be told to those who get the file.

    Raises:
        ArtifactError: It holds what JSON can not.
        OSError: The file can not be written.
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
        verifier: Checks the signature, which then must be there. Without one nobody looks at it.
        expected: The digest of the content, where it is known from elsewhere.

    Raises:
        ArtifactError: The file is cut off, no artifact, of a newer format, changed after it was
            written, or not signed with that key.
        OSError: The file can not be read.
    """
    data = Path(path).read_bytes()
    try:
        return parse_artifact(data, verifier=verifier, expected=expected)
    except ArtifactError as error:
        raise ArtifactError(f"{os.fspath(path)}: {error}", place=error.place) from error


def parse_artifact(
    data: bytes, *, verifier: Verifier | None = None, expected: str = ""
) -> Artifact:
    """The artifact in the bytes of a file; see ``read_artifact``."""
    record = _decoded(data)
    artifact = from_record(record, expected=expected)
    if verifier is not None:
        _check_signature(artifact.signature, content_digest(record), verifier)
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
        record = read_json(plain, decode=_STRICT.decode)
    except (OSError, EOFError, zlib.error) as error:
        raise ArtifactError(f"the compressed artifact is cut off or damaged: {error}") from error
    except ReadingLimitError as error:
        raise ArtifactError(f"this is no artifact that agentkit reads: {error}") from error
    except UnicodeDecodeError as error:
        raise ArtifactError(f"this is no artifact of agentkit: not UTF-8 ({error})") from error
    except ValueError as error:  # also a number of more digits than Python reads
        raise _broken(data, error) from error
    if not isinstance(record, dict):
        raise ArtifactError(f"this is no artifact of agentkit: a JSON {type(record).__name__}")
    return record


def _broken(data: bytes, error: Exception) -> ArtifactError:
    if data.startswith(_GZIP) or f'"{FORMAT_KEY}"'.encode() in data[:200]:
        return ArtifactError(
            f"the artifact is cut off or damaged: {error}; get it again from where it came"
        )
    return ArtifactError(f"this is no artifact of agentkit: not JSON ({error})")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without keys that come twice, of which a reviewer may have seen the other one."""
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ArtifactError(f"the artifact names {twice!r} twice in one object", place=twice)
    return found


_STRICT = json.JSONDecoder(object_pairs_hook=_object)


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
        raise ArtifactError(f"the artifact can not be written: {error}") from error
    return text

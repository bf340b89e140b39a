"""Arrays as bytes and back, without a copy on the way back."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ALIGNMENT = 16
_LENGTH = struct.Struct("<Q")


def pack_arrays(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Arrays by name as one string of bytes: a header of JSON, then the data.

    Example:
        >>> import numpy as np
        >>> blob = pack_arrays({"a": np.arange(3), "b": np.zeros((0, 2), np.float16)})
        >>> back = unpack_arrays(blob)
        >>> back["a"].tolist(), back["b"].shape
        ([0, 1, 2], (0, 2))
    """
    import numpy as np

    plain = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    header = json.dumps(
        [[name, array.dtype.str, list(array.shape)] for name, array in plain.items()]
    ).encode()
    parts = [_LENGTH.pack(len(header)), header]
    position = _LENGTH.size + len(header)
    for array in plain.values():
        padding = -position % _ALIGNMENT
        parts += [b"\0" * padding, array.tobytes()]
        position += padding + array.nbytes
    return b"".join(parts)


def unpack_arrays(blob: bytes) -> dict[str, NDArray[Any]]:
    """The inverse of ``pack_arrays``. The arrays are read-only views of ``blob``.

    Raises:
        ValueError: The bytes were not made by ``pack_arrays``.
    """
    import numpy as np

    try:
        (length,) = _LENGTH.unpack_from(blob)
        position = _LENGTH.size + length
        arrays = {}
        for name, kind, shape in json.loads(blob[_LENGTH.size : position]):
            position += -position % _ALIGNMENT
            dtype = np.dtype(kind)
            count = int(np.prod(shape, dtype=np.int64))
            arrays[name] = np.frombuffer(blob, dtype, count, position).reshape(shape)
            position += count * dtype.itemsize
    except (struct.error, UnicodeDecodeError, TypeError, ValueError) as error:
        raise ValueError(f"these bytes hold no packed arrays: {error}") from error
    return arrays

"""Whether adapters were trained over the weights of the GGUF file that they are to go with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agentkit_training.errors import ExportError
from agentkit_training.export.architecture import Architecture, open_gguf
from agentkit_training.export.weights import parameter_names, plain_name
from agentkit_training.policy.policy import Policy

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROUNDING = 2.0**-7  # a policy in bfloat16 has the file's numbers to eight bits


def check_trained_over(policy: Policy, source: Path) -> None:
    """Refuse adapters whose base is not what the file holds: tuned before, or another model.

    The first row of each matrix is compared, so that it takes seconds; tuning changes all
    of them. Numbers are taken for equal to the precision of bfloat16.

    Args:
        policy: Has adapters.
        source: The GGUF file of base weights.

    Raises:
        ExportError: The weights under the adapters are other ones; the message says what to do.
    """
    reader = open_gguf(source)
    base = Architecture.of_reader(reader, source)
    names = parameter_names(policy, base, source)
    for tensor in reader.tensors:
        name = names.get(tensor.name)
        if name is None:
            continue
        ours, theirs = _first_row(policy, name, base), _dequantised(tensor)
        if ours.shape != theirs.shape or not np.allclose(ours, theirs, rtol=_ROUNDING, atol=1e-6):
            raise ExportError(
                f"the adapter was not trained over the weights of {source}: {tensor.name!r} is "
                "another one under it, so that the two together would answer otherwise than the "
                "policy. Give the file that training began with; where all weights were tuned "
                "before the adapter, hand over merged(policy); if another precision of the same "
                "weights will do, pass other_base=True"
            )


def _first_row(policy: Policy, name: str, base: Architecture) -> NDArray[Any]:
    """Of a matrix; it is the first one in either order of rows. A vector is taken whole."""
    weight = policy.model.get_parameter(name).detach()
    if weight.ndim > 1:
        row: NDArray[Any] = weight[0].float().cpu().numpy()
        return row
    return base.laid_out(plain_name(name), weight.float().cpu().numpy())


def _dequantised(tensor: Any) -> NDArray[Any]:
    import gguf

    data = tensor.data[:1] if len(tensor.shape) > 1 else tensor.data
    plain: NDArray[Any] = gguf.quants.dequantize(data, tensor.tensor_type)
    return plain.reshape(-1)

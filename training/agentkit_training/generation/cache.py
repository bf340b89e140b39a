"""Room for the keys and values of tokens to come, so that a step copies none of the old ones.

The dynamic cache of transformers makes a new tensor for every token: with 32 rows of 500 tokens a
135M model copies 0.7 GB a step, about as much work as the step itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from transformers import DynamicCache

_ROOM = 64  # columns beyond those that are needed, at least


def make_room(cache: DynamicCache) -> None:
    """Let the cache grow in place. Layers that see a window only stay as they are: they are short.

    For decoding without gradients; a tensor that a gradient needs must not be written into.
    """
    from transformers.cache_utils import DynamicLayer

    for number, layer in enumerate(cache.layers):
        if type(layer) is DynamicLayer:
            cache.layers[number] = _roomy(layer)


def _roomy(layer: Any) -> Any:
    """A layer of the same content that writes into spare columns; transformers loads in here."""
    from transformers.cache_utils import DynamicLayer

    class RoomyLayer(DynamicLayer):  # type: ignore[misc]
        """Keys and values are the filled part of tensors that are longer."""

        keys: torch.Tensor
        values: torch.Tensor
        wholes: dict[str, torch.Tensor]

        def update(
            self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
        ) -> tuple[torch.Tensor, torch.Tensor]:
            self.keys = self._written("keys", self.keys, key_states)
            self.values = self._written("values", self.values, value_states)
            return self.keys, self.values

        def _written(self, name: str, old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
            filled, wanted = old.shape[-2], old.shape[-2] + new.shape[-2]
            whole = self.wholes.get(name)
            if whole is None or len(whole) != len(old) or whole.shape[-2] < wanted:
                size = wanted + max(_ROOM, filled // 4)
                whole = old.new_empty(*old.shape[:2], size, old.shape[-1])
                whole[:, :, :filled] = old
                self.wholes[name] = whole
            whole[:, :, filled:wanted] = new
            return whole[:, :, :wanted]

        def batch_select_indices(self, indices: torch.Tensor) -> None:
            super().batch_select_indices(indices)
            self.wholes.clear()

    roomy = RoomyLayer()
    roomy.__dict__.update(layer.__dict__)
    roomy.wholes = {}
    return roomy

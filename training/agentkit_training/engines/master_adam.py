"""``MasterAdam``: an AdamW for coarse weights, which small steps would not move.

A bfloat16 number has eight bits: near 0.05 its neighbours are 0.0002 away, and a step of 0.0001 is
rounded back to where it began. So masters are stepped, copies of the weights in float32, and a
weight is what its master rounds to. Masters refine weights and never override them: where a weight
is another than that, it was set from outside, by a checkpoint or by hand, and its master begins
anew from it.

Importing this module loads torch; it is done where an optimiser is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch


class MasterAdam(torch.optim.AdamW):
    """Steps float32 masters of coarse weights; weights in float32 it steps themselves.

    It reads the gradients of the weights it was given, and these hold the step afterwards, so that
    who clips or looks at either sees what it would see with AdamW. Its groups hold what is stepped.
    A closure, which would work out gradients in the midst of a step, is not for it.

    Args:
        parameters: What learns.
        settings: Those of AdamW.
    """

    def __init__(self, parameters: Iterable[torch.nn.Parameter], **settings: Any) -> None:
        self._own = list(parameters)
        super().__init__([_master(one) for one in self._own], **settings)
        # A step of our own around AdamW's would run the hooks of all optimisers twice.
        self.register_step_pre_hook(lambda *_: self._take_gradients())
        self.register_step_post_hook(lambda *_: self._hand_over())

    def zero_grad(self, set_to_none: bool = True) -> None:  # noqa: FBT001, FBT002 - as in torch
        """Let go of gradients, those of the weights as well.

        Args:
            set_to_none: They are let go of either way; filled with zeros they would only be held.
        """
        super().zero_grad()
        for own, _ in self._coarse():
            own.grad = None

    def state_dict(self) -> dict[str, Any]:
        """AdamW's, and what is stepped as ``masters``, as a sharded run saves it."""
        return super().state_dict() | {"masters": [one.detach() for one in self._stepped()]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a state; without ``masters`` in it, from the weights as they are.

        Args:
            state_dict: What this or an AdamW gave. Masters count where a weight is what they round
                to, which is looked at when a step is taken.

        Raises:
            ValueError: It is of other weights.
            RuntimeError: The same, told by a shape.
        """
        super().load_state_dict(state_dict)
        if saved := state_dict.get("masters"):
            places = zip(self._own, self._stepped(), saved, strict=True)
            with torch.no_grad():
                for own, master, one in places:
                    if own is not master:
                        master.copy_(one)

    def _stepped(self) -> Iterator[torch.Tensor]:
        for group in self.param_groups:
            yield from group["params"]

    def _coarse(self) -> Iterator[tuple[torch.nn.Parameter, torch.Tensor]]:
        """Each coarse weight and its master."""
        for own, master in zip(self._own, self._stepped(), strict=True):
            if own is not master:
                yield own, master

    @torch.no_grad()
    def _take_gradients(self) -> None:
        """Give gradients to masters, and let those of weights go one by one to spare memory."""
        for own, master in self._coarse():
            if own.grad is not None:
                is_set = master.to(own.dtype) != own  # from outside; no number is among them
                torch.where(is_set, own, master, out=master)
                master.grad = own.grad.float()
                own.grad = None

    @torch.no_grad()
    def _hand_over(self) -> None:
        """Round masters that took a step into the weights; others may have been set meanwhile."""
        for own, master in self._coarse():
            if master.grad is not None:
                own.copy_(master)
                master.grad = None


def is_coarse(weight: torch.Tensor) -> bool:
    """Whether a weight has fewer bits than float32, so that small steps are lost in it."""
    return weight.is_floating_point() and weight.element_size() < torch.float32.itemsize


def _master(weight: torch.nn.Parameter) -> torch.Tensor:
    return weight.detach().float().requires_grad_() if is_coarse(weight) else weight

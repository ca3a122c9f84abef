"""The processes that ``torchrun`` starts to train one network together.

    with joined("cuda") as device:                 # torchrun --nproc-per-node 8 script.py
        train(model, data.train, recipe, seed=0, device=device)

Without ``torchrun`` the same lines run in one process.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as distributed
from torch import Tensor


@dataclass(frozen=True)
class Processes:
    """This process among ``count``; number 0 is the one that writes."""

    rank: int = 0
    count: int = 1

    def add(self, tensors: Sequence[Tensor]) -> None:
        """Puts the sum over all processes into each of ``tensors``, by a single exchange."""
        if self.count == 1 or not tensors:
            return
        joint = torch.cat([tensor.reshape(-1) for tensor in tensors])
        distributed.all_reduce(joint)
        totals = torch.split(joint, [tensor.numel() for tensor in tensors])
        for tensor, total in zip(tensors, totals, strict=True):
            tensor.copy_(total.view(tensor.shape))

    def copy(self, tensors: Sequence[Tensor]) -> None:
        """Gives all processes the values that process 0 has in ``tensors``."""
        if self.count > 1:
            for tensor in tensors:
                held = tensor.detach()  # the same memory, without a parameter's gradient
                joint = held.contiguous()
                distributed.broadcast(joint, src=0)
                held.copy_(joint)


def current() -> Processes:
    """The processes that this one has joined, or it alone."""
    if distributed.is_available() and distributed.is_initialized():
        return Processes(distributed.get_rank(), distributed.get_world_size())
    return Processes()


@contextlib.contextmanager
def joined(device: str) -> Iterator[torch.device]:
    """Joins the processes of ``torchrun`` for a block; gives the device of this one."""
    if "WORLD_SIZE" not in os.environ:
        yield torch.device(device)
        return
    own = torch.device(device, int(os.environ["LOCAL_RANK"])) if device == "cuda" else torch.device(device)
    if own.type == "cuda":
        torch.cuda.set_device(own)
    distributed.init_process_group("nccl" if own.type == "cuda" else "gloo")
    try:
        yield own
    finally:
        distributed.destroy_process_group()

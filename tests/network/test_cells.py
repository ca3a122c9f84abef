from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from theta0 import ops
from theta0.graph import Cell
from theta0.network.cells import DropPath, EdgeCell, NodeCell, set_drop_path
from theta0.spaces.darts import DARTS
from theta0.spaces.nasbench101 import NASBench101
from theta0.spaces.nasbench201 import NASBench201


def naive_edges(module: EdgeCell, *inputs: Tensor) -> Tensor:
    """Every node computed anew from its definition, by recursion."""
    cell = module.cell

    def terms(node: int) -> list[Tensor]:
        if node < cell.inputs:
            return [inputs[node]]
        return [
            operation(torch.stack(terms(edge.source)).sum(dim=0))
            for edge, operation in zip(cell.edges, module.operations, strict=True)
            if edge.target == node
        ]

    out = terms(cell.output)
    return torch.cat(out, dim=1) if module.concat else torch.stack(out).sum(dim=0)


@pytest.mark.parametrize("concat", [False, True])
def test_edge_cells_against_recursion(concat: bool) -> None:
    generator = np.random.default_rng(0)
    torch.manual_seed(0)
    for _ in range(10):
        cell = DARTS().sample(generator).normal if concat else NASBench201().sample(generator)
        module = EdgeCell(cell, lambda edge: ops.build(edge.op, 4), concat=concat).double().eval()
        inputs = [torch.randn(2, 4, 6, 6, dtype=torch.float64) for _ in range(cell.inputs)]
        torch.testing.assert_close(module(*inputs), naive_edges(module, *inputs), rtol=1e-12, atol=1e-12)


def naive_nodes(module: NodeCell, x: Tensor) -> Tensor:
    """A NAS-Bench-101 cell from its adjacency matrix."""
    cell, channels = module.cell, module.channels
    matrix = np.zeros((cell.nodes, cell.nodes), dtype=int)
    for source, target, _ in cell.edges:
        matrix[source, target] = 1
    outputs: dict[int, Tensor] = {}
    for vertex in range(1, cell.nodes - 1):
        total = torch.zeros(len(x), channels[vertex], *x.shape[2:], dtype=x.dtype)
        if matrix[0, vertex]:
            total += module.projections[str(vertex)](x)
        for source in range(1, vertex):
            if matrix[source, vertex]:
                total += outputs[source][:, : channels[vertex]]
        outputs[vertex] = module.operations[vertex - 1](total)
    last = cell.nodes - 1
    joined = [outputs[v] for v in range(1, last) if matrix[v, last]]
    result = torch.cat(joined, dim=1) if joined else 0
    return result + module.projections[str(last)](x) if matrix[0, last] else torch.as_tensor(result)


def test_node_cells_against_the_matrix() -> None:
    generator = np.random.default_rng(0)
    torch.manual_seed(0)
    for _ in range(30):
        cell = NASBench101().sample(generator)
        module = NodeCell(cell, 5, 11, ops.batch_norm()).double().eval()
        x = torch.randn(2, 5, 6, 6, dtype=torch.float64)
        result = module(x)
        assert result.shape == (2, 11, 6, 6)
        torch.testing.assert_close(result, naive_nodes(module, x), rtol=1e-12, atol=1e-12)


def test_unlabelled_edges_pass_on() -> None:
    module = EdgeCell(Cell.parse("2 in; 2 = 0 + 1; out = 2 + 1"), lambda edge: nn.ReLU(), concat=False)
    x, y = torch.tensor([[[[1.0]]]]), torch.tensor([[[[-5.0]]]])
    assert module(x, y).item() == -9


def test_drop_path_keeps_the_mean() -> None:
    torch.manual_seed(0)
    path = DropPath()
    set_drop_path(path, 0.25)
    x = torch.ones(4000, 2, 3, 3)
    out = path(x)
    kept = out[:, 0, 0, 0]
    assert kept.unique().tolist() == pytest.approx([0, 4 / 3])
    assert (out == kept[:, None, None, None]).all()  # whole images
    assert out.mean().item() == pytest.approx(1, abs=0.03)
    set_drop_path(path, 0.0)
    assert path(x) is x

"""Scores from the gradient of the batch's loss: grad, snip, grasp, fisher, gradsign, and NASI's cheap trace estimates.

g is the gradient of the mean loss, H its Hessian, theta the parameters; l runs over the weights of convolutions and
linear layers (those alone in the zero-cost code, all parameters in HNAS's equations).
"""

from __future__ import annotations

import torch
from torch import Tensor

from theta0.evidence import Evidence, Weight
from theta0.kernel import all_parameters
from theta0.metrics import Metric, Value, Variant, register

_ZEROCOST = "Abdelfattah et al., ICLR 2021"


def _pairs(e: Evidence, of: list[Weight]) -> list[tuple[Tensor, Tensor]]:
    """Parameters and their gradients, without graph, in float64 for sums that must not overflow."""
    return [(w.value.detach().double(), e.gradient[id(w.value)].detach().double()) for w in of]


def _total(terms: list[Tensor]) -> float:
    return float(torch.stack(terms).sum()) if terms else 0.0


def _flagged(value: float) -> Value:
    return (value, "dead") if value == 0 else value


def _grad_layers(e: Evidence) -> Value:
    return _flagged(_total([g.norm() for _, g in _pairs(e, e.weights)]))


def _grad_whole(e: Evidence) -> Value:
    return _flagged(_total([g.square().sum() for _, g in _pairs(e, e.parameters)]) ** 0.5)


def _snip_absolute(e: Evidence) -> Value:
    return _flagged(_total([(v * g).abs().sum() for v, g in _pairs(e, e.weights)]))


def _snip_signed(e: Evidence) -> Value:
    return _flagged(abs(_total([(v * g).sum() for v, g in _pairs(e, e.parameters)])))


def _grasp_samples(e: Evidence) -> Value:
    values = [weight.value for weight in e.parameters]
    total = 0.0
    for loss in e.losses:
        first = torch.autograd.grad(loss, values, create_graph=True, retain_graph=True, allow_unused=True)
        found = [g for g in first if g is not None]
        product = torch.stack([(g.detach() * g).sum() for g in found]).sum()
        second = torch.autograd.grad(product, values, retain_graph=True, allow_unused=True)
        total += sum(float((v.detach() * h).sum()) for v, h in zip(values, second, strict=True) if h is not None)
    return _flagged(abs(total) / e.size)


def _fisher(e: Evidence) -> Value:
    layers = {id(weight.layer) for weight in e.weights}
    terms = []
    for call, gradient in e.output_gradients:
        if id(call.layer) not in layers:
            continue
        product = (call.activation() * gradient).double()
        channels = product.flatten(2).sum(dim=2) if product.dim() > 2 else product
        weight: Tensor = call.layer.weight  # type: ignore[assignment]
        terms.append(0.5 * channels.square().mean(dim=0).sum() * weight[0].numel())
    return _flagged(_total(terms))


def _gradsign(e: Evidence) -> Value:
    pieces = e.recording.pieces(e.losses.sum(), all_parameters, extra=lambda: e.losses)
    return _flagged(_total([piece.sign().sum(dim=0).abs().sum().double() for piece in pieces]))


def _sample_norms(e: Evidence) -> Value:
    squares = e.recording.squares(e.losses.sum(), all_parameters, extra=lambda: e.losses)
    return _flagged(float(squares.sqrt().sum()))


def _batch_norm(e: Evidence) -> Value:
    return _flagged(_total([g.square().sum() for _, g in _pairs(e, e.parameters)]))


register(
    Metric(
        "grad",
        f"HNAS, equation 2; {_ZEROCOST}",
        "higher",
        {
            "zerocost": Variant(_grad_layers, "sum_l ||g_l||"),
            "paper": Variant(_grad_whole, "||g||"),
        },
    )
)
register(
    Metric(
        "snip",
        f"Lee et al., ICLR 2019; HNAS, equation 3; {_ZEROCOST}",
        "higher",
        {
            "zerocost": Variant(_snip_absolute, "sum_l |theta_l g_l|"),
            "paper": Variant(_snip_signed, "|theta . g|"),
        },
    )
)
register(
    Metric(
        "grasp",
        f"Wang et al., ICLR 2020; HNAS, equation 3; {_ZEROCOST}",
        "higher",
        {
            "absolute": Variant(
                lambda e: _flagged(abs(e.curvature)), "|sum_l theta_l . (H g)_l|", needs=frozenset({"second_order"})
            ),
            "zerocost": Variant(
                lambda e: _flagged(-e.curvature), "-sum_l theta_l . (H g)_l", needs=frozenset({"second_order"})
            ),
            "paper": Variant(
                _grasp_samples, "|mean_i theta . (H_i g_i)|", needs=frozenset({"second_order"}), expensive=True
            ),
        },
    )
)
register(
    Metric(
        "fisher",
        f"Turner et al., ICLR 2020; {_ZEROCOST}",
        "higher",
        {
            "zerocost": Variant(
                _fisher,
                "sum over channels of 1/2 mean_i (sum_p z_ip dL/dz_ip)^2, times their weights",
                needs=frozenset({"outputs"}),
            )
        },
    )
)
register(
    Metric(
        "gradsign",
        "Zhang and Jia, ICLR 2022",
        "higher",
        {"paper": Variant(_gradsign, "sum over parameters of |sum_i sign(dl_i / dtheta)|")},
    )
)
register(
    Metric(
        "trace_estimate",
        "NASI, equations 9 to 12",
        "higher",
        {
            "sum": Variant(_sample_norms, "sum_i ||dl_i / dtheta||"),
            "batch": Variant(_batch_norm, "||g||^2"),
        },
    )
)

"""Drawings of cells: lines for a terminal, SVG for everything else.

Nodes stand in a row, in their order; each edge takes a track of its own above them, the shorter the lower, so that no
label is ever crossed. Colours tell the families of operations and are safe for colour-blind readers (Okabe and Ito).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape

from theta0.graph import Cell, Edge

_FAMILIES = (
    ("skip", "#7f7f7f"),
    ("none", "#7f7f7f"),
    ("sep", "#d55e00"),
    ("dil", "#cc79a7"),
    ("conv", "#0072b2"),
    ("pool", "#009e73"),
)
_OTHER, _PLAIN = "#e69f00", "#7f7f7f"
_GAP, _PORT, _TRACK, _BOX, _CHARACTER = 34, 12, 24, 30, 6.7


def text(cell: Cell) -> str:
    """The cell as lines, one for each operation, under the node where its edge ends."""
    lines = []
    names = max(len(_name(cell, node)) for node in range(cell.nodes))
    labels = max((len(edge.op) for edge in cell.edges), default=0)
    for node in range(cell.nodes):
        into = cell.into(node)
        arrows = [f"<-- {edge.op.ljust(labels)} -- {_name(cell, edge.source)}" for edge in into if edge.op]
        if passed := [_name(cell, edge.source) for edge in into if not edge.op]:
            arrows.append(f"<-- {', '.join(passed)}")
        for i, arrow in enumerate(arrows or ([""] if node < cell.inputs else ["(nothing)"])):
            lines.append(f"  {(_name(cell, node) if i == 0 else '').ljust(names)}  {arrow}".rstrip())
    return "\n".join(lines)


def svg(cells: Mapping[str, Cell]) -> str:
    """The cells below each other as one SVG picture; dark and light follow the viewer."""
    bodies, top, right = [], 0.0, 0.0
    for name, cell in cells.items():
        body, width, height = _picture(cell, name, top)
        bodies.append(body)
        top += height
        right = max(right, width)
    style = (
        "text{font:12px system-ui,sans-serif;fill:#222}.box{fill:#f4f4f4;stroke:#555}.edge{fill:none;stroke-width:1.6}"
        ".paper{fill:#fff}"
        "@media(prefers-color-scheme:dark){text{fill:#ddd}.box{fill:#2b2b2b;stroke:#999}.paper{fill:#1b1b1b}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right:.0f} {top:.0f}" width="{right:.0f}" '
        f'height="{top:.0f}"><style>{style}</style><rect class="paper" width="100%" height="100%"/>'
        + "".join(bodies)
        + "</svg>\n"
    )


def _name(cell: Cell, node: int) -> str:
    if node == cell.output:
        return "out"
    if node < cell.inputs:
        return "in" if cell.inputs == 1 else f"in {node}"
    return f"{node} {cell.ops[node - cell.inputs]}" if cell.ops else str(node)


def _colour(op: str) -> str:
    if not op:
        return _PLAIN
    return next((colour for family, colour in _FAMILIES if family in op), _OTHER)


def _picture(cell: Cell, name: str, top: float) -> tuple[str, float, float]:
    """The drawing of one cell that begins at height ``top``, its width and its height."""
    # Ports from left to right: edges that end, the nearest source first, then edges that leave, the farthest first.
    ending = {n: sorted(cell.into(n), key=lambda e: -e.source) for n in range(cell.nodes)}
    leaving = {n: sorted((e for e in cell.edges if e.source == n), key=lambda e: -e.target) for n in range(cell.nodes)}
    label = max((len(edge.op) for edge in cell.edges), default=0) * _CHARACTER
    gap = max(_GAP, label)
    left, x = {}, 20.0
    width = {}
    for node in range(cell.nodes):
        ports = len(ending[node]) + len(leaving[node])
        width[node] = max(_PORT * (ports + 1), len(_name(cell, node)) * _CHARACTER + 16)
        left[node] = x
        x += width[node] + gap
    place: dict[tuple[str, int], float] = {}
    numbered = {id(edge): i for i, edge in enumerate(cell.edges)}
    for node in range(cell.nodes):
        ends = [("end", e) for e in ending[node]] + [("start", e) for e in leaving[node]]
        step = width[node] / (len(ends) + 1)
        for i, (side, edge) in enumerate(ends, start=1):
            place[side, numbered[id(edge)]] = left[node] + step * i
    tracks = list(_tracks(cell.edges))
    floor = top + 44 + _TRACK * (max(tracks, default=0) + 1)
    parts = [f'<text x="20" y="{top + 22:.0f}" font-weight="600">{escape(name)}</text>']
    for i, (edge, track) in enumerate(zip(cell.edges, tracks, strict=True)):
        start, end, height = place["start", i], place["end", i], floor - _TRACK * (track + 1)
        dash = ' stroke-dasharray="3 4"' if edge.op == "none" else ""
        parts.append(
            f'<path class="edge" stroke="{_colour(edge.op)}"{dash} d="M{start:.1f} {floor:.1f}V{height + 6:.1f}'
            f'q0 -6 6 -6H{end - 6:.1f}q6 0 6 6V{floor - 5:.1f}"/>'
            f'<path fill="{_colour(edge.op)}" d="M{end - 4:.1f} {floor - 7:.1f}h8l-4 7z"/>'
        )
    for i, (edge, track) in enumerate(zip(cell.edges, tracks, strict=True)):
        if edge.op:
            middle, height = (place["start", i] + place["end", i]) / 2, floor - _TRACK * (track + 1)
            wide = len(edge.op) * _CHARACTER + 4
            parts.append(
                f'<rect class="paper" x="{middle - wide / 2:.1f}" y="{height - 8:.1f}" width="{wide:.1f}" height="16"/>'
                f'<text text-anchor="middle" x="{middle:.1f}" y="{height + 4:.1f}">{escape(edge.op)}</text>'
            )
    for node in range(cell.nodes):
        parts.append(
            f'<rect class="box" rx="5" x="{left[node]:.1f}" y="{floor:.1f}" width="{width[node]:.1f}" height="{_BOX}"/>'
            f'<text text-anchor="middle" x="{left[node] + width[node] / 2:.1f}" y="{floor + 19:.1f}">'
            f"{escape(_name(cell, node))}</text>"
        )
    return "".join(parts), x - gap + 20, floor + _BOX + 14 - top


def _tracks(edges: tuple[Edge, ...]) -> Iterator[int]:
    """The lowest track for each edge, in which no shorter edge runs over the same nodes."""
    taken: list[list[Edge]] = []
    track: dict[int, int] = {}
    for i in sorted(range(len(edges)), key=lambda i: edges[i].target - edges[i].source):
        edge = edges[i]
        for level, others in enumerate(taken):
            if all(edge.target <= other.source or other.target <= edge.source for other in others) and not any(
                edge.source <= other.source and other.target <= edge.target
                for above in taken[level + 1 :]
                for other in above
            ):
                break
        else:
            level = len(taken)
            taken.append([])
        taken[level].append(edge)
        track[i] = level
    return iter(track[i] for i in range(len(edges)))

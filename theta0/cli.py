"""The command line: a parser made from the signatures of the commands, and the exit codes."""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal

import theta0
from theta0.commands.architectures import describe, sample, spaces
from theta0.commands.data import data
from theta0.commands.report import export, report, watch
from theta0.commands.reproduce import reproduce
from theta0.commands.runs import runs, show
from theta0.commands.scoring import score, scores
from theta0.commands.search import resume, search
from theta0.commands.searchers import bench, searchers
from theta0.errors import Theta0Error

COMMANDS: tuple[Callable[..., None], ...] = (
    search,
    resume,
    runs,
    show,
    watch,
    report,
    export,
    bench,
    reproduce,
    score,
    scores,
    searchers,
    sample,
    describe,
    spaces,
    data,
)


def parser(commands: Iterable[Callable[..., None]] = COMMANDS) -> argparse.ArgumentParser:
    """The parser of the command line, made from the signatures of ``commands``."""
    top = argparse.ArgumentParser(
        prog="theta0", description="Find a strong neural network for your images at initialization."
    )
    top.add_argument("--version", action="version", version=f"theta0 {theta0.__version__}")
    sub = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in commands:
        name = command.__name__.replace("_", "-")
        summary = inspect.getdoc(command) or ""
        one = sub.add_parser(name, help=summary.splitlines()[0], description=summary)
        hints = typing.get_type_hints(command, include_extras=True)
        for parameter in inspect.signature(command).parameters.values():
            _add(one, parameter, hints[parameter.name])
        one.set_defaults(command=command)
    return top


def _add(to: argparse.ArgumentParser, parameter: inspect.Parameter, hint: Any) -> None:
    kind, *notes = typing.get_args(hint) if typing.get_origin(hint) is Annotated else (hint,)
    text = notes[0] if notes else None
    required = parameter.default is inspect.Parameter.empty
    if typing.get_origin(kind) in (types.UnionType, typing.Union):  # X | None: an option that may be left out
        kind = next(choice for choice in typing.get_args(kind) if choice is not types.NoneType)
    if not required and parameter.default is not None and text:
        text = f"{text} (default: {parameter.default})"
    extra: dict[str, Any] = {"type": kind}
    if typing.get_origin(kind) is Literal:
        extra = {"choices": typing.get_args(kind)}
    if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
        name = "--" + parameter.name.replace("_", "-")
        to.add_argument(name, dest=parameter.name, default=parameter.default, help=text, **extra)
    else:
        if not required:
            extra |= {"nargs": "?", "default": parameter.default}
        to.add_argument(parameter.name, help=text, **extra)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 if it went well, 2 for a value that cannot be used."""
    if "" not in sys.path:  # a user's own files are importable from the folder where the command runs
        sys.path.insert(0, "")
    # Threads of torch that wait then sleep: those that spin take a machine that others use too from all of them.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    options = vars(parser().parse_args(arguments))
    command = options.pop("command")
    try:
        command(**options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("theta0: stopped", file=sys.stderr)
        return 130
    except (Theta0Error, OSError) as error:
        print(f"theta0: error: {error}", file=sys.stderr)
        return 2
    return 0

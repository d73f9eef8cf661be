"""How the library calls a model that somebody else wrote.

An input x is a tensor of rows, a tuple of positional arguments, or a mapping of keyword arguments whose tensors share
their first axis.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

Input = Tensor | tuple | Mapping[str, Any]


def call(model: Callable[..., Any], x: Input) -> Any:
    """The model's answer to x."""
    if isinstance(x, Tensor):
        return model(x)
    return model(**x) if isinstance(x, Mapping) else model(*x)


def call_for_tensor(model: Callable[..., Any], x: Input) -> Tensor:
    """The model's answer to x where it must be one tensor; `.logits` of the answers of Hugging Face models."""
    output = call(model, x)
    output = getattr(output, "logits", output)
    if not isinstance(output, Tensor):
        raise TypeError(
            f"the model returned {type(output).__name__}; predictions need a tensor with rows first (or an answer with "
            ".logits). Wrap the model in a module that returns that tensor."
        )
    return output


def map_tensors(function: Callable[[Tensor], Any], x: Input) -> Any:
    """The input x with the function applied to each tensor in it."""
    if isinstance(x, Tensor):
        return function(x)
    if isinstance(x, Mapping):
        return {key: function(value) if isinstance(value, Tensor) else value for key, value in x.items()}
    return tuple(function(value) if isinstance(value, Tensor) else value for value in x)


def row_count(x: Input) -> int:
    """How many rows x has."""
    shapes: list[torch.Size] = []
    map_tensors(lambda tensor: shapes.append(tensor.shape), x)
    counts = {shape[0] for shape in shapes if shape}
    if len(counts) != 1 or counts == {0}:
        seen = [tuple(shape) for shape in shapes]
        raise ValueError(f"x must hold rows along the first axis of every tensor, at least one; its shapes: {seen}.")
    return counts.pop()


def take_rows(x: Input, start: int, count: int) -> Input:
    """Some rows of x."""
    return map_tensors(lambda tensor: tensor[start : start + count] if tensor.ndim else tensor, x)


def check_finite(name: str, x: Input) -> None:
    """Refuse NaN and inf."""

    def check(tensor: Tensor) -> None:
        if tensor.is_floating_point() and not tensor.isfinite().all():
            bad = int((~tensor.isfinite()).sum())
            raise ValueError(f"{name} holds {bad} values that are NaN or infinite; remove those rows or fill them in.")

    map_tensors(check, x)


def batches(model: nn.Module, data: Tensor | Iterable[Any], rows: int = 1024) -> Iterator[Input]:
    """Inputs from one tensor, or from a loader of x or of tuples that begin with x; on the model's device."""
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    for batch in data.split(rows) if isinstance(data, Tensor) else data:
        x = batch[0] if isinstance(batch, tuple | list) else batch
        yield map_tensors(lambda tensor: tensor.to(device), x)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients; each module's mode is restored."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module in training:
            module.training = True

"""Priors for any network: put them in, take them out."""

import re
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

import torch
from torch import Tensor, nn

from ganns import tracing
from ganns.calling import Input, call, evaluating
from ganns.families import Family
from ganns.layers import GaussianLayer, GaussianMLP
from ganns.priors import ActivityPrior

Selector = type | str | Callable[[str, nn.Module], bool]
ModuleT = TypeVar("ModuleT", bound=nn.Module)

_ACTIVATIONS = (
    nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.RReLU, nn.ELU, nn.CELU, nn.SELU, nn.GELU, nn.SiLU, nn.Mish,
    nn.Softplus, nn.Hardswish, nn.Tanh, nn.Sigmoid, nn.Hardtanh, nn.Hardsigmoid, nn.Softsign,
)  # fmt: skip
_UNITS_SECOND = (
    nn.modules.conv._ConvNd, nn.modules.batchnorm._NormBase, nn.GroupNorm,
)  # fmt: skip
_UNITS_LAST = (nn.Linear, nn.LayerNorm, nn.Embedding, nn.RNNBase, nn.MultiheadAttention)


def insert(
    model: ModuleT,
    variance: str = "sparse",
    *,
    example: Input,
    where: Selector | Iterable[Selector] | None = None,
    family: str | Family = "gaussian",
    floor: float = 0.5,
    dim: int | None = None,
) -> ModuleT:
    """Place priors on activities of a model, in place, and return it.

    A prior watches the output of a module (the first tensor, if the output is a tuple). Parameters that were there keep
    their keys and values; the prior of module `m` is `m.activity_prior`; outputs stay what they were.

    Args:
        model: any network.
        variance: "constant", "sparse" or "dense"; dense priors go where a Linear feeds the watched module.
        example: a small batch, as the model takes it, to see shapes with. A tuple is a batch of positional arguments, a
            mapping one of keyword arguments.
        where: which modules to watch: a class, a name or glob ("encoder.*.act"), a predicate `(name, module) -> bool`,
            or several of these. None: activation modules (nn.ReLU and its like).
        family: see `ganns.ActivityPrior`.
        floor: v, the lower bound of the variance.
        dim: the feature axis. None: taken from the layer that produced the activity (1 after convolutions).

    >>> net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    >>> net = insert(net, example=torch.zeros(2, 3))
    >>> [key for key in net.state_dict() if "prior" in key]
    ['1.activity_prior.mean', '1.activity_prior.bias', '1.activity_prior.weight']
    """
    if any(isinstance(module, ActivityPrior) for module in model.modules()):
        raise ValueError("the model has priors already; ganns.strip it first to place them anew.")
    chosen = _choose(model, where)
    runs = _run(model, example)
    _check_ran(chosen, runs, explicit=where is not None)
    placed: dict[nn.Module, ActivityPrior] = {}
    fed: dict[ActivityPrior, nn.Linear] = {}
    latest: _Run | None = None
    for position, run in enumerate(runs):
        if run.module not in chosen:
            continue
        until = runs[: position + 1]
        axis = _feature_axis(run, until) if dim is None else dim
        units = _units(run, axis)
        linear, linear_input = _feeding_linear(run, until) if variance == "dense" else (None, None)
        if run.module in placed and (linear or placed[run.module].units != units):
            raise ValueError(
                f"module {run.name!r} runs more than once in a forward pass, and one {variance} prior cannot serve all "
                "its activities; give each place its own module, or choose others with where=..."
            )
        if run.module not in placed:
            prior = placed[run.module] = ActivityPrior(
                units,
                variance,
                family,
                floor,
                axis,
                in_features=linear.in_features if linear else None,
                chained=bool(linear and latest and linear_input is latest.output),
            )
            if linear:
                fed[prior] = linear
        latest = run
    like = next((parameter for parameter in model.parameters() if parameter.is_floating_point()), torch.empty(0))
    for module, prior in placed.items():
        module.activity_prior = prior.to(like.device, like.dtype).train(module.training)
        if prior in fed:
            fed[prior].register_forward_hook(partial(_feed, prior))
        module.register_forward_hook(_watch)
    return model


def strip(model: nn.Module) -> nn.Module:
    """The model without priors: original keys, the same outputs, no object of this library left.

    Inserted priors are removed in place. Gaussian layers and networks become `nn.Sequential` that share the weights: in
    place where they are part of a model, as the return value where they are the model.
    """
    if isinstance(model, GaussianLayer | GaussianMLP):
        return model.plain()
    for module in list(model.modules()):
        for key, hook in list(module._forward_hooks.items()):
            if hook is _watch or (isinstance(hook, partial) and hook.func is _feed):
                del module._forward_hooks[key]
        for name, child in list(module.named_children()):
            if isinstance(child, ActivityPrior):
                delattr(module, name)
            elif isinstance(child, GaussianLayer | GaussianMLP):
                setattr(module, name, child.plain())
    return model


class _Run(NamedTuple):
    """One call of a module in the example's forward pass, and the first tensors that went in and came out."""

    name: str
    module: nn.Module
    input: Tensor | None
    output: Tensor


def _first(value: Any) -> Tensor | None:
    """The tensor, or the one that a tuple begins with."""
    first = value[0] if isinstance(value, tuple | list) and value else value
    if isinstance(first, Tensor) and first.is_nested:
        raise TypeError(
            "priors cannot watch nested tensors; build nn.TransformerEncoder with enable_nested_tensor=False."
        )
    return first if isinstance(first, Tensor) else None


def _watch(module: nn.Module, args: tuple, output: Any) -> Any:
    """Forward hook of a watched module: show its activity to its prior."""
    prior, current, activity = cast(ActivityPrior, module.activity_prior), tracing.current(), _first(output)
    if activity is None:
        raise TypeError(
            f"a prior watches a {type(module).__name__} that returned {type(output).__name__}, not a tensor."
        )
    if prior.variance == "dense":
        if current is None:
            return output
        state = prior.observe(activity, current.inputs.pop(prior), current.previous)
    else:
        state = prior.observe(activity)
    if state is None or state.activity is activity:
        return output
    if output is activity:
        return state.activity
    parts = (state.activity, *output[1:])
    return type(output)(*parts) if hasattr(output, "_fields") else type(output)(parts)


def _feed(prior: ActivityPrior, module: nn.Module, args: tuple, output: Tensor) -> None:
    """Forward hook of the Linear before a dense prior: keep its input until the prior runs."""
    current = tracing.current()
    if current is not None:
        current.inputs[prior] = args[0]


def _is_activation(name: str, module: nn.Module) -> bool:
    """PyTorch's activation modules, and those that others name so (GELUActivation of Hugging Face)."""
    return isinstance(module, _ACTIVATIONS) or type(module).__name__.endswith("Activation")


def _choose(model: nn.Module, where: Selector | Iterable[Selector] | None) -> dict[nn.Module, str]:
    if where is None:
        selectors: tuple = (_is_activation,)
    else:
        selectors = tuple(where) if isinstance(where, Iterable) and not isinstance(where, str | type) else (where,)
    chosen: dict[nn.Module, str] = {}
    for name, module in model.named_modules():
        if any(_matches(selector, name, module) for selector in selectors):
            # A Sequential runs its children, so a prior among them would run twice: its last child stands for it.
            while isinstance(module, nn.Sequential) and len(module):
                name, module = f"{name}.{len(module) - 1}".lstrip("."), module[-1]
            chosen[module] = name
    if not chosen:
        candidates = {
            f"{re.sub(r'[0-9]+', '*', name)} ({type(module).__name__})": None
            for name, module in model.named_modules()
            if name and not isinstance(module, nn.Sequential | nn.ModuleList | nn.ModuleDict)
        }
        sought = "no activation module (nn.ReLU and its like)" if where is None else f"where={where!r}: no module"
        raise ValueError(f"{sought} found. Candidates for where=...: {', '.join(candidates) or 'none'}.")
    return chosen


def _matches(selector: Any, name: str, module: nn.Module) -> bool:
    if isinstance(selector, type):
        return isinstance(module, selector)
    if isinstance(selector, str):
        return fnmatchcase(name, selector)
    if callable(selector):
        return bool(selector(name, module))
    raise TypeError(f"where={selector!r}: give module classes, names, globs or predicates (name, module) -> bool.")


def _run(model: nn.Module, example: Input) -> list[_Run]:
    """Call the model on the example and write down which module turned what into what, in order of completion."""
    runs: list[_Run] = []

    def note(name: str, module: nn.Module, args: tuple, output: Any) -> None:
        tensor = _first(output)
        if tensor is not None:
            runs.append(_Run(name, module, _first(args), tensor))

    handles = [module.register_forward_hook(partial(note, name)) for name, module in model.named_modules()]
    try:
        with evaluating(model):
            call(model, example)
    finally:
        for handle in handles:
            handle.remove()
    return runs


def _check_ran(chosen: dict[nn.Module, str], runs: list[_Run], explicit: bool) -> None:
    ran = {run.module for run in runs}
    missing = [repr(name) for module, name in chosen.items() if module not in ran]
    if len(missing) == len(chosen) or (explicit and missing):
        raise ValueError(
            f"in a forward pass of the example, {', '.join(missing)} did not run or returned no tensor; watch a module "
            "whose output is a tensor or a tuple that begins with one."
        )


def _feature_axis(run: _Run, until: list[_Run]) -> int:
    """1 after a convolution, -1 after a Linear: as in the latest layer that produced this shape."""
    if run.output.ndim == 2:
        return -1
    for earlier in reversed(until):
        if earlier.output.shape == run.output.shape:
            if isinstance(earlier.module, _UNITS_SECOND):
                return 1
            if isinstance(earlier.module, _UNITS_LAST):
                return -1
    raise ValueError(
        f"cannot tell which axis of {run.name!r}, shape {tuple(run.output.shape)}, holds the units; pass dim=1 for "
        "channels or dim=-1 for features."
    )


def _units(run: _Run, axis: int) -> int:
    if not -run.output.ndim < axis < run.output.ndim or axis == 0:
        raise ValueError(f"dim={axis}: the output of {run.name!r}, shape {tuple(run.output.shape)}, has no such axis.")
    return run.output.shape[axis]


def _feeding_linear(run: _Run, until: list[_Run]) -> tuple[nn.Linear, Tensor | None]:
    """The Linear whose output the watched module takes (or which it is), and what that Linear was fed."""
    for earlier in reversed(until):
        if isinstance(earlier.module, nn.Linear) and (earlier is run or earlier.output is run.input):
            return earlier.module, earlier.input
    raise ValueError(
        f"variance='dense': no nn.Linear feeds {run.name!r} directly, and a dense prior is computed from what a Linear "
        "is fed. Use variance='sparse' there, or choose other modules with where=..."
    )

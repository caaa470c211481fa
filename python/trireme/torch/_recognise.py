"""Finds out what a module of somebody else's does: which norm, which gated unit, or neither.

Names say nothing. A module is looked at by itself, never by its class: its forward runs on a shadow of it, with parameters
and projections of our own, and every operation that it calls is seen. Those must all be of a few smooth ones, so that no
dropout, sparsity or branch on values can hide between the samples; a clamp's limits are read, and samples go beyond them. Then
results and gradients must be a kernel's: on small, large and negative values, in every storage type, in training and in
evaluation, with weights, biases and eps changed.
"""
import contextlib
import inspect

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from ._kernels import CLAMPED, GATED, GATED_NORMS, NORMS

EPS_NAMES = ("variance_epsilon", "eps", "epsilon", "norm_eps")
TYPES = (torch.float32, torch.bfloat16, torch.float16)

SHAPES_ONLY = {"view", "_unsafe_view", "reshape", "expand", "unsqueeze", "squeeze", "alias", "clone", "contiguous", "split",
               "split_with_sizes", "chunk", "slice", "select", "narrow", "unbind", "t", "transpose", "permute",
               "as_strided", "detach"}
NORM_OPERATIONS = SHAPES_ONLY | {
    "_to_copy", "pow", "square", "mul", "mean", "sum", "add", "sub", "rsub", "div", "rsqrt", "sqrt", "reciprocal", "var",
    "var_mean", "native_layer_norm", "_fused_rms_norm", "rms_norm", "neg", "ones_like", "ones", "full"}
GATED_NORM_OPERATIONS = NORM_OPERATIONS | {"silu", "sigmoid"}
GATED_OPERATIONS = SHAPES_ONLY | {"_to_copy", "mul", "silu", "gelu", "relu", "sigmoid", "tanh", "erf", "clamp"}
# Those that autocast on a GPU computes in f32, whatever comes.
WIDENED = {"pow", "rsqrt", "reciprocal", "sum", "native_layer_norm", "rms_norm", "_fused_rms_norm"}


HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


class Unknown(Exception):
    """Why a module is left alone."""


# ---- shadows ----

class _Recorder(TorchDispatchMode):
    """Sees every operation that runs."""

    def __init__(self):
        super().__init__()
        self.seen = {}  # in order; whether one had 16-bit tensors
        self.clamps = set()  # (least, most)

    def note(self, name, arguments):
        narrow = any(isinstance(each, torch.Tensor) and each.dtype in TYPES[1:] for each in arguments)
        self.seen[name] = self.seen.get(name, False) or narrow

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        name = function._schema.name.partition("::")[2].rstrip("_")  # in place or not
        self.note(name, arguments)
        if name == "clamp":
            given = {**dict(zip(("min", "max"), arguments[1:])), **(named or {})}
            self.clamps.add((given.get("min"), given.get("max")))
        return function(*arguments, **(named or {}))


class _FunctionRecorder(TorchFunctionMode):
    """Sees functions that fall apart before operations run."""

    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, function, types, arguments=(), named=None):
        if getattr(function, "__name__", "") == "rms_norm":
            self.recorder.note("rms_norm", arguments)
        return function(*arguments, **(named or {}))


class _Stub(torch.nn.Module):
    """A projection of our own: gives what it is told to, and remembers what it was given."""

    def __init__(self, name, gives, calls):
        super().__init__()
        self.name, self.gives, self.calls = name, gives, calls

    def forward(self, *inputs, **more):
        self.calls.append((self.name, inputs, more))
        return self.gives


def _shadow(module, training, parameters=None, children=None):
    """A module with the same class and attributes, and other parameters or children."""
    shadow = type(module).__new__(type(module))
    shadow.__dict__.update(module.__dict__)
    shadow.__dict__.update(training=training, _parameters={**module._parameters, **(parameters or {})},
                           _buffers=dict(module._buffers), _modules={**module._modules, **(children or {})})
    return shadow


def _run(shadow, allowed, *inputs):
    """Its forward, hooks of it and its children left out; whether autocast on a GPU would compute in other types; and what was clamped to."""
    versions, recorder = [each._version for each in inputs], _Recorder()
    before = {name: value for name, value in shadow.__dict__.items()}
    children = [each for child in shadow._modules.values() if child is not None for each in child.modules()]
    states = [{name: each.__dict__[name] for name in ("training", *HOOKS)} for each in children]
    for each in children:
        each.__dict__.update({name: {} for name in HOOKS}, training=shadow.training)
    try:
        with recorder, _FunctionRecorder(recorder):
            made = type(shadow).forward(shadow, *inputs)
    finally:
        for each, state in zip(children, states):
            each.__dict__.update(state)
    strange = [name for name in recorder.seen if allowed is not None and name not in allowed]
    if strange:
        raise Unknown(f"its code has {', '.join(strange)}")
    if any(shadow.__dict__.get(name) is not value for name, value in before.items()) or len(shadow.__dict__) > len(before):
        raise Unknown("its forward changes it")
    if [each._version for each in inputs] != versions:
        raise Unknown("its forward changes its input")
    return made, any(recorder.seen.get(name) for name in WIDENED), recorder.clamps


@contextlib.contextmanager
def _quietly():
    """A module that raises is left alone, and nobody's random numbers, default types or devices matter."""
    try:
        with torch.random.fork_rng(devices=[]), torch.device("cpu"), torch.autocast("cpu", enabled=False), \
                torch.enable_grad():
            yield
    except Unknown:
        raise
    except Exception as error:  # whatever a stranger's code may raise
        raise Unknown(f"it could not be tried: {type(error).__name__}: {str(error).partition(chr(10))[0][:120]}") from error


def _samples(shape, seed):
    """Small, large and negative values, zeros, rows with one value far out."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=generator)
    rows = x.view(-1, shape[-1])
    scales = torch.tensor([1.0, 3.0, 1e-3, 40.0, 300.0, 1.0, 1e-2, 1.0])
    rows *= scales[torch.arange(len(rows)) % len(scales), None]
    rows[5::8].abs_().neg_()
    rows[7::8, 0] = 100.0
    rows[-1] = 0
    return x


def _same(made, wanted, kind):
    """Sums in another order move a few values of 16-bit types by a rounding; a rounding more or less moves a third."""
    if not isinstance(wanted, torch.Tensor) or made.shape != wanted.shape or made.dtype != wanted.dtype:
        return False
    made, wanted = made.detach().float(), wanted.detach().float()
    equal = (made == wanted) | (made.isnan() & wanted.isnan())  # beyond the largest number too
    if kind == torch.float32:
        scale = wanted.abs().nan_to_num(0, 0, 0).amax(-1, keepdim=True)
        return bool((equal | ((made - wanted).abs() <= 2e-5 * wanted.abs() + 2e-6 * scale)).all())
    beside = (made - wanted).abs() <= 0.02 * wanted.abs() + 1e-6
    return bool((equal | beside).all()) and (~equal).float().mean().item() < 0.02


def _gradients(made, leaves, seed=1):
    dy = torch.randn(made.shape, generator=torch.Generator().manual_seed(seed)).to(made.dtype)
    return torch.autograd.grad(made, leaves, dy, allow_unused=True)


def _same_gradients(made, wanted):
    for a, b in zip(made, wanted):
        if (a is None) != (b is None):
            return False
        if a is not None and not bool(((a - b).abs() <= 1e-4 * b.abs() + 1e-5 * b.abs().amax()).all()):
            return False
    return True


# ---- norms ----

def looks_like_norm(module):
    return not module._modules and (_eps_name(module) is not None or "norm" in type(module).__name__.lower())


def _eps_name(module):
    return next((name for name in EPS_NAMES if isinstance(module.__dict__.get(name), float)), None)


def recognise_norm(module):
    """The kernel's name, the attribute that holds eps, and the types (input's, weight's, or input's, gate's, weight's) that were
    found equal."""
    eps_name = _eps_name(module)
    if eps_name is None:
        raise Unknown("it has no eps that could be read")
    parameters = {name: each for name, each in module._parameters.items() if each is not None}
    if set(parameters) - {"weight", "bias"} or any(each is not None for each in module._buffers.values()):
        raise Unknown(f"it has {', '.join(sorted({*parameters, *module._buffers} - {'weight', 'bias'}))}")
    shapes = {tuple(each.shape) for each in parameters.values()}
    if len(shapes) > 1 or any(len(shape) != 1 or shape == (0,) for shape in shapes):
        raise Unknown(f"its parameters are of shape {', '.join(map(str, shapes))}")
    columns = shapes.pop()[0] if shapes else 64
    with _quietly():
        gate = _gate_name(module, columns)
        trial = _Trial(module, eps_name, columns, GATED_NORM_OPERATIONS if gate else NORM_OPERATIONS)
        if gate:
            group = _group_of(module, columns)
            settings = {"_trireme_gate": gate, "_trireme_group": group}
            norms = [each for each in GATED_NORMS.values() if each.grouped == (group != columns) and set(parameters) == {"weight"}]
            kinds = [(x, g, w) for x in TYPES for g in TYPES if torch.float32 in (x, g) or x == g for w in TYPES]
            options = {"group": group}
        else:
            norms = [each for each in NORMS.values() if set(each.parameters) == set(parameters)]
            kinds = [(x, w) for x in TYPES for w in (TYPES if parameters else TYPES[:1])]
            settings, options = {}, {}
        norm, found = trial.best(norms, kinds, options)
    return norm.name, {"_trireme_norm": norm.name, "_trireme_eps": eps_name, "_trireme_types": found,
                       "_trireme_widened": trial.is_widened, "_trireme_recast": trial.is_recast, **settings}


def _gate_name(module, columns):
    """The name of the gate that its forward takes beside the input; None if it takes nothing else, or something else."""
    names = list(inspect.signature(type(module).forward).parameters.values())[2:3]  # behind self and the input
    if not names or names[0].kind != inspect.Parameter.POSITIONAL_OR_KEYWORD:
        return None
    x = torch.randn(2, 3, columns)
    try:
        shadow = _shadow(module, False, {name: torch.ones(columns) for name, each in module._parameters.items() if each is not None})
        closed, _, _ = _run(shadow, None, x, torch.full_like(x, -1e4))
        if isinstance(closed, torch.Tensor) and not closed.any():  # nothing passes: no sum with a residual, no scale
            return names[0].name
    except Exception:  # whatever a stranger's code may raise
        pass
    if names[0].default is inspect.Parameter.empty:
        raise Unknown(f"its forward wants {names[0].name}, which is no gate")
    return None


def _group_of(module, columns):
    """How many columns it normalises together, as it says itself; trying it shows whether that is so."""
    group, groups = (module.__dict__.get(name) for name in ("group_size", "n_groups"))
    if isinstance(groups, int) and 0 < groups <= columns:
        group = columns // groups
    return group if isinstance(group, int) and 0 < group < columns and columns % group == 0 else columns


class _Trial:
    """Which kernel does what a norm does, and in which types."""

    def __init__(self, module, eps_name, columns, allowed):
        self.module, self.eps_name, self.columns, self.allowed = module, eps_name, columns, allowed
        self.is_widened = False  # whether autocast on a GPU would compute in other types
        self.is_recast = False  # whether its own code asks for autocast
        self.error = None

    def best(self, norms, kinds, options):
        """The norm that is the module in the most types, and those. In f32 alone several are alike."""
        wide = (torch.float32,) * len(kinds[0])
        alike = [each for each in norms if self._is_alike(each, wide, options)]
        if not alike:
            raise self.error or Unknown("no kernel gives its results")
        found = {each: tuple(kind for kind in kinds if kind == wide or self._is_alike(each, kind, options)) for each in alike}
        best = max(found, key=lambda each: len(found[each]))
        return best, found[best]

    def _is_alike(self, norm, kinds, options):
        """A module that takes no such types is alike in none."""
        try:
            return self._try(norm, *kinds[:1], kinds[-1], kinds[1:-1], options)
        except Unknown:
            raise
        except Exception as error:  # whatever a stranger's code may raise
            self.error = error
            return False

    def _try(self, norm, kind, weight_kind, gate_kinds, options):
        generator = torch.Generator().manual_seed(self.columns)
        is_wide = {kind, weight_kind, *gate_kinds} == {torch.float32}
        values = {name: torch.randn(self.columns, generator=generator).mul_(2).to(weight_kind).requires_grad_(is_wide)
                  for name, each in self.module._parameters.items() if each is not None}
        for shape, training, eps in [((16, self.columns), False, None), ((2, 8, self.columns), True, 0.37),
                                     ((2, 3, 4, self.columns), False, 1e-12)]:
            shadow = _shadow(self.module, training, values)
            if eps is not None:
                setattr(shadow, self.eps_name, eps)
            inputs = [_samples(shape, len(shape)).to(kind)]
            inputs += [(3 * torch.randn(shape, generator=generator)).to(each) for each in gate_kinds]
            for each in inputs:
                each.requires_grad_(is_wide)
            wanted, is_widened, _ = _run(shadow, self.allowed, *inputs)
            self.is_widened |= is_widened
            made = norm.run(shadow, *inputs, getattr(shadow, self.eps_name), **options)
            if not _same(made, wanted, kind if not is_wide else torch.float32):
                return False
            if is_wide:
                self.is_recast |= _is_recast(shadow, self.allowed, inputs, wanted)
                leaves = [*inputs, *values.values()]
                # At the last eps a row of zeros has no gradient worth comparing.
                if eps != 1e-12 and not _same_gradients(_gradients(made, leaves), _gradients(wanted, leaves)):
                    return False
        return True


def _is_recast(shadow, allowed, inputs, wanted):
    """Whether a module gives something else while autocast is on, though no operation of it is one that autocast casts. It may
    ask for that of any device, or of a GPU alone."""
    was_enabled = torch.is_autocast_enabled("cuda")
    torch.set_autocast_enabled("cuda", True)
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            made, *_ = _run(shadow, allowed, *inputs)
    finally:
        torch.set_autocast_enabled("cuda", was_enabled)
    return not _same(made, wanted, torch.float32)


# ---- gated units ----

SEPARATE, PACKED = ("gate_proj", "up_proj", "down_proj"), ("gate_up_proj", "down_proj")


def projections(module):
    return next((names for names in (SEPARATE, PACKED)
                 if all(isinstance(module._modules.get(name), torch.nn.Module) for name in names)), None)


def has_experts(module):
    """Whether several gated units' projections are parameters of the module itself."""
    return any(all(module._parameters.get(name) is not None and module._parameters[name].dim() == 3 for name in names)
               for names in (SEPARATE, PACKED))


def recognise_gated(module):
    """The kernel's name, and what else a forward in its place needs to know."""
    names = projections(module)
    with _quietly():
        clamps = _between(module, names, torch.float32, False)[-1]
        limits = {"limit": float(max(most for _, most in clamps))} if _are_limits(clamps) else {}
        if clamps and not limits:
            raise Unknown(f"its code has clamp to {sorted(map(str, clamps))}")
        for kernel in (CLAMPED if limits else GATED).values():
            orders = [_order_if_gated(module, kernel, names, kind, training, limits, clamps) for kind in TYPES
                      for training in (False, True)]
            if None not in orders:
                if len(set(orders)) > 1:
                    raise Unknown("its projections are called in no fixed order")
                return kernel.__name__, {"_trireme_unit": kernel.__name__, "_trireme_order": orders[0],
                                         "_trireme_limits": limits}
    raise Unknown("no kernel gives its results")


def _are_limits(clamps):
    """Whether the gate is clamped from above and the value from both sides, at one limit that samples go beyond."""
    most = {high for _, high in clamps if isinstance(high, (int, float))}
    (limit,) = most if len(most) == 1 else (0,)
    return 0 < limit <= 100 and clamps == {(None, limit), (-limit, limit)}


def _order_if_gated(module, kernel, names, kind, training, limits, clamps):
    """In which order the projections are called, if the kernel does what is done between them; else None."""
    order, up, gate, wanted, seen = _between(module, names, kind, training)
    if seen != clamps:
        raise Unknown("it clamps now and then")
    made = kernel(up, gate, **limits)
    if not _same(made, wanted, kind):
        return None
    if kind == torch.float32 and not _same_gradients(_gradients(made, (up, gate)), _gradients(wanted, (up, gate))):
        return None
    return order


def _between(module, names, kind, training):
    """The order of the projections, what two of them gave, what the last was given, and what was clamped to."""
    is_wide = kind == torch.float32
    up, gate = (_samples((2, 16, 48), seed).to(kind).requires_grad_(is_wide) for seed in (3, 4))
    x, down = torch.randn(2, 16, 8).to(kind), torch.randn(2, 16, 8).to(kind)
    calls = []
    gives = {"gate_proj": gate, "up_proj": up, "down_proj": down, "gate_up_proj": torch.cat([gate, up], -1)}
    shadow = _shadow(module, training, children={name: _Stub(name, gives[name], calls) for name in names})
    returned, _, clamps = _run(shadow, GATED_OPERATIONS, x)
    order = tuple(name for name, *_ in calls)
    if sorted(order) != sorted(names) or order[-1] != "down_proj" or returned is not down or any(
            more or len(inputs) != 1 or (name != "down_proj" and inputs[0] is not x) for name, inputs, more in calls):
        raise Unknown("its projections are not called as those of a gated unit")
    (wanted,) = calls[-1][1]
    return order, up, gate, wanted, clamps


# ---- one answer for modules that cannot differ ----

def fingerprint(module):
    """Equal for modules whose forwards cannot differ in kind: of one class, with equal or the very same attributes. Values
    of parameters do not count, nor do projections: neither is used when a module is tried."""
    if isinstance(module, torch.jit.ScriptModule):
        return id(module)
    state = tuple((name, _token(value)) for name, value in sorted(module.__dict__.items())
                  if name not in ("training", "_parameters", "_buffers", "_modules"))
    names = projections(module) or ()
    children = tuple((name, child and fingerprint(child)) for name, child in module._modules.items() if name not in names)
    parameters = tuple((name, each if each is None else (tuple(each.shape), each.dtype))
                       for name, each in (*module._parameters.items(), *module._buffers.items()))
    return type(module), state, children, parameters, names


def _token(value):
    if isinstance(value, (bool, int, float, str, type(None), torch.dtype, torch.device)):
        return type(value), value
    if isinstance(value, (dict, list, set)) and not value:
        return type(value), "empty"
    if isinstance(value, tuple):
        return type(value), tuple(map(_token, value))
    return type(value), id(value)

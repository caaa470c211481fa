"""Any row program as a torch operator: registered, with a fake implementation and the derived backward.

Three ways lead to the same kernels. Calls that are compiled or traced go through `torch.ops.trireme`; eager calls that
need gradients through one autograd.Function; all others straight to `trireme._core`.
"""
import ast
import functools
import hashlib
import re

import torch

import trireme

if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
    raise ImportError(f"trireme.torch needs torch 2.11 or newer, and this is {torch.__version__}; trireme itself takes its "
                      "tensors by __dlpack__")

LIBRARY = torch.library.Library("trireme", "FRAGMENT")
DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
          "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2, "i8": torch.int8, "i32": torch.int32}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


class TorchOperator:
    """Call it as the program is written: operands in order, constants by name, `axes` and `types` as elsewhere.

    Gives the results that take gradients (or what the program's `#: returns` says); `results` names others.
    """

    def __init__(self, operator):
        self.operator = operator
        self.backward = operator.gradient()
        self.__name__ = operator.name
        self.__doc__ = operator.__doc__
        self.__signature__ = operator.__signature__
        self.operands = [each[0] for each in operator.operands]
        self.constants = {each[0]: each[3] for each in operator.constants}
        self.results = [each[0] for each in operator.results]
        self.returned = [self.results.index(name) for name in trireme._operator._returned(operator)]
        taken = [each[0] for each in self.backward.operands]
        gradients = [each[0] for each in self.backward.results]
        self.differentiable = ["d" + name in taken for name in self.results]
        self.has_gradient = ["d" + name in gradients for name in self.operands]
        # A backward that is given all saved results reads what stands in its lines, and nothing else.
        body = _body(operator=self.backward)
        self.saved = [name for name in taken if name in self.operands + self.results and name in body]
        # Where each of the backward's operands comes from: (True, result) for a gradient, (False, place in saved or -1).
        self.sources = [(True, self.results.index(name[1:])) if name[:1] == "d" and name[1:] in self.results and
                        name not in self.operands else (False, self.saved.index(name) if name in self.saved else -1)
                        for name in taken]
        places = {name: k for k, name in enumerate(self.constants)}
        self.backward_constants = [(each[0], places[each[0]]) for each in self.backward.constants]
        self._wanted = {}
        self.first = next(k for k, each in enumerate(operator.operands) if each[1] == "[i,j]")
        self.name = operator.name if operator.name in trireme.operators() and trireme.operator(
            operator.name).text == operator.text else f"{operator.name}_{_hash(operator.text)}"
        _register(self)
        self.overload = getattr(torch.ops.trireme, self.name).default

    def __repr__(self):
        return f"<trireme torch operator {self.__name__}{self.__signature__}>"

    def __call__(self, *operands, axes=1, types=None, results=None, **named):
        operands = list(operands)
        for name in self.operands[len(operands):]:
            operands.append(named.pop(name, None))
        constants = [named.pop(name, fallback) for name, fallback in self.constants.items()]
        if named or len(operands) > len(self.operands) or None in constants:
            raise TypeError(f"{self.__name__}{self.__signature__} was called with other parameters: {list(named)}")
        types = _types_text(types)
        made = self.call(operands, constants, axes, types)
        if results is None:
            chosen = self.returned
        else:
            names = self.results if results == "all" else [results] if isinstance(results, str) else results
            chosen = [self.results.index(name) for name in names]
        return made[chosen[0]] if len(chosen) == 1 else tuple(made[k] for k in chosen)

    def call(self, operands, constants, axes=1, types="", count=None):
        """Results as a tuple: all, or at least the first `count`."""
        if torch.compiler.is_compiling() or not _is_plain(operands):
            made = self.overload(*operands, *constants, axes, types)
            return made if isinstance(made, tuple) else (made,)
        if torch.is_grad_enabled() and any(each is not None and each.requires_grad for each in operands):
            return _Function.apply(self, constants, axes, types, *operands)
        return self.forward(operands, constants, axes, types, self.results[:count])

    def forward(self, operands, constants, axes, types, results="all"):
        made = self.operator(*operands, results=results, axes=axes, types=_types_dict(types),
                             **dict(zip(self.constants, constants)))
        return tuple(made) if isinstance(made, tuple) else (made,)

    def run_backward(self, given, constants, axes, types, wanted):
        """`given`: the backward's operands in order, or None. Gradients have their operands' types."""
        made = self.backward(*given, results=wanted, axes=axes, types=_types_dict(types),
                             **{name: constants[k] for name, k in self.backward_constants})
        return list(made) if isinstance(made, tuple) else [made]

    def gradients(self, saved, grads, likes, needed, constants, axes, call):
        """Gradients of all operands from those of all results; None where there is none. `saved`: tensors, as self.saved;
        `likes`: the operands' types and shapes."""
        wanted, names, types = self.wanted(needed, tuple(like and like[0] for like in likes))
        gradients = [None] * len(self.operands)
        if not names or all(grad is None for grad in grads):
            return gradients
        given = [grads[k] if is_grad else saved[k] if k >= 0 else None for is_grad, k in self.sources]
        for k, made in zip(wanted, call(given, constants, axes, types, names)):
            # A weight may have come with ones for the axes it lacks.
            gradients[k] = made if made.shape == likes[k][1] else made.view(likes[k][1])
        return gradients

    def wanted(self, needed, dtypes):
        """Which operands get a gradient, the gradients' names, their types."""
        found = self._wanted.get((needed, dtypes))
        if found is None:
            wanted = [k for k, (has, need) in enumerate(zip(self.has_gradient, needed)) if has and need]
            names = ["d" + self.operands[k] for k in wanted]
            types = ",".join(f"{name}={NAMES[dtypes[k]]}" for k, name in zip(wanted, names))
            found = self._wanted[needed, dtypes] = wanted, names, types
        return found


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, operator, constants, axes, types, *operands):
        made = operator.forward(operands, constants, axes, types)
        _keep(ctx, operator, constants, axes, operands, made)
        return made

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *grads):
        operator = ctx.operator
        return (None, None, None, None,
                *operator.gradients(ctx.saved_tensors, grads, ctx.likes, ctx.needs_input_grad[4:], ctx.constants,
                                    ctx.axes, operator.run_backward))


def _keep(ctx, operator, constants, axes, operands, made):
    values = {**dict(zip(operator.results, made)), **dict(zip(operator.operands, operands))}
    ctx.save_for_backward(*(values[name] for name in operator.saved))
    ctx.operator, ctx.constants, ctx.axes = operator, constants, axes
    ctx.likes = [None if each is None else (each.dtype, each.shape) for each in operands]
    ctx.mark_non_differentiable(*(each for each, has in zip(made, operator.differentiable) if not has))
    ctx.set_materialize_grads(False)


def _register(self):
    """torch.ops.trireme.NAME and NAME_backward."""
    constants = "".join(f", float {name}" for name in self.constants) + ", int axes, str types"
    operands = ", ".join(f"Tensor{'?' if each[2] else ''} {each[0]}" for each in self.operator.operands)
    returned = "Tensor" if len(self.results) == 1 else "(" + ", ".join("Tensor" for _ in self.results) + ")"
    LIBRARY.define(f"{self.name}({operands}{constants}) -> {returned}", tags=torch.Tag.needs_fixed_stride_order
                   if hasattr(torch.Tag, "needs_fixed_stride_order") else ())
    given = ", ".join(f"Tensor? {each[0]}" for each in self.backward.operands)
    LIBRARY.define(f"{self.name}_backward({given}{constants}, str[] wanted) -> Tensor[]")
    count, backward_count = len(self.operands), len(self.backward.operands)

    def split(values, count):
        return values[:count], values[count:count + len(self.constants)], *values[count + len(self.constants):]

    def unwrap(made):
        return made[0] if len(made) == 1 else tuple(made)

    def forward(*values):
        return unwrap(self.forward(*split(values, count)))

    def backward(*values):
        return self.run_backward(*split(values, backward_count))

    def fake_forward(*values):
        return unwrap(_fake_results(self, *split(values, count)))

    def fake_backward(*values):
        return _fake_gradients(self, *split(values, backward_count))

    def setup_context(ctx, inputs, output):
        operands, constants, axes, _ = split(inputs, count)
        _keep(ctx, self, constants, axes, operands, output if isinstance(output, tuple) else (output,))

    def derived(ctx, *grads):
        def call(given, constants, axes, types, wanted):
            return getattr(torch.ops.trireme, self.name + "_backward").default(*given, *constants, axes, types, wanted)

        made = self.gradients(ctx.saved_tensors, grads, ctx.likes, tuple(ctx.needs_input_grad[:count]), ctx.constants,
                              ctx.axes, call)
        return (*made, *[None] * (len(self.constants) + 2))

    def no_second(ctx, *grads):
        raise RuntimeError(f"trireme::{self.name}: the derivative of a backward is not registered")

    for name, kernel, fake in [(self.name, forward, fake_forward), (self.name + "_backward", backward, fake_backward)]:
        LIBRARY.impl(name, kernel, "CompositeExplicitAutograd")
        torch.library.register_fake(f"trireme::{name}", fake, lib=LIBRARY)
    torch.library.register_autograd(f"trireme::{self.name}", derived, setup_context=setup_context, lib=LIBRARY)
    torch.library.register_autograd(f"trireme::{self.name}_backward", no_second, lib=LIBRARY)


def _fake_results(self, operands, constants, axes, types):
    types = _types_dict(types) or {}
    first = operands[self.first]
    storage = {name: each.dtype for name, each in zip(self.operands, operands) if each is not None}
    for name, spread, *_ in self.operator.results:
        if spread == "[i,j]":
            storage[name] = first.dtype
    storage.update({name: DTYPES[kind] for name, kind in types.items()})
    compute = torch.float64 if torch.float64 in storage.values() else torch.float32
    values = dict(zip(self.constants, constants))
    return [first.new_empty(_extents(spread, first.shape, axes, values), dtype=storage.get(name, compute))
            for name, spread, *_ in self.operator.results]


def _fake_gradients(self, given, constants, axes, types, wanted):
    types = _types_dict(types)
    like = next(value for each, value in zip(self.backward.operands, given)
                if value is not None and each[1] == "[i,j]")
    spreads = {each[0]: each[1] for each in self.backward.results}
    values = dict(zip(self.constants, constants))
    return [like.new_empty(_extents(spreads[name], like.shape, axes, values), dtype=DTYPES[types[name]])
            for name in wanted]


def _extents(spread, shape, axes, constants):
    """The shape of an array with that spread: `[i % heads, j]`, `[i]`, ..."""
    rows, columns = shape[:len(shape) - axes], shape[len(shape) - axes:]
    plain = {"i": rows, "j": columns}
    parts = [part.strip() for part in spread.strip("[]").split(",") if part.strip()]
    return [extent for part in parts for extent in (plain[part] if part in plain else
                                                    [_extent(part, rows, columns, constants)])]


def _extent(text, rows, columns, constants):
    """`(i / heads) % positions`: a divided index counts rounded up, a wrapped one as far as it wraps."""
    def product(extents):
        return functools.reduce(lambda a, b: a * b, extents, 1)

    def number(node):
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return product(columns) if node.id == "n" else int(constants[node.id])
        left, right = number(node.left), number(node.right)
        return {ast.Add: lambda: left + right, ast.Sub: lambda: left - right, ast.Mult: lambda: left * right,
                ast.Div: lambda: left // right}[type(node.op)]()

    def extent(node):
        if isinstance(node, ast.Name):
            return product(rows if node.id == "i" else columns)
        if isinstance(node.op, ast.Mod):
            return number(node.right)
        divisor = number(node.right)
        return (extent(node.left) + divisor - 1) // divisor

    return extent(ast.parse(text, mode="eval").body)


def _body(operator):
    """The names that stand in the program's lines, below its signature."""
    text = operator.text
    end = text.index(")", text.index("-> ("))
    return set(re.findall(r"[A-Za-z_]\w*", text[end:]))


def _hash(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _types_text(types):
    if not types:
        return ""
    return types if isinstance(types, str) else ",".join(f"{name}={NAMES.get(kind, kind)}" for name, kind in
                                                         types.items())


@functools.lru_cache(maxsize=None)
def _types_dict(types):
    return dict(each.split("=") for each in types.split(",")) if types else None


_PLAIN = (torch.Tensor, torch.nn.Parameter)


def _is_plain(operands):
    """Whether memory may be touched at once: no subclass, no mode, no transform has a say."""
    for each in operands:
        if each is not None and (type(each) not in _PLAIN or each.is_meta):
            return False
    return not torch._C._len_torch_dispatch_stack() and not torch._C._are_functorch_transforms_active()


# All at import, so that torch.ops.trireme has them and compiled code finds them made.
OPERATORS = {name: TorchOperator(trireme.operator(name)) for name in trireme.operators()}


def named(name: str) -> TorchOperator:
    """The torch operator of one that comes with Trireme."""
    return OPERATORS[name]


_made = {}


def op(program: "str | trireme.Operator") -> TorchOperator:
    """A torch operator of a program's text (or of a trireme.Operator, or the name of one that comes with Trireme)."""
    operator = program if isinstance(program, trireme.Operator) else trireme.op(program)
    if operator.name in trireme.operators() and operator is trireme.operator(operator.name):
        return named(operator.name)
    if operator.text not in _made:
        _made[operator.text] = TorchOperator(operator)
    return _made[operator.text]

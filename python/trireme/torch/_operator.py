"""Any row program as a torch operator: registered, with a fake implementation and derivatives of every order.

Two ways lead to the same kernels. Calls on plain tensors go straight to `trireme._core`, under one autograd.Function where
derivatives are wanted; all others (compiled, traced, transformed, on subclasses) go through `torch.ops.trireme`.
"""
import contextlib
import functools
import hashlib
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

import trireme

from . import _distributed, _inline, _programs
from ._autograd import Call, Function, gradient_key, is_distributed, is_plain, is_wrapped, needs_graph, value_of
from ._made import keep
from ._register import DTYPES, NAMES, fill, problem_shape, register, storage_types, types_dict, types_text

if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
    raise ImportError(f"trireme.torch needs torch 2.11 or newer, and this is {torch.__version__}; trireme itself takes its "
                      "tensors by __dlpack__")


_lock = threading.RLock()  # an operator is registered once, whichever of autograd's threads derives it first


def once(function):
    """A property that is computed once, by one thread."""
    return _Once(function)


class _Once:
    """What was computed stands among the object's own attributes, where Python looks before it asks here."""

    def __init__(self, function):
        self.function, self.__doc__ = function, function.__doc__

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        name = self.function.__name__
        with _lock:
            if name not in instance.__dict__:
                instance.__dict__[name] = self.function(instance)
        return instance.__dict__[name]


class TorchOperator:
    """Call it as the program is written: operands in order, constants by name, `axes` and `types` as elsewhere.

    Gives the results that take gradients (or what the program's `#: returns` says); `results` names others.
    """

    def __init__(self, operator: trireme.Operator, name: str, parent: "TorchOperator | None" = None,
                 has_keys: bool = True) -> None:
        self.operator = operator
        self.name = name
        self.parent = parent  # of an operator's backward: that operator
        self.level = parent.level + 1 if parent else 0  # how many times it was differentiated
        self.has_keys = has_keys
        self.__name__ = operator.name
        self.__doc__ = operator.__doc__
        self.__signature__ = operator.__signature__
        self.operands = [each[0] for each in operator.operands]
        self.constants = {each[0]: each[3] for each in operator.constants}
        self.results = [each[0] for each in operator.results]
        self.returned = [self.results.index(each) for each in
                         (self.results if parent else trireme._operator._returned(operator))]
        # The two backwards of an operator say the same value by different names; keys are the names that they share.
        self.operand_keys = [self._key(name) for name in self.operands]
        self.result_keys = [self._key(name, True) for name in self.results]
        self._chosen = {}  # places and names of results, by `wanted`
        # Places of operands whose defaults are no numbers. Those of a backward are given, or stand in no program of its own.
        self.formulas = () if parent else [k for k, each in enumerate(operator.operands) if each[2] and each[3] is None]
        self._without = {}  # (operator, places of its operands), by names of absent ones
        self.inlined = None  # the program in torch's operations, where compiled code is to have it
        self.overload = register(self)
        keep(self)

    def _key(self, name, is_result=False):
        """Results of a backward are gradients, also where one has the name of a value: of a program with a result `dx`."""
        is_gradient = self.parent and not self.has_keys and (is_result or name not in self.parent.operands + self.parent.results)
        return gradient_key(name[1:], self.level) if is_gradient else name

    def __repr__(self):
        return f"<trireme torch operator {self.__name__}{self.__signature__}>"

    def __reduce__(self):
        if self.level:
            raise TypeError(f"{self.__name__}: a backward is not pickled, its operator is")
        return op, (self.operator,)

    def __call__(self, *operands: Tensor | None, axes: int = 1, types: Mapping[str, Any] | None = None,
                 results: str | Sequence[str] | None = None, **named: Any) -> Any:
        operands, constants, chosen = self.arguments(operands, results, named)
        made = self.call(operands, constants, axes, types_text(types), sum(1 << k for k in set(chosen)))
        return made[chosen[0]] if len(chosen) == 1 else tuple(made[k] for k in chosen)

    def arguments(self, operands: Sequence[Tensor | None], results: str | Sequence[str] | None,
                  named: dict[str, Any]) -> tuple[list[Tensor | None], list[float], list[int]]:
        """Operands and constants in order, and places of the results that are asked for."""
        operands = list(operands)
        for name in self.operands[len(operands):]:
            operands.append(named.pop(name, None))
        constants = [named.pop(name, fallback) for name, fallback in self.constants.items()]
        if named or len(operands) > len(self.operands) or None in constants:
            raise TypeError(f"{self.__name__}{self.__signature__} was called with other parameters: {list(named)}")
        if results is None:
            return operands, constants, self.returned
        names = self.results if results == "all" else [results] if isinstance(results, str) else results
        return operands, constants, [self.results.index(name) for name in names]

    # ---- calls ----

    def call(self, operands: Sequence[Tensor | None], constants: Sequence[float], axes: int = 1, types: str = "",
             wanted: int = -1, dim: int | None = None, row_block: int = 0) -> tuple[Any, ...]:
        """All results as a tuple; those that are not `wanted`, a bit each, are None or tensors of no elements.
        `dim`: rows were that axis of the operands; where it costs nothing, results are contiguous once it is back.
        `row_block`: rows of a block of sums over rows, where these rows or columns are a part of more."""
        is_compiling = torch.compiler.is_compiling()
        if not is_compiling and dim is None:
            made = self.operator._quick(operands, constants, axes, types, wanted, row_block, self.level > 0)
            if made is None:
                called = self
                if self.formulas:
                    called, operands, types = self.as_called(operands, types)
                return Function.apply(Call(called, constants, axes, types, wanted, None, None, row_block), *operands)
            if made is not NotImplemented:
                return made
        if self.inlined is not None and is_compiling:
            return self._inline(operands, constants, axes, types, wanted)
        if is_compiling or not is_plain(operands) or (self.level and is_wrapped(operands)):
            if is_distributed(*operands):
                return _distributed.call(self, operands, constants, axes, types, wanted)
            made = self.overload(*operands, *constants, axes, types, wanted, row_block)
            return made if isinstance(made, tuple) else (made,)
        if not needs_graph(operands):
            return self.forward(operands, constants, axes, types, wanted, row_block, dim)
        called, operands, types = self.as_called(operands, types)

        def run(operands, wanted):
            return called.forward(operands, constants, axes, types, wanted, row_block, dim)

        return Function.apply(Call(called, constants, axes, types, wanted, run), *operands)

    def _inline(self, operands, constants, axes, types, wanted):
        kinds = storage_types(self, operands, dict(each.split("=") for each in types.split(",")) if types else {})
        return _inline.run(self, operands, constants, axes, kinds, problem_shape(self, operands, axes, constants), wanted)

    def forward(self, operands: Sequence[Tensor | None], constants: Sequence[float], axes: int, types: str, wanted: int,
                row_block: int = 0, dim: int | None = None) -> tuple[Tensor | None, ...]:
        """Runs the kernel. Results that are not wanted are None."""
        if dim is None:
            return self.operator._run(operands, constants, axes, types, wanted, row_block)
        chosen = self._chosen.get(wanted)
        if chosen is None:
            places = [k for k in range(len(self.results)) if wanted >> k & 1]
            chosen = self._chosen[wanted] = places, tuple(self.results[k] for k in places)
        places, names = chosen
        named = dict(zip(self.constants, constants))
        if dim is not None:
            shape, said = operands[0].movedim(-1, dim).shape, types_dict(types) or {}
            named["out"] = {name: operands[0].new_empty(shape, dtype=DTYPES.get(said.get(name))).movedim(dim, -1)
                            for name in names}
        if row_block:
            named["row_block"] = row_block
        made = self.operator(*operands, results=names, axes=axes, types=types_dict(types), **named)
        if len(places) == len(self.results):
            return tuple(made) if len(places) > 1 else (made,)
        found = [None] * len(self.results)
        for k, each in zip(places, made if len(places) > 1 else (made,)):
            found[k] = each
        return tuple(found)

    def as_called(self, operands: Sequence[Tensor | None], types: str) -> "tuple[TorchOperator, Sequence[Tensor | None], str]":
        """The operator in whose program the defaults stand that are formulas and whose operands are absent, its operands, and
        the text of its types. Of that program everything is derived: what such an operand stands for has a gradient of its
        own, and the value goes on into what the formula reads."""
        absent = tuple([self.operands[k] for k in self.formulas if operands[k] is None])
        if not absent:
            return self, operands, types
        if absent not in self._without:
            made = op(self.operator.without(absent))
            self._without[absent] = made, [self.operands.index(name) for name in made.operands]
        made, places = self._without[absent]
        if types:
            arrays = {*made.operands, *made.results}
            types = ",".join(each for each in types.split(",") if each.partition("=")[0] in arrays)
        return made, [operands[k] for k in places], types

    def types_of(self, dtypes: Mapping[int, torch.dtype]) -> str:
        """The text that gives results their types: {place: dtype}."""
        return ",".join(f"{self.results[k]}={NAMES[dtype]}" for k, dtype in dtypes.items())

    @once
    def types_read(self) -> set[str]:
        """Operands and results of which the program asks the type, present or not."""
        return _programs.types_read_by(self.operator)

    def has_shape(self, operands: Sequence[Tensor | None]) -> bool:
        """Whether the problem's shape can be found in them."""
        try:
            return bool(problem_shape(self, operands, 1))
        except TypeError:
            return False

    def kinds(self, operands: Sequence[Tensor | None], types: str) -> dict[str, str]:
        """The names of the types of operands and results, by key."""
        said = types_dict(types) or {}
        found = {name: NAMES[dtype] for name, dtype in storage_types(self, operands, said).items()} | said
        return {key: found[name] for name, key in zip(self.operands + self.results, self.operand_keys + self.result_keys)
                if name in found}

    def types_of_absent(self, operands: Sequence[Tensor | None], kinds: Mapping[str, str]) -> str:
        """What follows types_of: those of operands that are not given and whose types are asked for. `kinds`: by key, of the
        values whose gradients they are."""
        found = {name: value_of(key, kinds) for name, key, each in zip(self.operands, self.operand_keys, operands)
                 if each is None and name in self.types_read}
        return "".join(f",{name}={kinds[key]}" for name, key in found.items() if key is not None)

    # ---- derivatives ----

    @property
    def root(self) -> "TorchOperator":
        """The operator of the same values whose program can be differentiated: itself, or for the backward that reads saved
        statistics the one that computes them."""
        return self if not self.parent or self is self.parent.full_backward else self.parent.full_backward

    @once
    def backward(self) -> "TorchOperator":
        """Takes gradients of the results that are no statistics, and reads as little as it can."""
        program = self.operator if not self.level else trireme.op(_programs.require_saved(self.operator))
        return TorchOperator(program.gradient(), f"{self.name}_backward", self, has_keys=False)

    @once
    def full_backward(self) -> "TorchOperator":
        """Takes gradients of all results, and computes what statistics it needs."""
        text = _programs.require_saved(self.operator) if self.level else self.operator.text
        without = [self.results[k] for k in self._results_without_gradients()]
        program = trireme.op(_programs.give_all_gradients(text, without)).gradient()
        names = {each[0]: self.backward._key(each[0]) for each in program.operands}
        names |= {each[0]: self.backward._key(each[0], True) for each in program.results}
        return TorchOperator(trireme.op(_programs.rename(program.text, names)), f"{self.name}_backward_of_all", self)

    @once
    def tables(self) -> list[int]:
        """Places of the operands whose rows others pick: they have no gradient, unless the program wants none of them."""
        parts = _programs.take_apart(self.operator.text)
        return [self.operands.index(name) for name, spread, _ in parts.operands
                if _programs.names_in(spread) & set(self.operands) and
                name in _programs.names_in(parts.body.replace(f"stop_gradient({name})", ""))]

    def _results_without_gradients(self):
        backward = self.root.backward
        only_typed = _programs.types_read_by(backward.operator) - _programs.values_read_by(backward.operator)
        taken = {key for name, key in zip(backward.operands, backward.operand_keys) if name not in only_typed}
        return [k for k, key in enumerate(self.result_keys)
                if k not in self.maxima and gradient_key(key, self.level + 1) not in taken]

    @once
    def maxima(self) -> list[int]:
        """Places of the results that are maxima over rows: their gradients are refused."""
        body = _programs.take_apart(self.operator.text).body
        return [k for k, name in enumerate(self.results) if re.search(rf"^ *{name} *= *colmax\(", body, re.M)]

    def has_derivative(self, k: int, made: Tensor) -> bool:
        return made.is_floating_point() and k not in self.maxima

    @once
    def statistics(self) -> list[int]:
        """Places of the results whose gradients `backward` does not take and `full_backward` reads. Others have no derivative:
        the power of two beside a maximum."""
        without = self._results_without_gradients()
        full = self.root.full_backward if without else None
        read = full and _programs.values_read_by(full.operator)
        taken = {key for name, key in zip(full.operands, full.operand_keys) if name in read} if full else ()
        return [k for k in without if gradient_key(self.result_keys[k], self.level + 1) in taken]

    @once
    def saved(self) -> list[int]:
        """What backwards read, as places among operands and results."""
        keys = self.operand_keys + self.result_keys
        try:
            read = self.root.backward.keys_read()
            if self.statistics:
                read |= self.root.full_backward.keys_read()
        except trireme.TriremeError:  # there is no derivative, which is said when it is asked for
            return list(range(len(keys)))
        return [k for k, key in enumerate(keys) if key in read]

    @once
    def saved_results(self) -> int:
        return sum(1 << k - len(self.operands) for k in self.saved if k >= len(self.operands))

    def keys_read(self) -> set[str]:
        read = _programs.read_by(self.operator)
        if self.parent:  # given where they were given: without them a backward is another
            read |= {self.parent.operands[k] for k in self.parent.formulas}
        return {key for name, key in zip(self.operands, self.operand_keys) if name in read}

    @once
    def links(self) -> "tuple[_Link, _Link]":
        """To the backward, and to the one of all results."""
        return _Link(self, lambda: self.root.backward), _Link(self, lambda: self.root.full_backward)

    @once
    def held(self) -> set[str]:
        """Operands that have no gradient, nor has any derivative by them: those of conditions and of stop_gradient."""
        if self.parent:
            return self.parent.held
        return {name for name in self.operands if gradient_key(name, 1) not in self.full_backward.result_keys}

    @once
    def is_stopped(self) -> bool:
        return self.parent.is_stopped if self.parent else _programs.is_stopped(self.operator.text)


class _Link:
    """How the backward `by` of an operator `of` is called."""

    def __init__(self, of, find):
        self.of, self.find = of, find
        self._wanted = {}

    @once
    def by(self):
        return self.find()

    @once
    def sources(self):
        """Of each operand: (True, which result's gradient), or (False, place in what was saved, -1 if it was not)."""
        keys = self.of.operand_keys + self.of.result_keys
        grads = {gradient_key(key, self.by.level): (True, k) for k, key in enumerate(self.of.result_keys)}
        saved = {keys[place]: (False, k) for k, place in enumerate(self.of.saved)}
        return [grads.get(key) or saved.get(key, (False, -1)) for key in self.by.operand_keys]

    @once
    def arriving(self):
        """The results whose gradients it takes."""
        return [k for is_grad, k in self.sources if is_grad]

    @once
    def targets(self):
        """Of each result: the operand whose gradient it is, -1 if there is none."""
        places = {gradient_key(key, self.by.level): k for k, key in enumerate(self.of.operand_keys)}
        return [places.get(key, -1) for key in self.by.result_keys]

    @once
    def constants(self):
        return [list(self.of.constants).index(name) for name in self.by.constants]

    def wanted(self, needed, dtypes):
        """Which results give gradients of the operands that need them, a bit each, and the text of their types."""
        found = self._wanted.get((needed, dtypes))
        if found is None:
            places = {k: place for k, place in enumerate(self.targets) if place >= 0 and needed[place] and
                      (not self.of.level or self.of.operand_keys[place] not in self.of.held)}
            if self.of.level and self.of.is_stopped and any("__d" not in self.of.operand_keys[place]
                                                            for place in places.values()):
                raise NotImplementedError(f"{self.of.name}: the program has stop_gradient, and second derivatives by its "
                                          "operands are not derived")
            found = self._wanted[needed, dtypes] = (sum(1 << k for k in places),
                                                    self.by.types_of({k: dtypes[place] for k, place in places.items()}))
        return found


def _make(operator, name):
    if re.search(r"__d\d", operator.text):
        raise trireme.InvalidProgram(f"{operator.name}: names with __d and a digit are those of gradients")
    made = TorchOperator(operator, name)
    if operator.name in _inlined:
        made.inlined = _inline.write(operator)
    with contextlib.suppress(trireme.TriremeError):  # of an operator without derivatives: said when one is asked for
        made.backward  # at once, so that torch.ops.trireme has it and compiled code finds it made
    return made


_inlined = set()  # names of programs


def leave_to_inductor(*names: str, leave: bool = True) -> None:
    """In code that torch.compile compiles, the programs of these names (tt.op's texts too) are given to it in torch's
    operations, so that it fuses them with what stands around; `leave=False`: kernels are called again. Eager calls are kernels always.
    Code that is compiled already is compiled anew."""
    made = [each for each in vars(_Made).values() if isinstance(each, TorchOperator) and each.operator.name in names]
    found = [(each, _inline.write(each.operator) if leave else None) for each in made]
    (_inlined.update if leave else _inlined.difference_update)(names)
    for each, inlined in found:
        each.inlined = inlined


class _Made:
    """All that were made, as attributes: compiled code guards the one that it uses, not their number."""


OPERATORS = {name: _make(trireme.operator(name), name) for name in trireme.operators()}
for _name, _operator in OPERATORS.items():
    setattr(_Made, _name, _operator)


def named(name: str) -> TorchOperator:
    """The torch operator of one that comes with Trireme."""
    return OPERATORS[name]


def op(program: "str | trireme.Operator") -> TorchOperator:
    """A torch operator of a program's text (or of a trireme.Operator, or the name of one that comes with Trireme)."""
    return getattr(_Made, _made(program))


_names = {}  # of programs' texts as they were given


def _made(program):
    if isinstance(program, str) and program in _names:
        return _names[program]
    found = _find_or_make(program)
    if isinstance(program, str):
        _names[program] = found
    return found


def _find_or_make(program):
    operator = program if isinstance(program, trireme.Operator) else trireme.op(program)
    if operator.name in trireme.operators() and operator.text == trireme.operator(operator.name).text:
        return operator.name
    name = f"{operator.name}_{hashlib.sha256(operator.text.encode()).hexdigest()[:12]}"
    with _lock:
        if not hasattr(_Made, name):
            setattr(_Made, name, _make(operator, name))
    return name


def constant_text(function):
    """For functions that write programs: each text is written once, and compiled code takes it as it is."""
    kept = functools.lru_cache(maxsize=None)(function)

    @functools.wraps(function)
    def call(*values, **named):
        return kept(*values, **named)

    call._dynamo_marked_constant = True  # torch.compiler.assume_constant_result, without an import of the whole compiler
    return call


_made._dynamo_marked_constant = True

"""Records what a model computes, for `trireme drift` to compare with another run: digests, or the elements themselves, of
everything that its modules and operators take and give.

Operators are seen below autograd, as a TorchDispatchMode sees them, and so are those of a backward; modules by hooks. Nothing is
changed in what runs, but for torch.compile, which gives way to such modes: compiled modules run outside of it, and are one event.
"""
import bisect
import fnmatch
import os
import pathlib
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.optim import optimizer as optimizers
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

from ._trace_files import TraceFiles, is_plain, is_readable

_ALLOCATE = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}
# What these write they do not read, and so it is no input.
_OVERWRITE = {"copy_", "fill_", "zero_", "bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_", "random_",
              "uniform_"}
# Operator -> outputs that its kernels do not write wholly, or not without dropout, and that only its own backward reads.
_SCRATCH = {
    "mkldnn_rnn_layer": {"3"}, "_cudnn_rnn": {"3", "4"}, "miopen_rnn": {"3", "4"},  # workspace; weights with gaps between them
    "_ctc_loss": {"1"}, "rrelu_with_noise": {"noise"},  # beyond each input's length; without training
    "cudnn_batch_norm": {"3"}, "_batch_norm_with_update": {"3"},
    # seeds and offsets
    "_flash_attention_forward": {"2", "3"}, "_efficient_attention_forward": {"2", "3"}, "_cudnn_attention_forward": {"6", "7"},
    "_scaled_dot_product_flash_attention": {"6", "7"}, "_scaled_dot_product_efficient_attention": {"2", "3"},
    "_scaled_dot_product_cudnn_attention": {"6", "7"}, "_scaled_dot_product_fused_attention_overrideable": {"6", "7"}}
_TOLD = (bool, int, float, complex, str, torch.dtype)  # of arguments, what a line holds
_WRAPPERS = {"_checkpoint_wrapped_module", "_fsdp_wrapped_module", "_orig_mod"}  # that paths leave out
_SHADOWS = FakeTensor, FunctionalTensor  # of a tracer: nothing is computed
Kept = bool | str | Iterable[str] | Callable[[str, str], bool]  # whose elements
_PLACING = {"device", "generator", "layout", "memory_format", "non_blocking", "pin_memory"}


def _tensors(value, *name):
    """(name, tensor) of all in a structure; those inside a tensor subclass that holds others."""
    for path, leaf in _pytree.tree_flatten_with_path(value)[0]:
        if isinstance(leaf, torch.Tensor):
            keys = [str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", "")))) for key in path]
            yield from _plain(".".join([*name, *keys]), leaf)


def _plain(name, tensor):
    if hasattr(tensor, "__tensor_flatten__"):
        for inner in tensor.__tensor_flatten__()[0]:
            if isinstance(getattr(tensor, inner), torch.Tensor):
                yield from _plain(f"{name}.{inner}", getattr(tensor, inner))
    else:
        yield name, tensor


def _told(value):
    if isinstance(value, (list, tuple)):
        return all(_told(each) for each in value)
    return isinstance(value, _TOLD)


def _is_compiled(module):
    return hasattr(module, "_orig_mod") or module._compiled_call_impl is not None


class _Storages:
    """Who wrote a storage last, and whether it was never wholly written: "unset", or "scratch" where it need not be."""

    def __init__(self):
        self._entries, self._sweep_at = {}, 1024

    def find(self, tensor):
        entry = self._entries.get(tensor.untyped_storage()._cdata)
        return entry if entry else (None, None, "")

    def wrote(self, tensor, event, missing=""):
        storage = tensor.untyped_storage()
        if len(self._entries) >= self._sweep_at:
            self._entries = {key: entry for key, entry in self._entries.items() if not entry[0].expired()}
            self._sweep_at = 2 * len(self._entries) + 1024
        # The reference keeps the storage's place from being another's.
        self._entries[storage._cdata] = StorageWeakRef(storage), event, missing


class Trace(TorchDispatchMode):
    """What `trace` gives: a context manager. `folder`, and `events` so far."""

    supports_higher_order_operators = True

    def __init__(self, model: torch.nn.Module, folder: str | os.PathLike[str], arrays: Kept, operators: bool, progress: bool) -> None:
        super().__init__()
        self._model, self._folder, self._operators, self._progress = model, pathlib.Path(folder), operators, progress
        if callable(arrays):
            self._keeps = arrays
        elif isinstance(arrays, bool):
            self._keeps = lambda path, name: arrays
        else:
            patterns = [arrays] if isinstance(arrays, str) else list(arrays)
            self._keeps = lambda path, name: any(fnmatch.fnmatchcase(path, each) for each in patterns)
        self._local = threading.local()
        self._storages = _Storages()
        self._call, self._step = 0, False
        self._starts, self._paths = [0], [""]  # autograd's sequence numbers -> the module that is being called
        self._undo, self._files = [], None

    @property
    def folder(self) -> pathlib.Path:
        return self._folder

    @property
    def events(self) -> int:
        return self._files.events if self._files else 0

    # ---- entering and leaving ----

    def __enter__(self) -> "Trace":
        self._files = TraceFiles(self._folder, sys.stderr if self._progress else None)
        try:
            self._watch_all()
        except BaseException:
            self._stop_watching()
            raise
        if self._operators:
            super().__enter__()
        return self

    def _watch_all(self):
        self._owners = {}
        inside = {inner for module in self._model.modules() if _is_compiled(module) for inner in module.modules() if inner is not module}
        for name, module in self._model.named_modules():
            path = ".".join(part for part in name.split(".") if part not in _WRAPPERS)
            for name, tensor in [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]:
                self._owners[id(tensor)] = path
                self._event("state", "", path, name, [], list(_plain(name, tensor)))
            if module not in inside:
                self._watch(path, module)
        self._undo += [optimizers.register_optimizer_step_pre_hook(lambda *_: setattr(self, "_step", True)).remove,
                       optimizers.register_optimizer_step_post_hook(lambda *_: setattr(self, "_step", False)).remove]

    def _watch(self, path, module):
        inner = module._compiled_call_impl
        if inner is not None:  # whose hooks would be compiled
            def call(*args, **kwargs):
                self._enter(path, module, args, kwargs)
                done = False
                try:
                    result = inner(*args, **kwargs)
                    done = True
                finally:
                    self._leave(path, module, result if done else None, done)
                return result

            module._compiled_call_impl = call
            self._undo.append(lambda: setattr(module, "_compiled_call_impl", inner))
            return
        def enter(_, args, kwargs):
            self._enter(path, module, args, kwargs)

        def leave(_, args, result):
            self._leave(path, module, result, result is not None or not sys.exc_info()[0])

        enter.is_trace = leave.is_trace = True
        self._undo += [module.register_forward_pre_hook(enter, with_kwargs=True, prepend=True).remove,
                       module.register_forward_hook(leave, always_call=True).remove]

    def _stop_watching(self):
        while self._undo:
            self._undo.pop()()

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        for *_, paused in self._stack():  # of calls that an interrupt left
            if paused:
                super().__enter__()
        self._stack().clear()
        if self._operators:
            super().__exit__(kind, error, traceback)
        self._stop_watching()
        self._files.close(f"{kind.__name__}: {error}"[:500] if kind else None)

    # ---- where we are ----

    def _stack(self):
        if not hasattr(self._local, "stack"):
            self._local.stack, self._local.busy = [], False
        return self._local.stack

    def _place(self):
        """(phase, path) of what runs now."""
        task = torch._C._current_graph_task_id()
        stack = self._stack()
        path = stack[-1][0] if stack else ""
        if task == -1:
            return "step" if self._step else "forward", path
        if stack and stack[-1][1] == task:  # a forward that a checkpoint runs again
            return "backward", path
        node = torch._C._current_autograd_node()
        if node is None:
            return "backward", ""
        if hasattr(node, "variable"):  # where gradients are accumulated
            return "backward", self._owners.get(id(node.variable), "")
        return "backward", self._paths[bisect.bisect_right(self._starts, node._sequence_nr()) - 1]

    def _moved(self):
        """Autograd's nodes from now on belong to another module."""
        number, stack = torch.autograd._get_sequence_nr(), self._stack()
        path = stack[-1][0] if stack else ""
        if number < self._starts[-1]:  # of another thread
            return
        if number == self._starts[-1]:
            self._paths[-1] = path
        else:
            self._starts.append(number), self._paths.append(path)
        if len(self._starts) > 1 << 20:
            del self._starts[:1 << 19], self._paths[:1 << 19]

    # ---- modules ----

    def _enter(self, path, module, args, kwargs):
        stack, task = self._stack(), torch._C._current_graph_task_id()
        if not stack and task == -1:
            self._call += 1
        phase = "forward" if task == -1 else "backward"
        inputs = self._said(_tensors({**dict(enumerate(args)), **kwargs}), path, type(module).__name__)
        pause = self._operators and _is_compiled(module) and _get_current_dispatch_mode() is self
        stack.append((path, task, phase, inputs, pause))
        self._moved()
        if pause:
            super().__exit__(None, None, None)

    def _leave(self, path, module, result, whole):
        stack = self._stack()
        while stack:
            *frame, phase, inputs, pause = stack.pop()
            if pause:
                super().__enter__()
            if frame[0] == path:
                break
        self._moved()
        if whole:
            self._event("module", phase, path, type(module).__name__, inputs, list(_tensors(result)))

    # ---- events ----

    def _said(self, tensors, path, name):
        """Arrays, as lines have them."""
        self._stack()
        busy, self._local.busy = self._local.busy, True
        try:
            arrays = []
            for label, tensor in tensors:
                with torch._C._DisableFuncTorch():  # else plain tensors under vmap and grad are wrapped as they are looked at
                    _, event, missing = self._storages.find(tensor) if is_readable(tensor) else (None, None, "")
                    said = {"name": label, **self._files.array(tensor, self._keeps(path, name), missing != "scratch")}
                said |= {"from": event} if event is not None else {}
                arrays.append(said | ({missing: 1} if missing else {}))
            return arrays
        finally:
            self._local.busy = busy

    def _event(self, kind, phase, path, name, inputs, outputs, more=None):
        said = self._said(outputs, path, name)
        number = self._files.event(kind=kind, phase=phase, call=self._call, path=path, name=name, **(more or {}), out=said, **{"in": inputs})
        if kind != "module":  # which computes nothing itself
            for (_, tensor), each in zip(outputs, said):
                if "rows" in each or "scratch" in each:
                    self._storages.wrote(tensor, number, "scratch" if "scratch" in each else "unset" if "unset" in each else "")
        return number

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self._stack()
        if self._local.busy or getattr(func, "is_view", False):
            return func(*args, **kwargs)
        if any(issubclass(each, _SHADOWS) for each in types):
            return func(*args, **kwargs)
        if not all(map(is_plain, types)):
            return NotImplemented  # the subclass first: its operators on plain tensors come back
        operator = func.overloadpacket.__name__ if hasattr(func, "overloadpacket") else str(func)
        if operator in _ALLOCATE or (getattr(func, "namespace", "") in ("c10d", "_c10d_functional") and operator != "wait_tensor"):
            return self._written_elsewhere(func, args, kwargs)
        inputs, written, told, seen = [], [], [], set()
        schema = getattr(func, "_schema", None)
        known = schema.arguments if schema else []
        values = [*zip(known, args), *((each, kwargs[each.name]) for each in known if each.name in kwargs)]
        if not schema:
            inputs = list(_tensors({**dict(enumerate(args)), **kwargs}))
        for argument, value in values:
            held = list(_tensors(value, argument.name)) if isinstance(value, (torch.Tensor, list, tuple)) else []
            writes = argument.alias_info is not None and argument.alias_info.is_write
            if writes:
                written += held
            if not (writes and (argument.is_out or operator in _OVERWRITE)):
                inputs += held
            if not held and argument.name not in _PLACING and _told(value):
                told.append(f"{argument.name}={value}")
        if any(tensor.is_meta for _, tensor in inputs):
            return func(*args, **kwargs)
        phase, path = self._place()
        said = self._said(inputs, path, str(func))
        result = func(*args, **kwargs)
        seen = {id(tensor) for _, tensor in written}
        outputs = written + [(name, tensor) for name, tensor in _tensors(result) if id(tensor) not in seen]
        read = {tensor.untyped_storage()._cdata for _, tensor in inputs if is_readable(tensor)}
        if not written and all(is_readable(tensor) and tensor.untyped_storage()._cdata in read for _, tensor in outputs):
            return result  # a view, or nothing
        self._mark_whole(written)
        for name, tensor in outputs:
            if name in _SCRATCH.get(operator, ()) and is_readable(tensor):
                self._storages.wrote(tensor, None, "scratch")
        self._event("operator", phase, path, str(func), said, outputs, {
            "with": ", ".join(told)[:300], "random": int(torch.Tag.nondeterministic_seeded in getattr(func, "tags", ())) or ""})
        return result

    def _mark_whole(self, written):
        for tensor in (tensor for _, tensor in written if is_readable(tensor)):
            _, event, missing = self._storages.find(tensor)
            if missing and tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes():
                self._storages.wrote(tensor, event)

    def _written_elsewhere(self, func, args, kwargs):
        """Memory whose contents are not yet there: until an operator has written all of it, it is no result."""
        result = func(*args, **kwargs)
        for _, tensor in _tensors((result, args, kwargs) if func.namespace == "c10d" else result):
            if is_readable(tensor):
                self._storages.wrote(tensor, None, "unset")
        return result


def trace(model: torch.nn.Module, folder: str | os.PathLike[str], *,
          arrays: Kept = False, operators: bool = True, progress: bool = False) -> Trace:
    """Records all that happens inside `with trace(model, folder):`, in a new folder. `arrays`: keep elements too, of all, of
    modules whose path matches a pattern ("layers.3.*") or patterns, or where arrays(path, name) is true. `operators=False`: modules
    alone. `progress`: a line on standard error every two seconds."""
    return Trace(model, folder, arrays, operators, progress)

"""All torch operators by name, backwards too; DTensor knows each by its sharding rule, from the time when it is imported."""
import importlib.util
import sys

DTENSOR = "torch.distributed.tensor"
MADE = {}


def keep(operator):
    MADE[operator.name] = operator
    if DTENSOR in sys.modules:
        _register(operator)


def _register(*operators):
    from ._sharding import register_rule

    for operator in operators:
        register_rule(operator)


class _AfterImport:
    """Gives DTensor the rules of what was made before it was imported."""

    def find_spec(self, name, path=None, target=None):
        if name != DTENSOR:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            _register(*MADE.values())

        spec.loader.exec_module = exec_module
        return spec


if DTENSOR not in sys.modules:
    sys.meta_path.insert(0, _AfterImport())

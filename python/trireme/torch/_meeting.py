"""What machines say to each other before they exchange numbers: who calls what, that all mean the same, and who cannot.

Numbers that do not fit would be waited for, or end gloo's processes. So the first call with a shape asks all machines by the
group's store. On CPUs machines say at each call whether they know theirs: where one does not, or differs, all ask. Who fails
before it exchanges anything says so where the others ask, and all raise the same error.
"""
import zlib

import torch
import torch.distributed as dist
from torch._guards import detect_fake_mode
from torch.distributed import _functional_collectives as collectives

from ._autograd import is_wrapped
from ._register import LIBRARY

all_of = getattr(collectives, "all_gather_single", None) or collectives.all_gather_tensor  # its name before torch 2.13

_all_of_now = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor


def arrived(tensor):
    return tensor.wait() if isinstance(tensor, collectives.AsyncCollectiveTensor) else tensor


def came(collective, what):
    """What a collective gives; where a machine dies or does not come, an error that says in which call."""
    try:
        return collective()
    except RuntimeError as error:
        if type(error) is not RuntimeError and not isinstance(error, dist.DistError):
            raise
        raise RuntimeError(f"{what}: a machine of the group went away, or did not come: {error}") from error


def number_of(text):
    return zlib.crc32(text.encode())


# ---- who may exchange ----

def of_member(group):
    """The group. Who is not in it has something else in its place, of torch.distributed.new_group."""
    if not isinstance(group, dist.ProcessGroup):
        raise ValueError(f"this process is no member of the group ({group!r} is what torch.distributed.new_group gives those that are "
                         "not); members alone call what is spread over it")
    return group


def refuse_transforms(tensors, what):
    """Collectives have no rules for torch.func: vmap's would be other machines' rows, and derivatives would be left out."""
    if is_wrapped(tensors):
        raise NotImplementedError(f"{what}: what is spread over machines is not transformed by torch.func (grad, vjp, jvp, vmap) nor by "
                                  "is_grads_batched. torch.autograd derives it, backward to any order and forward, and torch.func.grad "
                                  "derives operators on DTensors")


def is_traced(tensors):
    """Whether a graph is made, and nothing runs."""
    return detect_fake_mode([each for each in tensors if each is not None]) is not None


# ---- meetings ----

_met = {}  # by group and what was said here
_meetings = {}  # of each group, so far
_KNOWS, _ASKS = -1, -2  # where compiled code says how many numbers it exchanges
_APART = "the machines of the group are not all in the same call, or some are in compiled code and others are not"


def meet_all(meetings, what, device, error):
    """What the machines of several groups say, (group, numbers, equal) each, see `meet`. An error goes on to the groups that
    are still to be met: nobody waits there for a machine that has failed here."""
    for group, numbers, equal in meetings:
        try:
            meet(group, numbers, what, equal, device, error)
        except Exception as found:
            error = found
    if error is not None:
        raise error


def meet(group, numbers, what, equal, device=None, error=None):
    """The numbers that each machine of a group says, asked once for each set of numbers said here. Those of the places
    `equal` must agree; all machines raise the same error where they do not, or where one of them has an `error`. By the group's
    store, not by tensors: compilers know shapes before there is a tensor, and a GPU need not wait. Who does not come is waited
    for as long as the group says. `device`: of a call that runs now; its machines may say each time whether they ask."""
    key = group.group_name, numbers
    asks = error is not None or key not in _met
    if device is not None and asks_each_time(device):
        asks = _somebody_asks(group, asks, "" if error else [numbers[place] for place in equal], device, what[0])
    elif error is not None:  # others ask or not: it is said, and nobody is waited for
        _say(group, None, error)
        raise error
    if asks:
        found = _ask(group, numbers, what[0], error)
        for place in equal:
            said = [each[place] if place < len(each) else None for each in found]
            if len(set(said)) > 1:
                raise _of_all(f"{what[0]}: {what[1 + place]} must be the same on all {group.size()} machines of the group, and "
                              f"machine by machine there are {said}; where parts differ in size, `cut` says all sizes")
        _met[key] = found
    return _met[key]


def _somebody_asks(group, asks, equal, device, what):
    """Whether a machine does not know what the others say now, or says something else: by 16 bytes of each."""
    mine = torch.tensor([_ASKS if asks else _KNOWS, number_of(f"{what}{equal}")], device=device)
    found = mine.new_empty(2 * group.size())
    came(lambda: _all_of_now(found, mine, group), what)
    found = found.view(-1, 2).tolist()
    if any(status >= 0 for status, _ in found):
        raise _of_all(f"{what}: {_APART}")
    return any(each != [_KNOWS, found[0][1]] for each in found)


def _of_all(text):
    """An error that all machines of a group raise."""
    error = ValueError(text)
    error.is_of_all = True
    return error


def _say(group, numbers, error):
    """The names under which the machines of the group say something now, and the store."""
    count = _meetings[group.group_name] = _meetings.get(group.group_name, 0) + 1
    store = dist.distributed_c10d._get_process_group_store(group)
    begin, rank = f"trireme/{group.group_name}/{count}/", dist.get_rank(group)
    if error is None:
        text = ",".join(map(str, numbers))
    elif hasattr(error, "is_of_all"):
        text = f"!{error}"
    else:
        text = f"!machine {rank} of {group.size()} failed: {type(error).__name__}: {error}"
    store.set(f"{begin}{rank}", text)
    return [f"{begin}{each}" for each in range(group.size())], store


def _ask(group, numbers, what, error):
    """The numbers that each machine of the group says, now."""
    names, store = _say(group, numbers, error)
    try:
        store.wait(names, _timeout(group))
    except RuntimeError as late:  # torch's DistStoreError is one
        missing = [rank for rank, name in enumerate(names) if not store.check([name])]
        raise RuntimeError(f"{what}: of the {group.size()} machines of the group, {missing} did not come within "
                           f"{_timeout(group).total_seconds():g} s") from late
    said = [each.decode() for each in store.multi_get(names)]
    failed = [each[1:] for each in said if each.startswith("!")]
    if error is not None and len(failed) == len(said):
        raise error
    if failed:
        raise _of_all("; ".join(dict.fromkeys(failed))) from error
    return tuple(tuple(map(int, each.split(","))) for each in said)


def asks_each_time(device):
    """Whether machines say before each exchange what it is: gloo ends a process that is sent more than it asked for. NCCL's
    timeout ends machines that differ, unless torch is asked for more."""
    return device.type == "cpu" or dist.get_debug_level() == dist.DebugLevel.DETAIL


def agreed(numbers, found, machines, what):
    """The numbers that are to be exchanged, a copy, where all machines have said the same of them."""
    said = found.view(machines, -1).tolist()
    if any(each != said[0] for each in said):
        sizes = [size for size, _ in said]
        if min(sizes) < 0:
            raise ValueError(f"{what}: {_APART}")
        raise ValueError(f"{what}: shapes must be those of the other machines of the group, and machine by machine there are {sizes} "
                         f"numbers to exchange{', not of the same thing' if len(set(sizes)) == 1 else ''}")
    return numbers.clone()


LIBRARY.define("agreed(Tensor numbers, Tensor found, int machines, str what) -> Tensor")
LIBRARY.impl("agreed", agreed, "CompositeExplicitAutograd")
torch.library.register_fake("trireme::agreed", lambda numbers, *_: torch.empty_like(numbers), lib=LIBRARY)


def checked(numbers, group, what, kind, count):
    """The numbers, once all machines have said that they exchange as many (`count`), of the same thing, and cut alike."""
    if not asks_each_time(numbers.device):
        return numbers
    mine = torch.tensor([count, number_of(f"{what} {kind}")], device=numbers.device)
    return torch.ops.trireme.agreed(numbers, came(lambda: arrived(all_of(mine, 0, group)), what), group.size(), what)


def _timeout(group):
    for device in ("cpu", "cuda"):
        try:
            return group._get_backend(torch.device(device)).options._timeout
        except (AttributeError, RuntimeError):  # the group has none for that device
            continue
    return dist.constants.default_pg_timeout

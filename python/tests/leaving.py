"""How a process of a group ends."""
import os
import sys

import torch.distributed as dist


def leave(code=0):
    """Past the interpreter's own end. A group that a DeviceMesh knows outlives destroy_process_group, with its threads; and
    one of these that drops a tensor's Python half while the interpreter is torn down aborts the process (PyTorch's issue
    190489). A busy machine shows it: once in some hundreds of runs."""
    dist.barrier()  # nobody takes its end of a connection away while another still uses it
    dist.destroy_process_group()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)

"""What all trainer tests share."""

import torch

# One thread each, as in a worker: on busy cores several wait for one another far longer than they compute.
torch.set_num_threads(1)

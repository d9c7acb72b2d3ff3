"""What needs a GPU to be tried: `make gpu-check`."""

"""How fast rltrain is, beside its peers on the same machine in the same run: `make bench`."""

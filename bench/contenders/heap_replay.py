"""The same with segment trees as heaps in Python lists, one element at a time, as most libraries have them."""

import json
import random
import sys
import time
from collections.abc import Callable
from operator import add

import numpy as np

CAPACITY, BATCH = 1_000_000, 512
SIZE = 1 << 20


class Tree:
    """A binary heap of `reduce` over its leaves."""

    def __init__(self, reduce: Callable[[float, float], float], empty: float) -> None:
        self.reduce = reduce
        self.nodes = [empty] * (2 * SIZE)

    def fill(self, values: list[float]) -> None:
        self.nodes[SIZE : SIZE + len(values)] = values
        for node in range(SIZE - 1, 0, -1):
            self.nodes[node] = self.reduce(self.nodes[2 * node], self.nodes[2 * node + 1])

    def set(self, leaf: int, value: float) -> None:
        node = leaf + SIZE
        self.nodes[node] = value
        while node > 1:
            node //= 2
            self.nodes[node] = self.reduce(self.nodes[2 * node], self.nodes[2 * node + 1])

    def find(self, mass: float) -> int:
        node = 1
        while node < SIZE:
            node *= 2
            if self.nodes[node] <= mass:
                mass -= self.nodes[node]
                node += 1
        return node - SIZE


def main(seconds: float) -> None:
    """Print the result as a line of JSON."""
    numbers = np.random.default_rng(0)
    sums, mins = Tree(add, 0.0), Tree(min, float("inf"))
    priorities = numbers.random(CAPACITY) + 1e-6
    sums.fill(priorities.tolist())
    mins.fill(priorities.tolist())
    columns = [numbers.random((CAPACITY, 4), np.float32) for _ in range(2)] + [numbers.random(CAPACITY)] * 3

    def sample() -> object:
        part = sums.nodes[1] / BATCH
        slots = [min(sums.find((i + random.random()) * part), CAPACITY - 1) for i in range(BATCH)]
        least = mins.nodes[1]
        weights = [(sums.nodes[SIZE + slot] / least) ** -0.4 for slot in slots]
        return [column[slots] for column in columns] + [np.array(weights)]

    def update() -> None:
        for slot in random.sample(range(CAPACITY), BATCH):
            value = random.random() ** 0.6
            sums.set(slot, value)
            mins.set(slot, value)

    rates = []
    for call in (sample, update):
        begun, calls = time.process_time(), 0
        while time.process_time() - begun < seconds / 2:
            call()
            calls += 1
        rates.append(calls / (time.process_time() - begun))
    print(json.dumps({"samples_per_s": rates[0], "updates_per_s": rates[1]}))


if __name__ == "__main__":
    main(float(sys.argv[1]))

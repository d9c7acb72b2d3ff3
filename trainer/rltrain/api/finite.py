"""Numbers for JSON."""

import math
from typing import Any


def finite(node: Any) -> Any:
    """JSON has no NaN and no infinity: they become null."""
    if isinstance(node, float):
        return node if math.isfinite(node) else None
    if isinstance(node, dict):
        return {key: finite(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [finite(value) for value in node]
    return node

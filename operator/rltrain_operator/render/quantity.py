"""Kubernetes resource quantities as numbers."""

from decimal import Decimal

_FACTORS = {
    "m": Decimal("0.001"),
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate(["", "k", "M", "G", "T", "P", "E"])},
    **{suffix: Decimal(1024) ** power for power, suffix in enumerate(["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"], start=1)},
}


def quantity_bytes(quantity: str) -> int:
    """``"512Mi"`` -> 536870912. The manifest's models have checked the form."""
    number = quantity.rstrip("".join({letter for suffix in _FACTORS for letter in suffix}))
    return int(Decimal(number) * _FACTORS[quantity[len(number) :]])

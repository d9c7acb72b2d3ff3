"""Times as Kubernetes writes them."""

from datetime import UTC, datetime


def to_time(text: str) -> datetime:
    """RFC 3339 as Kubernetes writes it."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def to_text(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

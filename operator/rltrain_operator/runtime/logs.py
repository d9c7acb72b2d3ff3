"""Structured logging: one JSON object a line, with the job that it is about."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from rltrain.api import names

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "settings", "k8s_skip"}


class PlainFormatter(logging.Formatter):
    """The same as text, for people."""

    def format(self, record: logging.LogRecord) -> str:
        first, *rest = super().format(record).split("\n")
        extra = (f"{key}={value}" for key, value in _extra(record).items())
        return "\n".join([" ".join([first, *extra]), *rest])


class JsonFormatter(logging.Formatter):
    """Time, level, logger, message, and whatever was given as ``extra``."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        extra = _extra(record)
        if record.exc_info:
            extra["exception"] = self.formatException(record.exc_info)
        return json.dumps(line | extra, default=str)


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    """What was given besides the message; kopf names the object that it speaks of in its own way."""
    extra = {key: value for key, value in vars(record).items() if key not in _STANDARD and not key.startswith("_")}
    about = extra.pop("k8s_ref", None)
    if about is not None and "job" not in extra:
        name = f"{about.get('namespace')}/{about.get('name')}"
        extra |= {"job": name} if about.get("kind") == names.KIND else {"child": name}
    return extra


def set_up(log_format: str, level: str) -> None:
    """Everything goes to stderr; libraries speak only when something is wrong."""
    handler = logging.StreamHandler(sys.stderr)
    plain = PlainFormatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    handler.setFormatter(JsonFormatter() if log_format == "json" else plain)
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for noisy in ("kopf", "asyncio", "aiohttp.access"):
        logging.getLogger(noisy).setLevel(logging.WARNING)

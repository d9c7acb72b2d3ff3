"""Structured logging: one JSON object a line, with the job that it is about."""

import json
import logging
import sys
from datetime import UTC, datetime

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "settings"}


class JsonFormatter(logging.Formatter):
    """Time, level, logger, message, and whatever was given as ``extra``."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        extra = {key: value for key, value in vars(record).items() if key not in _STANDARD and not key.startswith("_")}
        if record.exc_info:
            extra["exception"] = self.formatException(record.exc_info)
        return json.dumps(line | extra, default=str)


def set_up(log_format: str, level: str) -> None:
    """Everything goes to stderr; libraries speak only when something is wrong."""
    handler = logging.StreamHandler(sys.stderr)
    plain = logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    handler.setFormatter(JsonFormatter() if log_format == "json" else plain)
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for noisy in ("kopf", "asyncio", "aiohttp.access"):
        logging.getLogger(noisy).setLevel(logging.WARNING)

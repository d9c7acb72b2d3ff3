"""`rltrain node`: the process of every pod but the head's."""


def node() -> None:
    """Join the job's Ray cluster, and join it again whenever its head comes anew. For pods."""
    from rltrain.runtime.node import keep_joined

    raise SystemExit(keep_joined())

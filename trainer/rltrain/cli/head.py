"""`rltrain head`: the process of a job's head pod."""


def head() -> None:
    """Start the job's Ray cluster and drive its plan. For pods."""
    from rltrain.runtime.head import serve

    raise SystemExit(serve())

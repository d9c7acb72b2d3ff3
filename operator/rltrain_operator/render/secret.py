"""The Secret with the token that every Ray process of the job shows."""

from rltrain_operator.render.context import Context, Object

TOKEN_KEY = "token"


def secret_name(ctx: Context) -> str:
    return f"{ctx.name}-token"


def secret(ctx: Context, token: str) -> Object:
    """Immutable: pods that started with one token would be cut off by another."""
    return ctx.object("v1", "Secret", secret_name(ctx), type="Opaque", immutable=True, stringData={TOKEN_KEY: token})

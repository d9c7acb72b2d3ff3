"""Whether the API server knows all that this release's manifests may hold."""

from collections.abc import Iterator

from rltrain.api import names
from rltrain.api.crd import crd
from rltrain_operator.render import Object
from rltrain_operator.runtime.api import Api

SHOWN = 3


async def outdated(api: Api) -> str | None:
    """What is missing in the served definition, as a sentence; None when nothing is.

    An older definition would silently drop the fields that it doesn't know.
    """
    served = await api.openapi(names.GROUP, names.VERSION)
    schemas = served.get("components", {}).get("schemas", {})
    kinds = (schema for name, schema in schemas.items() if name.endswith(f".{names.KIND}"))
    missing = list(missing_fields(own_schema(), next(kinds, {})))
    if not missing:
        return None
    more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
    return (
        f"the served definition of {names.KIND} lacks {', '.join(missing[:SHOWN])}{more}: "
        "upgrade it with the chart (crds.install), or by kubectl apply --server-side of the file in crds/"
    )


def own_schema() -> Object:
    """The schema of this release."""
    version = next(each for each in crd()["spec"]["versions"] if each["name"] == names.VERSION)
    schema: Object = version["schema"]["openAPIV3Schema"]
    return schema


def missing_fields(own: Object, served: Object, path: str = "") -> Iterator[str]:
    """Dotted paths of fields that one schema has and the other lacks."""
    known = served.get("properties", {})
    for key, part in own.get("properties", {}).items():
        here = f"{path}.{key}" if path else key
        if key not in known:
            yield here
        else:
            yield from missing_fields(part, known[key], here)
    if "items" in own:
        yield from missing_fields(own["items"], served.get("items", {}), f"{path}[]")

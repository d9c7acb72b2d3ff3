"""Structural schemas, the subset of JSON schema that a CRD may hold: from models, and one for several models."""

from typing import Any, Final

from rltrain.api.base import QUANTITY_PATTERN

Schema = dict[str, Any]

_ANYTHING: Final = "x-kubernetes-preserve-unknown-fields"
_LIST_KEYS: Final = {"conditions": "type", "roles": "name"}
_RENAMED: Final = {"ge": "minimum", "le": "maximum"}
"""What pydantic leaves as it is when a validator runs before the constraint."""
_KEPT: Final = {"type", "description", "enum", "minimum", "maximum", "minItems", "maxItems", "maxLength", "pattern"}


def convert(schema: Schema, defs: Schema, *, defaults: bool) -> Schema:
    """JSON schema as pydantic writes it -> the structural subset that a CRD may hold."""
    if "$ref" in schema:
        target = defs[schema["$ref"].rpartition("/")[2]]
        schema = target | {key: value for key, value in schema.items() if key != "$ref"}
    if "anyOf" in schema:
        (value,) = [option for option in schema["anyOf"] if option != {"type": "null"}]
        rest = {key: value for key, value in schema.items() if key != "anyOf"}
        return convert({**value, **rest} if "$ref" not in value else {**rest, **value}, defs, defaults=defaults) | {
            "nullable": True
        }
    if schema.get("pattern") == QUANTITY_PATTERN:
        kept = {key: schema[key] for key in ("description", "default") if key in schema}
        if not defaults:
            kept.pop("default", None)
        return kept | {"x-kubernetes-int-or-string": True, "pattern": QUANTITY_PATTERN, "minimum": 0}
    result = {_RENAMED.get(key, key): value for key, value in schema.items() if _RENAMED.get(key, key) in _KEPT}
    for bound in ("Minimum", "Maximum"):
        if f"exclusive{bound}" in schema:
            result[bound.lower()] = schema[f"exclusive{bound}"]
            result[f"exclusive{bound}"] = True
    if "const" in schema:
        result["enum"] = [schema["const"]]
    if "type" not in result:
        return result | {_ANYTHING: True}
    if "properties" in schema:
        result["properties"] = {
            name: convert(value, defs, defaults=defaults) for name, value in schema["properties"].items()
        }
        for name, key in _LIST_KEYS.items():
            if result["properties"].get(name, {}).get("type") == "array":
                result["properties"][name] |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}
        if schema.get("required"):
            result["required"] = list(schema["required"])
    elif isinstance(schema.get("additionalProperties"), dict):
        result["additionalProperties"] = convert(schema["additionalProperties"], defs, defaults=defaults)
    elif result["type"] == "object":
        result[_ANYTHING] = True
    if "prefixItems" in schema:
        result["items"] = convert(schema["prefixItems"][0], defs, defaults=defaults)
    elif "items" in schema:
        result["items"] = convert(schema["items"], defs, defaults=defaults)
    if defaults and schema.get("default") not in (None, [], {}):
        # Of a block with defaults the empty one is enough: the API server fills it in from its own fields.
        result["default"] = {} if "properties" in result else schema["default"]
    return result


def merge_objects(schemas: list[Schema]) -> Schema:
    """One object for several plans: all properties, required and defaulted only where all plans agree."""
    merged: Schema = {"type": "object", "properties": {}}
    for key in dict.fromkeys(key for schema in schemas for key in schema["properties"]):
        found = [schema["properties"][key] for schema in schemas if key in schema["properties"]]
        prop = found[0]
        for other in found[1:]:
            prop = _merge(prop, other)
        if len(found) < len(schemas):
            prop = {name: value for name, value in prop.items() if name != "default"}
        merged["properties"][key] = prop
    required = [key for key in merged["properties"] if all(key in schema.get("required", []) for schema in schemas)]
    if required:
        merged["required"] = required
    return merged


def _merge(one: Schema, other: Schema) -> Schema:
    """What either takes."""
    if one == other:
        return one
    if one.get("type") != other.get("type"):
        raise ValueError(f"one name, two types: {one} and {other}")
    if "properties" in one and "properties" in other:
        kept = {"description": one.get("description", "")} | ({"nullable": True} if one.get("nullable") else {})
        return merge_objects([one, other]) | kept
    merged = {key: value for key, value in one.items() if other.get(key) == value or key == "description"}
    if "enum" in one and "enum" in other:
        merged["enum"] = sorted({*one["enum"], *other["enum"]})
    for bound, widest in (("minimum", min), ("maximum", max)):
        if bound in one and bound in other:
            merged[bound] = widest(one[bound], other[bound])
    if one.get("nullable") or other.get("nullable"):
        merged["nullable"] = True
    return merged

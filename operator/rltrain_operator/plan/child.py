"""What all objects that a job owns have in common, as the API server hands them out."""

from dataclasses import dataclass

from rltrain_operator.render import ANNOTATION_MANIFEST, Object


@dataclass(frozen=True)
class Child:
    """An object that carries the name of one of a job's."""

    raw: Object

    @property
    def name(self) -> str:
        return str(self.raw["metadata"]["name"])

    @property
    def uid(self) -> str:
        return str(self.raw["metadata"]["uid"])

    @property
    def owner(self) -> str | None:
        """UID of the controlling object."""
        owners = self.raw["metadata"].get("ownerReferences", [])
        return next((str(owner["uid"]) for owner in owners if owner.get("controller")), None)

    @property
    def deleting(self) -> bool:
        return "deletionTimestamp" in self.raw["metadata"]

    @property
    def manifest_hash(self) -> str | None:
        """Of the manifest that it was made for."""
        found = self.raw["metadata"].get("annotations", {}).get(ANNOTATION_MANIFEST)
        return None if found is None else str(found)

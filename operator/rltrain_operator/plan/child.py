"""What all objects that a job owns have in common, as the API server hands them out."""

from dataclasses import dataclass

from rltrain.api.seen import Seen
from rltrain_operator.render import ANNOTATION_MANIFEST


@dataclass(frozen=True)
class Child(Seen):
    """An object that carries the name of one of a job's."""

    @property
    def owner(self) -> str | None:
        """UID of the controlling object."""
        owners = self.raw["metadata"].get("ownerReferences", [])
        return next((str(owner["uid"]) for owner in owners if owner.get("controller")), None)

    @property
    def manifest_hash(self) -> str | None:
        """Of the manifest that it was made for."""
        found = self.raw["metadata"].get("annotations", {}).get(ANNOTATION_MANIFEST)
        return None if found is None else str(found)

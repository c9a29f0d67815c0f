"""Volumes of a pod as folders of files, below the pod's own folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from relance.cluster.document import ManifestError
from relance.cluster.manifests import Manifests
from relance.cluster.pods import Container, Part, PodTemplate, Volume


def write_volumes(
    template: PodTemplate, folder: Path, manifests: Manifests, rewrite: Callable[[str, str], str]
) -> None:
    """Make the pod's volumes, each a folder of its name. `rewrite` (where, text) is for the texts of ConfigMaps.

    Raises ManifestError.
    """
    for volume in template.volumes:
        place = folder / volume.name
        place.mkdir(parents=True, exist_ok=True)
        for part in volume.parts:
            for path, content in _files(volume, part, manifests):
                file = place / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.unlink(missing_ok=True)
                file.touch(mode=0o600)
                text = rewrite(path, content.decode()).encode() if part.source == "configMap" else content
                file.write_bytes(text)
                file.chmod(volume.mode)


def mounted(container: Container, folder: Path) -> dict[str, str]:
    """Where the paths of the container's mounts are on this machine."""
    return {
        mount.path: str(folder / mount.volume / mount.sub_path if mount.sub_path else folder / mount.volume)
        for mount in container.mounts
    }


def _files(volume: Volume, part: Part, manifests: Manifests) -> list[tuple[str, bytes]]:
    kept = manifests.config_maps if part.source == "configMap" else manifests.secrets
    if part.name not in kept:
        if part.optional:
            return []
        raise ManifestError(f"volume {volume.name}: there is no {part.source} {part.name}")
    data = kept[part.name]
    for key, _ in part.items:
        if key not in data and not part.optional:
            raise ManifestError(f"volume {volume.name}: there is no key {key} in {part.source} {part.name}")
    return [(path, data[key]) for key, path in part.items if key in data] if part.items else list(data.items())

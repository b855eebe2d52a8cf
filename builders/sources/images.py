"""A folder of images: CLASS/*.jpg, or SPLIT/CLASS/*.jpg."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from builders.errors import BuildError
from builders.sources.places import IMAGES, in_order, split_name, visible_files
from builders.sources.raw import RawSource, listed, open_arrow, stored, sum_of_files, write_arrow
from builders.sources.spec import IMAGE, LABEL

_ROWS = 10_000


def read_images(path: Path, work: Path) -> RawSource:
    """List the images of a folder with the class each lies in; their bytes stay where they are.

    An image that lies in a split's folder but in no class has no label, as those of a test set.

    Raises
    ------
    BuildError
        If there is no image, one lies elsewhere than in a class or in a class of a split, or a link leads out.
    """
    from datasets import Features, Image, Value

    files = visible_files(path, IMAGES)
    if not files:
        raise BuildError(
            f"{path.name} holds no images ({', '.join(IMAGES)}): --source must be a folder with one per class"
        )
    places = [file.relative_to(path).parts for file in files]
    splits = _splits(places)
    features = Features({IMAGE: Image(), LABEL: Value("string")})

    def write(folder: Path) -> None:
        for split, members in splits.items():
            parts = (members[start : start + _ROWS] for start in range(0, len(members), _ROWS))
            write_arrow(folder / f"{split}.arrow", features, (_table(path.resolve(), part) for part in parts))

    revision = sum_of_files(path, files)
    folder = stored(work, ("images", list(splits), revision, str(path.resolve())), write)
    origin = f"image folder {path.resolve().name} ({len(files):,} images)"
    return RawSource(open_arrow(folder, splits), revision, origin, of_files=True)


def _splits(places: Sequence[tuple[str, ...]]) -> dict[str, list[tuple[tuple[str, ...], str | None]]]:
    """Parts of each image's path and its class, by split."""
    deepest = max(map(len, places))
    if deepest > 3 or min(map(len, places)) < 2:
        odd = next(place for place in places if not 2 <= len(place) <= 3)
        raise BuildError(f"image {'/'.join(odd)} must lie in CLASS/ or SPLIT/CLASS/ of the folder given as --source")
    tops = dict.fromkeys(place[0] for place in places)
    if deepest == 2 and not all(map(split_name, tops)):
        return {"train": [(place, place[0]) for place in places]}
    if unknown := [top for top in tops if split_name(top) is None]:
        raise BuildError(f"no split can be told from the folder {listed(unknown)}: call it train, validation or test")
    found: dict[str, list[tuple[tuple[str, ...], str | None]]] = {}
    origin: dict[str, str] = {}
    for place in places:
        split = str(split_name(place[0]))
        if origin.setdefault(split, place[0]) != place[0]:
            raise BuildError(f"split {split} is there more than once: {origin[split]}, {place[0]}; leave one")
        found.setdefault(split, []).append((place, place[1] if len(place) == 3 else None))
    return {split: found[split] for split in in_order(found)}


def _table(root: Path, members: Sequence[tuple[tuple[str, ...], str | None]]) -> pa.Table:
    images = [{"bytes": None, "path": str(root.joinpath(*place))} for place, _ in members]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    return pa.table({IMAGE: pa.array(images, kind), LABEL: pa.array([label for _, label in members], pa.string())})

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import timm.data
from datasets import ClassLabel, Dataset, Features, Image
from PIL import Image as Pictures

from builders.errors import BuildError
from evaluation.classifiers.ood import imagenet_a_classes, imagenet_a_columns, load_ood_spec, read_ood, report
from evaluation.classifiers.ood.images import images_of_parquet
from evaluation.errors import EvaluationError
from tests.hub_server import HubServer

INFO = timm.data.ImageNetInfo("imagenet-1k")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As the authors' archive unpacks: a folder a class, and a text; two images of the first class."""
    folder = tmp_path_factory.mktemp("images") / "imagenet-a"
    picture = folder / "picture.png"
    folder.mkdir()
    Pictures.new("RGB", (2, 2)).save(picture)
    for wnid in imagenet_a_classes():
        (folder / wnid).mkdir()
        shutil.copy(picture, folder / wnid / "0.001_egg_0.9.png")
    shutil.copy(picture, folder / imagenet_a_classes()[0] / "0.002_egg_0.9.png")
    picture.rename(folder.parent / "other.png")
    (folder / "README.txt").write_text("n01498041 stingray\n", encoding="utf-8")
    return folder


def test_columns_of_a_model_of_1000_classes() -> None:
    columns = imagenet_a_columns(1000)
    # timm has the indices in a list of its own, beside that of the WordNet ids.
    listed = (Path(timm.data.__file__).parent / "_info" / "imagenet_a_indices.txt").read_text(encoding="utf-8")
    assert columns.tolist() == [int(index) for index in listed.split()]
    assert [INFO.index_to_label_name(index) for index in columns] == list(imagenet_a_classes())
    # Some pairs of the mapping in the authors' own evaluation, number of 1,000 to number of 200.
    authors = {6: 0, 30: 8, 99: 24, 207: 38, 335: 66, 457: 91, 552: 109, 684: 133, 765: 144, 890: 174, 988: 199}
    assert {int(columns[place]): place for place in authors.values()} == authors


def test_columns_by_name_wherever_they_are() -> None:
    names = INFO.label_names()[::-1]
    assert imagenet_a_columns(1000, names).tolist() == (999 - imagenet_a_columns(1000)).tolist()
    assert (
        imagenet_a_columns(1001, ["background", *INFO.label_names()]).tolist()
        == (imagenet_a_columns(1000) + 1).tolist()
    )


def test_names_in_words_have_to_bear_out_the_order() -> None:
    words = INFO.label_descriptions()
    assert imagenet_a_columns(1000, words).tolist() == imagenet_a_columns(1000).tolist()
    assert imagenet_a_columns(1000, [f"LABEL_{i}" for i in range(1000)]).tolist() == imagenet_a_columns(1000).tolist()
    with pytest.raises(EvaluationError, match=r"of the 200 that are scored have another name, such as"):
        imagenet_a_columns(1000, words[::-1])
    with pytest.raises(EvaluationError, match="this one has 1,001 classes"):
        imagenet_a_columns(1001, ["background", *words])
    with pytest.raises(EvaluationError, match="this one has 10 classes"):
        imagenet_a_columns(10)


def test_a_folder_as_distributed(archive: Path) -> None:
    spec = load_ood_spec("imagenet-a")
    found = read_ood(spec, archive.parent)
    rows = found.rows
    assert rows.column_names == ["id", "image", "label", "source_index"]
    assert rows.features["label"].names == list(imagenet_a_classes())
    assert list(rows["label"])[:3] == [0, 0, 1]
    assert rows[2]["id"] == f"{imagenet_a_classes()[1]}/0.001_egg_0.9.png"
    assert rows[200]["image"].size == (2, 2)
    assert found.origin == "201 images in imagenet-a"
    assert read_ood(spec, archive).revision == found.revision
    predicted = np.array(rows["label"])
    predicted[:2] = 5
    assert report(spec, rows, predicted)["all"]["accuracy"]["value"] == 199 / 201


def test_a_folder_that_is_not_the_set(archive: Path, tmp_path: Path) -> None:
    spec = load_ood_spec("imagenet-a")
    folder = tmp_path / "copy"
    shutil.copytree(archive, folder)
    (folder / "n01498041" / "0.001_egg_0.9.png").unlink()
    (folder / "n01498041" / "0.002_egg_0.9.png").unlink()
    with pytest.raises(EvaluationError, match=r"no image of class n01498041; get it again from https"):
        read_ood(spec, folder)
    (folder / "n01498041").rename(folder / "n01498042")
    with pytest.raises(EvaluationError, match=r"folder 'n01498042' is no class of ImageNet-A; did you mean n01498041"):
        read_ood(spec, folder)
    with pytest.raises(EvaluationError, match="it has no folder n01498041 or of another class"):
        read_ood(spec, folder / "n01531178")
    with pytest.raises(EvaluationError, match=r"is a folder of images, one folder a class, not other\.png"):
        read_ood(spec, archive.parent / "other.png")


def test_parquet_from_the_hub(archive: Path, tmp_path: Path, hub_here: HubServer) -> None:
    names = list(imagenet_a_classes())[::-1]
    features = Features({"image": Image(), "label": ClassLabel(names=names)})
    content = (archive.parent / "other.png").read_bytes()
    rows = [{"image": {"bytes": content, "path": None}, "label": label} for label in (0, 199, 7)]
    (tmp_path / "set" / "data").mkdir(parents=True)
    Dataset.from_list(rows, features=features).to_parquet(tmp_path / "set" / "data" / "train-00000-of-00001.parquet")
    sha = hub_here.publish("barkermrl/imagenet-a", tmp_path / "set")
    found = read_ood(load_ood_spec("imagenet-a"))
    assert found.revision == sha
    assert list(found.rows["label"]) == [199, 0, 192]  # by name, not by number
    assert found.rows.features["label"].names == names[::-1]
    assert found.rows[1]["image"].size == (2, 2)


def test_parquet_of_other_classes(tmp_path: Path, hub_here: HubServer) -> None:
    features = Features({"image": Image(), "label": ClassLabel(names=["cat", "dog"])})
    (tmp_path / "set" / "data").mkdir(parents=True)
    rows = Dataset.from_list([{"image": None, "label": 0}], features=features)
    rows.to_parquet(tmp_path / "set" / "data" / "train-00000-of-00001.parquet")
    hub_here.publish("barkermrl/imagenet-a", tmp_path / "set")
    with pytest.raises(EvaluationError, match="must name the 200 classes of ImageNet-A by WordNet id, but it names 0"):
        read_ood(load_ood_spec("imagenet-a"))


@pytest.mark.parametrize("kind", ["file", "folder", "root"])
def test_links_out_of_the_folder_are_refused(archive: Path, tmp_path: Path, kind: str) -> None:
    first = imagenet_a_classes()[0]
    (tmp_path / "images").mkdir()
    folder = tmp_path / "images" / "imagenet-a"
    if kind == "root":
        folder.symlink_to(archive)
    else:
        shutil.copytree(archive, folder)
        shutil.move(folder / first, tmp_path / first)
        if kind == "file":
            (folder / first).mkdir()
            (folder / first / "secret.png").symlink_to(archive.parent / "other.png")
        else:
            (folder / first).symlink_to(tmp_path / first)
    with pytest.raises(BuildError, match="link that leads out"):
        read_ood(load_ood_spec("imagenet-a"), tmp_path / "images")


def test_parquet_with_paths_instead_of_images_is_refused(tmp_path: Path) -> None:
    names = list(imagenet_a_classes())
    features = Features({"image": Image(), "label": ClassLabel(names=names)})
    images = pa.array([{"bytes": None, "path": "http://127.0.0.1:9/x.png"}], features.arrow_schema.field("image").type)
    pq.write_table(pa.table({"image": images, "label": [0]}, schema=features.arrow_schema), tmp_path / "x.parquet")
    with pytest.raises(BuildError, match=r"'image' of x\.parquet has no bytes in row 0"):
        images_of_parquet([tmp_path / "x.parquet"], load_ood_spec("imagenet-a"))

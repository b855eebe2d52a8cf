"""Nothing that a source names outside of itself is read: no path, no link, no address."""

from __future__ import annotations

import io
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import ClassLabel, Features, Image, Value

from builders.embedded import check_embedded
from builders.errors import BuildError
from builders.sources import read_source
from tests.builders.sources.reading import nli, pictures, png, put, refused, shard

STRUCT = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


@pytest.fixture
def asked() -> Iterator[tuple[str, list[str]]]:
    """A server that counts what it is asked for."""
    seen: list[str] = []

    class Counting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(png(7))

        do_HEAD = do_GET

        def log_message(self, *_: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Counting)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/secret.png", seen
    server.shutdown()
    server.server_close()


@pytest.fixture(params=["absolute", "up", "address", "nothing"])
def elsewhere(request: pytest.FixtureRequest, tmp_path: Path, asked: tuple[str, list[str]]) -> Iterator[str | None]:
    """A path or an address of an image that is not in the source."""
    secret = put(tmp_path / "private", "secret.png") / "secret.png"
    yield {
        "absolute": str(secret),
        "up": f"{tmp_path / 'set' / '..' / 'private' / 'secret.png'}",
        "address": asked[0],
        "nothing": None,
    }[request.param]
    assert not asked[1]


def write(path: Path, images: Any, **others: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"image": images, "label": pa.array([0, 1]), **others}), path)
    return path


@pytest.mark.parametrize("declared", [False, True])
def test_images_without_bytes_in_parquet(tmp_path: Path, elsewhere: str | None, declared: bool) -> None:
    values = pa.array([{"bytes": png(0), "path": "a.png"}, {"bytes": None, "path": elsewhere}], STRUCT)
    path = write(tmp_path / "set" / "train.parquet", values)
    if declared:
        table = pq.read_table(path)
        features = Features({"image": Image(), "label": ClassLabel(names=["a", "b"])})
        pq.write_table(table.cast(features.arrow_schema), path)
    refused(pictures(names=("a", "b")), path, "'image'", "split train", "row 1", "no bytes")


def test_paths_that_are_declared_to_be_images(tmp_path: Path, elsewhere: str | None) -> None:
    features = Features({"image": Image(), "label": Value("int64")})
    path = write(tmp_path / "set" / "train.parquet", pa.array([elsewhere, "x"], pa.string()))
    pq.write_table(pq.read_table(path).replace_schema_metadata(features.arrow_schema.metadata), path)
    refused(pictures(names=("a", "b")), path, "'image'", "train")


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "tsv"])
def test_paths_in_text_files_are_no_images(tmp_path: Path, elsewhere: str | None, suffix: str) -> None:
    path = tmp_path / "set" / f"train.{suffix}"
    path.parent.mkdir()
    rows = {
        "jsonl": '{"image": {"bytes": null, "path": "P"}, "label": 0}\n' * 2,
        "csv": 'image,label\n"P",0\n"P",1\n',
        "tsv": "image\tlabel\nP\t0\nP\t1\n",
    }
    path.write_text(rows[suffix].replace("P", elsewhere or ""), encoding="utf-8")
    refused(pictures(names=("a", "b")), path, "'image'", "train")


@pytest.mark.parametrize("nested", ["plain", "list", "struct"])
def test_other_columns_of_images(tmp_path: Path, elsewhere: str | None, nested: str) -> None:
    inside = pa.array([{"bytes": png(0), "path": None}, {"bytes": None, "path": elsewhere}], STRUCT)
    column = {
        "plain": inside,
        "list": pa.ListArray.from_arrays([0, 1, 2], inside),
        "struct": pa.StructArray.from_arrays([inside], ["of"]),
    }[nested]
    images = pa.array([{"bytes": png(0), "path": None}] * 2, STRUCT)
    path = write(tmp_path / "set" / "train.parquet", images, more=column)
    refused(pictures(names=("a", "b")), path, "'more'", "train", "row 1")


def test_bytes_and_nulls_are_images(tmp_path: Path) -> None:
    inside = pa.array([None, {"bytes": png(0), "path": "/x/y.png"}], STRUCT)
    images = pa.array([{"bytes": png(0), "path": None}, {"bytes": png(9), "path": "/etc/hostname"}], STRUCT)
    lists = pa.ListArray.from_arrays([0, 0, 2], inside)
    path = write(tmp_path / "set" / "train.parquet", images, more=inside, lists=lists)
    rows = read_source(pictures(names=("a", "b")), work=tmp_path / "w", path=path).splits["train"]
    assert [image.getpixel((0, 0)) for image in rows["image"][:]] == [0, 9]
    check_embedded(rows, "rows")


@pytest.mark.parametrize("kind", ["file", "folder", "chain"])
def test_links_out_of_an_image_folder(tmp_path: Path, kind: str) -> None:
    root = put(tmp_path / "set", "a/1.png", "b/1.png")
    secret = put(tmp_path / "private", "c/secret.png") / "c" / "secret.png"
    if kind == "file":
        (root / "a" / "2.png").symlink_to(secret)
    elif kind == "folder":
        (root / "c").symlink_to(secret.parent)
    else:
        (tmp_path / "hop").symlink_to(secret)
        (root / "a" / "2.png").symlink_to(Path("..") / ".." / "hop")
    refused(pictures(), root, "c in set" if kind == "folder" else "a/2.png in set", "link", "leads out")


def test_links_inside_are_followed_to_files_and_the_folder_itself_may_be_one(tmp_path: Path) -> None:
    root = put(tmp_path / "set", "a/1.png", "b/1.png")
    (root / "a" / "2.png").symlink_to("1.png")
    (root / "c").symlink_to("b")
    (root / "a" / "loop.png").symlink_to("loop.png")
    (tmp_path / "link").symlink_to(root)
    rows = read_source(pictures(), work=tmp_path / "w", path=tmp_path / "link").splits["train"]
    assert rows["label"][:] == [0, 0, 1]


@pytest.mark.parametrize("name", ["train.jsonl", "train.parquet", "train.csv"])
def test_links_out_of_a_folder_of_texts(tmp_path: Path, name: str) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / name).write_text("secret", encoding="utf-8")
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / name).symlink_to(tmp_path / "private" / name)
    refused(nli(), tmp_path / "set", f"{name} in set", "link", "leads out")


def add(path: Path, name: str, kind: bytes = tarfile.REGTYPE, target: str = "", size: int | None = None) -> Path:
    shard(path, {"png": png(0), "cls": 0}, {"png": png(1), "cls": 1})
    with tarfile.open(path, "a") as file:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, target
        member.size = (len(png(2)) if kind == tarfile.REGTYPE else 0) if size is None else size
        file.addfile(member, io.BytesIO(png(2)))
    return path


@pytest.mark.parametrize(
    ("name", "kind", "target", "part"),
    [
        ("train/0002.png", tarfile.SYMTYPE, "/etc/hostname", "link"),
        ("train/0002.png", tarfile.LNKTYPE, "../private/secret.png", "link"),
        ("train/0002.cls", tarfile.SYMTYPE, "0001.cls", "link"),
        ("/etc/0002.png", tarfile.REGTYPE, "", "below the shard"),
        ("train/../../0002.png", tarfile.REGTYPE, "", "below the shard"),
    ],
)
def test_members_that_lead_out_of_a_shard(tmp_path: Path, name: str, kind: bytes, target: str, part: str) -> None:
    refused(pictures(names=("a", "b")), add(tmp_path / "train.tar", name, kind, target), name, "train.tar", part)


def test_a_member_with_the_name_of_a_file_here_is_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "train/0000.png").joinpath("train/0000.png").write_bytes(png(99))
    monkeypatch.chdir(tmp_path)
    path = shard(tmp_path / "train.tar", {"png": png(1), "cls": 0}, {"png": png(2), "cls": 1})
    rows = read_source(pictures(names=("a", "b")), work=tmp_path / "w", path=path).splits["train"]
    assert [image.getpixel((0, 0)) for image in rows["image"][:]] == [1, 2]


def test_a_file_that_became_another_is_told(tmp_path: Path) -> None:
    from builders.images import image_bytes

    with pytest.raises(BuildError, match=r"gone\.png cannot be read"):
        image_bytes({"bytes": None, "path": str(tmp_path / "gone.png")})

"""Read sources of the Hub in a process of its own: JSON steps in, a JSON outcome for each as the last line."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from builders.errors import BuildError, HubError
from builders.sources import SourceSpec, read_source


def read(fields: dict[str, Any], work: Path) -> dict[str, Any]:
    tuples = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
    found = read_source(SourceSpec(**tuples), work=work)
    shown = {
        split: {
            "rows": rows.remove_columns([name for name in rows.column_names if name == "image"]).to_list(),
            "columns": rows.column_names,
            "names": rows.features["label"].names,
            "mapped": bool(rows.cache_files),
            "pixels": [image.getpixel((0, 0)) for image in rows["image"][:]] if "image" in rows.column_names else [],
        }
        for split, rows in found.splits.items()
    }
    return {"splits": shown, "unlabelled": found.unlabelled, "revision": found.revision, "origin": found.origin}


def main() -> None:
    outcomes = []
    for step in json.loads(sys.argv[1]):
        os.environ.pop("HF_TOKEN", None)
        if step.get("token"):
            os.environ["HF_TOKEN"] = step["token"]
        try:
            outcomes.append({"result": read(step["spec"], Path(sys.argv[2]))})
        except (BuildError, HubError) as error:
            outcomes.append({"error": str(error), "kind": type(error).__name__})
    print("\n" + json.dumps(outcomes))


if __name__ == "__main__":
    main()

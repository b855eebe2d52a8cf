"""The real clients in a process of their own: run JSON steps, print a JSON outcome for each as the last line.

``python hub_steps.py '[{"do": "push", "token": ..., "folder": ..., "repo": ..., "options": {...}}, ...]'``
"""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from builders.errors import BuildError, HubError
from builders.hub import push_folder, resolve_revision, verify_revision


def load(step: dict[str, Any]) -> Any:
    from datasets import load_dataset

    try:
        data = load_dataset(step["repo"], step.get("config"), revision=step["revision"], split="test")
    except Exception as error:
        return {"client_error": str(error)}
    return list(data["id"])


def act(step: dict[str, Any]) -> Any:
    match step["do"]:
        case "push":
            result = push_folder(Path(step["folder"]), step["repo"], **step.get("options", {}))
            return asdict(result) | {"summary": result.summary()}
        case "resolve":
            return resolve_revision(step["repo"], step["revision"])
        case "verify":
            return verify_revision(Path(step["folder"]), step["repo"], step["revision"])
        case "load":
            return load(step)
        case "log in":  # as `hf auth login` does
            from huggingface_hub import constants

            Path(constants.HF_TOKEN_PATH).write_text(os.environ.pop("HF_TOKEN"), encoding="utf-8")
            return None
        case "die at tag":
            from huggingface_hub import HfApi

            HfApi.create_tag = lambda *args, **options: os._exit(9)  # type: ignore[method-assign]
            return None
        case "die after":  # when the request has been answered
            import re

            from huggingface_hub.utils._http import get_session

            def die(response: Any) -> None:
                request = response.request
                if request.method == step["method"] and re.search(step["path"], request.url.path):
                    os._exit(9)

            get_session().event_hooks["response"].append(die)
            return None
    raise ValueError(step)


def main() -> None:
    outcomes = []
    for step in json.loads(sys.argv[1]):
        os.environ.pop("HF_TOKEN", None)
        if step.get("token"):
            os.environ["HF_TOKEN"] = step["token"]
        try:
            outcomes.append({"result": act(step)})
        except (BuildError, HubError) as error:
            outcomes.append({"error": str(error), "kind": type(error).__name__})
    print("\n" + json.dumps(outcomes))


if __name__ == "__main__":
    main()

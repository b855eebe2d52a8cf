"""The commands. Each parses, makes one library call and says where the result is."""

from __future__ import annotations

import io
import json
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from builders.disk import told_when_full
from builders.errors import BuildError, HubError
from builders.stopping import goes_on_from, told_when_stopped
from evaluation.errors import EvaluationError
from probesieve import demo_command, eval_commands, report_commands, train_commands
from probesieve.options import Progress, Workers
from probesieve.output import guard_warnings, say
from unqover_data import ListError, NotFetchedError, list_classes, load_lists, read_toml
from unqover_data.errors import MOST_SIGNS, one_line

_LISTS_HELP = "bundled, released (fetched and checked), a folder in the released layout, or a TOML file."
_SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
}

Lists = Annotated[str, typer.Option("--lists", help=_LISTS_HELP)]

app = typer.Typer(
    help="UnQover probe sets and AFLite-filtered datasets: build them, push them, score models on them.\n\n"
    "Example: probesieve build unqover religion",
    **_SETTINGS,
)
build_app = typer.Typer(help="Build dataset folders.\n\nExample: probesieve build unqover religion", **_SETTINGS)
app.add_typer(build_app, name="build")


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        say(f"probesieve {version('probesieve')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@build_app.command("unqover")
def build_unqover(
    name: Annotated[str, typer.Argument(metavar="CLASS", help="gender, nationality, ethnicity, religion, or all.")],
    lists: Lists = "bundled",
    config: Annotated[str, typer.Option(help="qa, mlm, another config of the lists, or all.")] = "all",
    out: Annotated[Path, typer.Option(help="Folder that gets a folder a set.")] = Path("build"),
    version: Annotated[str | None, typer.Option(help="MAJOR.MINOR.PATCH instead of the lists' own.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a folder built from other inputs.")] = False,
    progress: Progress = True,
) -> None:
    """Build UnQover probe sets.

    Example: probesieve build unqover religion --config qa --out build
    """
    from builders.progress import switch_off
    from builders.reading import aligned
    from builders.unqover import build_unqover

    if not progress:
        switch_off()
    names = list_classes(lists) if name == "all" else (name,)
    configs = None if config == "all" else [config]
    built = [
        build_unqover(load_lists(one, lists), out, configs=configs, version=version, overwrite=overwrite)
        for one in names
    ]
    rows = []
    for folder in built:
        for part, splits in folder.manifest["configs"].items():
            size = sum(folder.manifest["files"][file]["bytes"] for file in splits["test"]["files"])
            state = "built" if folder.fresh else "up to date"
            rows.append((str(folder.folder), part, f"{splits['test']['rows']:,}", f"{size / 1e6:.2f} MB", state))
    say("\n".join(aligned([("folder", "config", "rows", "size", ""), *rows], right=(2, 3))))
    default = built[0].manifest["default_config"]
    say("\nTo load one:\n\n    from datasets import load_dataset")
    say(f'    load_dataset({json.dumps(str(built[0].folder))}, "{default}", split="test")')


@build_app.command("aflite")
def build_aflite(
    name: Annotated[str, typer.Argument(metavar="SET", help="A set as `probesieve list` names it, or SPEC.toml.")],
    source: Annotated[Path | None, typer.Option(help="Local file or folder to read instead of the Hub.")] = None,
    values: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Another value for the spec; repeatable.")
    ] = None,
    features: Annotated[
        Path | None, typer.Option(help=".npy or .safetensors, a row each in the set's order, instead of an encoder.")
    ] = None,
    warmup: Annotated[
        bool, typer.Option("--warmup/--no-warmup", help="Train the encoder on a sample, or take it as it is.")
    ] = True,
    filter_splits: Annotated[str | None, typer.Option(help="Splits to filter, such as train,validation.")] = None,
    out: Annotated[Path, typer.Option(help="Folder that gets the dataset folder.")] = Path("build"),
    work: Annotated[
        Path | None, typer.Option(help="Folder for what the stages make; OUT/.work/... by default.")
    ] = None,
    version: Annotated[str | None, typer.Option(help="MAJOR.MINOR.PATCH instead of the spec's own.")] = None,
    device: Annotated[str | None, typer.Option(help="cuda where there is one, else cpu.")] = None,
    workers: Workers = 2,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a folder built from other inputs.")] = False,
    progress: Progress = True,
) -> None:
    """Filter a dataset with AFLite.

    Example: probesieve build aflite planted-nli
    """
    from builders.aflite import Machine, build_aflite
    from builders.progress import switch_off
    from builders.reading import filtered_text
    from builders.specs import load_spec

    if not progress:
        switch_off()
    changed = list(values or ())
    if not warmup:
        changed.append("share=0.0")
    if filter_splits:
        changed.append(f"source.filtered={json.dumps([split.strip() for split in filter_splits.split(',')])}")
    built = build_aflite(
        load_spec(name, changed),
        out,
        source=source,
        features=features,
        work=work,
        version=version,
        overwrite=overwrite,
        machine=Machine(device=device, workers=workers),
    )
    say(filtered_text(built))


@app.command("refilter")
def refilter(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder of `probesieve build aflite`.")],
    version: Annotated[str, typer.Option(help="MAJOR.MINOR.PATCH of the new folder.")],
    n: Annotated[int | None, typer.Option(help="Rows to keep at least; not below the stored run's.")] = None,
    tau: Annotated[float | None, typer.Option(help="Least score of a removed row; not below the stored run's.")] = None,
    out: Annotated[Path, typer.Option(help="Folder that gets the new dataset folder.")] = Path("build"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a folder that is there.")] = False,
) -> None:
    """Cut a filtered set again at a higher n or tau, from its scores alone.

    Example: probesieve refilter build/planted-nli-aflite --n 4000 --version 1.1.0 --out recut
    """
    from builders.reading import filtered_text
    from builders.refilter import refilter

    say(filtered_text(refilter(folder, out, version=version, n=n, tau=tau, overwrite=overwrite)))


@app.command("list")
def list_sets() -> None:
    """List what can be built.

    Example: probesieve list
    """
    from builders.reading import aligned
    from builders.specs import list_specs, load_spec

    rows = []
    for name in list_classes():
        lists = load_lists(name)
        sizes = (f"{lists.rows(config):,}" for config in ("qa", "mlm"))
        rows.append((f"unqover-{name}", lists.version, *sizes, lists.title))
    say("Probe sets (probesieve build unqover CLASS):\n")
    say("\n".join(aligned([("set", "version", "qa rows", "mlm rows", "what"), *rows], right=(2, 3))))
    say("\nFiltered sets (probesieve build aflite SET):\n")
    specs = [load_spec(name) for name in list_specs()]
    rows = [
        (s.folder_name, s.version, s.source.id or s.source.kind, f"{s.filter.n:,}", s.encoder_kind, s.title)
        for s in specs
    ]
    say("\n".join(aligned([("set", "version", "source", "n", "encoder", "what"), *rows], right=(3,))))


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(metavar="SET", help="A set as `probesieve list` names it.")],
    lists: Lists = "bundled",
    row: Annotated[int | None, typer.Option(help="Row of config qa; one of the middle by default.")] = None,
) -> None:
    """Show one example of a probe set, as a person would read it, or the spec of a filtered set.

    Example: probesieve show unqover-religion
    """
    from builders.reading import example_text, spec_text
    from builders.specs import load_spec
    from builders.unqover import at_mask, example_row

    if name in list_classes():
        raise BuildError(f"no set {name!r}; did you mean 'unqover-{name}'?")
    if not name.startswith("unqover-"):
        say(spec_text(load_spec(name)))
        return
    found = load_lists(name.removeprefix("unqover-"), lists)
    example = example_row(found, row)
    say(example_text(example, at_mask(found, example)))


@app.command("validate")
def validate(file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="Lists of a class.")]) -> None:
    """Check a file of lists and name every fault in it.

    Example: probesieve validate age.toml
    """
    try:
        lists = read_toml(file)
    except ListError as error:
        say("\n".join(map(one_line, error.problems)), error=True)
        raise typer.Exit(2) from None
    rows = ", ".join(f"{lists.rows(config):,} rows in {config}" for config in lists.configs)
    say(f"{file}: good; {len(lists.configs['qa'].subjects)} subjects, {rows}")


app.command("eval")(eval_commands.evaluate)
app.command("difficulty")(eval_commands.difficulty)
app.command("humans")(eval_commands.humans)
app.command("compare")(eval_commands.compare)
app.command("export-scores")(eval_commands.export_scores)
app.command("train")(train_commands.train)
app.command("tables")(train_commands.tables)
app.command("demo")(demo_command.demo)
app.command("report")(report_commands.report)


@app.command("push")
def push(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A built dataset folder.")],
    repo_id: Annotated[str, typer.Argument(metavar="ORG/NAME", help="Dataset repository; created if it is not there.")],
    private: Annotated[bool, typer.Option("--private", help="Create the repository private.")] = False,
    create_pr: Annotated[bool, typer.Option("--create-pr", help="Open a pull request; tag after its merge.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything and send nothing.")] = False,
    verify: Annotated[
        bool | None, typer.Option("--verify/--no-verify", help="Load every file back; by default up to 1 GB.")
    ] = None,
    progress: Progress = True,
) -> None:
    """Push a built folder to the Hub as a tagged version.

    The token is that of `hf auth login` or HF_TOKEN.

    Example: probesieve push build/unqover-religion ORG/unqover-religion
    """
    from builders.hub import push_folder
    from builders.progress import switch_off

    if not progress:
        switch_off()
    with goes_on_from(f"what {repo_id} holds"):
        pushed = push_folder(folder, repo_id, private=private, create_pr=create_pr, dry_run=dry_run, verify=verify)
    say(pushed.summary())


def main() -> None:
    """Run ``probesieve``."""
    with told_when_stopped():
        _run(app, sys.argv[1:] or ["--help"])


def run(command: Callable[..., None]) -> None:
    """Run one command as a script of its own."""
    single = typer.Typer(**_SETTINGS)
    single.command()(command)
    with told_when_stopped():
        _run(single, sys.argv[1:])


def _run(commands: typer.Typer, args: list[str]) -> None:
    """Run what the command line asks for.

    What the user can mend comes out as one line with exit code 2, what the Hub refuses with exit code 1.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without μ is no reason to stop
    guard_warnings()
    try:
        with told_when_full():
            sys.exit(commands(args=args, standalone_mode=False))
    except (HubError, NotFetchedError) as error:
        message, code = str(error), 1
    except (ListError, BuildError, EvaluationError) as error:
        message, code = str(error), 2
    except typer.TyperException as error:
        message, code = f"{error.format_message()}{_see(error)}", 2
    except OSError as error:
        message, code = f"{error.filename or 'the system'}: {error.strerror or error}", 2
    except ImportError as error:
        message, code = f"{_library(error)} could not be loaded ({error}): install it anew, or allow more memory", 2
    except MemoryError as error:
        message, code = f"memory is not enough ({str(error) or 'no more could be had'}): allow more", 2
    say(f"error: {one_line(message, most=MOST_SIGNS)}", error=True)
    sys.exit(code)


def _library(error: ImportError) -> str:
    """What could not be loaded; a part of it in C has a name of its own, and the module that wants it tells whose."""
    if error.name and not error.name.startswith("_"):
        return error.name
    *_, (frame, _line) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals["__name__"]).partition(".")[0]


def _see(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)  # of errors in how a command is called
    return f" See: {context.command_path} --help" if context else ""

"""Load a checked `Gpu` from a GPU's name or a user's file."""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import InputFileError, UsageError
from ..support.by_name import plugins_of
from ..support.folders import own_gpu_folder, replace_file
from .checks import (
    check_classes,
    check_compilation,
    check_device,
    check_issue_limit,
    check_machine_code,
    check_memory,
    check_tensor,
)
from .fact import Entry, Fact, classes_of
from .gpu import ClassCost, FmaRate, Gpu, Scheduler, Subsystem
from .occupancy import OccupancyLimits
from .schema import FORMAT, HEADER, SECTIONS, TABLES, convert, unit_of
from .toml_file import DATA, SHARED_FOLDERS, TomlFile, did_you_mean, read

# A file with everything that it inherits: a tree of plain values, and the fact behind each value.

_ENTRY_KEYS = frozenset(Entry.__struct_fields__)
_PLAIN = 'expected {{ value = {}, source = "…", kind = "…" }}, because every number needs a source'


@dataclass
class Resolved:
    """The content of a GPU file with inheritance resolved.

    `values` is the tree of sections with plain values; `owners` maps each dotted key to the last file that set it;
    `header` has the final header texts except the title.
    """

    file: TomlFile
    header: dict[str, str] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Fact] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    owners: dict[str, TomlFile] = field(default_factory=dict)

    def error(self, key: str, problem: str) -> InputFileError:
        """An error at a dotted key, in the file that set it, or else in the requested file."""
        return self.owners.get(key, self.file).error(key, problem)


def resolve(name: str, path: Path) -> Resolved:
    """Read a file and its ancestors, and merge them; nearer files override farther ones."""
    requested = read(name, path)
    resolved = Resolved(requested)
    for file in ancestry(requested, ()):
        _merge(resolved, file)
    for key, fact in resolved.facts.items():
        owner = resolved.owners[key]
        if owner.is_gpu and owner is not resolved.file:  # an architecture's values are this GPU's own
            resolved.facts[key] = fact.inherited()
    return resolved


def ancestry(file: TomlFile, heirs: tuple[TomlFile, ...]) -> list[TomlFile]:
    """All files that a file inherits from, the farthest first, then the file itself; each file once."""
    files: list[TomlFile] = []
    for name in _parents(file):
        parent, path = find_parent(file, name)
        if any(path.samefile(heir.path) for heir in (*heirs, file)):
            circle = " -> ".join([*(heir.name for heir in (*heirs, file)), parent])
            raise file.error("inherits", f"circular inheritance: {circle}")
        known = {other.path for other in files}
        files += [f for f in ancestry(read(parent, path), (*heirs, file)) if f.path not in known]
    return [*files, file]


def _parents(file: TomlFile) -> list[str]:
    given = file.content.get("inherits", [])
    names = given if isinstance(given, list) else [given]
    for name in names:
        if not isinstance(name, str):
            raise file.error("inherits", f"expected the name of a GPU or architecture, got {name!r}")
    return names


def _merge(resolved: Resolved, file: TomlFile) -> None:
    _merge_header(resolved, file)
    for key, value, entry in leaves(file, {k: v for k, v in file.content.items() if k not in HEADER}, ""):
        for stale in _overridden(resolved, key):
            del resolved.owners[stale]
            resolved.facts.pop(stale, None)
        _place(resolved.values, key.split("."), value)
        resolved.owners[key] = file
        if entry is not None:
            shown = tuple(value) if isinstance(value, list) else value
            resolved.facts[key] = Fact(shown, unit_of(key), entry.source, entry.kind, entry.note, file.name)
            _check_source(resolved, file, key, entry)


def _overridden(resolved: Resolved, key: str) -> list[str]:
    """The keys so far that a value at `key` replaces: its own, what it lies in, and the values of a table there."""
    names = key.split(".")
    tree: Any = resolved.values
    for name in names:
        tree = tree.get(name) if isinstance(tree, dict) else None
    within = [k for k in resolved.owners if k.startswith(f"{key}.")] if isinstance(tree, dict) else []
    around = [".".join(names[:count]) for count in range(1, len(names) + 1)]
    return within + [k for k in around if k in resolved.owners]


def _merge_header(resolved: Resolved, file: TomlFile) -> None:
    known = (*HEADER, *SECTIONS, *TABLES)
    for key, value in file.content.items():
        if key not in known:
            raise file.error(key, "unknown key" + did_you_mean(key, known))
        if key == "sources":
            _merge_sources(resolved, file, value)
        elif key in HEADER and key not in ("format", "inherits"):
            if not isinstance(value, str):
                raise file.error(key, f"expected text, got {value!r}")
            resolved.header[key] = value
        elif key not in HEADER and not isinstance(value, dict):
            raise file.error(key, f"expected a table, got {value!r}")
    if file.content.get("format") != FORMAT:
        raise file.error("format", f"expected format = {FORMAT}")
    if "title" not in file.content:
        raise file.error("title", "missing; expected the GPU's full name")


def _merge_sources(resolved: Resolved, file: TomlFile, table: Any) -> None:
    if not isinstance(table, dict):
        raise file.error("sources", f"expected a table, got {table!r}")
    for key, text in table.items():
        if not isinstance(text, str) or not text:
            raise file.error(f"sources.{key}", f"expected text that names the source, got {text!r}")
        if resolved.sources.setdefault(key, text) != text:
            raise file.error(f"sources.{key}", "an inherited file uses this key for another source")


def leaves(file: TomlFile, table: dict[str, Any], prefix: str) -> Iterator[tuple[str, Any, Entry | None]]:
    """Dotted key, plain value and fact of every value in a file; names and switches need no fact."""
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and not _ENTRY_KEYS & value.keys():
            yield from leaves(file, value, f"{key}.")
        elif isinstance(value, dict):
            entry = convert(value, Entry, key, file.error)
            if isinstance(entry.value, float) and not math.isfinite(entry.value):
                raise file.error(key, f"expected a finite number, got {entry.value}")
            if entry.kind in ("proxy", "assumed", "inherited") and not entry.note:
                raise file.error(f"{key}.note", f"missing; expected a reason, because kind is {entry.kind!r}")
            yield key, entry.value, entry
        elif isinstance(value, str | bool):
            yield key, value, None
        else:
            raise file.error(key, _PLAIN.format(value))


def _place(tree: dict[str, Any], names: list[str], value: Any) -> None:
    for name in names[:-1]:
        if not isinstance(tree.get(name), dict):
            tree[name] = {}
        tree = tree[name]
    tree[names[-1]] = value


def _check_source(resolved: Resolved, file: TomlFile, key: str, entry: Entry) -> None:
    if entry.source not in resolved.sources:
        hint = did_you_mean(entry.source, resolved.sources)
        raise file.error(f"{key}.source", f"{entry.source!r} is not in [sources]{hint}")


_ORDER = (
    "device", "memory", "occupancy", "host", "scheduler", "parameters", "machine_code", "classes", "tensor",
    "subsystems",
)  # fmt: skip
"""Display order of the sections: the product first, the long list of classes late."""


def load_gpu(name_or_path: str) -> Gpu:
    """Load a GPU by its packaged name (`gpu_names` lists them) or by a path that ends in ``.toml``.

    Raises `UsageError` for a name or path that does not exist, naming the nearest matches, and
    `InputFileError` for an invalid file: one line with file, line, key and what was expected.
    """
    name, path = find(name_or_path)
    return (_packaged if path.parent == DATA else _loaded)(name, path)


def _loaded(name: str, path: Path) -> Gpu:
    resolved = resolve(name, path)
    values, error = resolved.values, resolved.error
    capability, arch = resolved.header.get("compute_capability", ""), resolved.header.get("arch", "")
    check_compilation(capability, arch, error)
    for required in ("scheduler", "subsystems", "classes", *(("device", "occupancy", "memory") if arch else ())):
        if required not in values:
            raise error(required, "missing; expected a table")
    sections = {key: convert(values[key], kind, key, error) for key, kind in SECTIONS.items() if key in values}
    subsystems = _table(resolved, "subsystems", Subsystem)
    classes = _table(resolved, "classes", ClassCost)
    tensor = _table(resolved, "tensor", FmaRate)
    scheduler: Scheduler = sections.pop("scheduler")  # type: ignore[assignment]
    check_classes(classes, subsystems, not arch, error, classes_of(arch))
    check_issue_limit(classes, subsystems, scheduler, error)
    check_tensor(tensor, error)
    _check_sections(sections, resolved)
    return Gpu(
        name=name,
        title=resolved.file.content["title"],
        aliases=tuple(filter(None, map(str.strip, str(resolved.file.content.get("aliases", "")).split(",")))),
        compute_capability=capability,
        arch=arch,
        scheduler=scheduler,
        subsystems=subsystems,
        classes=classes,
        tensor=tensor,
        sources=resolved.sources,
        file_hash=_hash(resolved),
        sections=sections,
        known=dict(sorted(resolved.facts.items(), key=lambda item: _ORDER.index(item[0].partition(".")[0]))),
    )


# A packaged file and what it inherits from do not change while drywarp runs.
_packaged = lru_cache(maxsize=64)(_loaded)


def limits_of(compute_capability: str) -> OccupancyLimits:
    """The occupancy limits of a compute capability, such as ``"8.6"``; `capabilities` lists them."""
    known = capabilities()
    if compute_capability not in known:
        hint = did_you_mean(compute_capability, known)
        raise UsageError(f"no occupancy limits are known for compute capability {compute_capability!r}{hint}")
    name = f"cc/{compute_capability}"
    resolved = resolve(name, DATA / f"{name}.toml")
    limits = convert(resolved.values["occupancy"], OccupancyLimits, "occupancy", resolved.error)
    _check_sections({"occupancy": limits}, resolved)
    return limits


def _table(resolved: Resolved, section: str, kind: Any) -> dict[str, Any]:
    table = resolved.values.get(section, {})
    return {name: convert(value, kind, f"{section}.{name}", resolved.error) for name, value in table.items()}


def _check_sections(sections: dict[str, Any], resolved: Resolved) -> None:
    if "device" in sections:
        check_device(sections["device"], resolved.error)
    if "memory" in sections:
        check_memory(sections["memory"], resolved.error)
    if "machine_code" in sections:
        check_machine_code(sections["machine_code"], resolved.values, resolved.error)
    if "occupancy" in sections and (wrong := sections["occupancy"].inconsistency()):
        raise resolved.error(f"occupancy.{wrong[0]}", f"expected {wrong[1]}")


def _hash(resolved: Resolved) -> str:
    """SHA-256 over the complete content, regardless of which file it comes from."""
    content = {
        "header": {key: text for key, text in resolved.header.items() if key not in ("inherits", "title", "aliases")},
        "title": resolved.file.content["title"],
        "values": resolved.values,
        "facts": {key: {**asdict(fact), "file": ""} for key, fact in resolved.facts.items()},
        "sources": resolved.sources,
    }
    canonical = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


# The user's own GPUs: files in a folder of theirs, found by name as the packaged ones are.


def add_gpu(file: str | Path) -> Gpu:
    """Check a GPU file and copy it into the user's own folder; its name without ``.toml`` becomes the GPU's name.

    No other GPU's name changes its meaning. Raises InputFileError for an invalid file, and UsageError for a name that
    is taken or cannot be typed after ``--gpu``.
    """
    path = Path(file)
    if path.suffix != ".toml":
        raise UsageError(f"--add {file}: expected a GPU file (.toml)")
    gpu = load_gpu(str(path))
    name, given = path.stem, read(path.stem, path)
    if not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", name, re.ASCII) or name == "all" or name.endswith(".toml"):
        raise UsageError(f"--add {file}: {name!r} would be the GPU's name; expected letters, digits and any of . _ + -")
    if name in own_names():
        raise UsageError(f"--add {file}: you already have a GPU {name} (drywarp gpus --remove {name} removes it)")
    if taken := name if name in gpu_names() else next(iter(products(name)[0]), None):
        raise UsageError(f"--add {file}: {name!r} already means the GPU {taken}; expected another file name")
    for key in ("title", "aliases"):
        for spelling in str(given.content.get(key, "")).split(",") if key == "aliases" else [gpu.title]:
            if taken := next(iter(products(spelling)[0]), None):
                raise given.error(key, f"{spelling.strip()!r} already means the GPU {taken}; expected another one")
    for parent in _parents(given):
        if parent.endswith(".toml"):
            hint = f"add that file first, then inherit from {Path(parent).stem!r}"
            raise given.error("inherits", f"{parent!r} would not be found in your own folder; {hint}")
    target = own_gpu_folder() / f"{name}.toml"
    replace_file(target, path.read_bytes())
    if not target.is_file():
        raise UsageError(f"--add {file}: {target.parent} is not writable (set DRYWARP_GPU_DIR to use another folder)")
    return load_gpu(name)


def remove_gpu(name: str) -> Path:
    """Delete one of the user's own GPU files; returns its path. Raises UsageError if others inherit from it."""
    own = own_names()
    if name not in own:
        raise UsageError(f"--remove {name}: expected a GPU of your own ({', '.join(own) or 'you have added none'})")
    files = (read(other, own_gpu_folder() / f"{other}.toml") for other in own if other != name)
    if heirs := [file.name for file in files if name in _parents(file)]:
        raise UsageError(f"--remove {name}: {', '.join(heirs)} inherits from it; expected a GPU that no other needs")
    path = own_gpu_folder() / f"{name}.toml"
    path.unlink()
    return path


__all__ = ["add_gpu", "capabilities", "gpu_names", "limits_of", "load_gpu", "own_names", "remove_gpu"]


GROUP = "drywarp.gpus"
"""Entry-point group: paths of folders with GPU files, which may inherit from the packaged ones."""


_BRANDS = frozenset("nvidia geforce tesla quadro amd radeon instinct gpu graphics card".split())


def gpu_names() -> list[str]:
    """Names of all GPUs, also of other packages and the user's own, in alphabetical order; those of the papers last."""
    names = {name for folder in _folders() for name in _names(folder) if not name.startswith(SHARED_FOLDERS)}
    return sorted(names, key=lambda name: ("/" in name, name))


def own_names() -> list[str]:
    """Names of the user's own GPUs, which lie in `own_gpu_folder`, in alphabetical order."""
    return sorted(path.stem for path in own_gpu_folder().glob("*.toml"))


def capabilities() -> list[str]:
    """The compute capabilities whose occupancy limits are packaged, oldest first."""
    names = (name.removeprefix("cc/") for name in _names(DATA / "cc"))
    return sorted((n for n in names if n[0].isdigit()), key=lambda n: tuple(map(int, n.split("."))))


def _names(folder: Path) -> list[str]:
    root = DATA if folder.is_relative_to(DATA) else folder
    return [path.relative_to(root).as_posix().removesuffix(".toml") for path in folder.rglob("*.toml")]


def _folders() -> list[Path]:
    """The packaged folder of GPU files, those of other packages, and the user's own."""
    return [DATA, *plugins_of(GROUP, Path), own_gpu_folder()]


def find(name_or_path: str) -> tuple[str, Path]:
    """Name and path of a GPU: a packaged one, or a user's file whose path ends in ``.toml``.

    A product may be spelled as its driver or a shop does: ``RTX 2080 Ti``, ``NVIDIA A100-SXM4-80GB``.
    """
    if name_or_path.endswith(".toml"):
        path = Path(name_or_path)
        if not path.is_file():
            raise UsageError(f"GPU file {name_or_path} does not exist")
        return path.stem, path
    if not name_or_path.startswith(SHARED_FOLDERS):
        named = [folder for folder in _folders() if name_or_path in _names(folder)]
        if len(named) > 1 and named[-1] == own_gpu_folder():  # a packaged GPU that came later, say
            own = f"{named[-1] / name_or_path}.toml"
            raise UsageError(
                f"GPU {name_or_path!r} is also the name of your own file {own}; expected another name for it"
            )
        if named:
            return name_or_path, named[0] / f"{name_or_path}.toml"
    same, more = products(name_or_path)
    if len(same) == 1:
        return find(same[0])
    near = same or more or difflib.get_close_matches(name_or_path, gpu_names(), n=3, cutoff=0.3)
    known = f"nearest: {', '.join(near)}" if near else "drywarp gpus lists the known ones"
    raise UsageError(f"unknown GPU {name_or_path!r}; {known}; or a path ending in .toml")


def products(text: str) -> tuple[list[str], list[str]]:
    """GPUs with exactly these words in their name, title or alias, in any order and spelling; those with more."""
    wanted = _parts(text)
    same, more = [], []
    for folder in _folders() if wanted else []:
        for name in (name for name in _names(folder) if "/" not in name):
            content = read(name, folder / f"{name}.toml").content
            spellings = (name, str(content.get("title", "")), *str(content.get("aliases", "")).split(","))
            parts = [_parts(spelling) for spelling in spellings]
            same += [name] if wanted in parts else []
            more += [name] if any(wanted < known for known in parts) else []
    return same, sorted(more)


def _parts(text: str) -> frozenset[str]:
    """The words and numbers of a product's name, without those that tell no product from another."""
    return frozenset(part for part in re.findall(r"[a-z]+|[0-9]+", text.lower()) if part not in _BRANDS)


def find_parent(child: TomlFile, name: str) -> tuple[str, Path]:
    """Name and path of a file's parent: a GPU or architecture by name, or a .toml file beside it."""
    if name.endswith(".toml"):
        path = child.path.parent / name
        if path.is_file():
            return f"arch/{path.stem}" if path.resolve().parent.name == "arch" else path.stem, path
        raise child.error("inherits", f"expected an existing file, got {name!r}")
    for folder in (DATA, own_gpu_folder()):
        path = folder / f"{name}.toml"
        if path.is_file() and path.resolve().is_relative_to(folder.resolve()):
            return name, path
    raise child.error("inherits", f"unknown GPU {name!r}" + did_you_mean(name, [*_names(DATA), *own_names()]))

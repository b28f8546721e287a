"""Which files are meant: paths, globs, folders and URIs, one or many, become a list of files of one kind.

A folder stands for every file in it and below it, but for those whose names begin with `.` or `_` (unfinished, or
notes of the writer). Folders named `key=value` below what was written are columns of their files (hive partitions).
Local paths and URIs go through Arrow's file systems alike, so that a glob means the same everywhere. Cost: a listing of
the folders; of the files only those without a known ending are looked into, for the mark that Parquet begins with.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as fs

from trendloom.errors import DataError, did_you_mean

KINDS = {"parquet": "Parquet", "csv": "CSV", "tsv": "tab-separated", "jsonl": "JSON lines"}
ENDINGS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
COMPRESSED = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4"}
SUPPORTED = ".parquet, .csv, .tsv and .jsonl files (text also as .gz, .zst, .bz2 or .lz4), globs and folders of them"

SCHEMES = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "hdfs": "hdfs", "abfs": "abfs", "abfss": "abfss"}
"""What may stand before `://` besides `file`, and what Arrow calls it."""

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_MAGIC = re.compile(r"[*?[]")
_MAGIC_IN_URI = re.compile(r"[*[]")  # a question mark opens the options of the file system

BLOCKS = (1 << 20, 1 << 26, 1 << 30)
"""Bytes that are parsed at once: a row must fit, so a file with a longer one is read anew with the next."""
NOT_TEXT = "the file may be damaged, or not be what its name says"

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class File:
    """One file: where it lies, its name in messages, and the columns that the names of its folders give it."""

    system: fs.FileSystem
    path: str
    name: str
    keys: tuple[tuple[str, str | None], ...] = ()

    @property
    def local(self) -> Path | None:
        """The path on this machine, if it is on this machine."""
        return Path(self.path) if isinstance(self.system, fs.LocalFileSystem) else None

    @contextmanager
    def open(self) -> Iterator[pa.NativeFile]:
        """Its bytes from the beginning on, unpacked where they are compressed."""
        packed = COMPRESSED.get(_ending(self.path))
        with self.system.open_input_stream(self.path, compression=packed) as stream:
            yield stream


@dataclass(frozen=True)
class EventFiles:
    """The files of one stream of events, all of one kind."""

    kind: str
    files: tuple[File, ...]


def places_of(source: object) -> list[str] | None:
    """What was written, if the source is a path or several; None: it is something else."""
    if isinstance(source, str | os.PathLike):
        return [os.fspath(source)]
    if isinstance(source, list | tuple) and source and all(isinstance(one, str | os.PathLike) for one in source):
        return [os.fspath(one) for one in source]
    return None


def scheme_of(place: str) -> str | None:
    """`s3` of `s3://bucket/events`; None for a path, and for a URI of this machine."""
    scheme, colon, _ = place.partition("://")
    return scheme.lower() if colon and scheme.lower() != "file" else None


def find_files(places: Sequence[str]) -> EventFiles:
    """The files that are meant, each once, in the order of what was written and of their names."""
    found = {(file.system.type_name, file.path): file for place in places for file in _files_of(place)}
    files = tuple(found.values())
    kinds = [kind_of_file(file) for file in files]
    for file, kind in zip(files, kinds, strict=True):
        if kind != kinds[0]:
            raise DataError(
                f"{files[0].name} is {KINDS[kinds[0]]}, but {file.name} is {KINDS[kind]}",
                hint="the events of one run come from files of one kind; a glob chooses some, for example '*.csv'",
            )
    return EventFiles(kinds[0], files)


def kind_of_file(file: File) -> str:
    """The kind of a file by its ending; without a known one, by the mark of Parquet."""
    plain = file.path[: -len(_ending(file.path))] if _ending(file.path) in COMPRESSED else file.path
    kind = ENDINGS.get(_ending(plain))
    if kind is not None and (kind != "parquet" or plain == file.path):
        return kind
    if guarded(file.name, lambda: _begins_as_parquet(file)):
        return "parquet"
    ending = "".join(Path(file.path).suffixes[-2:] if plain != file.path else Path(file.path).suffixes[-1:])
    which = f"files that end in '{ending}'" if ending else "files without an ending"
    raise DataError(f"{file.name}: cannot read {which}", hint=f"events come from {SUPPORTED}")


def guarded(name: str, reader: Callable[[], _Found], hint: str | None = None) -> _Found:
    """Call a reader, and turn errors of Arrow and of the system into one that names the file."""
    try:
        return reader()
    except PermissionError as problem:
        raise DataError(f"{name} may not be read", hint="check the permissions of the file") from problem
    except (pa.ArrowException, OSError, EOFError, UnicodeError, MemoryError) as problem:
        reason = str(problem).strip().split("\n")[0] or type(problem).__name__
        raise DataError(f"{name} cannot be read: {reason}", hint=hint or "the file may be damaged") from problem


def _ending(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def _begins_as_parquet(file: File) -> bool:
    with file.system.open_input_stream(file.path, compression=None) as stream:
        return bool(stream.read(4) == b"PAR1")


# ----------------------------------------------------------------------------------- what was written, and where


@dataclass(frozen=True)
class _Location:
    """A folder or file `root` of a file system, shown as `shown`, and the parts of a glob below it, if it is one."""

    system: fs.FileSystem
    root: str
    shown: str
    glob: tuple[str, ...] = ()

    def name(self, path: str) -> str:
        return self.shown.rstrip("/") + path[len(self.root.rstrip("/")) :]


def _files_of(text: str) -> list[File]:
    place = _local_place(text) if scheme_of(text) is None else _remote_place(text)
    if place.glob:
        return guarded(text, lambda: _matching(place, text))
    info = guarded(text, lambda: place.system.get_file_info(place.root))
    if info.type is fs.FileType.NotFound:
        raise DataError(f"{text} does not exist", hint=_nearby(place))
    if info.type is not fs.FileType.Directory:
        return [File(place.system, place.root, place.shown)]
    found = guarded(text, lambda: _in_folder(place, place.root))
    if not found:
        raise DataError(f"{text} holds no files of events", hint=f"events come from {SUPPORTED}")
    return found


def _local_place(text: str) -> _Location:
    path = unquote(re.sub("^file:(//)?(?=/)", "", text, flags=re.IGNORECASE)) if text[:5].lower() == "file:" else text
    path = os.path.expanduser(path)
    if not _MAGIC.search(path) or os.path.exists(path):
        return _Location(fs.LocalFileSystem(), os.path.abspath(path), path.rstrip("/") or path)
    head, glob = _split(path, _MAGIC)
    return _Location(fs.LocalFileSystem(), os.path.abspath(head or "."), head or ".", glob)


def _remote_place(text: str) -> _Location:
    scheme, _, rest = text.partition("://")
    if scheme.lower() not in SCHEMES:
        known = ", ".join(f"{one}://" for one in ("file", *dict.fromkeys(SCHEMES.values())))
        raise DataError(
            f"{text}: {scheme}:// is not read", hint=f"events come from paths and {known}; download the file first"
        )
    written, _, options = rest.partition("?")
    head, glob = _split(written, _MAGIC_IN_URI) if _MAGIC_IN_URI.search(written) else (written.rstrip("/"), ())
    uri = f"{SCHEMES[scheme.lower()]}://{head}" + (f"?{options}" if options else "")
    system, root = guarded(text, lambda: fs.FileSystem.from_uri(uri), "check the address and your access to it")
    return _Location(system, root, f"{scheme}://{head}", glob)


def _split(path: str, magic: re.Pattern[str]) -> tuple[str, tuple[str, ...]]:
    """The folders before the first part that is a pattern, and the parts from there on."""
    parts = path.split("/")
    first = next(at for at, part in enumerate(parts) if magic.search(part))
    return "/".join(parts[:first]) or ("/" if path.startswith("/") else ""), tuple(filter(None, parts[first:]))


# ------------------------------------------------------------------------------------------------ folders, globs


def _in_folder(place: _Location, folder: str) -> list[File]:
    """All files below a folder that are not hidden."""
    listed = place.system.get_file_info(fs.FileSelector(folder, recursive=True))
    files = sorted(info.path for info in listed if info.type is fs.FileType.File)
    below = len(folder.rstrip("/")) + 1
    return [_file(place, path) for path in files if not any(map(_hidden, path[below:].split("/")))]


def _file(place: _Location, path: str) -> File:
    folders = path[len(place.root.rstrip("/")) + 1 :].split("/")[:-1]
    pairs = [part.partition("=") for part in folders if "=" in part]
    keys = tuple((unquote(name), None if value == NO_VALUE else unquote(value)) for name, _, value in pairs)
    return File(place.system, path, place.name(path), keys)


def _hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _matching(place: _Location, text: str) -> list[File]:
    files: list[File] = []
    for info in sorted(_walk(place.system, place.root, place.glob), key=lambda info: info.path):
        if info.type is fs.FileType.Directory:
            files += _in_folder(place, info.path)
        else:
            files.append(_file(place, info.path))
    if not files:
        raise DataError(f"no file matches {text}", hint=_listed(place))
    return files


def _walk(system: fs.FileSystem, folder: str, parts: tuple[str, ...]) -> Iterator[fs.FileInfo]:
    """Files and folders below `folder` that match a glob; `**` stands for any number of folders."""
    part, rest = parts[0], parts[1:]
    if part == "**":
        yield from _walk(system, folder, rest or ("*",))
    for info in system.get_file_info(fs.FileSelector(folder, allow_not_found=True)):
        is_folder = info.type is fs.FileType.Directory
        if part == "**":
            if is_folder and not _hidden(info.base_name):
                yield from _walk(system, info.path, parts)
        elif fnmatchcase(info.base_name, part) and (not _hidden(info.base_name) or part[0] == info.base_name[0]):
            if not rest:
                yield info
            elif is_folder:
                yield from _walk(system, info.path, rest)


# -------------------------------------------------------------------------------------------------------- hints


def _nearby(place: _Location) -> str:
    """What is there instead of a file that is not."""
    folder, _, name = place.root.rpartition("/")
    shown = place.shown.rpartition("/")[0] or ("/" if place.shown.startswith("/") else ".")
    beside = _names_in(place.system, folder or "/")
    if beside is None:
        return f"there is no folder {shown} either"
    close = [other for other in beside if other.split(".")[0] == name.split(".")[0]]
    if close:
        return f"there is {', '.join(close[:3])} in that folder"
    return did_you_mean(name, beside) or f"events come from {SUPPORTED}"


def _listed(place: _Location) -> str:
    names = _names_in(place.system, place.root)
    if names is None:
        return f"there is no folder {place.shown}"
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"in {place.shown} there is {', '.join(names[:5]) or 'nothing'}{more}"


def _names_in(system: fs.FileSystem, folder: str) -> list[str] | None:
    try:
        return sorted(info.base_name for info in system.get_file_info(fs.FileSelector(folder)))
    except OSError:
        return None


# ----------------------------------------------------------------------------------- checks that readers share


def refuse_other_encodings(file: File) -> None:
    """Text is UTF-8; encodings of two or four bytes per character are recognised by their first bytes."""

    def head() -> bytes:
        with file.open() as stream:
            return bytes(stream.read(4))

    first = guarded(file.name, head, NOT_TEXT)
    if first.startswith((b"\xff\xfe", b"\xfe\xff")) or (len(first) > 1 and 0 in first):
        raise DataError(
            f"{file.name} is not text in UTF-8, but in UTF-16 or UTF-32, or no text at all",
            hint="save it as UTF-8; iconv -f UTF-16 -t UTF-8 does that",
        )


def not_utf8(file: File, byte: int, line: int) -> DataError:
    """The refusal of a text file with a byte that is not UTF-8."""
    return DataError(
        f"{file.name} is not text in UTF-8: byte 0x{byte:02x} in line {line}",
        hint="save it as UTF-8; iconv -f LATIN1 -t UTF-8 does that for most Western texts",
    )


def in_blocks(reader: Callable[[int], _Found]) -> _Found:
    """Read with the smallest blocks that hold every row."""
    for size in BLOCKS[:-1]:
        try:
            return reader(size)
        except pa.ArrowInvalid as problem:
            if "straddl" not in str(problem):
                raise
    return reader(BLOCKS[-1])


def refuse_duplicates(names: Sequence[str], where: str) -> None:
    """Refuse two columns of one name: which of them is meant would be ambiguous."""
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise DataError(f"{where} has more than one column '{twice[0]}'", hint="rename or drop all but one of them")


def decode_names(columns: pa.Schema | pa.DataType) -> None:
    """Decode every name, also of nested fields: Arrow raises at the first that is not UTF-8."""
    fields = columns if isinstance(columns, pa.Schema) else [columns.field(at) for at in range(columns.num_fields)]
    for field in fields:
        field.name.encode()
        if pa.types.is_nested(field.type):
            decode_names(field.type)


def place(path: str) -> tuple[fs.FileSystem, str]:
    """The file system of a path or URI, and the path in it."""
    if "://" in path or path.startswith("file:"):
        system, inside = fs.FileSystem.from_uri(path)
        return system, inside
    return fs.LocalFileSystem(), path

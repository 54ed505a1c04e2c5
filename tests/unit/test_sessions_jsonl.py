"""Record files are read tolerantly, in bounded memory, and from both ends."""

from __future__ import annotations

import io
import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from agents_registry.sessions import jsonl


def read(data: bytes, **more: int) -> tuple[list[tuple[int, dict[str, object]]], jsonl.JsonLines]:
    lines = jsonl.JsonLines(io.BytesIO(data), **more)
    return list(lines), lines


def test_a_bad_line_costs_only_itself_and_is_named_with_its_line_number() -> None:
    found, lines = read(b'{"a":1}\n{"type":"att\n\n{"a":2}\n[1]\n"x"\n{"a":3}\n')
    assert [(number, record["a"]) for number, record in found] == [(1, 1), (4, 2), (7, 3)]
    assert (lines.malformed, lines.non_object, lines.lines) == (1, 2, 6)
    assert [one.line for one in lines.skipped] == [2, 5, 6]


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_last_line_cut_anywhere_loses_nothing_before_it(cut: int) -> None:
    whole = b'{"a":1}\n' + '{"a":"é中"}'.encode()
    found, lines = read(whole[:-cut])
    assert found[0] == (1, {"a": 1})
    assert len(found) == 1
    assert lines.malformed <= 1
    assert not lines.ended_in_newline


def test_lines_end_at_line_feeds_only() -> None:
    text = "a\u2028b\u2029c\u0085d\u000be\u000cf"
    escaped = json.dumps({"t": text}, ensure_ascii=False).encode()
    found, _ = read(escaped + b"\r\n" + escaped + b"\n")
    assert [record["t"] for _, record in found] == [text, text]


@pytest.mark.parametrize(
    "bomb",
    [b"[" * 200_000 + b"]" * 200_000, b'{"n":' + b"9" * 6000 + b"}", b"\0" * 64, "中文".encode("gbk"), b'{"a":"\xed\xa0\xbd"}', b"{}{}"],
    ids=["nesting", "integer", "nul", "gbk", "raw surrogate", "two objects"],
)
def test_hostile_lines_are_skipped_and_counted(bomb: bytes) -> None:
    found, lines = read(b'{"a":1}\n' + bomb + b'\n{"a":2}\n')
    assert [record["a"] for _, record in found] == [1, 2]
    assert lines.malformed == 1
    assert lines.skipped[0].line == 2
    assert lines.skipped[0].why


def test_not_a_number_and_lone_surrogates_are_taken() -> None:
    found, lines = read(b'{"a":NaN}\n{"a":"\\ud83d"}\n')
    assert found[0][1]["a"] != found[0][1]["a"]
    assert found[1][1]["a"] == "\ud83d"
    assert lines.malformed == 0


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_no_content(encoding: str) -> None:
    found, lines = read('{"a":"中"}\n{"a":"b"}\n'.encode(encoding))
    assert [record["a"] for _, record in found] == ["中", "b"]
    assert lines.malformed == 0


def test_a_line_over_the_limit_is_passed_over_and_the_next_one_is_read() -> None:
    long = b'{"a":"' + b"x" * 5_000_000 + b'"}'
    found, lines = read(b'{"a":1}\n' + long + b'\n{"a":2}\n' + long, limit=1_000_000)
    assert [record["a"] for _, record in found] == [1, 2]
    assert lines.malformed == 2
    assert "5000008 bytes" in lines.skipped[0].why


def test_a_line_that_spans_many_reads_is_whole() -> None:
    found, _ = read(b'{"a":"' + b"x" * 3_000_000 + b'"}\n{"a":"y"}')
    assert [len(str(record["a"])) for _, record in found] == [3_000_000, 1]


def test_memory_is_bounded_by_the_limit_not_by_the_line(tmp_path: Path) -> None:
    path = tmp_path / "big.jsonl"
    with open(path, "wb") as file:
        file.write(b'{"a":1}\n{"a":"')
        for _ in range(200):
            file.write(b"x" * 1_000_000)
        file.write(b'"}\n{"a":2}\n')
    script = (
        "import sys,resource;from pathlib import Path;from agents_registry.sessions import jsonl\n"
        "before=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "lines=jsonl.JsonLines(Path(sys.argv[1]));print([r['a'] for _,r in lines],lines.malformed)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss-before)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60, check=True)
    values, grown = done.stdout.splitlines()
    assert values == "[1, 2] 1"
    unit = 1024 if sys.platform != "darwin" else 1
    assert int(grown) * unit < 100_000_000, resource.RUSAGE_SELF


def test_head_and_tail_read_whole_lines_within_their_size(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(b'{"n":%d}\n' % n for n in range(1000)))
    first = jsonl.head(path, 100)
    last = jsonl.tail(path, 100)
    assert [record["n"] for _, record in first] == list(range(len(first)))
    assert 8 <= len(first) <= 13
    assert [record["n"] for record in last] == list(range(1000 - len(last), 1000))
    assert len(last) == 10


@pytest.mark.parametrize("block", [1, 3, 7, 64, 65536])
def test_reading_backwards_gives_the_same_records_reversed(tmp_path: Path, block: int) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"n":0}\n\nbroken\n{"n":"' + b"x" * 50 + b'"}\n{"n":2}\n{"n":3')
    forward = [record for _, record in jsonl.JsonLines(path)]
    assert list(jsonl.backwards(path, block=block)) == forward[::-1]


def test_reading_backwards_passes_over_a_line_beyond_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"n":0}\n{"n":"' + b"x" * 500 + b'"}\n{"n":2}\n')
    assert list(jsonl.backwards(path, limit=100, block=16)) == [{"n": 2}, {"n": 0}]


def test_compressed_files_are_read_like_plain_ones(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard", reason="the extra for compressed rollouts is not installed")
    data = b"".join(b'{"n":%d}\n' % n for n in range(50_000))
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(data))
    assert sum(1 for _ in jsonl.JsonLines(path)) == 50_000
    assert jsonl.head(path)[0] == (1, {"n": 0})
    assert jsonl.tail(path, 100)[-1] == {"n": 49_999}
    assert next(jsonl.backwards(path)) == {"n": 49_999}


def test_with_and_without_the_accelerator_the_same_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b'{"a":1.5,"b":"\xe4\xb8\xad"}\n{"a":NaN}\nnull\n{"a":\n{"a":"\\ud83d"}\n' + b"[" * 2000 + b"\n"
    found, lines = read(data)
    monkeypatch.setattr(jsonl, "_fast", None)
    slow, slow_lines = read(data)
    assert repr(found) == repr(slow)
    assert (lines.malformed, lines.non_object) == (slow_lines.malformed, slow_lines.non_object)

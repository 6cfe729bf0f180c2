"""The package against the corpus of the repository, and real JAX where it is installed."""

import contextlib
import os
import pathlib
import sys
import threading
import types

import pytest

import tilewright

HLO = pathlib.Path(__file__).resolve().parents[4] / "testdata" / "hlo"
ROW = (HLO / "row_reduce.hlo").read_text()


def test_questions_without_a_database():
    assert tilewright.version().startswith("tilewright ")
    prints = tilewright.fingerprint(ROW)
    assert prints["fused_computation.row_reduce"].startswith("8b1214cd762c")
    assert tilewright.partition(ROW)["distinct"] == 1
    shown = tilewright.tiles(ROW)["fusions"][0]
    assert [d["kind"] for d in shown["space"]["dims"]] == ["parallel", "sequential"]
    numbers = tilewright.tiles(ROW, sizes=[64, 768], tile=[1])["fusions"][0]
    assert numbers["tiles"][0]["offset"] == [64, 0]


OPEN = """func.func @main(%arg0: tensor<?x128xf32>) -> tensor<?x128xf32> {
  %0 = stablehlo.exponential %arg0 : tensor<?x128xf32>
  %1 = stablehlo.add %0, %arg0 : tensor<?x128xf32>
  return %1 : tensor<?x128xf32>
}"""


def test_open_extents(tmp_path):
    closed = tilewright.fingerprint(OPEN.replace("?", "64"))
    assert tilewright.fingerprint(OPEN, shape={"arg0": [64, 128]}) == closed
    assert tilewright.fingerprint(OPEN, shape={"?": [32]}) != closed
    assert tilewright.partition(OPEN, shape={"?": [64]})["distinct"] == 1
    assert tilewright.tiles(OPEN, shape={"?": [64]}, sizes=[8, 128])["fusions"]
    with tilewright.open(tmp_path / "t.db") as d:
        assert d.lookup(OPEN, shape={"?": [64]})[0]["answer"] == "predicted"
        assert d.lookup(OPEN, shape={"?": [64]}, exact=True)[0]["answer"] == "none"
        assert d.plan(OPEN, shape={"?": [64]})[0]["plan"]
    with pytest.raises(tilewright.TilewrightError, match="no parameter") as e:
        tilewright.fingerprint(OPEN, shape={"x": [64, 128]})
    assert e.value.kind == "input"
    with pytest.raises(tilewright.TilewrightError, match="one value a parameter") as e:
        tilewright.fingerprint(OPEN, shape={"arg0": [[64, 128], [32, 128]]})
    assert e.value.kind == "request"


GRAD = (pathlib.Path(__file__).resolve().parents[2] / "testdata" / "scatter.mlir").read_text()
GPU = '{"device": "sim:H100", "backend": "gpu", "revision": "1", "safe": {}}'


def test_device_of_a_database(tmp_path):
    """A GPU's fusions leave the scatter outside; without a database they are the CPU's."""
    assert list(tilewright.fingerprint(GRAD)) == ["fused.n"]
    assert "outside" not in tilewright.partition(GRAD)
    with tilewright.open(tmp_path / "t.db") as d:
        assert list(d.fingerprint(GRAD)) == ["fused.n"]
        assert d.partition(GRAD) == tilewright.partition(GRAD)
        assert d.tiles(GRAD) == tilewright.tiles(GRAD)
        assert [w["fusion"] for w in d.lookup(GRAD)] == ["fused.n"]
    with tilewright.open(tmp_path / "t.db", device=GPU) as d:
        prints = d.fingerprint(GRAD)
        assert list(prints) == ["fused.t", "fused.u", "fused.n"]
        assert [o["op"] for o in d.partition(GRAD)["outside"]] == ["scatter"]
        assert [f["name"] for f in d.tiles(GRAD)["fusions"]] == list(prints)
        assert [o["op"] for o in d.tiles(GRAD)["outside"]] == ["scatter"]
        assert {w["fusion"]: w["fingerprint"] for w in d.lookup(GRAD)} == prints
        assert {w["fusion"] for w in d.plan(GRAD)} == set(prints)
        assert d.tiles(GRAD, fusion="fused.u", sizes=[8, 64], tile=[1, 0])["fusions"][0]["tiles"][0]["offset"] == [8, 0]


def test_errors():
    with pytest.raises(tilewright.TilewrightError, match="text:1") as e:
        tilewright.fingerprint("HloModule")
    assert e.value.kind == "input"
    with pytest.raises(tilewright.TilewrightError, match="2 dimensions"):
        tilewright.tiles(ROW, sizes=[64])
    with pytest.raises(tilewright.TilewrightError, match="identity"):
        tilewright.open("t.db", device="tpu")


def test_tune_then_lookup(tmp_path):
    db = tmp_path / "t.db"
    assert tilewright.lookup(ROW, db)[0]["answer"] == "predicted"
    assert tilewright.lookup(ROW, db, exact=True)[0]["answer"] == "none"
    summary = tilewright.tune(ROW, db, budget="300ms", candidates=2)
    winner = tilewright.lookup(ROW, db)[0]
    assert winner["answer"] == "exact"
    assert winner["plan"] == summary["fusions"][0]["plan"]
    with tilewright.open(db) as d:
        assert d.get(winner["fingerprint"]) == (winner["plan"], winner["seconds"])
        assert d.get(bytes(32)) is None
        errors = []
        threads = [threading.Thread(target=ask, args=(d, winner, errors)) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert not errors
    with pytest.raises(tilewright.TilewrightError, match="not open"):
        d.lookup(ROW)


def ask(d, winner, errors):
    for _ in range(20):
        if d.lookup(ROW)[0]["plan"] != winner["plan"]:
            errors.append("another plan")


def test_a_child_of_fork_is_told_so():
    child = os.fork()
    if child == 0:
        try:
            tilewright.fingerprint(ROW)
        except tilewright.TilewrightError as e:
            os._exit(0 if e.kind == "forked" else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_jax(tmp_path):
    jax = pytest.importorskip("jax")
    import jax.numpy as jnp

    def model(x, w):
        return jax.nn.softmax(jnp.tanh(x @ w), axis=-1)

    x = jax.ShapeDtypeStruct((128, 64), jnp.float32)
    w = jax.ShapeDtypeStruct((64, 256), jnp.float32)
    table = tilewright.jax.tune(model, x, w, db=tmp_path / "t.db", budget="300ms", candidates=2)
    assert table and all(row["answer"] == "exact" and row["plan"] for row in table)
    again = tilewright.lookup(tilewright.jax.lower(jax.jit(model), x, w), tmp_path / "t.db")
    assert again == table


def fake_torch(monkeypatch, text):
    """Modules with what tilewright.torch uses of torch and torchax, which lower to a text."""
    torch, torchax, export = types.ModuleType("torch"), types.ModuleType("torchax"), types.ModuleType("torchax.export")
    program = type("ExportedProgram", (), {})
    exported = []

    def exporter(module, args, kwargs):
        exported.append((module, args, kwargs))
        return program()

    torch.no_grad = contextlib.nullcontext
    torch.export = types.SimpleNamespace(ExportedProgram=program, export=exporter)
    lowered = types.SimpleNamespace(mlir_module=lambda: text)
    export.exported_program_to_stablehlo = lambda _: ({}, lowered)
    torchax.export = export
    for module in torch, torchax, export:
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return program, exported


def test_torch_helper(tmp_path, monkeypatch):
    program, exported = fake_torch(monkeypatch, ROW)
    db = tmp_path / "t.db"
    table = tilewright.torch.tune("module", 1, 2, db=db, kwargs={"c": 3}, budget="300ms", candidates=2)
    assert exported == [("module", (1, 2), {"c": 3})]
    assert [row["answer"] for row in table] == ["exact"]
    assert tilewright.torch.lower(program()) == ROW  # exported before
    with pytest.raises(TypeError, match="has its arguments"):
        tilewright.torch.lower(program(), 1)


def test_torch_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match="pip install torch torchax jax"):
        tilewright.torch.lower(None)
    fake_torch(monkeypatch, ROW)
    del sys.modules["torchax.export"].exported_program_to_stablehlo
    with pytest.raises(ImportError, match="needs torchax.export.exported_program_to_stablehlo"):
        tilewright.torch.lower(None)


@pytest.mark.skipif(not os.environ.get("TILEWRIGHT_REAL_TORCH"), reason="make python-torch runs it")
def test_real_torch(tmp_path):
    import torch

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(64, 256), torch.nn.Linear(256, 32)

        def forward(self, x):
            return torch.softmax(self.second(torch.nn.functional.gelu(self.first(x))), dim=-1)

    x = torch.zeros(128, 64)
    table = tilewright.torch.tune(Model(), x, db=tmp_path / "t.db", budget="300ms", candidates=2)
    assert table and all(row["answer"] == "exact" and row["plan"] for row in table)
    again = tilewright.lookup(tilewright.torch.lower(torch.export.export(Model(), (x,))), tmp_path / "t.db")
    assert [row["fingerprint"] for row in again] == [row["fingerprint"] for row in table]

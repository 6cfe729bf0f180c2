"""The package against the corpus of the repository, and real JAX where it is installed."""

import os
import pathlib
import threading

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

"""Tuning of JAX functions: what jax.jit would compile is lowered to StableHLO."""

from __future__ import annotations

from typing import Any, Callable

import tilewright


def lower(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """The StableHLO of a function for arguments: arrays, or jax.ShapeDtypeStruct."""
    import jax

    jitted = fn if hasattr(fn, "lower") else jax.jit(fn)
    text: str = jitted.lower(*args, **kwargs).as_text()
    return text


def tune(fn: Callable[..., Any], *args: Any, db: tilewright.Path = "tilewright.db", **options: Any) -> list[dict[str, Any]]:
    """Lowers and tunes a function, and returns its table of winners, one a fusion. The
    options are those of tilewright.tune."""
    text = lower(fn, *args)
    tilewright.tune(text, db, **options)
    return tilewright.lookup(text, db)

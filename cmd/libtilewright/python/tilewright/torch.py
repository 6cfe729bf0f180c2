"""Tuning of PyTorch modules: torch.export and torchax lower them to StableHLO.

They are not installed with this package: pip install torch torchax jax.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

import tilewright

__all__ = ["lower", "tune"]


def _exporter() -> tuple[Any, Any]:
    """torch and torchax.export; an ImportError that says what is missing."""
    try:
        import torch
        import torchax.export
    except ImportError as e:
        raise ImportError(
            f"tilewright.torch needs torch (2.9), torchax (0.0.13) and jax, and {e.name or e} cannot be imported: "
            "pip install torch torchax jax, or give tilewright.tune the StableHLO text"
        ) from e
    if not hasattr(torchax.export, "exported_program_to_stablehlo"):
        raise ImportError("tilewright.torch needs torchax.export.exported_program_to_stablehlo, as torchax 0.0.13 has it")
    return torch, torchax.export


def lower(module: Any, *args: Any, kwargs: Optional[Mapping[str, Any]] = None) -> str:
    """The StableHLO of a torch.nn.Module, or of a torch.export.ExportedProgram, for
    arguments: tensors of the shapes that it is to be tuned for."""
    torch, export = _exporter()
    program = module
    if not isinstance(module, torch.export.ExportedProgram):
        with torch.no_grad():
            program = torch.export.export(module, tuple(args), dict(kwargs or {}))
    elif args or kwargs:
        raise TypeError("an ExportedProgram has its arguments already")
    _, lowered = export.exported_program_to_stablehlo(program)
    text: str = lowered.mlir_module()
    return text


def tune(
    module: Any, *args: Any, db: tilewright.Path = "tilewright.db", kwargs: Optional[Mapping[str, Any]] = None, **options: Any
) -> list[dict[str, Any]]:
    """Lowers and tunes a module, and returns its table of winners, one a fusion. The
    options are those of tilewright.tune."""
    text = lower(module, *args, kwargs=kwargs)
    tilewright.tune(text, db, **options)
    return tilewright.lookup(text, db)

"""Makes the torch_xla dumps of `optimizers/`: steps of torch.optim, traced lazily, before and after XLA's optimization.

Run with torch 2.9.1 and torch_xla 2.9.0 on CPU; no test needs either of them. torch_xla hands every Python number in as a
scalar parameter, so that rates and betas are arguments of the step, and aliases join outputs with any buffer of their size.
Metadata is left out. What each program is stands in its call below; the tests repeat it by hand.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

DUMPS = Path(tempfile.mkdtemp())
os.environ["PJRT_DEVICE"] = "CPU"
os.environ["XLA_FLAGS"] = f"--xla_dump_to={DUMPS} --xla_dump_hlo_as_text"
torch: Any = import_module("torch")
xla_model: Any = import_module("torch_xla.core.xla_model")
optim, nn = torch.optim, torch.nn

HERE = Path(__file__).resolve().parent / "optimizers"
STEPS = 3  # after these the state has all of its arrays, and the text is that of every later step
_METADATA = re.compile(r', metadata=\{[^{}"]*(?:"[^"]*"[^{}"]*)*\}')


class Muon:
    """Muon for the matrix, AdamW for the bias. The momentum is made orthogonal in programs of its own."""

    def __init__(self, parameters: Any) -> None:
        matrix, bias = parameters
        self.parts = [optim.Muon([matrix], 2e-2), optim.AdamW([bias], 1e-3)]

    def zero_grad(self) -> None:
        for part in self.parts:
            part.zero_grad()

    def step(self) -> None:
        for part in self.parts:
            part.step()


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "torch_adadelta_l2": lambda p: optim.Adadelta(p, 0.5, weight_decay=0.01, foreach=False),
    "torch_adafactor": lambda p: optim.Adafactor(p, 2e-2, foreach=False),
    "torch_adafactor_foreach": lambda p: optim.Adafactor(p, 2e-2, weight_decay=0.01, foreach=True),
    "torch_adagrad_l2": lambda p: optim.Adagrad(p, 2e-3, lr_decay=0.01, weight_decay=0.01, foreach=False),
    "torch_adam_capturable": lambda p: optim.Adam(p, 2e-3, (0.85, 0.97), capturable=True, foreach=False),
    "torch_adamax_l2": lambda p: optim.Adamax(p, 2e-3, (0.85, 0.97), weight_decay=0.01, foreach=False),
    "torch_muon": Muon,
    "torch_nadam_l2": lambda p: optim.NAdam(p, 2e-3, (0.85, 0.97), weight_decay=0.01, foreach=False),
    "torch_rmsprop_l2": lambda p: optim.RMSprop(p, 2e-3, centered=True, momentum=0.9, weight_decay=0.01, foreach=False),
    "torch_sgd_clipped": lambda p: optim.SGD(p, 0.03, foreach=False),
    "torch_sgd_nesterov": lambda p: optim.SGD(p, 0.03, momentum=0.87, nesterov=True, foreach=True),
}


def write(name: str, make: Callable[[Any], Any]) -> None:
    device = xla_model.xla_device()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 4), nn.Tanh()).to(device)
    optimizer = make(model.parameters())
    for _ in range(STEPS):
        x, y = torch.randn(16, 8).to(device), torch.randn(16, 4).to(device)
        xla_model.mark_step()
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        if name.endswith("clipped"):
            nn.utils.clip_grad_norm_(model.parameters(), 0.7)
        optimizer.step()
        xla_model.mark_step()
        xla_model.wait_device_ops()
    texts = sorted(DUMPS.glob("*before_optimizations.txt"))
    last = [path for path in texts if path.stat().st_size > 0.6 * max(one.stat().st_size for one in texts)][-1]
    after = next(DUMPS.glob(last.name.replace("before_optimizations.txt", "*after_optimizations.txt")))
    for stage, path in (("before", last), ("after", after)):
        (HERE / f"{name}.{stage}.hlo").write_text(_METADATA.sub("", path.read_text(encoding="utf-8")), encoding="utf-8")
    for path in DUMPS.iterdir():
        path.unlink()


def main() -> None:
    for name in sys.argv[1:] or PROGRAMS:
        write(name, PROGRAMS[name])
    shutil.rmtree(DUMPS)


if __name__ == "__main__":
    main()

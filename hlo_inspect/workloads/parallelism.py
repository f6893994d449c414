"""How many devices the groups of a workload have, by the keys of its header."""

from __future__ import annotations

from hlo_inspect.workloads.header import TENSOR_PARALLEL, WorkloadHeader


class Parallelism:
    """Tensor, pipeline, data and expert parallel devices; `None` where the header does not say.

    SimAI: data parallel devices are those of the job by tensor parallel ones and stages (`Layer::report`), and those that share
    an expert are the data parallel ones by expert parallel ones. A division with a rest leaves them unknown.
    """

    def __init__(self, header: WorkloadHeader) -> None:
        self.tensor, self.experts = _positive(header, TENSOR_PARALLEL), _positive(header, "ep")
        self.stages, self.devices = _positive(header, "pp"), _positive(header, "all_gpus")
        self.data = _divided(self.devices, self.per_replica)
        self.of_expert = _divided(self.data, self.experts)
        self.transfers = _transfers(header, self.stages)

    @property
    def per_replica(self) -> int | None:
        """The devices that hold one copy of the model."""
        return self.tensor * self.stages if self.tensor is not None and self.stages is not None else None

    @property
    def sizes(self) -> dict[str, int | None]:
        """The devices of each group, and of the pipeline its stages."""
        return {"tp": self.tensor, "dp": self.data, "ep": self.experts, "dp_ep": self.of_expert, "pp": self.stages}

    @property
    def text(self) -> str | None:
        """Tensor x pipeline x data parallel devices, as `8x16x8`."""
        numbers = (self.tensor, self.stages, self.data)
        return "x".join(map(str, numbers)) if None not in numbers else None

    @property
    def faults(self) -> list[str]:
        """Groups that do not divide the devices."""
        found = []
        if self.devices is not None and self.per_replica is not None and self.devices % self.per_replica:
            together = f"TP {self.tensor} x PP {self.stages} = {self.per_replica}"
            found.append(f"{together} does not divide the {self.devices} devices of all_gpus")
        if self.data is not None and self.experts is not None and self.data % self.experts:
            found.append(f"EP {self.experts} does not divide the {self.data} data parallel devices")
        return found


def _positive(header: WorkloadHeader, key: str) -> int | None:
    number = header.number(key)
    return number if number is not None and number > 0 else None


def _divided(number: int | None, by: int | None) -> int | None:
    return number // by if number is not None and by is not None and number % by == 0 else None


def _transfers(header: WorkloadHeader, stages: int | None) -> int | None:
    """How many times a stage sends to the next in one pass, 2 x vpp x ga as SimAI has it (`Layer::report`)."""
    if stages == 1:
        return 0
    chunks, batches = _positive(header, "vpp"), _positive(header, "ga")
    return 2 * chunks * batches if chunks is not None and batches is not None else None

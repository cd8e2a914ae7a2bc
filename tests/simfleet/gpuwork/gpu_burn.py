"""gpu_burn: its devices, its progress line, which carriage returns write over, and its verdicts."""

from __future__ import annotations

from .playing import Act, Work

ROUND, GFLOPS = 900, 48200
SICK_GPU = 3


def act(work: Work) -> Act:
    gpus = work.gpus - (work.my_fault == "missing-gpu")
    lines = ["Using compare file: compare.ptx", "Burning for 60 seconds."]
    lines += [
        f"GPU {gpu}: NVIDIA H100 80GB HBM3 (UUID: GPU-{work.me:08x}-0000-4000-8000-{gpu:012x})" for gpu in range(gpus)
    ]
    if work.my_fault == "hang":
        return Act([*lines, _progress(work, gpus, 10)], hang=True)
    if work.my_fault == "crash":
        return Act([*lines, _progress(work, gpus, 10), "Segmentation fault (core dumped)"], 139)
    lines.append("\r".join(_progress(work, gpus, percent) for percent in range(10, 101, 10)))
    lines += ["Killing processes with SIGTERM (soft kill)", "done", "", f"Tested {gpus} GPUs:"]
    wrong = work.my_fault == "wrong-values"
    lines += [f"\tGPU {gpu}: {'FAULTY' if wrong and gpu == SICK_GPU else 'OK'}" for gpu in range(gpus)]
    return Act(lines)  # exit code 0 even with a faulty GPU


def _progress(work: Work, gpus: int, percent: int) -> str:
    speeds = [int(GFLOPS * work.wobble * (0.5 if _sick(work, "slow-gpu", gpu) else 1)) for gpu in range(gpus)]
    done = " - ".join(f"{ROUND * percent // 10} ({speed} Gflop/s)" for speed in speeds)
    errors = " - ".join("214 (WARNING!)" if _sick(work, "wrong-values", gpu) else "0" for gpu in range(gpus))
    temperatures = " - ".join(f"{61 + gpu} C" for gpu in range(gpus))
    return f"{percent}.0%  proc'd: {done}   errors: {errors}   temps: {temperatures} "


def _sick(work: Work, fault: str, gpu: int) -> bool:
    return work.my_fault == fault and gpu == SICK_GPU

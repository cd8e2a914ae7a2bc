# ruff: noqa: E501  (outputs as the tools print them)
"""Step lines as the frameworks print them."""

from __future__ import annotations


def megatron(
    step: int,
    total: int = 100,
    ms: float = 15000.0,
    tflops: float = 490.0,
    loss: str = "1.344240E+01",
    skipped: int = 0,
    nans: int = 0,
) -> str:
    return (
        f" iteration {step:8d}/{total:8d} | consumed samples: {step * 2048:12d} | elapsed time per iteration (ms): {ms:.1f} | "
        f"throughput per GPU (TFLOP/s/GPU): {tflops:.1f} | learning rate: 4.134000E-07 | global batch size:  2048 | lm loss: "
        f"{loss} | loss scale: 1.0 | grad norm: 2.870 | number of skipped iterations: {skipped:3d} | "
        f"number of nan iterations: {nans:3d} |"
    )


def deepspeed(step: int, total: int = 100, ms: float = 75000.0) -> str:
    return (
        f" iteration {step:8d}/{total:8d} | consumed samples: {step * 2048:12d} | consumed tokens: {step * 4096:12d} | elapsed "
        f"time per iteration (ms): {ms:.1f} | learning rate: 1.200E-07 | global batch size:  2048 | lm loss: 1.100492E+01 | "
        "loss scale: 2048.0 | actual seqlen:  2048 | number of skipped iterations:   0 | number of nan iterations:   0 | "
        "samples per second: 26.942 | TFLOPs: 147.61 |"
    )


def nemo(step: int, total: int = 99, seconds: float = 2.5, more: str = "", loss: str = "2.792") -> str:
    return (
        f"Training epoch 0, iteration {step}/{total} | lr: 0.0001758 | global_batch_size: 32 | global_step: {step} | "
        f"reduced_train_loss: {loss} | train_step_timing in s: {seconds}{more} | consumed_samples: {step * 32}"
    )


def nanotron(step: int, total: int = 100, ms: str = "4.71K") -> str:
    return (
        f"[INFO|DP=0|PP=0|TP=0|nid001]: iteration: {step} / {total} | consumed_tokens: 51.2K | elapsed_time_per_iteration_ms: "
        f"{ms} | tokens_per_sec: 1.09M | tokens_per_sec_per_gpu: 13.6K | global_batch_size: 1.02K | lm_loss: 5.32 | lr: 0.00015 "
        "| model_tflops_per_gpu: 187 | hardware_tflops_per_gpu: 191 | grad_norm: 2.96 | cuda_memory_allocated: 67.4M | "
        "cuda_max_memory_reserved: 52G"
    )


def stamp(seconds: int) -> str:
    return f"2026-03-06 {9 + seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"

#!/usr/bin/env python3
"""How runs on the null GPU end when a rank, a launcher or the way between them fails: with the exit status that was
promised, with every rank's state in the report, and with nobody left behind.

Ranks are started by verify itself, or one by one as torchrun, srun and mpirun start them.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PROGRAM = Path(os.environ["QLORA_PLAN"]).resolve()
LIBRARY = PROGRAM.parent.parent / "lib/qlora-plan/libqlora_cuda.so"
JOB = "configs/tiny-qlora.yaml"
LONG = ["--steps", "3000"]  # until it is stopped
FOREIGN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_", "MASTER_", "SLURM_", "OMPI_")
FOREIGN += ("PMI", "MPI_", "NULLGPU_", "NCCL_")
PATIENCE = 100  # seconds; a machine may be busy


def torchrun(rank):
    return {"RANK": rank, "WORLD_SIZE": 2, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": 2}


def srun(rank):
    step = {"SLURM_JOB_ID": 7, "SLURM_STEP_ID": 0, "SLURM_STEP_TASKS_PER_NODE": "2"}
    return step | {"SLURM_PROCID": rank, "SLURM_NTASKS": 2, "SLURM_LOCALID": rank}


def mpirun(rank):
    world = {"OMPI_COMM_WORLD_SIZE": 2, "OMPI_COMM_WORLD_LOCAL_SIZE": 2}
    return world | {"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_LOCAL_RANK": rank}


class Run:
    """A launcher, and the ranks that it has started."""

    def __init__(self, *arguments, **environment):
        command = [PROGRAM, "verify", JOB, "--device", "null", "--plan", "ddp", "--json", *arguments]
        own = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        own |= {name: str(value) for name, value in environment.items()}
        self.process = subprocess.Popen(
            command, env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self.ranks = {}

    def wait_for_ranks(self, count):
        """Until they have begun their steps."""
        give_up = time.monotonic() + PATIENCE
        while len(self.ranks) < count or not all(map(uses_gpu, self.ranks.values())):
            if self.process.poll() is not None or time.monotonic() > give_up:
                raise AssertionError(f"{len(self.ranks)} of {count} ranks have started: {self.process.communicate()}")
            time.sleep(0.02)
            self.ranks = dict(ranks_of(self.process.pid))
        time.sleep(0.3)

    def end(self):
        """Exit status, what the report says of each rank, and stderr."""
        stdout, stderr = self.process.communicate(timeout=PATIENCE)
        ranks = json.loads(stdout)["verification"]["ranks"] if stdout else []
        return self.process.returncode, ranks, stderr

    def left_behind(self):
        for _ in range(200):
            alive = [pid for pid in self.ranks.values() if state_of(pid) not in ("Z", None)]
            if not alive:
                return []
            time.sleep(0.05)
        return alive


def state_of(pid):
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError:
        return None
    return text[text.rindex(")") + 2]


def uses_gpu(pid):
    try:
        return LIBRARY.name in Path(f"/proc/{pid}/maps").read_text(encoding="ascii")
    except OSError:
        return False


def ranks_of(launcher):
    """Below the processes that keep them."""
    try:
        children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text(encoding="ascii").split()
    except OSError:
        return
    for pid in map(int, children):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if "--as-rank" in words:
            yield int(words[words.index("--as-rank") + 1]), pid
        else:
            yield from ranks_of(pid)


def expect(what, found, wanted):
    if found != wanted:
        yield f"{what} is {found}, not {wanted}"


def a_rank_is_killed():
    run = Run("--gpus", "4", *LONG)
    run.wait_for_ranks(4)
    os.kill(run.ranks[2], signal.SIGKILL)
    status, ranks, stderr = run.end()
    yield from expect(f"exit status ({stderr})", status, 3)
    yield from expect("rank 2", (ranks[2]["end"], ranks[2]["message"]), ("died", "signal 9 (Killed)"))
    yield from expect("ranks that finished", [r["rank"] for r in ranks if r["end"] == "finished"], [])
    yield from expect("ranks without a state", [r["rank"] for r in ranks if not r["state"]], [])
    yield from expect("left behind", run.left_behind(), [])


def a_rank_hangs():
    run = Run("--gpus", "2", "--timeout", "3", *LONG)
    run.wait_for_ranks(2)
    os.kill(run.ranks[1], signal.SIGSTOP)
    status, ranks, stderr = run.end()
    yield from expect(f"exit status ({stderr})", status, 3)
    yield from expect("rank 1", ranks[1]["end"], "hung")
    yield from expect("left behind", run.left_behind(), [])


def an_interruption():
    run = Run("--gpus", "2", *LONG)
    run.wait_for_ranks(2)
    run.process.send_signal(signal.SIGINT)
    status, ranks, stderr = run.end()
    yield from expect(f"exit status ({stderr})", status, 130)
    yield from expect("ranks", len(ranks), 2)
    yield from expect("left behind", run.left_behind(), [])


def a_launcher_is_killed():
    run = Run("--gpus", "2", *LONG)
    run.wait_for_ranks(2)
    run.process.kill()
    run.process.communicate()
    yield from expect("left behind", run.left_behind(), [])


def the_gpu_is_full():
    status, ranks, stderr = Run("--gpus", "2", NULLGPU_BYTES=10 << 30, NULLGPU_CONTEXT_BYTES=(10 << 30) - 1000).end()
    yield from expect(f"exit status ({stderr})", status, 1)
    yield from expect("ends", "out_of_memory" in [r["end"] for r in ranks], True)


def the_address_is_wrong():
    for address in ("nowhere", "192.0.2.1:4321"):  # none at all; one of nobody (RFC 5737)
        status, ranks, stderr = Run("--gpus", "2", NCCL_COMM_ID=address).end()
        yield from expect(f"exit status with {address} ({stderr})", status, 3)
        yield from expect("rank 0", ranks[0]["end"], "communicator_failed")
    status, _, stderr = Run("--gpus", "2", NCCL_COMM_ID="127.0.0.1:4321").end()
    yield from expect(f"exit status with an address ({stderr})", status, 0)


def others_start_ranks(of_rank):
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):  # the second time over the files of the first
            zero, one = (Run("--rendezvous", folder, **of_rank(rank)) for rank in (0, 1))
            status, ranks, stderr = zero.end()
            yield from expect(f"exit status ({stderr})", status, 0)
            yield from expect("ends", [r["end"] for r in ranks], ["finished", "finished"])
            yield from expect("the other launcher", one.end(), (0, [], ""))


def started_by_torchrun():
    yield from others_start_ranks(torchrun)


def started_by_srun():
    yield from others_start_ranks(srun)


def started_by_mpirun():
    yield from others_start_ranks(mpirun)


def a_rank_of_torchrun_is_killed():
    with tempfile.TemporaryDirectory() as folder:
        zero, one = (Run("--rendezvous", folder, *LONG, **torchrun(rank)) for rank in (0, 1))
        zero.wait_for_ranks(1), one.wait_for_ranks(1)
        os.kill(one.ranks[1], signal.SIGKILL)
        status, ranks, stderr = zero.end()
        yield from expect(f"exit status ({stderr})", status, 3)
        yield from expect("rank 1", (ranks[1]["end"], ranks[1]["message"]), ("died", "signal 9 (Killed)"))
        yield from expect("exit status of the other launcher", one.end()[0], 3)
        yield from expect("left behind", zero.left_behind() + one.left_behind(), [])


def a_launcher_of_torchrun_is_killed():
    with tempfile.TemporaryDirectory() as folder:
        options = ["--rendezvous", folder, "--timeout", "4", *LONG]
        zero, one = (Run(*options, **torchrun(rank)) for rank in (0, 1))
        zero.wait_for_ranks(1), one.wait_for_ranks(1)
        one.process.kill()
        one.process.communicate()
        status, ranks, stderr = zero.end()
        yield from expect(f"exit status ({stderr})", status, 3)
        yield from expect("rank 1", ranks[1]["end"], "died")
        yield from expect("left behind", zero.left_behind() + one.left_behind(), [])


def launchers_look_in_different_places():
    with tempfile.TemporaryDirectory() as here, tempfile.TemporaryDirectory() as there:
        zero, one = (
            Run("--rendezvous", folder, "--timeout", "4", **torchrun(rank)) for rank, folder in enumerate((here, there))
        )
        status, ranks, stderr = zero.end()
        yield from expect(f"exit status ({stderr})", status, 3)
        yield from expect("rank 1", ranks[1]["end"], "communicator_failed")
        yield from expect("its message", "did not come" in ranks[1]["message"], True)
        yield from expect("exit status of the other launcher", one.end()[0], 3)


CASES = [
    a_rank_is_killed,
    a_rank_hangs,
    an_interruption,
    a_launcher_is_killed,
    the_gpu_is_full,
    the_address_is_wrong,
    started_by_torchrun,
    started_by_srun,
    started_by_mpirun,
    a_rank_of_torchrun_is_killed,
    a_launcher_of_torchrun_is_killed,
    launchers_look_in_different_places,
]


def findings_of(case):
    return [f"{case.__name__}: {text}" for text in case()]


def main():
    if not LIBRARY.exists():
        return 0  # gpu_rank_test.py sees that the program says so
    chosen = [case for case in CASES if case.__name__ in sys.argv[1:] or len(sys.argv) == 1]
    with ThreadPoolExecutor(4) as pool:  # most of it is waiting
        findings = [text for found in pool.map(findings_of, chosen) for text in found]
    print("\n".join(findings))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())

"""Throughput of DataLoader with worker processes on images: ``python benchmarks/dataloader.py --torch-python PATH [--rounds N]``.

Each round runs both sides once, in processes of their own; an epoch that starts the workers is not counted. Images are uint8 arrays of 64 by 64
that the data set turns into normalised float tensors with a flip. Prints images per second (the best of the rounds) and the ratio of times.
"""

import argparse
import subprocess
import sys
import time


class Images:
    def __init__(self, torch, n):
        self.torch, self.n = torch, n
        generator = torch.Generator().manual_seed(0)
        self.data = torch.randint(0, 256, (256, 64, 64, 3), dtype=torch.uint8, generator=generator).numpy()

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        image = self.torch.from_numpy(self.data[i % 256]).permute(2, 0, 1).float().div_(255).sub_(0.5).div_(0.25)
        return (image.flip(-1) if i % 2 else image).contiguous(), i % 10


def measure(name: str, workers: int, n: int) -> None:
    torch = __import__(name)
    data = __import__(f"{name}.utils.data", fromlist=["DataLoader"])
    torch.set_num_threads(1)
    loader = data.DataLoader(
        Images(torch, n), batch_size=32, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )
    times = []
    for _ in range(4):
        start, seen = time.perf_counter(), 0
        for x, y in loader:
            seen += len(x)
            assert x.shape[1:] == (3, 64, 64) and len(y) == len(x)
        assert seen == n
        times.append(time.perf_counter() - start)
    print("RATE", n / min(times[1:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch-python", required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--images", type=int, default=4096)
    parser.add_argument("--measure")
    args = parser.parse_args()
    if args.measure:
        return measure(args.measure, args.workers, args.images)
    best = {"flambeau": 0.0, "torch": 0.0}
    for _ in range(args.rounds):
        for name, python in (("flambeau", sys.executable), ("torch", args.torch_python)):
            rest = ["--torch-python", "-", "--workers", str(args.workers), "--images", str(args.images)]
            done = subprocess.run(
                [python, __file__, *rest, "--measure", name], capture_output=True, text=True, check=True
            )
            best[name] = max(best[name], float(done.stdout.split("RATE")[1]))
    for name, rate in best.items():
        print(f"{name}: {rate:.0f} images per second with {args.workers} workers")
    print(f"flambeau / torch (time): {best['torch'] / best['flambeau']:.2f}")


if __name__ == "__main__":
    main()

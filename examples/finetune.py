#!/usr/bin/env python3
"""A small multimodal fine-tune: a vision tower looks at an image, a language model learns to caption it.

The data are made on the spot: images of noise with a bright square in one of 16 places, and a caption of four tokens that
follows from the place. A GPU is used if there is one.

What it does, in this order:
  1. loads the CUDA extension modules of the packages that are installed beside it: kernel timers of the NVIDIA Resiliency
     Extension (nvrx_cupti_module) and the operators of torchvision, each only if its package is there;
  2. trains: with torch if it is installed (and with DeepSpeed's FusedAdam on a GPU, if DeepSpeed is), else with numpy.

--fused-adam asks for DeepSpeed's FusedAdam wherever it runs. DeepSpeed compiles it when it is first used: without a CUDA
toolkit, a host compiler and ninja that ends here, and without a GPU it ends once it is built.
"""

import argparse
import ctypes
import importlib.util
import os
import sys
from pathlib import Path

PLACES, SIZE, PATCH, VOCABULARY, CAPTION = 16, 32, 8, 64, 4


def installed(package):
    return importlib.util.find_spec(package) is not None


def preload_cuda_wheels():
    """Maps the CUDA libraries that wheels keep below nvidia/, as `import torch` does: no extension's own search path leads
    there, but a library that is mapped already is found by its name."""
    for directory in map(Path, sys.path):
        for pattern in ("nvidia/*/lib/libcudart.so.[0-9]*", "nvidia/*/lib/libcupti.so.[0-9]*"):
            for library in sorted(directory.glob(pattern)):
                ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


def load_cuda_extensions():
    preload_cuda_wheels()
    loaded = []
    if installed("torch"):
        import torch
        loaded.append(f"torch {torch.__version__}")
    if installed("nvrx_cupti_module"):
        import nvrx_cupti_module
        loaded.append(Path(nvrx_cupti_module.__file__).name)
    if installed("torch") and installed("torchvision"):
        import torchvision
        loaded.append(f"torchvision {torchvision.__version__}")
    print("CUDA extensions:", ", ".join(loaded) or "none installed", flush=True)


def captions_of(places):
    """Four tokens that say where the square is: row, column, and both once more in other words."""
    return [[place // 4, 4 + place % 4, 8 + place, 24 + (place * 7) % 16] for place in places]


def make_batch(random, count):
    """Images as nested (count, SIZE, SIZE) float32 and captions as (count, CAPTION) integers, both numpy."""
    import numpy
    places = random.integers(0, PLACES, count)
    images = random.normal(0, 0.3, (count, SIZE, SIZE)).astype(numpy.float32)
    for image, place in zip(images, places):
        row, column = divmod(int(place), 4)
        image[row * PATCH:(row + 1) * PATCH, column * PATCH:(column + 1) * PATCH] += 1
    return images, numpy.array(captions_of(places.tolist()))


def train_with_torch(steps, batch, fused_adam):
    import numpy
    import torch
    from torch import nn

    class VisionTower(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.patches = nn.Conv2d(1, width, PATCH, stride=PATCH)
            self.places = nn.Parameter(torch.zeros(PLACES, width))
            self.block = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0, batch_first=True)

        def forward(self, images):
            return self.block(self.patches(images).flatten(2).transpose(1, 2) + self.places)

    class CaptionModel(nn.Module):
        """A decoder whose first tokens are the vision tower's, through a projector."""

        def __init__(self, width=64):
            super().__init__()
            self.vision = VisionTower(width)
            self.projector = nn.Linear(width, width)
            self.tokens = nn.Embedding(VOCABULARY + 1, width)
            self.order = nn.Parameter(torch.zeros(CAPTION, width))
            self.decoder = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0, batch_first=True)
            self.head = nn.Linear(width, VOCABULARY)

        def forward(self, images, captions):
            start = torch.full_like(captions[:, :1], VOCABULARY)
            words = self.tokens(torch.cat([start, captions[:, :-1]], 1)) + self.order
            seen = torch.cat([self.projector(self.vision(images)), words], 1)
            mask = nn.Transformer.generate_square_subsequent_mask(seen.shape[1], device=seen.device)
            return self.head(self.decoder(seen, src_mask=mask)[:, -CAPTION:])

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    model = CaptionModel().to(device)
    if fused_adam or (device == "cuda" and installed("deepspeed")):
        # Else DeepSpeed takes a CPU for its accelerator where it sees no GPU, and builds another optimizer of the same name.
        os.environ.setdefault("DS_ACCELERATOR", "cuda")
        from deepspeed.ops.adam import FusedAdam
        optimizer = FusedAdam(model.parameters(), lr=2e-3)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=device == "cuda")
    print(f"training on {device} with {type(optimizer).__module__}.{type(optimizer).__name__}", flush=True)
    random = numpy.random.default_rng(0)
    losses = []
    for _ in range(steps):
        images, captions = (torch.from_numpy(array).to(device) for array in make_batch(random, batch))
        loss = nn.functional.cross_entropy(model(images[:, None], captions).flatten(0, 1), captions.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train_with_numpy(steps, batch):
    """The same task for machines without torch: one linear vision tower, one softmax per caption token, AdamW by hand."""
    import numpy
    random = numpy.random.default_rng(0)
    tower = random.normal(0, 0.02, (SIZE * SIZE, 64))
    head = random.normal(0, 0.02, (64, CAPTION * VOCABULARY))
    parameters = [tower, head]
    first, second = [0 * p for p in parameters], [0 * p for p in parameters]
    print("training on the CPU with numpy", flush=True)
    losses = []
    for step in range(1, steps + 1):
        images, captions = make_batch(random, batch)
        pixels = images.reshape(batch, -1)
        hidden = numpy.tanh(pixels @ tower)
        scores = (hidden @ head).reshape(batch, CAPTION, VOCABULARY)
        odds = numpy.exp(scores - scores.max(-1, keepdims=True))
        odds /= odds.sum(-1, keepdims=True)
        right = numpy.take_along_axis(odds, captions[..., None], -1)
        losses.append(float(-numpy.log(right).mean()))
        odds -= numpy.eye(VOCABULARY)[captions]
        error = odds.reshape(batch, -1) / (batch * CAPTION)
        gradients = [pixels.T @ ((error @ head.T) * (1 - hidden**2)), hidden.T @ error]
        for p, g, m, v in zip(parameters, gradients, first, second):
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            p -= 2e-3 * (m / (1 - 0.9**step) / (numpy.sqrt(v / (1 - 0.999**step)) + 1e-8) + 0.01 * p)
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--fused-adam", action="store_true", help="train with DeepSpeed's FusedAdam, which is compiled first")
    options = parser.parse_args()
    load_cuda_extensions()
    if options.fused_adam or installed("torch"):
        losses = train_with_torch(options.steps, options.batch, options.fused_adam)
    else:
        losses = train_with_numpy(options.steps, options.batch)
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f} in {options.steps} steps")


if __name__ == "__main__":
    main()

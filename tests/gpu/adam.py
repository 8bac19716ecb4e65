"""Our AdamW against torch's fused one on a real GPU: the same bits after 100 steps, and the time of both.

    python3 tests/gpu/adam.py LIBRARY [equal] [edges] [time|brief] [predict] [NAME=LIBRARY…]        all parts without a name; brief: three sizes

LIBRARY: libcudiag-adam-test.so (tests/gpu/adam_library.cpp). It makes its steps on torch's tensors, in torch's process. `predict` also runs
cudiag-gpu, which lies beside it, and compares what it measured with torch. Other builds of the library are timed beside the first. Exit
status 77 without a GPU or torch; 1 if a result differs.

Bits are asked for, no measure: a kernel that rounds elsewhere than torch's may stay within 1e-6 in float32, and yet 0.6 % of a bfloat16 model's
parameters then differ in the last place (tests/unit/kernels/adam_math_test.cpp tries such kernels). One exception is torch's own. Its Adam with L2,
without AMSGrad and with gradients that are not scaled, rounds weight_decay * parameter by itself in the first of a thread's four elements (all, if
maximized) and fuses it into the sum in the others: so its compiler left it (SASS of libtorch_cuda.so 2.11.0+cu130, sm_75 to sm_90; not sm_100).
With gradients scaled by 1 the same kernel fuses it everywhere, so that is what must have our bits; how far torch without a scale is from
torch with one is printed, and is nothing of ours. torch up to 2.10 computes in double: 1e-6 of the larger of an element and the root mean square of all.
"""
import ctypes
import hashlib
import json
import pathlib
import statistics
import struct
import subprocess
import sys
import time

try:
    import torch
except ImportError:
    torch = None
if torch is None or not torch.cuda.is_available():
    print("cannot run here: no torch with a GPU")
    sys.exit(77)

DTYPES = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}
# torch computes in double up to 2.10 (kernels/chunked_adam.cu).
FLOAT_MATH = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 11)
LARGE = False       # torch 2.11.0 for CUDA 13.0 launches 320 chunks at once, though its headers have 2240 for CUDA 13
failed = []


class Tensor(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("parameter", "gradient", "average", "square", "most_square", "low", "elements")]


class Options(ctypes.Structure):
    _fields_ = [(name, ctypes.c_double) for name in ("lr", "beta1", "beta2", "epsilon", "weight_decay")] + \
        [(name, ctypes.c_uint64) for name in ("step", "gradient_scale", "found_inf", "coefficients")] + \
        [(name, ctypes.c_uint32) for name in ("decoupled", "maximized", "float_math")]


class Library:
    def __init__(self, path):
        self.path = path
        self.c = ctypes.CDLL(str(path))
        for name in ("cudiag_adam_open", "cudiag_chunked_open"):
            getattr(self.c, name).restype = ctypes.c_void_p
        self.c.cudiag_error.restype = ctypes.c_char_p
        self.c.cudiag_chunked_launches.restype = ctypes.c_size_t

    def check(self, ok):
        if not ok:
            raise RuntimeError(self.c.cudiag_error().decode())


def stream():
    return ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)


class Ours:
    """Steps of our kernel over lists of torch's tensors. `low`: the copies of masters in 16 bits."""

    def __init__(self, library, parameters, gradients, amsgrad=False, low=None, state=None, **options):
        self.library, self.gradients, self.parameters, self.low = library, gradients, parameters, low
        self.averages = [torch.zeros_like(p) for p in parameters] if state is None else state[0]
        self.squares = [torch.zeros_like(p) for p in parameters] if state is None else state[1]
        self.most = [torch.zeros_like(p) for p in parameters] if amsgrad else None
        self.step_count = torch.zeros((), device="cuda")
        self.options = Options(float_math=FLOAT_MATH, step=self.step_count.data_ptr(), **options)
        dtype = DTYPES[(low or parameters)[0].dtype]
        self.handle = ctypes.c_void_p(library.c.cudiag_adam_open(dtype, low is not None, amsgrad))
        library.check(self.handle.value)
        self.array = (Tensor * len(parameters))(*[
            Tensor(p.data_ptr(), g.data_ptr(), a.data_ptr(), s.data_ptr(), self.most[i].data_ptr() if amsgrad else 0,
                   low[i].data_ptr() if low is not None else 0, p.numel())
            for i, (p, g, a, s) in enumerate(zip(parameters, gradients, self.averages, self.squares))])

    def step(self):
        self.library.check(not self.library.c.cudiag_adam_step(self.handle, self.array, ctypes.c_size_t(len(self.array)), ctypes.byref(self.options), stream()))

    def close(self):
        self.library.c.cudiag_adam_close(self.handle)


class Torch:
    """The call that torch.optim.AdamW(fused=True).step() makes, with the step counts that it keeps."""

    def __init__(self, parameters, gradients, amsgrad=False, decoupled=True, maximize=False, scale=None, found_inf=None, **options):
        self.p, self.g = parameters, gradients
        self.a, self.s = ([torch.zeros_like(p) for p in parameters] for _ in range(2))
        self.m = [torch.zeros_like(p) for p in parameters] if amsgrad else []
        self.steps = [torch.zeros((), device="cuda") for _ in parameters]
        self.call = torch._fused_adamw_ if decoupled else torch._fused_adam_
        self.options = dict(amsgrad=amsgrad, maximize=maximize, grad_scale=scale, found_inf=found_inf, **options)

    def step(self):
        torch._foreach_add_(self.steps, 1)
        self.call(self.p, self.g, self.a, self.s, self.m, self.steps, **self.options)
        if self.options["found_inf"] is not None:
            torch._foreach_sub_(self.steps, [self.options["found_inf"]] * len(self.steps))


def away(ours, theirs):
    """How far apart, over all tensors of a list: relative to the larger of the element and the root mean square of all."""
    ours, theirs = (torch.cat([t.double().flatten() for t in tensors]) for tensors in (ours, theirs))
    scale = torch.maximum(theirs.abs(), theirs.square().mean().sqrt()).clamp_min(1e-300)
    return float(((ours - theirs).abs() / scale).max())


def same(ours, theirs):
    """Bit for bit; nan equals nan."""
    return all(torch.equal(o, t) for o, t in zip(ours, theirs))


def differing(ours, theirs):
    """Which share of the elements has other bits."""
    return float(torch.cat([(o != t).flatten() for o, t in zip(ours, theirs)]).double().mean())


def tell(ok, what, detail):
    print(f"{'equal  ' if ok else 'DIFFERS'} {what:<74} {detail}", flush=True)
    if not ok:
        failed.append(what)


SIZES = [1, 2, 3, 4, 5, 1023, 1024, 1025, 4096, 65536, 65537, 1000003, 300000, 7, 768, 0, 50257]


def equal(library):
    """100 steps of every kind, state and parameters."""
    base = dict(lr=1e-3, beta1=0.9, beta2=0.999, weight_decay=0.01, eps=1e-8)
    for dtype in DTYPES:
        for master in ((False,) if dtype == torch.float32 else (False, True)):
            for amsgrad in (False, True):
                for decoupled in (True, False):
                    for scaled in (False, True):
                        one_kind(library, base, dtype, master, amsgrad, decoupled, scaled)
    one_kind(library, base | {"weight_decay": 0.0}, torch.float32, False, False, True, False)
    one_kind(library, base, torch.float32, False, False, True, False, maximize=True)
    one_kind(library, base, torch.float32, False, False, False, False, maximize=True)
    one_kind(library, dict(lr=0.1, beta1=0.5, beta2=0.95, weight_decay=0.1, eps=1e-6), torch.float32, False, True, True, False)
    one_kind(library, base, torch.float32, False, False, True, False, count=300)


def one_kind(library, numbers, dtype, master, amsgrad, decoupled, scaled, maximize=False, count=None):
    torch.manual_seed(1)
    sizes = SIZES if count is None else [(i * 37) % 3000 + 1 for i in range(count)]
    high = torch.float32 if master else dtype
    start = [torch.randn(n, device="cuda").mul_(0.05).to(high) for n in sizes]
    ours_p, their_p = ([p.clone() for p in start] for _ in range(2))
    ours_g = [torch.empty(n, device="cuda", dtype=dtype) for n in sizes]
    their_g = [torch.empty(n, device="cuda", dtype=high) for n in sizes]
    low = [p.to(dtype) for p in ours_p] if master else None
    scale = torch.tensor(1024.0, device="cuda") if scaled else None
    found = torch.zeros((), device="cuda") if scaled else None
    ours = Ours(library, ours_p, ours_g, amsgrad, low, lr=numbers["lr"], beta1=numbers["beta1"], beta2=numbers["beta2"],
                epsilon=numbers["eps"], weight_decay=numbers["weight_decay"], decoupled=decoupled, maximized=maximize,
                gradient_scale=scale.data_ptr() if scaled else 0, found_inf=found.data_ptr() if scaled else 0)
    uneven = not decoupled and not amsgrad and not scaled
    unscaled = Torch([p.clone() for p in their_p], their_g, amsgrad, decoupled, maximize, **numbers) if uneven else None
    theirs = Torch(their_p, their_g, amsgrad, decoupled, maximize, torch.ones((), device="cuda") if uneven else scale, found, **numbers)
    for step in range(100):
        for o, t in zip(ours_g, their_g):
            o.normal_(0, 0.02 * (1 + step % 7)).mul_(1024 if scaled else 1)
            t.copy_(o)
        if scaled:
            found.fill_(1.0 if step in (3, 50) else 0.0)
        ours.step()
        theirs.step()
        if uneven:
            unscaled.step()
        if scaled and step == 10 and not master:
            tell(same(ours_g, their_g), f"{dtype} gradients, unscaled and stored", "")
    torch.cuda.synchronize()
    pairs = {"parameters": (ours_p, their_p), "averages": (ours.averages, theirs.a), "squares": (ours.squares, theirs.s)}
    if amsgrad:
        pairs["most squares"] = (ours.most, theirs.m)
    name = f"{str(dtype)[6:]}{' master' if master else ''}{' amsgrad' if amsgrad else ''}{' AdamW' if decoupled else ' Adam'}" \
           f"{' scaled, 2 steps skipped' if scaled else ''}{' maximize' if maximize else ''}{f' {count} tensors' if count else ''} wd={numbers['weight_decay']}"
    worst = {what: away(*pair) for what, pair in pairs.items()}
    bits = all(same(*pair) for pair in pairs.values())
    ok = float(ours.step_count) == float(theirs.steps[0]) and (bits if FLOAT_MATH else max(worst.values()) <= 1e-6)
    ok = ok and (not master or all(torch.equal(l, p.to(dtype)) for l, p in zip(low, ours_p)))
    tell(ok, name, "the same bits" if bits else ", ".join(f"{what} {value:.1e} ({100 * differing(*pairs[what]):.4f} %)" for what, value in worst.items()))
    if uneven:
        far, share = away(ours_p, unscaled.p), differing(ours_p, unscaled.p)
        print(f"note    {name}, torch without a scale: parameters {far:.1e} away, {100 * share:.4f} % differ", flush=True)
    ours.close()


def edges(library):
    """Pointers that are not aligned, more than 2^31 elements, more tensors than a table takes, none at all."""
    options = dict(lr=0.1, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.01, decoupled=1)
    theirs_options = dict(lr=0.1, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.01)
    for dtype in DTYPES:
        for shift in (1, 2, 3):
            for many in (3, 200):
                torch.manual_seed(2)
                whole = [torch.randn(5000 + shift, device="cuda").to(dtype) for _ in range(many)]
                ours_p, their_p = ([w.clone()[shift:] for w in whole] for _ in range(2))
                ours_g, their_g = ([torch.ones_like(w)[shift:] for w in whole] for _ in range(2))
                ours, theirs = Ours(library, ours_p, ours_g, **options), Torch(their_p, their_g, **theirs_options)
                for _ in range(3):
                    ours.step()
                    theirs.step()
                worst, bits = away(ours_p, their_p), same(ours_p, their_p)
                tell(bits if FLOAT_MATH else worst <= 1e-6, f"{str(dtype)[6:]}, {many} tensors that begin {shift} elements off",
                     "the same bits" if bits else f"{worst:.1e}, {100 * differing(ours_p, their_p):.4f} %")
                ours.close()
    ours = Ours(library, [torch.empty(0, device="cuda")], [torch.empty(0, device="cuda")], **options)
    ours.step()
    torch.cuda.synchronize()
    tell(float(ours.step_count) == 1, "a step without any element", "counted")
    ours.close()
    huge = 2 ** 31 + 2 ** 20 + 3
    p = torch.ones(huge, device="cuda")
    g = torch.ones(huge, device="cuda")
    ours = Ours(library, [p], [g], **options)
    ours.step()
    ours.step()
    torch.cuda.synchronize()
    tail_p, tail_g = [torch.ones(16, device="cuda")], [torch.ones(16, device="cuda")]
    theirs = Torch(tail_p, tail_g, **theirs_options)
    theirs.step()
    theirs.step()
    for name, piece in {"the first": p[:16], "those around 2^31": p[2 ** 31 - 8:2 ** 31 + 8], "the last": p[-16:]}.items():
        tell(same([piece], tail_p) if FLOAT_MATH else away([piece], tail_p) <= 1e-6, f"{huge} elements: {name}", "")
    tell(bool((p[::4097] == p[0]).all()), f"{huge} elements: every 4097th as the first", "")
    ours.close()
    del p, g, ours
    torch.cuda.empty_cache()


def quartiles(values):
    return statistics.quantiles(values, n=4)


def timed(steps, copy, runs, ahead, warm=3):
    """{name: milliseconds between events, and of a step by itself, the host's part included}, one after the other, behind `ahead` copies."""
    times = {name: ([], []) for name in steps}
    copies = []
    for run in range(warm + runs):
        for name, step in steps.items():
            events = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
            for _ in range(ahead):
                copy()          # while they run, the host queues the whole step
            events[0].record()
            copy()
            events[1].record()
            step()
            events[2].record()
            torch.cuda.synchronize()
            begin = time.perf_counter()
            step()
            torch.cuda.synchronize()
            wall = (time.perf_counter() - begin) * 1e3
            if run >= warm:
                times[name][0].append(events[1].elapsed_time(events[2]))
                times[name][1].append(wall)
                copies.append(events[0].elapsed_time(events[1]))
    return times, copies


def chunked(library, tensors, state, dtype, large, doubles):
    handle = ctypes.c_void_p(library.c.cudiag_chunked_open(DTYPES[dtype], large, doubles))
    library.check(handle.value)
    steps = [torch.zeros((), device="cuda") for _ in tensors[0]]
    array = (Tensor * len(steps))(*[Tensor(p.data_ptr(), g.data_ptr(), a.data_ptr(), s.data_ptr(), 0, 0, p.numel())
                                    for p, g, a, s in zip(*tensors, *state)])
    addresses = (ctypes.c_uint64 * len(steps))(*[s.data_ptr() for s in steps])
    options = Options(lr=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.01, decoupled=1, float_math=1)

    def step(keep=steps):
        library.check(not library.c.cudiag_chunked_step(handle, array, addresses, ctypes.c_size_t(len(array)), ctypes.byref(options), stream()))
    return step


SIZES_IN_TENSORS = [(1_000_000_000, 100), (10_000, 10), (100_000, 100), (1_000_000, 1000), (10_000_000, 10_000), (10_000_000, 10), (30_000_000, 300),
                    (100_000_000, 100), (100_000_000, 1000), (350_000_000, 310)]


def time_sizes(library, others, sizes):
    a, b = (torch.ones(2 ** 29, device="cuda") for _ in range(2))
    rows = []
    for dtype in (torch.float32, torch.bfloat16):
        for elements, count in sizes:
            p, g = ([torch.full((elements // count,), 0.01, device="cuda", dtype=dtype) for _ in range(count)] for _ in range(2))
            for x, y in zip(p, g):
                x.grad = y
            optimizer = torch.optim.AdamW(p, lr=1e-3, weight_decay=0.01, fused=True)
            optimizer.step()
            state = [[optimizer.state[x][key] for x in p] for key in ("exp_avg", "exp_avg_sq")]
            ours = Ours(library, p, g, state=state, lr=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.01, decoupled=1)
            steps = {"ours": ours.step, "torch": optimizer.step, "as torch": chunked(library, (p, g), state, dtype, LARGE, not FLOAT_MATH)}
            kept = [ours]
            for name, other in others.items():
                kept.append(Ours(other, p, g, state=state, lr=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8, weight_decay=0.01, decoupled=1))
                steps[f"ours {name}"] = kept[-1].step
            if elements == 1_000_000_000:
                steps |= {f"as torch {'large' if large else 'small'} {'double' if doubles else 'float'}": chunked(library, (p, g), state, dtype, large, doubles)
                          for large, doubles in ((False, True), (True, False))}
            times, copies = timed(steps, lambda: a.copy_(b), 15 if elements >= 10 ** 8 else 20, count // 400)
            copy = 2 * a.numel() * 4 / statistics.median(copies) / 1e6
            moved = elements * 7 * p[0].element_size()
            print(f"{str(dtype)[6:]} {elements:>13,} elements in {count:>6,} tensors; copy {copy:.0f} GB/s", flush=True)
            for name, (device, wall) in times.items():
                low, median, high = quartiles(device)
                rate = moved / median / 1e6
                print(f"    {name:<24} {median:9.4f} ms [{low:.4f}, {high:.4f}], {rate:6.0f} GB/s, {100 * rate / copy:5.1f} % of copy; "
                      f"with the host {statistics.median(wall):8.4f} ms", flush=True)
                rows.append({"dtype": str(dtype)[6:], "elements": elements, "tensors": count, "name": name, "ms": median, "wall": statistics.median(wall), "of_copy": rate / copy})
            for each in kept:
                each.close()
            del p, g, state, optimizer, steps, ours, kept
            torch.cuda.empty_cache()
    by = {(r["dtype"], r["elements"], r["tensors"], r["name"]): r for r in rows}
    for (dtype, elements, count, name), row in by.items():
        if name != "ours":
            continue
        other = by[(dtype, elements, count, "torch")]
        factor = 1.2 if (dtype, elements) == ("float32", 1_000_000_000) else 1.0
        print(f"{'faster ' if other['ms'] >= factor * row['ms'] and other['wall'] >= row['wall'] else 'SLOWER '} than torch's, {dtype} {elements:,} in {count:,}: "
              f"{other['ms'] / row['ms']:.2f} times on the device, {other['wall'] / row['wall']:.2f} with the host")
    return rows


def predict(library, rows):
    """What cudiag-gpu measured for torch's fused step, against torch itself."""
    program = library.path.parent / "cudiag-gpu"
    begin = time.monotonic()
    done = subprocess.run([program, "--runs", "11"], capture_output=True, text=True, timeout=500)
    print(f"cudiag-gpu: status {done.returncode} in {time.monotonic() - begin:.1f} s\n{done.stderr[-300:] if done.returncode else ''}")
    if done.returncode:
        failed.append("cudiag-gpu")
        return
    print("CARD " + done.stdout.strip())
    print(subprocess.run([program, "--probe"], capture_output=True, text=True).stdout)
    card = json.loads(done.stdout)
    for row in card["adamw"] + card["checks"]:
        for other in rows:
            if other["name"] == "torch" and (row["dtype"], row["elements"], row["tensors"]) == (other["dtype"], other["elements"], other["tensors"]):
                kind = f"{row['implementation']} {row.get('large_tables', '')} {row.get('double_math', '')}"
                print(f"    {row['dtype']} {row['elements']:,} in {row['tensors']:,}: cudiag-gpu {kind} {row['ms']['median']:.4f} ms, torch {other['ms']:.4f}")


def images(path):
    """The fatbins within a file, by their hash (their layout: diagnose/elf/fatbin.h)."""
    data, found, at = path.read_bytes(), set(), -1
    while (at := data.find(b"\x50\xed\x55\xba", at + 1)) >= 0:
        version, header, size = struct.unpack_from("<HHQ", data, at + 4)
        if version == 1 and at + header + size <= len(data):
            found.add(hashlib.sha256(data[at:at + header + size]).hexdigest())
    return found


def main():
    library = Library(pathlib.Path(sys.argv[1]).resolve())
    program = library.path.parent / "cudiag-gpu"
    if program.exists():
        tell(bool(images(program)) and images(library.path) == images(program), "the kernels are those of cudiag-gpu", "")
    others = {name: Library(pathlib.Path(path).resolve()) for name, _, path in (a.partition("=") for a in sys.argv[2:]) if path}
    parts = [a for a in sys.argv[2:] if "=" not in a] or ["equal", "edges", "time", "predict"]
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}, float math {FLOAT_MATH}, large tables {LARGE}")
    torch.cuda.current_stream().synchronize()
    torch.zeros(1, device="cuda")
    if "equal" in parts:
        equal(library)
    if "edges" in parts:
        edges(library)
    rows = time_sizes(library, others, SIZES_IN_TENSORS) if "time" in parts else time_sizes(library, others, SIZES_IN_TENSORS[:3]) if "brief" in parts else []
    torch.cuda.empty_cache()
    if "predict" in parts:
        predict(library, rows)
    print(f"{len(failed)} failed: {failed}" if failed else "all equal")
    sys.exit(1 if failed else 0)


main()

import sys, json
import torch
sys.path.insert(0, "src"); sys.path.insert(0, "tests/kernels")
which = sys.argv[1]
if which == "new":
    import importlib, types
    I = lambda f: importlib.import_module("vcnef.accelerate.kernels." + f)
    def mod(name, **items):
        m = types.ModuleType(name); m.__dict__.update(items); sys.modules[name] = m; return m
    L = {n: getattr(I(f), n) for f, n in (("attention","attention"),("modulation","modulation"),("mlp","mlp"),("residual","residual"),("activation","gelu"),("mixing","mixing"),("decoder","decoder"),("neighbours","neighbours"))}
    ops = I("registry").OPERATIONS
    L = {n: ops[n] for n in L}
    mod("vcnef.kernels", layers=mod("vcnef.kernels.layers", **L)); mod("vcnef.kernels.local", Stencil=I("stencil").Stencil)
from twins_of_layers import cases, mixing_cases
import statistics, time
out = {}
torch.manual_seed(0)
for name, layer, _, inputs in (*cases(96, 8, 256, "relu", batch=64, times=40, device="cuda"), *mixing_cases(256, 8, batch=64, times=40, device="cuda")):
    if name.startswith("neighbours") and "256" not in name: continue
    leaves = [(x.bfloat16() if i == 0 or x.ndim == 4 else x).detach().requires_grad_() for i, x in enumerate(inputs)]
    up = torch.randn_like(layer(*leaves))
    def once(): torch.autograd.grad(layer(*leaves), leaves, up)
    for _ in range(5): once()
    torch.cuda.synchronize(); g, h = [], []
    for _ in range(30):
        a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(3_000_000); a.record(); t = time.perf_counter(); once(); h.append(time.perf_counter() - t); b.record(); b.synchronize(); g.append(a.elapsed_time(b))
    out[name[:40]] = (round(statistics.median(g) * 1000, 1), round(statistics.median(h) * 1e6))
for k, v in out.items(): print(which, k, "GPU us", v[0], "host us", v[1])

import sys, time
from dataclasses import replace
import torch
sys.path.insert(0, "src"); sys.path.insert(0, "tests/accelerate/kernels")
import harness
from vcnef.accelerate.kernels.operation import Sizes
from vcnef.accelerate.kernels.registry import OPERATIONS, TRAINING
op = OPERATIONS[sys.argv[1]]
GPU = torch.device("cuda"); start = time.time(); bad = []; done = 0
for w, h, p in [(96, 8, 256), (256, 8, 77), (40, 4, 50), (100, 10, 129), (128, 8, 1000), (16, 2, 7), (192, 6, 77), (1024, 1, 77)]:
    for dtype in harness.half_types(op):
        for shared in (True, False):
            if time.time() - start > 330: continue
            s = Sizes(w, h, p, shared=shared, device=GPU, dtype=dtype, activation="gelu" if shared else "relu", between=dtype if shared else torch.float32)
            if harness.obstacle(op, s): continue
            torch.manual_seed(0)
            for e in op.examples(s):
                try:
                    d = harness.disagreement(e, dtype); done += 1
                    if not d < op.tolerance[dtype]: bad.append((e.label, w, h, p, str(dtype), shared, d))
                except Exception as x:
                    bad.append((e.label, w, h, p, str(dtype), repr(x)[:300]))
print(op.name, "examples checked", done, "bad", bad[:6], len(bad), f"{time.time()-start:.0f}s", flush=True)

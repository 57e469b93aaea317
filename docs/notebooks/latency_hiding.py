# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Latency hiding, with models that run
#
# A GPU finishes nothing quickly. A dependent addition waits several cycles for its operand, a load waits hundreds. It
# is fast all the same, because while one warp waits another one issues. How many warps does that take? Is it more for
# memory than for arithmetic? What happens in between?
#
# This notebook goes through the answer of Vasily Volkov's thesis *Understanding latency hiding on GPUs* (Berkeley,
# 2016) and draws its main figures again, with nothing but the models that drywarp holds. No GPU is needed. The
# machine is the GTX 980 (Maxwell) as the thesis measured it: the file `papers/volkov-maxwell`, in which each number
# names its table.
#
# Run it: `pip install 'drywarp[plot]' jupyter`, then open `docs/notebooks/latency_hiding.ipynb`. Change numbers, run
# again. The exercises at the end have answers.

# %%
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from drywarp import figures
from drywarp.analysis.every_model import compare_models
from drywarp.hardware import load_gpu
from drywarp.models.cusp import contention_of, cusp, mix_of

GPU = "papers/volkov-maxwell"
WARPS = range(1, 65)  # an SM of this GPU has room for 64 warps

# %% [markdown]
# ## 1. Little's law
#
# How much is under way equals how fast it goes times how long each takes:
#
# > warps needed = latency × throughput
#
# That holds for any queue. For one kind of instruction, each of which waits for the one before, it gives at once how
# many warps keep the machine busy. An addition takes 6 cycles, and the SM can do 4 warp additions per cycle. A load
# that misses the caches takes 368 cycles, and DRAM delivers one warp's load every 12.3 cycles to each SM.

# %%
mix = mix_of(load_gpu(GPU))
for name, latency, throughput in (
    ("additions", mix.alu_lat, mix.alu_thru),
    ("loads", mix.mem_lat, mix.mem_thru),
):
    print(f"{name:10} {latency:5.0f} cycles × {throughput:6.4f} per cycle = {latency * throughput:4.1f} warps")

# %% [markdown]
# Sixty times the latency, and a quarter more warps. Loads are slow, but they are also few: memory lets through a
# fiftieth of what the adders do, and only the product counts. *Occupancy is for memory latency* is half of the truth.

# %% [markdown]
# ## 2. The occupancy roofline
#
# With fewer warps than that the rate is warps / latency, a straight line from the origin: the **latency bound**. With
# more it is what the bottleneck lets through: the **throughput bound**. The lower of the two is Volkov's model.
#
# To try that we need a kernel with additions alone and one with loads alone. An *abstract kernel* is such a thing:
# which instructions, how often, and what waits for what (`docs/abstract-kernels.md`). The loads come packaged, as the
# mix with no addition per load; the additions we write down.

# %%
ADDITIONS = """
format = 1
title = "Additions, each of which waits for the one before"
[classes.add]
kind = "fp"
from = ["add"]
[[program]]
loop = 400
body = [{ id = "add", class = "add", previous = ["add"] }]
"""


def curves(workload, models, instructions, **settings):
    """Occupancies and instructions per cycle of each model, for a kernel of so many instructions a warp."""
    found = compare_models(workload, GPU, settings=settings, occupancies=WARPS, models=models)
    return {
        name: ([p.occupancy_warps for p in answer.curve], [instructions * p.warps_per_cycle for p in answer.curve])
        for name, answer in found.predictions.items()
    }


with TemporaryDirectory() as folder:
    file = Path(folder, "additions.toml")
    file.write_text(ADDITIONS)
    adds = curves(str(file), ["volkov", "pipeline"], 400)
figures.lines(
    adds,
    x="occupancy: warps per SM",
    y="additions per cycle and SM",
    title="Hiding arithmetic latency",
    marks={mix.warps_for_arithmetic: f"{mix.warps_for_arithmetic:.0f} warps"},
)

# %%
TRIPS = 32  # the packaged mix repeats that often
loads = curves("papers/alpha-mix", ["volkov", "volkov_contention", "pipeline"], TRIPS, alpha=0, iterations=TRIPS)
figures.lines(
    loads,
    x="occupancy: warps per SM",
    y="loads per cycle and SM",
    title="Hiding memory latency",
    marks={mix.warps_for_memory: f"{mix.warps_for_memory:.0f} warps"},
)

# %% [markdown]
# Two roofs of the same shape. The Pipeline model is a simulation: it lets every instruction of every warp wait its
# turn. It finds the same knee, and stays a little lower: its warps start together and end one by one, and meanwhile
# the machine is not full.
#
# On the real GPU additions follow the sharp line, and loads do not: their curve bends long before the knee. The
# dashed line, `volkov_contention`, has that bend.

# %% [markdown]
# ## 3. Contention: why memory saturates gradually
#
# A load's latency is not a constant. The more loads are under way the longer each waits at DRAM. The thesis measured
# mean latency over throughput and fitted it by three numbers per GPU:
#
# > latency = a + b · T / (c − T)
#
# with T the throughput, a the latency of an idle memory, and c where it would never end.

# %%
fit = contention_of(load_gpu(GPU))
peak = mix.mem_thru
load = [peak * step / 50 for step in range(50)]
figures.lines(
    {"mean latency of a load": ([t / peak for t in load], [fit.latency(t) for t in load]),
     "of an idle memory": ([0, 1], [fit.a, fit.a])},
    x="memory throughput, part of the peak", y="cycles", title="Latency under load",
)  # fmt: skip

# %% [markdown]
# Put into the latency bound this gives the rounded curve above. It matters when a code wants the last tenth of
# bandwidth:


# %%
def warps_for(curve, share, of):
    """The fewest warps that attain a share of a throughput; None where the curve does not."""
    return next((warps for warps, rate in zip(*curve, strict=True) if rate >= share * of), None)


for share in (0.5, 0.8, 0.9, 0.95):
    sharp, rounded = (warps_for(loads[name], share, peak) for name in ("volkov", "volkov_contention"))
    print(f"{share:4.0%} of the peak: {sharp} warps by the sharp roof, {rounded} with contention")

# %% [markdown]
# On the real GPU the thesis counts 40 warps for 90 %, and 46 for 95 % (section 4.3).

# %% [markdown]
# ## 4. The cusp: a mix needs more than either
#
# A real kernel has both. Take α additions to each load, all in one chain. A warp goes round in 368 + 6 α cycles. As
# long as memory is the bottleneck, more additions per load make the way longer and the rate stays: **more** warps are
# needed. Once the adders are the bottleneck the rate falls faster than the way grows: **fewer**. Where both are full,
# at 4 / 0.0814 ≈ 49 (48 here, since a load takes an issue slot too), the two needs add up.

# %%
needed = cusp(GPU, share=0.9)
print(f"both full at α = {needed.cusp_alpha:.1f}: {mix.needed_occupancy(needed.cusp_alpha):.1f} warps for all of it")

SIMULATED = (1, 4, 16, 32, 48, 64, 96, 128, 256)
LONG = 64  # iterations, so that start and end hardly count


def simulated(alpha):
    """Warps that attain 90 % of the throughput bound in the simulation."""
    found = compare_models(
        "papers/alpha-mix", GPU, settings={"alpha": alpha, "iterations": LONG}, models=["pipeline"],
        occupancies=range(20, 65, 2),
    )  # fmt: skip
    curve = found.predictions["pipeline"].curve
    rates = [p.occupancy_warps for p in curve], [LONG * p.warps_per_cycle for p in curve]
    return warps_for(rates, 0.9, mix.throughput_bound(alpha))


by_simulation = [simulated(alpha) for alpha in SIMULATED]
figures.lines(
    {
        "volkov": (needed.alphas, needed.needed["volkov"]),
        "with contention": (needed.alphas, needed.needed["volkov_contention"]),
        "pipeline": (SIMULATED, by_simulation),
        "CUDA guide": (needed.alphas, needed.needed["cuda_guide"]),
    },
    x="α: additions to one load", y="warps per SM for 90 % of the peak", title="The cusp", logarithmic=True,
    marks={needed.cusp_alpha: "memory and adders full"},
)  # fmt: skip

# %% [markdown]
# The simulation knows nothing of the formula and draws the same cusp. Right of it it asks for a few more warps: all
# start together, so that at first all load at the same time and then all add, and only many iterations later have they
# drifted apart. The rule of NVIDIA's programming guide of that time (warps = latency over the time between two loads)
# counts how many warps fill the wait for memory, forgets that additions wait too, and is far too low right of the
# cusp; left of it, where memory is the bottleneck, it says nothing.

# %% [markdown]
# ## 5. Do latencies add or overlap?
#
# Two simple ideas. Arithmetic and memory **overlap**: the time is that of the slower. Or they **add**: a warp does
# one after the other. Volkov's model says: both, in turn. Within a warp that waits for each result latencies add, so
# at low occupancy adding is right. Among many warps one's loads run behind another's additions, so at high occupancy
# overlapping is right.

# %%
ALPHA = 32
models = ["volkov", "kothapalli_max", "kothapalli_sum", "pipeline"]
mixed = curves("papers/alpha-mix", models, TRIPS, alpha=ALPHA, iterations=TRIPS)
figures.lines(
    {"volkov": mixed["volkov"], "they overlap": mixed["kothapalli_max"], "they add": mixed["kothapalli_sum"],
     "pipeline": mixed["pipeline"]},
    x="occupancy: warps per SM", y="loads per cycle and SM", title=f"Add or overlap? α = {ALPHA}",
)  # fmt: skip

# %%
for warps in (4, 60):
    rates = {name: rates[warps - 1] for name, (_, rates) in mixed.items()}
    ratios = ", ".join(f"{name} {rates[name] / rates['pipeline']:.2f}" for name in models[:3])
    print(f"{warps:2} warps, against the simulation: {ratios}")

# %% [markdown]
# Adding fits at the left and misses at the right, overlapping the other way round. The Pipeline model assumes
# neither: which wait hides behind what comes out of the simulation.

# %% [markdown]
# ## 6. Where the models part
#
# MWP-CWP (Hong and Kim 2009, here in the form of the analysis paper) counts how many warps can wait for memory at
# once (MWP) and how many can compute during one wait (CWP). Its computation is issue time: an addition costs its λ,
# not its Λ. With few additions that does not matter. With many it does, as long as there are too few warps to hide
# the adders' latency.

# %%
for alpha in (0, 8, 64):
    found = curves("papers/alpha-mix", ["pipeline", "volkov", "mwp_cwp"], TRIPS, alpha=alpha, iterations=TRIPS)
    for warps in (4, 24, 60):
        one = {name: rates[warps - 1] for name, (_, rates) in found.items()}
        print(
            f"α = {alpha:2}, {warps:2} warps: pipeline {one['pipeline']:.4f} loads per cycle, "
            f"volkov {one['volkov'] / one['pipeline']:.2f} of that, mwp_cwp {one['mwp_cwp'] / one['pipeline']:.2f}"
        )

# %%
apart = curves("papers/alpha-mix", ["pipeline", "volkov", "mwp_cwp"], TRIPS, alpha=64, iterations=TRIPS)
figures.lines(apart, x="occupancy: warps per SM", y="loads per cycle and SM", title="Three models, α = 64")

# %% [markdown]
# | model | few warps | many warps | the knee |
# |---|---|---|---|
# | Roofline | says nothing | the throughput bound | – |
# | MWP-CWP | memory latency, issue time of arithmetic | the throughput bound | where MWP or CWP ends |
# | Volkov | all latencies of a warp, added | the throughput bound | sharp; rounded with contention |
# | Pipeline | simulated | simulated | where the simulation has it: rounded where warps get in each other's way |
#
# They agree at both ends where their assumptions hold, and part in between. `drywarp models papers/alpha-mix --set
# alpha=64` asks every model of the literature at once.
#
# ## 7. On GPUs of today
#
# The same formulas with the numbers of newer GPUs, per SM, with loads of 128 bytes a warp. Their DRAM lets more through
# per SM and its latency in cycles has grown; additions have become shorter.

# %%
for name in ("v100", "a100", "h100", "b200"):
    new = cusp(name)
    print(
        f"{name}: {new.mix.warps_for_arithmetic:3.0f} warps hide additions, {new.mix.warps_for_memory:4.0f} loads, "
        f"{new.cusp_warps:4.0f} both at α = {new.cusp_alpha:.0f}; room for {new.max_warps}"
    )

# %% [markdown]
# From the H100 on, an SM has hardly room, or none, for the warps that one load each would take. Hence vectors of
# four words a load, several independent loads a thread, and asynchronous copies of whole tiles: all put more bytes
# under way per warp.

# %% [markdown]
# ## Exercises
#
# 1. **Faster memory.** A new GPU has twice the memory throughput and the same latencies. Where is its cusp, and does
#    an SM with room for 64 warps still reach it?
# 2. **Instruction-level parallelism.** Let each warp run two independent chains of additions. How many warps does the
#    adders' peak need then?
# 3. **Random access.** A load whose 32 lanes go to 32 places takes 534 cycles, and the SM gets one every 348 cycles.
#    How many warps hide that?
# 4. **A wrong cure.** A kernel with α = 8 runs with 48 warps per SM. A colleague halves its registers so that 64 fit.
#    What does it gain by Volkov's model, what with contention?
# 5. **One warp.** For α = 64 and a single warp MWP-CWP is off by a factor of about two. Compute both sides by hand.
#
# ## Answers
#
# **1.** The cusp moves to half the α, since the adders are full sooner per byte, and is higher: 2 × 30 for memory and
# 24 for the adders. 64 warps no longer reach both peaks at once.

# %%
faster = replace(mix, mem_thru=2 * mix.mem_thru)
at = faster.cusp_intensity()
print(f"α = {at:.1f}, {faster.needed_occupancy(at):.0f} warps")

# %% [markdown]
# **2.** Half as many: Little's law asks for 24 additions under way, and each warp has two. `copies = 2` makes two
# chains.

# %%
with TemporaryDirectory() as folder:
    file = Path(folder, "two_chains.toml")
    file.write_text(ADDITIONS.replace('previous = ["add"]', 'copies = 2, previous = ["add"]'))
    two_chains = curves(str(file), ["volkov", "pipeline"], 800)
for name, found in (("one chain", adds), ("two chains", two_chains)):
    print(f"{name}: 95 % of the peak with {warps_for(found['pipeline'], 0.95, mix.alu_thru)} warps in the simulation")

# %% [markdown]
# **3.** 534 / 348, that is two warps: the latency is longer, the throughput so much smaller.

# %%
random_loads = load_gpu(GPU).classes["random"]
print(f"{random_loads.latency / random_loads.lambda_:.1f} warps")

# %% [markdown]
# **4.** Volkov's model says nothing: 34 warps hide all of it. With contention a few per cent. If the smaller register
# budget costs instructions or spills, it loses.

# %%
eight = curves("papers/alpha-mix", ["volkov", "volkov_contention"], TRIPS, alpha=8, iterations=TRIPS)
for name, (_, rates) in eight.items():
    print(f"{name}: {rates[63] / rates[47] - 1:+.1%}")

# %% [markdown]
# **5.** One turn takes 368 + 64 · 6 = 752 cycles in truth. MWP-CWP counts 368 cycles and the issue of 65 instructions
# at 4 per cycle, some 16 more: 384. The ratio is 1.96.

# %%
counted = mix.mem_lat + 65 / mix.alu_thru
print(f"{mix.latency(64):.0f} cycles against {counted:.0f}: {mix.latency(64) / counted:.2f}")

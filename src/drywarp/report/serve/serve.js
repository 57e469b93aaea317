// The page of `drywarp serve`: requests an analysis, then the effect of each slider move.
{
  const STEPS = 16;  // slider steps to either side; the last is a factor of 4
  const factorAt = (step) => Math.round(1000 * 4 ** (step / STEPS)) / 1000;
  const words = {
    long_scoreboard: "memory beyond the SM", short_scoreboard: "shared memory, special functions", wait: "fixed latency",
    barrier: "barriers", membar: "fences", gmma: "matrix units", issue: "issue slots", l2: "L2", dram: "DRAM",
  };
  let answer = null;  // the result of the last analysis
  let asking = false, wanted = null, rest = 0, begun = 0;
  const stats = { moves: 0, last: 0 };

  async function post(verb, body) {
    let reply;
    try {
      reply = await fetch(verb, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
    } catch {
      throw { error: "drywarp does not respond: it has been stopped, or is overloaded" };
    }
    const said = await reply.json().catch(() => ({ error: `unreadable response (${reply.status})` }));
    if (!reply.ok) throw said;
    return said;
  }
  const complain = (problem) => {
    $("#problem-line").textContent = problem ? problem.error || String(problem) : "";
    $("#problem-log").textContent = problem && problem.log || "";
    $("#problem").hidden = !problem;
  };

  $("#ask").addEventListener("submit", async (event) => {
    event.preventDefault();
    $("#analyse").disabled = true;
    wanted = null; clearTimeout(rest);
    complain(null);
    $("#status").textContent = "compiling, emulating, simulating …";
    const started = performance.now();
    try {
      const found = await post("analyze", { source: $("#source").value, gpu: $("#gpu").value, launch: $("#launch").value });
      show(found);
      $("#status").textContent = `analysed in ${number((performance.now() - started) / 1000)} s`;
    } catch (problem) {
      $("#status").textContent = "";
      complain(problem);
    } finally {
      $("#analyse").disabled = false;
    }
  });

  function show(found) {
    answer = found;
    $("#answered").hidden = false;
    $("#name").textContent = found.kernel;
    $("#launch-words").textContent = `${found.gpu} · grid ${found.grid.join(" × ")} · block ${found.block.join(" × ")}`;
    $("#verdict").textContent = found.verdict;
    $("#notes").replaceChildren(...found.notes.map((note) => h("li", null, note)));
    $("#registers").textContent = `${found.registers} per thread`;
    D.clock = found.clock; D.code = found.code; D.here = found.occupancy;
    if (found.reasons) D.reasons = found.reasons;
    D.curves[0].points = D.curves[1].points = found.curve;
    const slider = $("#occupancy");
    Object.assign(slider, { min: found.warps_per_block, max: found.most_occupancy, step: found.warps_per_block });
    build("lambda", found.lambda, "λ");
    build("latency", found.latency, "Λ");
    reset();
    figures(found);
    profile(found);
    if (found.events) drywarp.profile.begin();
    $("#answer").scrollIntoView();
  }

  function build(kind, values, letter) {
    $("#" + kind).replaceChildren(...Object.entries(values).map(([name, cycles]) => {
      const id = `${kind}-${name}`;
      const row = h("div", { class: "slider" }, h("label", { for: id }, words[name] || name),
        h("input", { type: "range", id, min: -STEPS, max: STEPS, step: 1, value: 0, "data-name": name, oninput: moved }),
        h("output", { for: id }));
      row.write = () => {
        const factor = factorAt(+$("input", row).value);
        row.classList.toggle("changed", factor !== 1);
        const text = `${letter} ${number(cycles * factor)} cycles${factor === 1 ? "" : ` (${number(factor)}×)`}`;
        $("output", row).textContent = text;
        $("input", row).setAttribute("aria-valuetext", text);
      };
      return row;
    }));
  }
  const factors = (kind) => Object.fromEntries([...document.querySelectorAll(`#${kind} input`)]
    .filter((input) => +input.value !== 0).map((input) => [input.dataset.name, factorAt(+input.value)]));
  function write() {
    for (const row of document.querySelectorAll(".slider")) if (row.write) row.write();
    const warps = +$("#occupancy").value;
    $("#occupancy-out").textContent = `${warps} warps`;
    $("#occupancy").closest(".slider").classList.toggle("changed", warps !== answer.occupancy);
    D.here = warps;
  }
  function reset() {
    $("#occupancy").value = answer.occupancy;
    for (const input of document.querySelectorAll("#lambda input, #latency input")) input.value = 0;
    write();
  }

  // The latest position is requested once the previous request completes; when the slider rests, the exact result is.
  function moved() {
    write();
    $("#answer").classList.add("waiting");
    ask(false);
    clearTimeout(rest);
    rest = setTimeout(() => ask(true), 250);
  }
  function ask(settled) {
    wanted = { number: answer.number, occupancy: +$("#occupancy").value, lambda: factors("lambda"), latency: factors("latency"), settled };
    if (!asking) next();
  }
  async function next() {
    const now = wanted;
    wanted = null;
    asking = true;
    begun = performance.now();
    try {
      const found = await post("resimulate", now);
      stats.last = performance.now() - begun;
      stats.moves++;
      if (answer && found.number === answer.number && !(wanted && found.settled)) {
        complain(null);
        figures(found);
        if (found.settled) profile(found);
      }
    } catch (problem) {
      if (answer && now.number === answer.number) complain(problem);
    } finally {
      asking = false;
      if (wanted) next();
    }
  }

  function figures(found) {
    $("#time").textContent = time(found.time_s);
    const ratio = found.time_s / answer.time_s;
    const same = Math.abs(ratio - 1) < 5e-4;
    const band = same && answer.band ? `predicted GPU time; 90% interval ${time(answer.band[0])} to ${time(answer.band[1])} at this clock` : "predicted GPU time";
    $("#ratio").textContent = (same ? band : `${number(ratio)}× the original time, ${time(answer.time_s)}`) + (found.settled === false ? " …" : "");
    $("#verdict").hidden = !same;
    $("#limiter").textContent = found.limiter;
    $("#occupancy-words").textContent = `${found.occupancy} warps per SM` + (found.achieved ? `, achieved ${found.achieved.toFixed(1)}` : "");
    $("#answer").classList.toggle("waiting", found.settled === false);
    if (found.cycles !== undefined) $("#cycles").textContent = number(found.cycles, 4);
    if (found.curve) D.curves[0].points = found.curve;
    // Until the full curve arrives, show the one known point.
    else D.curves[0].points = [...D.curves[0].points.filter((point) => point[0] !== found.point[0]), found.point].sort((a, b) => a[0] - b[0]);
    drawCurves();
    if (found.stalls) {
      const total = Object.values(found.stalls).reduce((a, b) => a + b, 0);
      $("#stalls").replaceChildren(...Object.entries(found.stalls).sort((a, b) => b[1] - a[1]).filter(([, warps]) => warps >= 0.0005 * total)
        .map(([reason, warps]) => h("tr", null, h("th", { scope: "row" }, reason), h("td", { class: "num" }, percent(warps / total)), h("td", { class: "num" }, number(warps)),
          h("td", { class: "bar-cell" }, s("svg", { class: "bar", "aria-hidden": "true" }, s("rect", { width: `${(100 * warps / total).toFixed(2)}%`, height: "100%", fill: reasonColour(reason) }))))));
    }
  }
  function profile(found) {
    $("#profile-words").textContent = found.events
      ? `The first ${exact(found.events.count)} of ${exact(found.events.total)} warp instructions issued by one SM. Each box starts at issue: dark while it occupies its subsystem, light until the result is available.`
      : `Not available: ${found.no_events}.`;
    if (found.events) drywarp.profile.load(found.events);
  }
  // "Show in source" of an event: select its line in the text.
  window.showInstruction = (index) => {
    const line = D.code.line[D.code.index.indexOf(index)] || 0, lines = $("#source").value.split("\n");
    if (!line || line > lines.length) return;
    const from = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    $("#source").focus();
    $("#source").setSelectionRange(from, from + lines[line - 1].length);
  };
  $("#occupancy").addEventListener("input", moved);
  $("#reset").addEventListener("click", () => { reset(); moved(); });
  window.drywarp.serve = { stats };
}

// The charts of the result, drawn at the available width. The tables next to them hold the same numbers.
function linear(low, high, from, to, count) {
  const step = niceStep(high - low || 1, count), ticks = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step / 1e6; value += step) ticks.push(+value.toPrecision(12));
  return { at: (value) => from + (value - low) / (high - low || 1) * (to - from), ticks };
}
function logarithmic(low, high, from, to) {
  const a = Math.log10(low), b = Math.log10(high), ticks = [];
  const every = Math.max(1, Math.ceil((b - a) / 6));
  for (let power = Math.ceil(a); power <= b; power++) if (power % every === 0) ticks.push(10 ** power);
  if (ticks.length < 2) for (const value of [2, 5]) for (let p = Math.floor(a); p <= b; p++)
    if (value * 10 ** p >= low && value * 10 ** p <= high) ticks.push(value * 10 ** p);
  ticks.sort((x, y) => x - y);
  return { at: (value) => from + (Math.log10(value) - a) / (b - a) * (to - from), ticks };
}
function axes(svg, x, y, box, xLabel, yLabel, format = number, formatY = format) {
  for (const tick of y.ticks) svg.append(
    s("line", { class: "grid", x1: box.left, x2: box.right, y1: y.at(tick), y2: y.at(tick) }),
    s("text", { x: box.left - 7, y: y.at(tick) + 4, "text-anchor": "end" }, formatY(tick)));
  for (const tick of x.ticks) svg.append(
    s("line", { class: "axis", x1: x.at(tick), x2: x.at(tick), y1: box.bottom, y2: box.bottom + 4 }),
    s("text", { x: x.at(tick), y: box.bottom + 18, "text-anchor": "middle" }, format(tick)));
  svg.append(
    s("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }),
    s("text", { x: (box.left + box.right) / 2, y: box.bottom + 36, "text-anchor": "middle" }, xLabel),
    s("text", { x: 2, y: 12 }, yLabel));
}
const path = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

// A chart is one tab stop; arrow keys move through its points, which have a position, a title and values.
function chart(id, label, draw) {
  const holder = document.getElementById(id);
  if (!holder) return null;
  let points = [], at = -1, svg = null, ring = null;
  const show = (index, event) => {
    at = index;
    const point = points[index], box = svg.getBoundingClientRect();
    ring.setAttribute("cx", point.x);
    ring.setAttribute("cy", point.y);
    ring.setAttribute("visibility", "visible");
    showTip(event ? event.clientX : box.left + point.x, event ? event.clientY : box.top + point.y, point.title, point.rows);
    status.textContent = point.title + ": " + point.rows.map((row) => row.join(" ")).join(", ");
  };
  const hide = () => { followTip = null; ring.setAttribute("visibility", "hidden"); hideTip(); };
  const status = h("div", { class: "visually-hidden", "aria-live": "polite" });
  const redraw = () => {
    const width = Math.max(280, holder.clientWidth), height = Math.round(Math.min(380, Math.max(280, width * 0.62)));
    svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", tabindex: 0, "aria-label": label });
    points = draw(svg, width, height);
    ring = s("circle", { r: 6, fill: "none", stroke: "var(--text)", "stroke-width": 2, visibility: "hidden" });
    svg.append(ring);
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
      let best = -1, nearest = 900;
      points.forEach((point, index) => {
        const distance = (point.x - x) ** 2 + (point.y - y) ** 2 - (point.first ? 60 : 0);
        if (distance < nearest) { nearest = distance; best = index; }
      });
      if (best >= 0) show(best, event); else hide();
    });
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step || !points.length) return;
      event.preventDefault();
      followTip = () => document.activeElement === svg && at >= 0 && (show(at), true);
      show(((at < 0 ? (step > 0 ? -1 : 0) : at) + step + points.length) % points.length);
    });
    at = -1;
    holder.replaceChildren(svg, status);
  };
  let known = 0;
  new ResizeObserver(() => {
    if (Math.abs(holder.clientWidth - known) > 4) { known = holder.clientWidth; redraw(); }
  }).observe(holder);
  return redraw;
}

const hiddenModels = new Set();
const strokeOf = (model) => {
  const place = D.mainModels.indexOf(model);
  return place < 0 ? { class: "other", "stroke-width": 1.4 }
    : { stroke: `var(--c${place})`, "stroke-width": place ? 2 : 2.8, "stroke-dasharray": ["", "7 4", "2 3"][place] || "" };
};
const drawCurves = chart("curve-chart", "Warps per cycle over occupancy, by model", (svg, width, height) => {
  const shown = D.curves.filter((curve) => !hiddenModels.has(curve.model) && curve.points.length);
  const main = D.curves.filter((curve) => D.mainModels.includes(curve.model));
  const all = D.curves.flatMap((curve) => curve.points.map((point) => point[0]));
  if (!all.length) return [];
  const cap = 1.6 * Math.max(...main.flatMap((curve) => curve.points.map((point) => point[1])).filter(Number.isFinite), 0);
  const most = Math.min(cap || Infinity, Math.max(...shown.flatMap((curve) => curve.points.map((point) => point[1])).filter(Number.isFinite), 1e-12) * 1.05);
  const box = { left: 58, right: width - 14, top: 26, bottom: height - 44 };
  const x = linear(0, Math.max(...all, D.here), box.left, box.right, width < 420 ? 4 : 8);
  const y = linear(0, most, box.bottom, box.top, 5);
  const unit = [1, 1e3, 1e6, 1e9].find((each) => most * each >= 0.5) || 1;
  axes(svg, x, y, box, "occupancy: warps per SM", unit === 1 ? "warps per cycle per SM" : `warps per ${exact(unit)} cycles per SM`, number, (value) => number(value * unit));
  svg.append(s("line", { class: "guide", x1: x.at(D.here), x2: x.at(D.here), y1: box.top, y2: box.bottom }));
  const points = [];
  for (const curve of [...shown].reverse()) {
    const drawn = curve.points.filter((point) => Number.isFinite(point[1])).map((point) => ({ point, x: x.at(point[0]), y: Math.max(box.top - 6, y.at(point[1])) }));
    svg.append(s("path", { d: path(drawn.map((each) => [each.x, each.y])), fill: "none", ...strokeOf(curve.model) }));
    for (const each of drawn) points.push({
      x: each.x, y: each.y, first: curve.model === D.model, title: curve.model,
      rows: [["occupancy", `${each.point[0]} warps per SM`], ["rate", `${number(each.point[1], 4)} warps per cycle`], ["time", time(each.point[2])], ["bound", each.point[3]]],
    });
  }
  const own = D.curves[0].points.find((point) => point[0] === D.here);
  if (own) {
    svg.append(s("circle", { cx: x.at(own[0]), cy: y.at(own[1]), r: 5.5, fill: "var(--c0)", stroke: "var(--bg)", "stroke-width": 1.5 }));
    const right = x.at(own[0]) < (box.left + box.right) / 2;
    svg.append(s("text", { class: "strong", x: x.at(own[0]) + (right ? 9 : -9), y: box.top - 2, "text-anchor": right ? "start" : "end" }, `this launch: ${D.here} warps`));
  }
  return points.sort((a, b) => a.first === b.first ? a.x - b.x : a.first ? -1 : 1);
});
if (drawCurves) {
  const list = $("#curve-models");
  for (const curve of D.curves) {
    const button = h("button", { type: "button", "aria-pressed": String(!hiddenModels.has(curve.model)), title: curve.summary, onclick: () => {
      if (!hiddenModels.delete(curve.model)) hiddenModels.add(curve.model);
      button.setAttribute("aria-pressed", String(!hiddenModels.has(curve.model)));
      drawCurves();
    } }, s("svg", { width: 22, height: 8, "aria-hidden": "true", class: "dash" }, s("line", { x1: 0, x2: 22, y1: 4, y2: 4, ...strokeOf(curve.model) })), curve.model);
    list.append(h("li", null, button));
  }
  $("#curve-all").addEventListener("click", () => {
    const none = hiddenModels.size === 0;
    for (const curve of D.curves) if (none && !D.mainModels.includes(curve.model)) hiddenModels.add(curve.model); else if (!none) hiddenModels.delete(curve.model);
    for (const button of list.querySelectorAll("button")) button.setAttribute("aria-pressed", String(!hiddenModels.has(button.textContent)));
    $("#curve-all").textContent = none ? "Show all models" : "Show main models";
    drawCurves();
  });
}

// A roofline. `seen` limits how far above the kernel a flat roof is shown; `per` names what rates are divided by.
const roofline = (id, label, found, per, bandwidth, seenUpTo, said) => chart(id, label, (svg, width, height) => {
  const { rate, roofs, work } = found;
  const sloped = roofs.filter((roof) => roof.intensity), flat = roofs.filter((roof) => !roof.intensity);
  const seen = flat.filter((roof) => roof.rate < seenUpTo * rate);
  const top = Math.max(rate, ...seen.map((roof) => roof.rate)) * 2.2;
  // From the kernel's own intensities to where the slopes meet the highest flat roof.
  const places = sloped.flatMap((roof) => [roof.intensity, roof.intensity * top / roof.rate]);
  const low = Math.min(...(places.length ? places : [1])) / 6, high = Math.max(...(places.length ? places : [1])) * 4;
  const floor = rate / 30;
  const box = { left: 58, right: width - 16, top: 26, bottom: height - 44 };
  const x = logarithmic(low, high, box.left, box.right), y = logarithmic(floor, top, box.bottom, box.top);
  axes(svg, x, y, box, `${work} per byte`, `${work} per ${per}`, (value) => value >= 1e-3 && value < 1e5 ? number(value) : value.toExponential(0), said);
  const points = [], taken = [];
  const place = (wanted) => { let free = wanted; while (taken.some((used) => Math.abs(used - free) < 13)) free -= 13; taken.push(free); return free; };
  const colour = (roof) => roof.name === "issue" ? "var(--soft)" : `var(--c${roofs.indexOf(roof) % 9})`;
  const values = (roof) => [["limit", `${said(roof.rate, 4)} ${work} per ${per}`], ["reached", percent(rate / roof.rate)],
    ...(roof.intensity ? [["intensity", `${number(roof.intensity, 4)} ${work} per byte`], ["bandwidth", `${said(roof.rate / roof.intensity, 4)} ${bandwidth}`]] : [])];
  for (const roof of seen) {
    const height_ = y.at(roof.rate);
    svg.append(s("line", { x1: box.left, x2: box.right, y1: height_, y2: height_, stroke: colour(roof), "stroke-width": roof.name === "issue" ? 1.2 : 2 }),
      s("text", { class: "strong", x: box.right, y: place(height_ - 4), "text-anchor": "end" }, roof.name));
    points.push({ x: box.right - 8, y: height_, title: roof.name, rows: values(roof) });
  }
  for (const roof of sloped) {
    const slope = roof.rate / roof.intensity;
    const end = Math.min(high, top / slope), begin = Math.max(low, floor / slope);
    if (begin >= end) continue;
    svg.append(s("line", { x1: x.at(begin), y1: y.at(begin * slope), x2: x.at(end), y2: y.at(end * slope), stroke: colour(roof), "stroke-width": 2 }),
      s("line", { class: "guide", x1: x.at(roof.intensity), x2: x.at(roof.intensity), y1: y.at(Math.max(floor, Math.min(top, roof.rate))), y2: y.at(rate) }),
      s("text", { class: "strong", x: x.at(begin) + 16, y: y.at(begin * slope) - 2 }, roof.name),
      s("circle", { cx: x.at(roof.intensity), cy: y.at(rate), r: 5, fill: colour(roof), stroke: "var(--bg)", "stroke-width": 1.5 }));
    points.push({ x: x.at(roof.intensity), y: y.at(rate), first: true, title: `this kernel, ${roof.name}`, rows: [["rate", `${said(rate, 4)} ${work} per ${per}`], ...values(roof)] });
  }
  const mark = sloped.length ? x.at(Math.max(...sloped.map((roof) => roof.intensity))) : box.left + 4;
  svg.append(s("line", { class: "guide", x1: box.left, x2: box.right, y1: y.at(rate), y2: y.at(rate) }),
    s("text", { class: "strong", x: mark, y: y.at(rate) + 18, "text-anchor": mark > (box.left + box.right) / 2 ? "end" : "start" }, `this kernel: ${said(rate)}`));
  return points;
});
if (D.roofline) roofline("roofline-chart", `Roofline in ${D.roofline.work} per second, logarithmic`, D.roofline, "second", "B per second", Infinity, short);
if (D.instructionRoofline) roofline("instruction-roofline-chart", "Instruction roofline, logarithmic", D.instructionRoofline, "cycle per SM", "B per cycle per SM", 30, (value, digits = 3) => number(value, digits));

// GPUPerf's chart: memory on x, computation on y; from A via A' along the benefits to the ideal.
chart("benefits-chart", "Potential benefits according to GPUPerf", (svg, width, height) => {
  const b = D.benefits, get = (name) => b[name + "_cycles"];
  const exposed = get("t_mem") - get("t_overlap");
  const steps = [
    ["A", get("t_mem"), get("t_comp"), "T_mem, T_comp, no overlap"],
    ["A′", exposed, get("t_comp"), "overlapped time subtracted from memory"],
    ["ITILP", exposed, get("t_comp") - get("b_itilp"), "more independent instructions"],
    ["serial", exposed, get("t_comp") - get("b_itilp") - get("b_serial"), "no serialisation"],
    ["fp", exposed, get("t_fp"), "floating-point work only"],
    ["ideal", Math.min(exposed, get("t_mem_min")), get("t_fp"), "all data moved once"],
  ];
  const most = Math.max(...steps.flatMap(([, right, up]) => [right, up]), 1) * 1.08;
  const box = { left: 58, right: width - 18, top: 26, bottom: height - 44 };
  const x = linear(0, most, box.left, box.right, 4), y = linear(0, most, box.bottom, box.top, 5);
  axes(svg, x, y, box, "memory: SM cycles", "computation: SM cycles", short);
  svg.append(s("line", { class: "guide", x1: x.at(0), y1: y.at(0), x2: x.at(most), y2: y.at(most) }));
  const colours = ["var(--soft)", "var(--c4)", "var(--c3)", "var(--c2)", "var(--c0)"];
  steps.forEach(([, right, up], i) => {
    if (i) svg.append(s("line", { x1: x.at(steps[i - 1][1]), y1: y.at(steps[i - 1][2]), x2: x.at(right), y2: y.at(up), stroke: colours[i - 1], "stroke-width": i === 1 ? 1.5 : 5, "stroke-dasharray": i === 1 ? "3 3" : "" }));
  });
  const near = [];
  for (const [name, right, up] of steps) {
    svg.append(s("circle", { cx: x.at(right), cy: y.at(up), r: 4, fill: "var(--text)" }));
    const spot = [x.at(right), y.at(up)];
    if (!["A", "A′", "ideal"].includes(name) || near.some(([a, c]) => Math.hypot(a - spot[0], c - spot[1]) < 14)) continue;
    near.push(spot);
    const end = spot[0] > box.right - 40;
    svg.append(s("text", { class: "strong", x: spot[0] + (end ? -8 : 8), y: spot[1] - 6, "text-anchor": end ? "end" : "start" }, name));
  }
  return steps.map(([name, right, up, about]) => ({ x: x.at(right), y: y.at(up), first: true, title: name, rows: [["", about], ["memory", `${number(right, 4)} cycles`], ["computation", `${number(up, 4)} cycles`]] }));
});

// The execution profile: zooming, panning and selecting events, by mouse, touch and keyboard.
if (D.events && $("#profile-canvas")) {
  let data = new ProfileData(D.events);
  const canvas = $("#profile-canvas"), scroller = $("#profile-scroll"), map = $("#profile-map");
  const painter = new ProfilePainter(data, canvas), info = $("#profile-about"), key = $("#profile-key");
  let layouts = {};
  const stats = { draws: 0, last: 0, worst: 0, total: 0 };
  let least = Math.min(4, data.last || 1);
  const view = { begin: 0, end: data.last, top: 0, selected: -1, hovered: -1, warps: false };
  let queued = false;

  const draw = () => {
    queued = false;
    const begun = performance.now();
    painter.draw(view);
    // Reading a pixel back waits until painting is done; only tests request it.
    if (stats.wait) painter.context.getImageData(0, 0, 1, 1);
    stats.last = performance.now() - begun;
    stats.draws++; stats.total += stats.last; stats.worst = Math.max(stats.worst, stats.last);
    drawMap();
    const [from, to] = [view.begin, view.end].map((cycle) => exact(cycle, cycle < 100 ? 1 : 0));
    $("#profile-range").textContent = `cycles ${from} to ${to}`;
  };
  const soon = () => { if (!queued) { queued = true; requestAnimationFrame(draw); } };

  const showAs = (warps) => {
    view.warps = warps;
    const name = warps ? "warps" : "lanes";
    layouts[name] = layouts[name] || (warps ? data.byWarp() : data.bySubsystem(10));
    if (!layouts[name].row) layouts[name].row = data.row.slice(); else data.row.set(layouts[name].row);
    view.layout = layouts[name];
    const rows = view.layout.rows.length, room = scroller.clientHeight - AXIS - 2;
    view.rowHeight = Math.max(13, Math.min(22, Math.floor(room / rows)));
    scroller.firstElementChild.style.height = Math.max(scroller.clientHeight, rows * view.rowHeight + AXIS) + "px";
    scroller.scrollTop = 0; view.top = 0;
    $("#by-lane").setAttribute("aria-pressed", String(!warps));
    $("#by-warp").setAttribute("aria-pressed", String(warps));
    const used = [...new Set(data.reason)].map((reason) => D.reasons[reason]).filter((reason) => reason !== "selected");
    key.replaceChildren(...(warps
      ? [["var(--text)", "issues"], ...used.map((reason) => [reasonColour(reason), reason])]
      : data.lanes.map((lane, i) => [laneColour(i), lane.name])).map(([colour, name]) => h("li", null, swatch(colour), name)));
    soon();
  };
  const swatch = (colour) => s("svg", { class: "swatch", "aria-hidden": "true" }, s("rect", { width: "100%", height: "100%", fill: colour }));

  const move = (begin, end) => {
    const span = Math.min(data.last, Math.max(least, end - begin));
    begin = Math.max(0, Math.min(data.last - span, begin));
    view.begin = begin; view.end = begin + span;
    soon();
  };
  const zoom = (factor, at = (view.begin + view.end) / 2) => {
    const span = Math.min(data.last, Math.max(least, (view.end - view.begin) * factor));
    const share = (at - view.begin) / (view.end - view.begin);
    move(at - share * span, at + (1 - share) * span);
  };
  const pan = (share) => { const step = share * (view.end - view.begin); move(view.begin + step, view.end + step); };
  const cycleAt = (x) => view.begin + (x - view.labels) / view.scale;

  const hit = (x, y) => {
    if (x < view.labels || y < AXIS) return -1;
    const row = Math.floor((y - AXIS + view.top) / view.rowHeight);
    if (row < 0 || row >= view.layout.rows.length) return -1;
    const cycle = cycleAt(x), slack = 2 / view.scale;
    const [from, to] = data.visible(view.layout, row, cycle - slack, cycle + slack);
    let best = -1;
    for (let at = from; at < to; at++) {
      const i = view.layout.items[at];
      if (data.start[i] - slack <= cycle && (view.warps || view.layout.rows[row].deep ? data.taken[i] : data.end[i]) + slack >= cycle) best = i;
    }
    return best;
  };
  const flightAt = (x, y) => {
    const row = view.layout.rows[Math.floor((y - AXIS + view.top) / view.rowHeight)];
    if (x < view.labels || y < AXIS || !row || !row.flight) return null;
    return [data.lanes[row.lane].name, [["in flight", `${data.flying(row.flight, cycleAt(x))} instructions`], ["at", `cycle ${exact(cycleAt(x), 0)}`]]];
  };
  const facts = (i) => {
    const previous = data.before[i], awaited = data.awaited[i];
    const waited = previous >= 0 ? data.start[i] - data.start[previous] : 0;
    return [
      ["warp, block", `${data.warp[i]}, ${data.block[i]}`],
      ["subsystem", data.lanes[data.lane[i]].name + (data.lanes[data.lane[i]].instances > 1 ? `, partition ${data.warp[i] % data.partitions}` : "")],
      ["issue", `${exact(data.start[i])} cycles (${time(data.start[i] / D.clock)})`],
      ["completion", `${exact(data.start[i] + data.duration[i] / data.ticks_per_cycle)} cycles, ${exact(data.duration[i] / data.ticks_per_cycle)} after issue`],
      ["stalled by", previous >= 0 ? `${D.reasons[data.reason[i]]}, ${exact(waited)} cycles after the warp's previous issue` : D.reasons[data.reason[i]]],
      ...(awaited >= 0 ? [["waited for", `${data.opcodes[data.node[awaited]]} of warp ${data.warp[awaited]}, issued at ${exact(data.start[awaited])}`]] : []),
    ];
  };
  const title = (i) => D.code.text[codeAt.get(data.nodes[data.node[i]][0])] || data.opcodes[data.node[i]];
  const placesOfCode = () => new Map(D.code.index.map((index, place) => [index, place]));
  let codeAt = placesOfCode();

  const select = (i, reveal = true) => {
    view.selected = i;
    if (i < 0) { info.hidden = true; soon(); return; }
    info.hidden = false;
    const go = (name, to) => h("button", { type: "button", disabled: to < 0, onclick: () => select(to) }, name);
    info.replaceChildren(h("div", { class: "mono" }, h("b", null, title(i))),
      h("table", null, h("tbody", null, facts(i).map(([name, value]) => h("tr", null, h("th", { scope: "row", class: "soft" }, name), h("td", null, value))))),
      h("div", { class: "tools" }, go("Previous in warp", data.before[i]), go("Next in warp", data.after[i]), go("What it waited for", data.awaited[i]),
        h("button", { type: "button", onclick: () => { showInstruction(data.nodes[data.node[i]][0]); $("#source").scrollIntoView(); } }, "Show in source")));
    if (reveal) {
      const span = view.end - view.begin;
      if (data.start[i] < view.begin || data.start[i] > view.end) move(data.start[i] - span / 3, data.start[i] + 2 * span / 3);
      const y = data.row[i] * view.rowHeight;
      if (y < view.top || y + view.rowHeight > view.top + scroller.clientHeight - AXIS) scroller.scrollTop = Math.max(0, y - scroller.clientHeight / 2);
    }
    soon();
  };

  const pointers = new Map();
  let dragged = 0, pinch = null;
  canvas.addEventListener("pointerdown", (event) => {
    try { canvas.setPointerCapture(event.pointerId); } catch { /* synthetic events have no pointer */ }
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    dragged = 0;
    if (pointers.size === 2) pinch = null;
    canvas.classList.add("moving");
  });
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect(), before = pointers.get(event.pointerId);
    if (!before) {
      const found = hit(event.clientX - box.left, event.clientY - box.top);
      if (found !== view.hovered) { view.hovered = found; soon(); }
      const flying = found < 0 ? flightAt(event.clientX - box.left, event.clientY - box.top) : null;
      if (found >= 0) showTip(event.clientX, event.clientY, title(found), facts(found));
      else if (flying) showTip(event.clientX, event.clientY, flying[0], flying[1]);
      else hideTip();
      return;
    }
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    hideTip();
    if (pointers.size === 1) {
      const dx = event.clientX - before[0], dy = event.clientY - before[1];
      dragged += Math.abs(dx) + Math.abs(dy);
      move(view.begin - dx / view.scale, view.end - dx / view.scale);
      scroller.scrollTop -= dy;
    } else if (pointers.size === 2) {
      const [a, b] = [...pointers.values()], distance = Math.max(20, Math.abs(a[0] - b[0])), middle = (a[0] + b[0]) / 2 - box.left;
      if (pinch) zoom(pinch / distance, cycleAt(middle));
      pinch = distance;
      dragged += 10;
    }
  });
  const release = (event) => {
    if (!pointers.delete(event.pointerId)) return;
    canvas.classList.remove("moving");
    pinch = null;
    if (dragged < 5 && event.type === "pointerup") {
      const box = canvas.getBoundingClientRect();
      select(hit(event.clientX - box.left, event.clientY - box.top), false);
    }
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => { if (view.hovered >= 0) { view.hovered = -1; soon(); } hideTip(); });
  canvas.addEventListener("dblclick", (event) => zoom(0.4, cycleAt(event.clientX - canvas.getBoundingClientRect().left)));
  // The wheel scrolls the page as usual; with Ctrl it zooms, sideways or with Shift it pans.
  canvas.addEventListener("wheel", (event) => {
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.ctrlKey || event.metaKey) zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 240))), cycleAt(event.clientX - canvas.getBoundingClientRect().left));
    else if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) move(view.begin + sideways / view.scale, view.end + sideways / view.scale);
    else return;
    event.preventDefault();
    hideTip();
  }, { passive: false });
  scroller.addEventListener("scroll", () => { view.top = scroller.scrollTop; soon(); }, { passive: true });
  canvas.addEventListener("keydown", (event) => {
    const act = {
      ArrowLeft: () => pan(event.shiftKey ? -0.8 : -0.15), ArrowRight: () => pan(event.shiftKey ? 0.8 : 0.15),
      ArrowUp: () => { scroller.scrollTop -= 3 * view.rowHeight; }, ArrowDown: () => { scroller.scrollTop += 3 * view.rowHeight; },
      "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), "_": () => zoom(1 / 0.6),
      0: () => move(0, data.last), Home: () => move(0, view.end - view.begin), End: () => move(data.last - (view.end - view.begin), data.last),
      n: () => select(view.selected < 0 ? 0 : data.after[view.selected] >= 0 ? data.after[view.selected] : view.selected),
      p: () => select(view.selected < 0 ? 0 : data.before[view.selected] >= 0 ? data.before[view.selected] : view.selected),
      w: () => { if (view.selected >= 0 && data.awaited[view.selected] >= 0) select(data.awaited[view.selected]); },
      Escape: () => { select(-1); api.highlight(undefined); },
    }[event.key];
    if (!act || ((event.ctrlKey || event.metaKey) && event.key !== "+")) return;
    event.preventDefault();
    act();
  });
  $("#zoom-in").addEventListener("click", () => zoom(0.5));
  $("#zoom-out").addEventListener("click", () => zoom(2));
  $("#zoom-all").addEventListener("click", () => { api.highlight(undefined); move(0, data.last); });
  $("#by-lane").addEventListener("click", () => showAs(false));
  $("#by-warp").addEventListener("click", () => showAs(true));

  // The overview map: issues over the whole time, and the current view.
  let counts = null;
  function drawMap() {
    const ratio = Math.min(2, devicePixelRatio || 1), width = map.clientWidth, height = map.clientHeight, context = map.getContext("2d");
    if (map.width !== Math.round(width * ratio)) { map.width = Math.round(width * ratio); map.height = Math.round(height * ratio); counts = null; }
    if (!counts) {
      counts = new Float64Array(Math.max(1, width));
      for (let i = 0; i < data.count; i++) counts[Math.min(counts.length - 1, Math.floor(data.start[i] / data.last * counts.length))]++;
      counts.most = counts.reduce((a, b) => Math.max(a, b), 1);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = painter.rgb(painter.panel);
    context.fillRect(0, 0, width, height);
    context.fillStyle = painter.rgb(painter.accent, 0.65);
    for (let x = 0; x < counts.length; x++) { const high = counts[x] / counts.most * (height - 4); context.fillRect(x, height - high, 1, high); }
    const x0 = view.begin / data.last * width, x1 = view.end / data.last * width;
    context.fillStyle = painter.rgb(painter.bg, 0.72);
    context.fillRect(0, 0, x0, height);
    context.fillRect(x1, 0, width - x1, height);
    context.strokeStyle = painter.rgb(painter.text);
    context.lineWidth = 1.5;
    context.strokeRect(x0 + 0.75, 0.75, Math.max(3, x1 - x0 - 1.5), height - 1.5);
  }
  let onMap = false;
  const centre = (event) => {
    const box = map.getBoundingClientRect(), cycle = (event.clientX - box.left) / box.width * data.last, half = (view.end - view.begin) / 2;
    move(cycle - half, cycle + half);
  };
  map.addEventListener("pointerdown", (event) => { onMap = true; try { map.setPointerCapture(event.pointerId); } catch { /* as above */ } centre(event); });
  map.addEventListener("pointermove", (event) => { if (onMap) centre(event); });
  for (const name of ["pointerup", "pointercancel"]) map.addEventListener(name, () => { onMap = false; });

  // Start at a zoom level that shows individual instructions.
  const begin = () => move(0, Math.min(data.last, Math.max(200, 4000 * data.last / Math.max(1, data.count))));
  const api = {
    data, view, stats, move, zoom, select, draw, begin,
    // Replace the events (`drywarp serve`); the view stays where it is.
    load(packed) {
      const { begin: from, end: to } = view;
      api.data = painter.data = data = new ProfileData(packed);
      layouts = {}; counts = null; codeAt = placesOfCode(); least = Math.min(4, data.last || 1);
      view.hovered = -1;
      painter.colours();
      showAs(view.warps);
      select(-1);
      move(from, to);
    },
    highlight(instruction) { painter.marked = instruction; soon(); },
  };
  window.drywarp = { profile: api };
  redraws.push(() => { painter.colours(); draw(); });  // immediately: printing does not wait for a frame
  new ResizeObserver(() => soon()).observe(canvas);
  showAs(false);
  begin();
}

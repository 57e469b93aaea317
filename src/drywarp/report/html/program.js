// The timeline of streams as SVG: only what is in view is drawn, and what is narrower than a pixel is drawn together.
(() => {
  const holder = $("#tracks"), NAMES = 150, TOP = 24, ROW = 26, BOX = 18, FEWEST = 1e-9;
  const columns = Object.fromEntries(Object.entries(D.columns).map(([name, column]) => [name, unpack(column)]));
  const tracks = D.tracks.map((name) => ({ name, boxes: [] }));
  for (let i = 0; i < D.count; i++) tracks[columns.track[i]].boxes.push(i);
  const start = (i) => columns.start[i] * D.unit, end = (i) => start(i) + columns.taken[i] * D.unit;
  const colour = (i) => {
    const { kind, place } = D.names[columns.name[i]];
    return kind === "kernel" ? laneColour([0, 2, 4, 6, 7, 8, 5, 3][place % 8]) : kind === "several" ? "var(--c9)" : "var(--c1)";
  };
  const view = { begin: 0, end: D.last || 1 };
  let width = 800, svg = null, dragged = 0;
  const scale = () => (width - NAMES) / (view.end - view.begin);
  const xOf = (seconds) => NAMES + (seconds - view.begin) * scale();
  const timeAt = (x) => view.begin + (x - NAMES) / scale();

  // The first box of a track that ends in view.
  function first(boxes) {
    let low = 0, high = boxes.length;
    while (low < high) { const middle = (low + high) >> 1; if (end(boxes[middle]) < view.begin) low = middle + 1; else high = middle; }
    return low;
  }
  function about(i, event, more) {
    const each = D.names[columns.name[i]], count = columns.count[i], taken = end(i) - start(i);
    const rows = [["from", time(start(i))], ["until", time(end(i))], ["takes", time(taken)]];
    if (count > 1) rows.push(["launches or copies", exact(count, 0)]);
    if (columns.bytes[i]) rows.push(["bytes", exact(columns.bytes[i], 0)]);
    if (more) rows.push(["and", `${exact(more, 0)} more too narrow to tell apart`]);
    showTip(event.clientX, event.clientY, each.name, rows);
  }
  function show(i) {
    const { kind, place } = D.names[columns.name[i]], found = kind === "kernel" && document.getElementById(`kernel-${place}`);
    if (!found) return;
    found.open = true;
    found.scrollIntoView();
    $("summary", found).focus({ preventScroll: true });
  }
  function draw() {
    const height = TOP + ROW * tracks.length + 6;
    const made = [];
    const step = niceStep(view.end - view.begin, Math.max(2, (width - NAMES) / 110));
    for (let at = Math.ceil(view.begin / step) * step; at <= view.end; at += step) made.push(
      s("line", { x1: xOf(at), x2: xOf(at), y1: TOP - 6, y2: height }), s("text", { x: xOf(at) + 3, y: 14 }, time(Math.abs(at) < step / 2 ? 0 : at)));
    tracks.forEach((track, row) => {
      const y = TOP + ROW * row + (ROW - BOX) / 2;
      for (let n = first(track.boxes); n < track.boxes.length; n++) {
        const i = track.boxes[n];
        if (start(i) > view.end) break;
        const from = Math.max(NAMES, xOf(start(i))), until = Math.min(width, xOf(end(i)));
        let last = n, to = until;
        while (to - from < 1.5 && last + 1 < track.boxes.length && xOf(start(track.boxes[last + 1])) < from + 1.5)
          to = Math.max(to, Math.min(width, xOf(end(track.boxes[++last]))));
        const wide = Math.max(1, to - from), more = last - n;
        const known = D.names[columns.name[i]];
        made.push(s("rect", {
          class: `box ${known.kind === "kernel" ? "kernel" : ""}`, x: from, y, width: wide, height: BOX, fill: more ? "var(--c9)" : colour(i),
          onpointermove: (event) => { if (dragged < 4) about(i, event, more); }, onpointerleave: hideTip,
          onclick: () => { if (dragged < 4) show(i); },
        }));
        if (!more && wide > 8 * Math.min(known.name.length, 6))
          made.push(s("text", { class: "name", x: from + 4, y: y + 13 }, known.name.slice(0, Math.floor((wide - 6) / 7))));
        n = last;
      }
    });
    made.push(s("rect", { x: 0, y: 0, width: NAMES, height, fill: "var(--panel)" }));
    tracks.forEach((track, row) => made.push(s("text", { class: "name", x: 8, y: TOP + ROW * row + 17 }, track.name.slice(0, 22))));
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("height", height);
    svg.replaceChildren(...made);
    $("#range").textContent = `${time(view.begin)} to ${time(view.end)}`;
  }
  function move(begin, end) {
    const span = Math.min(D.last || 1, Math.max(FEWEST, end - begin));
    view.begin = Math.min(Math.max(0, begin), (D.last || 1) - span);
    view.end = view.begin + span;
    hideTip();
    draw();
  }
  const zoom = (factor, at = (view.begin + view.end) / 2) => move(at - (at - view.begin) * factor, at + (view.end - at) * factor);
  const pan = (share) => { const by = share * (view.end - view.begin); move(view.begin + by, view.end + by); };

  svg = s("svg", { role: "application", tabindex: 0, "aria-label": "Timeline: kernels and copies by stream; the tables hold the totals" });
  holder.append(svg);
  new ResizeObserver(() => { width = Math.max(360, holder.clientWidth); draw(); }).observe(holder);
  const inside = (event) => event.clientX - svg.getBoundingClientRect().left;
  let from = null;
  svg.addEventListener("pointerdown", (event) => { from = { x: event.clientX, begin: view.begin, end: view.end }; dragged = 0; });
  addEventListener("pointermove", (event) => {
    if (!from) return;
    dragged = Math.max(dragged, Math.abs(event.clientX - from.x));
    if (dragged < 4) return;
    svg.classList.add("moving");
    const by = (from.x - event.clientX) / scale();
    move(from.begin + by, from.end + by);
  });
  for (const name of ["pointerup", "pointercancel"]) addEventListener(name, () => { from = null; svg.classList.remove("moving"); });
  svg.addEventListener("wheel", (event) => {
    if (event.ctrlKey || event.metaKey) zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 240))), timeAt(inside(event)));
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan((event.deltaX || event.deltaY) / width);
    else return;
    event.preventDefault();
  }, { passive: false });
  svg.addEventListener("dblclick", (event) => zoom(0.4, timeAt(inside(event))));
  svg.addEventListener("keydown", (event) => {
    const act = {
      ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15), "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6),
      0: () => move(0, D.last), Home: () => move(0, view.end - view.begin), End: () => move(D.last, D.last + view.end - view.begin),
    }[event.key];
    if (act) { event.preventDefault(); act(); }
  });
  $("#zoom-in").addEventListener("click", () => zoom(0.6));
  $("#zoom-out").addEventListener("click", () => zoom(1 / 0.6));
  $("#zoom-all").addEventListener("click", () => move(0, D.last));
  redraws.push(draw);
})();

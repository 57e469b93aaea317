// Draws the visible part: individual boxes if they can be told apart, otherwise each pixel's occupied time.
const LABELS = 92, AXIS = 24;

class ProfilePainter {
  constructor(data, canvas) {
    this.data = data;
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.raster = document.createElement("canvas");
    this.colours();
  }

  colours() {
    this.laneRgb = this.data.lanes.map((_, lane) => resolve(laneColour(lane)));
    this.reasonRgb = D.reasons.map((reason) => resolve(reasonColour(reason)));
    this.bg = resolve("var(--bg)"); this.panel = resolve("var(--panel)");
    this.line = resolve("var(--line)"); this.text = resolve("var(--text)"); this.soft = resolve("var(--soft)");
    this.accent = resolve("var(--accent)");
    this.font = getComputedStyle(document.body).fontFamily;
    this.styles = new Map();
    this.widths = new Map();
  }

  // A colour as a canvas style string; cached per colour.
  rgb(parts, alpha = 1) {
    const key = ((parts[0] * 256 + parts[1]) * 256 + parts[2]) * 128 + Math.round(100 * alpha);
    let found = this.styles.get(key);
    if (!found) this.styles.set(key, found = `rgb(${parts[0]} ${parts[1]} ${parts[2]} / ${alpha})`);
    return found;
  }

  textWidth(text) {
    let found = this.widths.get(text);
    if (found === undefined) this.widths.set(text, found = this.context.measureText(text).width);
    return found;
  }

  // `view`: begin and end in cycles, top in pixels; `layout` rows; `warps` whether rows are warps.
  draw(view) {
    const { context, canvas } = this, ratio = Math.min(2, devicePixelRatio || 1);
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (width < 100) return;  // not laid out yet
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = this.rgb(this.bg);
    context.fillRect(0, 0, width, height);
    Object.assign(view, { width, height, labels: width < 520 ? 64 : LABELS });
    view.scale = (width - view.labels) / (view.end - view.begin);
    const { rows } = view.layout, size = view.rowHeight;
    const first = Math.max(0, Math.floor(view.top / size)), last = Math.min(rows.length, Math.ceil((view.top + height - AXIS) / size));
    this.bands(view, first, last);
    let seen = 0;
    const spans = [];
    for (let r = first; r < last; r++) {
      const span = this.data.visible(view.layout, r, view.begin, view.end);
      spans.push(span);
      seen += span[1] - span[0];
    }
    view.seen = seen;
    view.single = seen < 2500 || seen * 3 < (width - view.labels) * (last - first) / 8;
    context.save();
    context.beginPath();
    context.rect(view.labels, AXIS, width - view.labels, height - AXIS);
    context.clip();
    this.flights(view, first, last);
    if (view.single) this.boxes(view, first, spans); else this.density(view, first, last, spans, ratio);
    this.arrows(view, first, last, spans);
    context.restore();
    this.axis(view);
    this.names(view, first, last);
  }

  y(view, row) { return AXIS + row * view.rowHeight - view.top; }
  x(view, cycle) { return view.labels + (cycle - view.begin) * view.scale; }

  bands(view, first, last) {
    const { context } = this;
    let band = 0;
    view.layout.rows.forEach((row, r) => {
      if (row.begins) band++;
      if (r < first || r >= last) return;
      if (band % 2) { context.fillStyle = this.rgb(this.panel); context.fillRect(view.labels, this.y(view, r), view.width, view.rowHeight); }
    });
  }

  // The number in flight, as an area chart over the rows reserved for it in a deep subsystem.
  flights(view, first, last) {
    const { context } = this;
    for (let r = Math.max(0, first - FLIGHT_ROWS + 1); r < last; r++) {
      const row = view.layout.rows[r];
      if (!row.flight || row.part) continue;
      const high = FLIGHT_ROWS * view.rowHeight - 3, bottom = this.y(view, r) + high + 1;
      context.fillStyle = this.rgb(this.laneRgb[row.lane], 0.45);
      // Columns of equal height are filled together, on whole pixels, so that there are no edges to smooth.
      let from = view.labels, height = -1;
      for (let x = view.labels; x <= view.width + 1; x++) {
        const count = x <= view.width ? this.data.flying(row.flight, view.begin + (x - view.labels) / view.scale) : -2;
        const now = Math.round(high * count / row.flight.most);
        if (now === height) continue;
        if (height > 0) context.fillRect(from, bottom - height, x - from, height);
        from = x; height = now;
      }
      context.fillStyle = this.rgb(this.soft);
      context.font = "10px " + this.font;
      context.textBaseline = "top";
      context.fillText(`max ${row.flight.most}`, view.labels + 4, bottom - high + 1);
    }
  }

  dimmed(i) { return this.marked !== undefined && this.data.nodes[this.data.node[i]][0] !== this.marked; }

  boxes(view, first, spans) {
    const { context, data } = this, { items } = view.layout, size = view.rowHeight;
    const pad = size > 8 ? 1.5 : 0.5;
    context.font = "11px " + this.font;
    context.textBaseline = "middle";
    spans.forEach(([from, to], k) => {
      const top = this.y(view, first + k) + pad, high = size - 2 * pad;
      for (let at = from; at < to; at++) {
        const i = items[at], lane = view.warps ? this.text : this.laneRgb[data.lane[i]], dim = this.dimmed(i) ? 0.18 : 1;
        const x0 = this.x(view, data.start[i]), x1 = this.x(view, data.taken[i]), x2 = this.x(view, data.end[i]);
        const deep = view.layout.rows[first + k].deep;
        if (view.warps) {
          const before = data.before[i];
          const from_ = before < 0 ? x0 : Math.max(view.labels, this.x(view, data.taken[before]));
          if (from_ < x0) {
            context.fillStyle = this.rgb(this.reasonRgb[data.reason[i]], 0.7 * dim);
            context.fillRect(from_, top + high * 0.25, x0 - from_, high * 0.5);
          }
        } else if (!deep) {
          context.fillStyle = this.rgb(lane, 0.3 * dim);
          context.fillRect(x0, top, Math.max(1, x2 - x0), high);
        }
        context.fillStyle = this.rgb(lane, dim);
        context.fillRect(x0, top, Math.max(1, Math.min(x1, x2) - x0), high);
        if (i === view.selected || i === view.hovered) {
          context.strokeStyle = this.rgb(this.text);
          context.lineWidth = i === view.selected ? 2 : 1;
          context.strokeRect(x0, top, Math.max(2, (view.warps || deep ? x1 : x2) - x0), high);
        }
        const room = view.warps || deep ? x1 - x0 : x2 - x0;
        if (room > 34 && size >= 12 && x2 > view.labels && dim === 1) {
          const name = view.warps ? data.opcodes[data.node[i]] : `${data.opcodes[data.node[i]]} w${data.warp[i]}`;
          const begin = Math.max(x0, view.labels) + 3;
          const width = this.textWidth(name);
          if (width < x0 + room - begin) {
            const inside = width < x1 - begin;
            context.fillStyle = inside ? this.rgb(this.bg) : this.rgb(this.text);
            context.fillText(name, begin, top + high / 2 + 0.5);
          }
        }
      }
    });
  }

  // One pixel row per row of events; time fractions and colours accumulate per pixel.
  density(view, first, last, spans, ratio) {
    const { data } = this, { items } = view.layout;
    const wide = Math.max(1, Math.round((view.width - view.labels) * ratio)), high = last - first;
    const perCycle = wide / (view.end - view.begin);
    if (this.raster.width !== wide || this.raster.height !== high) { this.raster.width = wide; this.raster.height = high; }
    const target = this.raster.getContext("2d");
    const image = target.createImageData(wide, high), pixels = image.data;
    const solid = new Float32Array(wide), thin = new Float32Array(wide), red = new Float32Array(wide), green = new Float32Array(wide), blue = new Float32Array(wide);
    let amount = solid;
    const add = (x0, x1, colour, weight) => {
      if (x1 <= 0 || x0 >= wide) return;
      x0 = Math.max(0, x0); x1 = Math.min(wide, x1);
      const from = Math.floor(x0), to = Math.min(wide - 1, Math.floor(x1));
      for (let p = from; p <= to; p++) {
        const part = (Math.min(x1, p + 1) - Math.max(x0, p)) * weight;
        if (part <= 0) continue;
        amount[p] += part;
        red[p] += part * colour[0]; green[p] += part * colour[1]; blue[p] += part * colour[2];
      }
    };
    let line = 0;
    for (const [from, to] of spans) {
      solid.fill(0); thin.fill(0); red.fill(0); green.fill(0); blue.fill(0);
      for (let at = from; at < to; at++) {
        const i = items[at], dim = this.dimmed(i) ? 0.12 : 1;
        const x0 = (data.start[i] - view.begin) * perCycle, x1 = (data.taken[i] - view.begin) * perCycle;
        amount = solid;
        add(x0, x1, view.warps ? this.text : this.laneRgb[data.lane[i]], dim);
        amount = thin;
        if (view.warps) {
          const before = data.before[i];
          if (before >= 0) add((data.taken[before] - view.begin) * perCycle, x0, this.reasonRgb[data.reason[i]], 0.7 * dim);
        } else if (!view.layout.rows[first + line].deep) add(x1, (data.end[i] - view.begin) * perCycle, this.laneRgb[data.lane[i]], 0.3 * dim);
      }
      for (let p = 0; p < wide; p++) {
        const sum = solid[p] + thin[p], at = 4 * (line * wide + p);
        if (sum <= 0) continue;
        pixels[at] = red[p] / sum; pixels[at + 1] = green[p] / sum; pixels[at + 2] = blue[p] / sum;
        pixels[at + 3] = 255 * Math.min(1, Math.max(0.2, solid[p] + Math.min(thin[p], 0.7)));
      }
      line++;
    }
    target.putImageData(image, 0, 0);
    this.context.imageSmoothingEnabled = false;
    const pad = view.rowHeight > 8 ? 1.5 : 0.5;
    if (pad < 1) this.context.drawImage(this.raster, view.labels, this.y(view, first), view.width - view.labels, high * view.rowHeight);
    else for (let r = 0; r < high; r++)
      this.context.drawImage(this.raster, 0, r, wide, 1, view.labels, this.y(view, first + r) + pad, view.width - view.labels, view.rowHeight - 2 * pad);
  }

  // Waits: from the completion that was awaited to the issue that waited. All if they are few, otherwise those of one event.
  arrows(view, first, last, spans) {
    const { data } = this, { items } = view.layout, wanted = [];
    if (view.single && view.seen < 400) {
      spans.forEach(([from, to]) => { for (let at = from; at < to; at++) if (data.awaited[items[at]] >= 0) wanted.push(items[at]); });
    }
    for (const chosen of [view.selected, view.hovered]) if (chosen >= 0) {
      wanted.push(chosen);
      let at = chosen;
      for (let step = 0; step < 40 && at >= 0 && data.awaited[at] >= 0; step++) { wanted.push(at); at = data.awaited[at]; }
    }
    const { context } = this;
    context.lineWidth = 1.2;
    for (const i of wanted) {
      const from = data.awaited[i];
      if (from < 0) continue;
      const done = Math.min(data.end[from], data.start[i]);
      const x0 = this.x(view, done), y0 = this.y(view, data.row[from] + 0.5), x1 = this.x(view, data.start[i]), y1 = this.y(view, data.row[i] + 0.5);
      const same = Math.abs(y1 - y0) < 2;
      context.strokeStyle = context.fillStyle = this.rgb(this.accent, i === view.selected || i === view.hovered ? 1 : 0.7);
      const bend = Math.max(10, Math.min(60, Math.abs(x1 - x0) / 2 + 8));
      context.beginPath();
      context.moveTo(x0, y0);
      if (same) context.bezierCurveTo(x0 + 2, y0 - view.rowHeight, x1 - 2, y1 - view.rowHeight, x1, y1);
      else context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
      context.stroke();
      context.beginPath();
      context.moveTo(x1, y1); context.lineTo(x1 - 6, y1 - 3); context.lineTo(x1 - 6, y1 + 3);
      context.fill();
    }
  }

  axis(view) {
    const { context } = this;
    context.fillStyle = this.rgb(this.bg);
    context.fillRect(0, 0, view.width, AXIS);
    context.font = "11px " + this.font;
    context.textBaseline = "middle";
    context.textAlign = "center";
    const ticks = linear(view.begin, view.end, view.labels, view.width, Math.max(2, (view.width - view.labels) / 110));
    for (const tick of ticks.ticks) {
      const x = ticks.at(tick);
      context.fillStyle = this.rgb(this.line);
      context.fillRect(x, AXIS - 5, 1, 5);
      context.fillStyle = this.rgb(this.line, 0.45);
      context.fillRect(x, AXIS, 1, view.height);
      if (x < view.labels + 24 || x > view.width - 24) continue;
      context.fillStyle = this.rgb(this.soft);
      context.fillText(exact(tick, 3), x, AXIS / 2 - 1);
    }
    context.textAlign = "left";
    context.fillStyle = this.rgb(this.soft);
    context.fillText("cycles", 6, AXIS / 2 - 1);
    context.fillStyle = this.rgb(this.line);
    context.fillRect(0, AXIS - 1, view.width, 1);
  }

  names(view, first, last) {
    const { context } = this;
    context.fillStyle = this.rgb(this.bg);
    context.fillRect(0, AXIS, view.labels - 1, view.height);
    context.fillStyle = this.rgb(this.line);
    context.fillRect(view.labels - 1, AXIS, 1, view.height);
    context.save();
    context.beginPath();
    context.rect(0, AXIS, view.labels - 2, view.height);
    context.clip();
    context.textBaseline = "middle";
    let free = -Infinity;
    for (let r = Math.max(0, first - 1); r < last; r++) {
      const row = view.layout.rows[r], y = this.y(view, r) + Math.max(view.rowHeight, 11) / 2;
      if (!row.label || y < free) continue;
      context.fillStyle = this.rgb(row.begins ? this.text : this.soft);
      context.fillText(row.label, 6, y);
      free = y + 11;
    }
    context.restore();
  }
}

// Source with the cost of each line, and the machine code of the selected line.
const code = D.code;
const costOf = code.stalls.map((pairs) => { let sum = 0; for (let i = 1; i < pairs.length; i += 2) sum += pairs[i]; return sum; });
const totalCost = costOf.reduce((sum, cost) => sum + cost, 0) || 1;
const reasonsOf = (indices) => {
  const found = new Map();
  for (const index of indices) {
    const pairs = code.stalls[index];
    for (let i = 0; i < pairs.length; i += 2) found.set(pairs[i], (found.get(pairs[i]) || 0) + pairs[i + 1]);
  }
  return [...found].sort((a, b) => b[1] - a[1]).map(([reason, cycles]) => [D.reasons[reason], cycles]);
};
const byLine = new Map();  // "file line" (file an index, -1 for none) to indices of instructions
code.line.forEach((line, index) => {
  const key = `${code.file[index]} ${line}`;
  if (!byLine.has(key)) byLine.set(key, []);
  byLine.get(key).push(index);
});

// A list of rows of equal height; long lists render only the visible rows.
const WHOLE = 1500, ROW = 20;
function longList(box, onChoose) {
  let count = 0, make = null, chosen = -1, canChoose = () => true, first = -1, last = -1;
  const spacer = h("div", { class: "spacer" });
  box.replaceChildren(spacer);
  const windowed = () => count > WHOLE;
  const row = (index) => {
    const made = make(index);
    made.id = `${box.id}-${index}`;
    made.dataset.row = index;
    if (canChoose(index)) made.setAttribute("role", "option");
    if (canChoose(index)) made.setAttribute("aria-selected", String(index === chosen));
    if (windowed()) made.style.top = index * ROW + "px";
    return made;
  };
  const render = (force) => {
    const from = windowed() ? Math.max(0, Math.floor(box.scrollTop / ROW) - 20) : 0;
    const to = windowed() ? Math.min(count, Math.ceil((box.scrollTop + (box.clientHeight || 600)) / ROW) + 20) : count;
    if (!force && from === first && to === last) return;
    first = from; last = to;
    const rows = [];
    for (let index = from; index < to; index++) rows.push(row(index));
    spacer.replaceChildren(...rows);
  };
  box.addEventListener("scroll", () => { if (windowed()) render(); }, { passive: true });
  const show = (index) => {
    const top = index * ROW;
    if (top < box.scrollTop || top + ROW > box.scrollTop + box.clientHeight) box.scrollTop = Math.max(0, top - box.clientHeight / 3);
  };
  const choose = (index, told = true) => {
    if (index < 0 || index >= count || !canChoose(index)) return;
    const before = spacer.querySelector('[aria-selected="true"]');
    if (before) before.setAttribute("aria-selected", "false");
    chosen = index;
    show(index);
    if (windowed()) render();
    const now = document.getElementById(`${box.id}-${index}`);
    if (now) now.setAttribute("aria-selected", "true");
    box.setAttribute("aria-activedescendant", `${box.id}-${index}`);
    if (told) onChoose(index);
  };
  box.addEventListener("click", (event) => {
    const at = event.target.closest("[data-row]");
    if (at) choose(Number(at.dataset.row));
  });
  box.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity }[event.key];
    if (!step) return;
    event.preventDefault();
    let to = Math.min(count - 1, Math.max(0, (chosen < 0 ? -1 : chosen) + step));
    while (to > 0 && to < count - 1 && !canChoose(to)) to += Math.sign(step);
    choose(to);
  });
  return {
    set(size, maker, choosable) {
      count = size; make = maker; canChoose = choosable || (() => true); chosen = -1; first = -1;
      box.classList.toggle("windowed", windowed());
      spacer.style.height = windowed() ? count * ROW + "px" : "";
      spacer.style.minHeight = "";
      box.scrollTop = 0;
      box.removeAttribute("aria-activedescendant");
      render(true);
    },
    choose, show, get chosen() { return chosen; },
  };
}

const heat = (cost, most, reason) => s("svg", { class: "heat", "aria-hidden": "true" }, cost > 0 ? s("rect", {
  y: 4, height: 12, width: `${Math.max(2, 100 * cost / most)}%`, fill: reason ? reasonColour(reason) : "var(--c0)" }) : null);
const costText = (cost) => (cost > 0 ? percent(cost / totalCost) : "");
function stallTable(pairs, of) {
  const total = pairs.reduce((sum, [, cycles]) => sum + cycles, 0) || 1;
  return h("table", null, h("caption", null, of), h("tbody", null, pairs.slice(0, 8).map(([reason, cycles]) => h("tr", null,
    h("th", { scope: "row" }, reason), h("td", { class: "num" }, percent(cycles / total)),
    h("td", { class: "num soft wide" }, `${short(cycles)} warp-cycles`),
    h("td", { class: "bar-cell" }, s("svg", { class: "bar", "aria-hidden": "true" }, s("rect", { width: `${100 * cycles / total}%`, height: "100%", fill: reasonColour(reason) })))))));
}

const codeView = $("#code-view");
let showInstruction = () => {}, showLine = () => false;
if (codeView && code.text.length) {
  const files = D.sources, hasSource = files.length > 0;
  const lineBox = $("#lines"), codeBox = $("#machine"), codeTitle = $("#machine-title"), about = $("#machine-about");
  const picker = $("#file"), whole = $("#machine-all");
  let shown = [], file = 0, rows = [], everything = !hasSource;
  const mostInstruction = Math.max(...costOf, 0) || 1;

  const describe = (index) => {
    const pairs = reasonsOf([index]);
    about.hidden = false;
    about.replaceChildren(
      h("div", { class: "mono" }, h("b", null, code.text[index])),
      h("div", { class: "soft" }, [
        `at ${code.pc[index].toString(16).padStart(4, "0")}`, `class ${code.class[code.classAt[index]]}`,
        code.subsystemAt[index] >= 0 ? `issues to ${code.subsystem[code.subsystemAt[index]]}, λ ${number(code.lambda[index])}, Λ ${number(code.latency[index])} cycles` : "never executed in the sample",
        `${short(code.executions[index])} executions`, `${percent(costOf[index] / totalCost)} of total warp time`].join(" · ")),
      pairs.length ? stallTable(pairs, "Warp time at this instruction by stall reason") : "");
    if (window.drywarp && window.drywarp.profile) window.drywarp.profile.highlight(code.index[index]);
  };
  const machine = longList(codeBox, (row) => {
    const index = shown[row];
    describe(index);
    if (everything && hasSource && code.line[index]) revealLine(code.file[index], code.line[index]);
  });
  const machineRow = (row) => {
    const index = shown[row], top = reasonsOf([index])[0];
    return h("div", { class: "row" + (costOf[index] ? "" : " quiet") },
      h("span", { class: "n pc" }, code.pc[index].toString(16).padStart(4, "0")),
      h("span", { class: "cost" }, costText(costOf[index])), heat(costOf[index], mostInstruction, top && top[0]),
      h("span", { class: "times", title: "executions" }, code.executions[index] ? short(code.executions[index]) : "0"),
      h("span", { class: "text" }, code.text[index]));
  };
  const showCode = (indices, title) => {
    shown = indices;
    codeTitle.replaceChildren(...title);
    machine.set(shown.length, machineRow);
    about.hidden = true;
  };
  const showAll = () => {
    everything = true;
    whole.setAttribute("aria-pressed", "true");
    showCode(code.text.map((_, index) => index), [`All machine code: ${exact(code.text.length)} instructions`]);
  };
  const showOf = (line) => {
    everything = false;
    whole.setAttribute("aria-pressed", "false");
    const own = byLine.get(`${file} ${line}`) || [], cost = own.reduce((sum, index) => sum + costOf[index], 0);
    showCode(own, [`Line ${line}: ${own.length} instruction${own.length === 1 ? "" : "s"}, ${percent(cost / totalCost)} of total warp time`]);
    if (own.length) {
      about.hidden = false;
      about.replaceChildren(stallTable(reasonsOf(own), "Warp time on this line by stall reason"));
    }
  };
  whole.addEventListener("click", () => {
    if (!everything) showAll(); else if (rows[lines.chosen]) showOf(rows[lines.chosen][0]);
  });

  const lines = hasSource ? longList(lineBox, (row) => showOf(rows[row][0])) : null;
  let lineCost = new Map(), mostLine = 1;
  const showFile = (next) => {
    file = next;
    const source = files[file], numbers = source.numbers || source.texts.map((_, i) => i + 1);
    lineCost = new Map();
    for (const [key, indices] of byLine) {
      const [of, line] = key.split(" ").map(Number);
      if (of === file) lineCost.set(line, { cost: indices.reduce((sum, index) => sum + costOf[index], 0), indices });
    }
    mostLine = Math.max(...[...lineCost.values()].map((each) => each.cost), 0) || 1;
    rows = [];
    numbers.forEach((line, i) => {
      if (i && numbers[i - 1] !== line - 1) rows.push([0, ""]);
      rows.push([line, source.texts[i]]);
    });
    lines.set(rows.length, (row) => {
      const [line, text] = rows[row];
      if (!line) return h("div", { class: "row gap" }, h("span", { class: "n" }, "⋮"));
      const own = lineCost.get(line), top = own && own.cost ? reasonsOf(own.indices)[0] : null;
      return h("div", { class: "row" + (own ? "" : " quiet") }, h("span", { class: "n" }, String(line)),
        h("span", { class: "cost" }, own ? costText(own.cost) : ""), heat(own ? own.cost : 0, mostLine, top && top[0]),
        h("span", { class: "text" }, source.found ? text : "(source text not found)"));
    }, (row) => rows[row][0] > 0);
  };
  const revealLine = (of, line) => {
    if (of < 0) return;
    if (of !== file) { picker.value = String(of); showFile(of); }
    const row = rows.findIndex((each) => each[0] === line);
    if (row >= 0) lines.choose(row, false);
  };
  showLine = (line, name) => {
    if (!hasSource) return false;
    const of = name ? files.findIndex((each) => each.path === name) : 0;
    if (of !== file) { picker.value = String(of); showFile(of); }
    const row = rows.findIndex((each) => each[0] === line);
    if (row < 0) return false;
    lines.choose(row);
    return true;
  };
  showInstruction = (kernelIndex) => {
    const index = code.index.indexOf(kernelIndex);
    if (index < 0) return;
    if (!shown.includes(index)) { if (hasSource && code.line[index] && showLine(code.line[index], files[code.file[index]] && files[code.file[index]].path)) { /* shown now */ } else showAll(); }
    machine.choose(shown.indexOf(index));
  };
  if (hasSource) {
    files.forEach((each, index) => picker.append(h("option", { value: index }, each.name)));
    picker.hidden = files.length < 2;
    picker.addEventListener("change", () => showFile(Number(picker.value)));
    showFile(0);
    let top = null;
    for (const [line, each] of lineCost) if (!top || each.cost > lineCost.get(top).cost) top = line;
    if (top) showLine(top); else showAll();
  } else showAll();
  for (const link of document.querySelectorAll("[data-line]")) link.addEventListener("click", () => {
    if (showLine(Number(link.dataset.line), link.dataset.file)) $("#source").scrollIntoView();
  });
}

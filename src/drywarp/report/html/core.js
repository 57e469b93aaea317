"use strict";
// Shared by all parts: the data, elements built from text only, numbers with units, colours, the tooltip, the theme.
const D = JSON.parse(document.getElementById("data").textContent);
const $ = (selector, root = document) => root.querySelector(selector);

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
  return node;
}
const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

// Numbers formatted as in the tables of this page.
const number = (value, digits = 3) => {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value !== 0 && Math.abs(value) < 1e-3) return value.toExponential(digits - 1);
  const whole = Math.abs(value) >= 10 ** (digits - 1);
  return value.toLocaleString("en-GB", whole ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: digits });
};
const exact = (value, places = 2) => value.toLocaleString("en-GB", { maximumFractionDigits: places });
const percent = (share, places = 1) => (share > 0 && share < 0.0005 ? "<0.1%" : (100 * share).toFixed(places) + "%");
function time(seconds) {
  for (const [scale, unit] of [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]])
    if (seconds >= scale * 0.9995) return `${number(seconds / scale)} ${unit}`;
  return `${number(seconds / 1e-9)} ns`;
}
const short = (value) => {
  for (const [scale, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]])
    if (Math.abs(value) >= scale) return number(value / scale) + " " + unit;
  return number(value);
};
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

// A column of numbers, and a step between ticks that reads well.
function unpack(column) {
  const text = atob(column.data), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const type = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, i32: Int32Array, f64: Float64Array }[column.type];
  return new type(bytes.buffer);
}
const niceStep = (span, count) => {
  const raw = span / Math.max(1, count), power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((step) => step >= raw);
};

// Colours by name; a canvas needs resolved values, which a probe element provides.
const reasonColour = (name) => `var(--${D.reasonColours[name] || "c9"})`;
const laneColour = (index) => `var(--c${index % 10})`;
function resolve(colour) {
  const probe = h("span", { hidden: true });
  document.body.append(probe);
  probe.style.color = colour;
  const found = getComputedStyle(probe).color;
  probe.remove();
  const parts = found.match(/[\d.]+/g).map(Number);
  return found.startsWith("color(") ? parts.slice(0, 3).map((part) => Math.round(255 * part)) : parts.slice(0, 3);
}

const tip = $("#tip");
function showTip(x, y, title, rows) {
  tip.replaceChildren(h("b", null, title), h("table", null, rows.map(([name, value]) =>
    h("tr", null, h("td", { class: "soft" }, name), h("td", null, value)))));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 14 + box.width > innerWidth ? Math.max(4, x - box.width - 14) : x + 14;
  const top = y + 14 + box.height > innerHeight ? Math.max(4, y - box.height - 14) : y + 14;
  tip.style.left = left + "px";
  tip.style.top = top + "px";
}
const hideTip = () => { tip.hidden = true; };
let followTip = null;  // moves a tip opened by keyboard to its new position, if its point still exists
addEventListener("keydown", (event) => { if (event.key === "Escape") { followTip = null; hideTip(); } });
addEventListener("scroll", () => { if (!followTip || !followTip()) hideTip(); }, { passive: true });

// Light and dark: follow the system until the user switches.
const redraws = [];
const systemDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme || (systemDark.matches ? "dark" : "light")) === "dark";
const themeButton = $("#theme");
function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  themeButton.textContent = isDark() ? "Light" : "Dark";
  themeButton.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`);
  for (const redraw of redraws) redraw();
}
themeButton.hidden = false;
themeButton.addEventListener("click", () => {
  const theme = isDark() ? "light" : "dark";
  try { localStorage.setItem("drywarp-theme", theme); } catch { /* local files may have no storage */ }
  setTheme(theme);
});
systemDark.addEventListener("change", () => setTheme());
{
  let kept = null;
  try { kept = localStorage.getItem("drywarp-theme"); } catch { /* likewise */ }
  setTheme(kept === "dark" || kept === "light" ? kept : null);
}

// When printing: light colours, and all tables next to charts expanded.
let beforePrint = null;
addEventListener("beforeprint", () => {
  const closed = [...document.querySelectorAll("details:not([open])")];
  beforePrint = { closed, theme: document.documentElement.dataset.theme };
  for (const each of closed) each.open = true;
  setTheme("light");
});
addEventListener("afterprint", () => {
  if (!beforePrint) return;
  for (const each of beforePrint.closed) each.open = false;
  if (beforePrint.theme) setTheme(beforePrint.theme);
  else { delete document.documentElement.dataset.theme; setTheme(); }
  beforePrint = null;
});

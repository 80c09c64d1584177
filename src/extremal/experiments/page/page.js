// Draws the page from the report that is embedded in it. All text goes in as text nodes, never as markup.
(() => {
"use strict";

const source = document.getElementById("report").textContent;
const report = JSON.parse(source);
const list = (name) => report[name] ?? [];

// ---- elements, numbers, text

const NAMESPACE = "http://www.w3.org/2000/svg"; // a name, not an address: nothing is loaded
const absent = (x) => x === null || x === undefined || x === false;

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (!absent(value)) node.setAttribute(name, value === true ? "" : value);
  }
  const held = children.flat(Infinity).filter((child) => !absent(child));
  node.append(...held.flatMap((child) => (typeof child === "string" ? rich(child, node.tagName) : child)));
  return node;
}

const el = (tag, properties = {}, ...children) => fill(document.createElement(tag), properties, children);
const svg = (tag, properties = {}, ...children) => fill(document.createElementNS(NAMESPACE, tag), properties, children);

/** Text nodes, with the index of f_min and f_max lowered; a menu can hold letters only. */
function rich(text, tag = "") {
  if (tag === "OPTION") return text.replace("f_min", "fₘᵢₙ");
  return text.split(/\bf_(min|max)\b/).flatMap((part, i) => (i % 2 ? ["f", el("sub", {}, part)] : part));
}

/** Text for plotly, which reads some markup in its labels. */
function plain(text) {
  const safe = String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  return safe.replace(/\bf_(min|max)\b/g, "f<sub>$1</sub>");
}

const finite = (x) => typeof x === "number" && Number.isFinite(x);
const minus = (text) => text.replace(/^-/, "−");
const slug = (text) => String(text).toLowerCase().replace(/[^a-z0-9]+/g, "-");
const superscript = (k) => String(k).replace(/./g, (c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] ?? "⁻");

/** A number for people: plain between 0.001 and 100000, otherwise with a power of ten. */
function number(x, digits = 3) {
  if (!finite(x)) return "–";
  const size = Math.abs(x);
  if (Number.isInteger(x) && size < 1e6) return minus(x.toLocaleString("en", { useGrouping: size >= 1e4 }));
  return size >= 1e-3 && size < 1e5 ? minus(String(Number(x.toPrecision(digits)))) : power(x, digits);
}

function power(x, digits = 3) {
  if (!finite(x) || x === 0) return number(x);
  const [mantissa, exponent] = x.toExponential(digits - 1).split("e");
  return minus(`${Number(mantissa) === 1 ? "" : `${mantissa} × `}10${superscript(Number(exponent))}`);
}

function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (absent(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return [low, high];
}

// ---- methods: a colour [light, dark] and a marker each, on the whole page. The first eight colours (two of ours, six others)
// are far apart for colour-blind readers too: at least 15 in CIELAB for each of the three kinds, and 3:1 against the ground

const STRONG = [["#0b4fd0", "#5a98ff"], ["#b92800", "#f5602c"], ["#5c6b00", "#c6d64a"]]; // for those that are ours
const COLOURS = [
  ["#2a3038", "#f0f4ea"], ["#008457", "#22e090"], ["#b683a9", "#c78391"], ["#d77e03", "#ffd60a"], ["#1a99ee", "#aae6fe"],
  ["#7b1fa2", "#c23aac"], ["#767600", "#cfcf52"], ["#8b6a4f", "#c9a88b"], ["#7b8794", "#9aa6b3"], ["#117a8b", "#5fc9d8"],
];
const SYMBOLS = {
  circle: "M4 0A4 4 0 1 1-4 0A4 4 0 1 1 4 0Z",
  square: "M-3.5-3.5H3.5V3.5H-3.5Z",
  diamond: "M0-5L5 0L0 5L-5 0Z",
  "triangle-up": "M0-4.5L4.5 3.5H-4.5Z",
  "triangle-down": "M0 4.5L4.5-3.5H-4.5Z",
  cross: "M-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3Z",
  "triangle-left": "M-4.5 0L3.5-4.5V4.5Z",
  "triangle-right": "M4.5 0L-3.5-4.5V4.5Z",
  hourglass: "M-4-4H4L-4 4H4Z",
};
const cycle = (items, i) => items[i % items.length];
const methods = new Map();
const hidden = new Set(); // names of methods that no panel shows

function addMethod(item) {
  const ours = [...methods.values()].filter((other) => other.ours).length;
  const others = methods.size - ours, [circle, square, ...rest] = Object.keys(SYMBOLS);
  const looks = item.ours && ours < STRONG.length
    ? { colour: STRONG[ours], symbol: cycle([circle, square], ours) }
    : { colour: cycle(COLOURS, others), symbol: cycle(rest, others) };
  methods.set(item.name, { ...item, ...looks });
}

function method(name) {
  if (!methods.has(name)) addMethod({ name, label: name, source: "", ours: false });
  return methods.get(name);
}

const curvesOf = (figure) => figure.problems.flatMap((problem) => problem.curves);
list("methods").forEach(addMethod);
list("figures").flatMap(curvesOf).forEach((curve) => method(curve.method));

function swatch({ colour: [light, dark], symbol, ours }) {
  const line = svg("path", { d: "M1 6H27", "stroke-width": ours ? 2.6 : 1.7, stroke: "currentColor" });
  const mark = svg("path", { d: SYMBOLS[symbol], transform: "translate(14 6)", fill: "currentColor" });
  const style = `color: light-dark(${light}, ${dark})`;
  return svg("svg", { class: "swatch", viewBox: "0 0 28 12", "aria-hidden": "true", style }, line, mark);
}

const named = (item) => el("span", { class: item.ours ? "named ours" : "named" }, swatch(item), item.label);

// ---- the theme of plots

function dark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function theme(isDark = dark()) {
  const pick = (pair) => pair[isDark ? 1 : 0];
  return {
    pick, ink: pick(["#1c2126", "#e4e8ec"]), soft: pick(["#57606a", "#a3aeb9"]), grid: pick(["#e7eaee", "#2a323b"]),
    line: pick(["#b4bcc5", "#4a5561"]), card: pick(["#ffffff", "#161b21"]), warn: pick(["#8a4b00", "#ffc261"]),
  };
}

const faint = (hex, alpha) => `rgba(${[1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)).join(",")},${alpha})`;

// ---- statistics of curves: by row, because all runs of a problem are sampled on one grid

const known = new WeakMap();

/** Median, quartiles and range over the seeds. A null (NaN) counts as worse than any number. */
function statistics(curve, key) {
  if (!known.has(curve)) known.set(curve, {});
  return (known.get(curve)[key] ??= measure(curve.runs.map((run) => run[key])));
}

function measure(columns) {
  const rows = Math.min(...columns.map((column) => column.length));
  const sorted = Array.from({ length: rows }, (_, i) => ordered(columns.map((column) => column[i])));
  const at = (q) => sorted.map((values) => quantile(values, q));
  return { median: at(0.5), quartiles: [at(0.25), at(0.75)], range: [at(0), at(1)] };
}

const ordered = (values) => values.map((value) => value ?? Infinity).sort((a, b) => a - b);

/** A quantile of sorted numbers, between neighbours by linear interpolation as in numpy. */
function quantile(sorted, q) {
  const at = q * (sorted.length - 1), low = Math.floor(at), part = at - low;
  const x = part === 0 ? sorted[low] : sorted[low] + part * (sorted[low + 1] - sorted[low]);
  return Number.isFinite(x) ? x : null;
}

const TINY = 1e-16;
const span = (problem) => problem.f_max - problem.f_min;
const X = {
  passes: { label: "full gradients", title: "full gradients (component gradients / n)", log: false },
  lmos: { label: "LMO calls", title: "LMO calls", log: true },
  cpu: { label: "CPU seconds", title: "CPU seconds", log: false },
};
const Y = {
  relative: {
    label: "relative suboptimality", key: "value", log: true, hint: "(f − f_min) / (f_max − f_min)",
    of: (v, p) => (v - p.f_min) / span(p), floor: (p) => Math.max((p.f_min_gap ?? 0) / span(p), TINY),
  },
  excess: {
    label: "f − f_min", key: "value", log: true, hint: "f − f_min, in units of f",
    of: (v, p) => v - p.f_min, floor: (p) => Math.max(p.f_min_gap ?? 0, TINY),
  },
  value: {
    label: "f", key: "value", log: false, hint: "the objective itself", of: (v) => v, floor: (p) => p.f_min ?? -Infinity,
  },
  gap: {
    label: "Frank-Wolfe gap", key: "gap", log: true, hint: "the exact gap at the iterate, which needs no f_min",
    of: (v) => v, floor: () => TINY,
  },
};

/** What is drawn for a number: on the chosen scale, and never below the floor. */
function drawn(value, y, problem) {
  if (!finite(value) || (y.key === "value" && y !== Y.value && !finite(problem.f_min))) return null;
  const scaled = y.of(value, problem);
  return Number.isFinite(scaled) ? Math.max(scaled, y.floor(problem)) : null;
}

const ended = (curve, key) => (curve.runs.length ? quantile(ordered(curve.runs.map((run) => run[key].at(-1))), 0.5) : null);

/** A final number as text; "≤" where it is not above the floor. */
function final(curve, y, problem) {
  const shown = drawn(ended(curve, y.key), y, problem);
  return shown === null ? "–" : (shown <= y.floor(problem) ? "≤ " : "") + power(shown);
}

// ---- plots of curves

const STEPS = { theory: "as in theory", tuned: "tuned", both: "both" };

function visible(problem, view) {
  const fits = (curve) => curve.runs.length > 0 && (view.steps === "both" || view.steps === curve.steps);
  const curves = problem.curves.filter((curve) => fits(curve) && !hidden.has(curve.method));
  return curves.sort((a, b) => method(a.method).ours - method(b.method).ours); // ours on top
}

/** The points of a curve: x, median and band on the chosen axes; on a log axis without what has no logarithm. */
function points(curve, problem, view) {
  const y = Y[view.y], values = statistics(curve, y.key), xs = statistics(curve, view.x).median;
  const band = view.band !== "none" && curve.runs.length > 1 ? values[view.band] : null;
  const rows = xs.map((x, i) => ({
    x, y: drawn(values.median[i], y, problem), band: band && band.map((side) => drawn(side[i], y, problem)),
  }));
  return rows.filter((row) => row.x !== null && (!view.log_x || row.x > 0));
}

function bandTrace(rows, colour, meta, alpha) {
  const held = rows.filter((row) => row.band && row.band.every(finite)), back = [...held].reverse();
  if (held.length < 2) return [];
  return [{
    type: "scatter", mode: "lines", line: { width: 0 }, fill: "toself", fillcolor: faint(colour, alpha), hoverinfo: "skip",
    showlegend: false, meta: { ...meta, role: "band" }, x: [...held, ...back].map((row) => row.x),
    y: [...held.map((row) => row.band[1]), ...back.map((row) => row.band[0])],
  }];
}

function lineTrace(curve, rows, view, colours) {
  const { label, ours, colour, symbol } = method(curve.method), color = colours.pick(colour);
  const steps = curve.steps === "tuned" && finite(curve.factor) ? `tuned, × ${number(curve.factor)}` : STEPS[curve.steps];
  const dash = view.steps === "both" && curve.steps === "theory" ? "dash" : "solid";
  return {
    type: "scatter", mode: "lines+markers", name: plain(`${label}, ${steps}`), hovertemplate: hover(label, steps, view, rows),
    x: rows.map((row) => row.x), y: rows.map((row) => row.y), customdata: rows.map((row) => row.band ?? []),
    line: { color, width: ours ? 2.4 : 1.5, dash }, marker: { color, symbol, size: ours ? 7 : 6, maxdisplayed: 6 },
    meta: { method: curve.method, steps: curve.steps, role: "line" },
  };
}

function hover(label, steps, view, rows) {
  const form = view.y === "value" ? ".6~g" : ".3~e", kind = view.band === "range" ? "min, max" : "quartiles";
  const band = rows.some((row) => row.band) && `${kind}: %{customdata[0]:${form}}, %{customdata[1]:${form}}`;
  return tip(label, [`steps: ${steps}`, `${plain(Y[view.y].label)}: %{y:${form}}`, band, `${X[view.x].label}: %{x:.4~g}`]);
}

/** The text of a hover label; a name must not be read as a place for a number. */
function tip(name, lines) {
  const safe = plain(name).replace(/%/g, "&#37;");
  return `<b>${safe}</b><br>${lines.filter(Boolean).join("<br>")}<extra></extra>`;
}

const bestName = (problem) => (problem.convex ? "f_min" : "best f known");

/** The floor as a dotted line with its name, if it is near the curves; the range of the y-axis then includes it. */
function floorTrace(problem, view, xs, least, colours) {
  const level = Y[view.y].floor(problem), near = view.y === "gap" ? least <= level : !view.log_y || least <= 100 * level;
  if (!Number.isFinite(level) || !xs.length || !near) return [];
  const kind = problem.convex && level > TINY ? "accuracy of f_min" : "floor";
  const name = plain(view.y === "value" ? bestName(problem) : `${kind}: ${number(level, 2)}`);
  return [{
    type: "scatter", mode: "lines+markers+text", x: extent(xs), y: [level, level], text: ["", name], textposition: "bottom left",
    line: { color: colours.soft, width: 1.2, dash: "dot" }, textfont: { color: colours.soft, size: 10.5 },
    marker: { size: 7, opacity: 0 }, name, hoverinfo: "name", showlegend: false, meta: { role: "floor", level },
  }];
}

/** The range of an axis, with room below and above in parts of its length. */
function range(values, log, below, above = below) {
  let [low, high] = extent(log ? values.filter((value) => value > 0).map(Math.log10) : values);
  if (low > high) return undefined;
  if (low === high) [low, high] = [low - 0.5, high + 0.5];
  return [low - below * (high - low), high + above * (high - low)];
}

const coarse = matchMedia("(pointer: coarse)").matches; // fingers scroll the page instead of zooming

function axis(title, log, limits, colours) {
  const decades = log && limits ? limits[1] - limits[0] : 0, short = decades < 2.2;
  return {
    title: { text: plain(title), standoff: 6, font: { size: 12, color: colours.soft } }, type: log ? "log" : "linear",
    range: limits, nticks: short || decades > 7 ? 6 : Math.ceil(decades), ...(short && decades > 0.2 ? ticks(limits) : {}),
    exponentformat: "power", showexponent: "all", tickfont: { size: short ? 11.5 : 9.8 }, // plotly enlarges powers of ten
    gridcolor: colours.grid, linecolor: colours.line, tickcolor: colours.line, ticks: "outside", ticklen: 4,
    showline: true, zeroline: false, automargin: true, fixedrange: coarse,
  };
}

/** Ticks of a short log axis: 1, 2 and 5 times the powers of ten, or all multiples, in full. */
function ticks([low, high]) {
  const steps = high - low > 0.7 ? [1, 2, 5] : [1, 2, 3, 4, 5, 6, 7, 8, 9];
  const decades = Array.from({ length: Math.ceil(high) - Math.floor(low) }, (_, i) => Math.floor(low) + i);
  const tickvals = decades.flatMap((decade) => steps.map((step) => Number(`${step}e${decade}`)));
  return { tickvals, ticktext: tickvals.map((value) => number(value)) };
}

function layout(xaxis, yaxis, colours) {
  const clear = "rgba(0,0,0,0)", family = getComputedStyle(document.body).fontFamily;
  return {
    xaxis, yaxis, autosize: true, margin: { l: 50, r: 12, t: 8, b: 42 }, paper_bgcolor: clear, plot_bgcolor: clear,
    font: { family, size: 11.5, color: colours.ink }, showlegend: false, hovermode: "closest",
    hoverlabel: { bgcolor: colours.card, bordercolor: colours.line, font: { color: colours.ink, size: 11.5 }, align: "left" },
    modebar: { bgcolor: clear, color: colours.soft, activecolor: colours.ink },
  };
}

/** Data and layout of a panel. */
function plotOf(problem, view, colours) {
  const curves = visible(problem, view), rows = curves.map((curve) => points(curve, problem, view));
  const lines = curves.map((curve, i) => lineTrace(curve, rows[i], view, colours));
  const alpha = lines.length > 8 ? 0.1 : 0.16;
  const bands = lines.flatMap((line, i) => bandTrace(rows[i], line.line.color, line.meta, alpha));
  const xs = lines.flatMap((line) => line.x), ys = [...lines, ...bands].flatMap((trace) => trace.y);
  const floor = floorTrace(problem, view, xs, extent(ys)[0], colours);
  const yRange = range([...ys, ...floor.flatMap((trace) => trace.y)], view.log_y, floor.length ? 0.1 : 0.04, 0.04);
  const across = axis(X[view.x].title, view.log_x, range(xs, view.log_x, 0.02), colours);
  const up = axis(Y[view.y].label.replace("f_min", bestName(problem)), view.log_y, yRange, colours);
  const annotations = problem.origin === "stand-in" ? [standIn(colours)] : [];
  return { data: [...bands, ...floor, ...lines], layout: { ...layout(across, up, colours), annotations } };
}

const standIn = (colours) => ({
  text: "stand-in data", xref: "paper", yref: "paper", x: 1, y: 1, xanchor: "right", yanchor: "top", showarrow: false,
  font: { size: 10.5, color: colours.warn },
});

// ---- panels: drawn when they come into view, one in a frame

const BUTTONS = [["zoom2d", "pan2d", "resetScale2d"]];
const CONFIG = { responsive: true, displaylogo: false, displayModeBar: coarse ? false : "hover", modeBarButtons: BUTTONS };
const panels = new Map(); // element -> { make, stale, near }
let busy = false;

const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) panels.get(entry.target).near = entry.isIntersecting;
  drawNext();
}, { rootMargin: "300px 0px" });

function addPanel(node, make) {
  panels.set(node, { make, stale: true, near: false });
  watcher.observe(node);
}

function draw(node, panel) {
  const { data, layout } = panel.make(theme());
  panel.stale = false;
  Plotly.react(node, data, layout, CONFIG);
}

function drawNext() {
  const next = [...panels].find(([, panel]) => panel.near && panel.stale);
  if (busy || !next || !window.Plotly) return;
  busy = true;
  requestAnimationFrame(() => {
    if (next[1].stale) draw(...next);
    busy = false;
    drawNext();
  });
}

function refresh(nodes = panels.keys()) {
  for (const node of nodes) panels.get(node).stale = true;
  drawNext();
}

// ---- a panel: what the data are, the plot, what is known of the optimum

const ORIGINS = { real: ["✓", "Real data"], "stand-in": ["⚠", "Stand-in, not the real data"], file: ["▤", "Data from a file"] };
const origin = (problem) => ORIGINS[problem.origin] ?? ["?", problem.origin];

function badge(problem) {
  const [sign, text] = origin(problem);
  return el("span", { class: `badge ${slug(problem.origin)}` }, el("span", { "aria-hidden": "true" }, sign), ` ${text}`);
}

const lead = (problem) => [problem.loss, problem.set, problem.convex ? "" : "non-convex"].filter(Boolean).join(", ");

function facts(problem) {
  const entry = (name, text, kind = null) => el("div", { class: kind }, el("dt", {}, name), el("dd", {}, text));
  const gap = finite(problem.f_min_gap) ? `, gap ${number(problem.f_min_gap)}` : "";
  return el("dl", { class: "facts" }, entry("n", number(problem.n)), entry("d", number(problem.d)),
    finite(problem.f_min) && entry(bestName(problem), `${number(problem.f_min, 8)}${gap}`),
    problem.f_min_how && entry("by", problem.f_min_how, "how"));
}

function panel(figure, problem, view, only = {}) {
  const plot = el("div", { class: "plot", role: "img" }), shown = () => ({ ...view, ...only });
  const about = () => `${problem.data}, ${lead(problem)}: ${Y[shown().y].label} against ${X[shown().x].label}`;
  const button = { type: "button", class: "button small", click: () => picture(figure, problem, shown()) };
  addPanel(plot, (colours) => {
    plot.setAttribute("aria-label", `${about()}. The final numbers are in the table below.`);
    return plotOf(problem, shown(), colours);
  });
  return el("article", { class: `panel ${slug(problem.origin)}`, "data-key": problem.key },
    el("header", {},
      el("div", {}, el("h4", {}, problem.data), badge(problem), el("p", { class: "lead" }, lead(problem))),
      el("button", { ...button, "aria-label": `Download the plot of ${problem.data} as SVG` }, "SVG")),
    plot, !only.y && el("footer", {}, el("p", {}, problem.origin_text), facts(problem)));
}

/** One panel as an SVG file, light, with a legend and a title that says what the data are. */
function picture(figure, problem, view) {
  const { data, layout } = plotOf(problem, view, theme(false));
  const title = { text: plain(`${problem.data} (${origin(problem)[1].toLowerCase()}), ${lead(problem)}`), font: { size: 14 } };
  const whole = { ...layout, title, showlegend: true, paper_bgcolor: "#fff", margin: { l: 60, r: 20, t: 48, b: 50 } };
  const filename = slug(`${figure.name}-${problem.key}-${view.y}`);
  Plotly.downloadImage({ data, layout: whole }, { format: "svg", width: 860, height: 480, filename });
}

// ---- a figure: controls, legend, panels, the table behind it, downloads

function choice(label, options, view, name, changed) {
  const item = ([value, text]) => el("option", { value, selected: view[name] === value }, text.label ?? text);
  const change = (event) => changed(name, event.target.value);
  return el("label", { class: "field" }, el("span", {}, label),
    el("select", { "data-control": name, change }, Object.entries(options).map(item)));
}

function toggle(label, view, name, changed) {
  const box = { type: "checkbox", checked: view[name], change: (event) => changed(name, event.target.checked) };
  return el("label", { class: "check" }, el("input", { ...box, "data-control": name }), label);
}

/** Controls of a figure. A new axis brings its usual scale along; the box shows it, and it can be set back. */
function controls(figure, view, apply) {
  const kinds = [...new Set(curvesOf(figure).map((curve) => curve.steps))];
  const steps = kinds.length > 1 ? STEPS : Object.fromEntries(kinds.map((kind) => [kind, STEPS[kind]]));
  const hint = el("p", { class: "hint", "aria-live": "polite" }, hintFor(figure, view));
  const changed = (name, value) => {
    view[name] = value;
    if (name === "x") view.log_x = X[value].log;
    if (name === "y") view.log_y = Y[value].log;
    for (const box of row.querySelectorAll("input")) box.checked = view[box.dataset.control];
    hint.replaceChildren(...rich(hintFor(figure, view)));
    apply();
  };
  const row = el("div", { class: "controls", role: "group", "aria-label": `Controls of ${figure.title}` },
    choice("x-axis", X, view, "x", changed), choice("y-axis", Y, view, "y", changed),
    el("div", { class: "checks" }, toggle("log x", view, "log_x", changed), toggle("log y", view, "log_y", changed)),
    choice("steps", steps, view, "steps", changed),
    choice("band over seeds", { quartiles: "quartiles", range: "min to max", none: "none" }, view, "band", changed), hint);
  return row;
}

function hintFor(figure, view) {
  const best = view.y !== "gap" && figure.problems.some((problem) => !problem.convex);
  return [
    `y: ${Y[view.y].hint}.`, view.steps === "both" && "Dashed: steps as in theory.",
    best && "Non-convex: f_min is the best value known, not a proven minimum; the Frank-Wolfe gap is drawn below as well.",
  ].filter(Boolean).join(" ");
}

/** Buttons that hide and show methods: the legend of this figure, and in force on the whole page. */
function chips(figure) {
  const used = new Set(curvesOf(figure).map((curve) => curve.method));
  const all = el("button", { type: "button", class: "chip all", click: () => setHidden([]) }, "Show all");
  return el("div", { class: "chips", role: "group", "aria-label": "Methods to show, on the whole page" },
    [...methods.values()].filter((item) => used.has(item.name)).map(chip), all);
}

function chip(item) {
  const others = () => [...methods.keys()].filter((name) => name !== item.name);
  const flipped = () => (hidden.has(item.name) ? [...hidden].filter((name) => name !== item.name) : [...hidden, item.name]);
  return el("button", {
    type: "button", class: item.ours ? "chip ours" : "chip", "data-method": item.name, "aria-pressed": "true",
    title: [item.source, "Click: hide or show. Shift-click: only this one."].filter(Boolean).join("\n"),
    click: (event) => setHidden(event.shiftKey ? others() : flipped()),
  }, swatch(item), el("span", {}, item.label));
}

function setHidden(names) {
  hidden.clear();
  names.forEach((name) => hidden.add(name));
  for (const button of document.querySelectorAll(".chip[data-method]")) {
    button.setAttribute("aria-pressed", String(!hidden.has(button.dataset.method)));
  }
  refresh();
}

function figureSection(figure) {
  const steps = curvesOf(figure).every((curve) => curve.steps === "tuned") ? "tuned" : "theory";
  const view = { x: "passes", y: "relative", log_x: false, log_y: true, steps, band: "quartiles", ...figure.view };
  const grid = (problems, only) => el("div", { class: problems.length === 1 ? "grid single" : "grid" },
    problems.map((problem) => panel(figure, problem, view, only)));
  const rough = figure.problems.filter((problem) => !problem.convex);
  const second = rough.length ? el("div", { class: "second", hidden: view.y === "gap" },
    el("h3", {}, "Frank-Wolfe gap of the non-convex problems"), grid(rough, { y: "gap", log_y: true })) : null;
  const body = el("div", {}, chips(figure), grid(figure.problems), second);
  const apply = () => {
    if (second) second.hidden = view.y === "gap";
    refresh(body.querySelectorAll(".plot"));
  };
  return section(slug(figure.name), figure.title, el("p", { class: "caption" }, figure.caption), controls(figure, view, apply),
    body, unfolding("The numbers behind this figure", () => finals(figure)),
    el("p", { class: "buttons" },
      download("csv", "Download all runs as CSV", () => save(`${slug(figure.name)}.csv`, csv(figure), "text/csv")),
      download("json", "Download the page's data as JSON", () => save("extremal-report.json", source, "application/json"))));
}

const download = (kind, label, click) => el("button", { type: "button", class: "button", "data-download": kind, click }, label);

/** Something that is made when it is opened first. */
function unfolding(title, make) {
  const open = () => { if (node.open && node.children.length === 1) node.append(...make()); };
  const node = el("details", { class: "behind", toggle: open }, el("summary", {}, title));
  return node;
}

function finals(figure) {
  const columns = ["data", "method", "steps", "factor", "batch", "f − f_min", "gap", "LMO calls", "CPU s"];
  const row = (problem, curve) => [
    problem.data + (problem.origin === "stand-in" ? " (stand-in)" : ""), named(method(curve.method)), STEPS[curve.steps],
    { number: number(curve.factor) }, curve.batch, { number: final(curve, Y.excess, problem) },
    { number: final(curve, Y.gap, problem) }, ended(curve, "lmos"), ended(curve, "cpu"),
  ];
  const note = "At the end of the runs, medians over the seeds. ≤: not above the floor that the plots have.";
  const rows = figure.problems.flatMap((problem) => problem.curves.map((curve) => row(problem, curve)));
  return [el("p", { class: "note" }, note), table(columns, rows, figure.title)];
}

const TIDY = ["figure", "data", "loss", "set", "method", "steps", "factor", "batch", "seed"];
const TRACE = ["passes", "lmos", "cpu", "value", "gap"];
const quoted = (x) => (absent(x) ? "" : /[",\r\n]/.test(x) ? `"${String(x).replace(/"/g, '""')}"` : String(x));

/** All runs of a figure, a line for each row of each. */
function csv(figure) {
  const lines = [[...TIDY, ...TRACE].join(",")];
  const add = (problem, curve, run) => {
    const held = { ...problem, ...curve, figure: figure.name, seed: run.seed };
    const fixed = TIDY.map((key) => quoted(held[key])).join(",");
    run.passes.forEach((_, i) => lines.push(`${fixed},${TRACE.map((key) => quoted(run[key][i])).join(",")}`));
  };
  for (const problem of figure.problems) {
    for (const curve of problem.curves) curve.runs.forEach((run) => add(problem, curve, run));
  }
  return lines.join("\n") + "\n";
}

function save(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// ---- tables

const scroll = (label, child) =>
  el("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": `Table: ${label}` }, child);

/** A table in a box of its own that scrolls. Numbers stand on the right; {number: text} is one that is written already. */
function table(columns, rows, label, kind = null) {
  const right = columns.map((_, j) => rows.some((row) => typeof row[j] === "number" || row[j]?.number));
  const side = (j) => ({ class: right[j] ? "number" : null });
  const cell = (item, j) => el("td", { ...side(j), "data-label": columns[j] }, written(item));
  return scroll(label, el("table", { class: kind },
    el("thead", {}, el("tr", {}, columns.map((name, j) => el("th", { scope: "col", ...side(j) }, name)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map(cell))))));
}

function written(item) {
  if (item instanceof Node) return item;
  if (typeof item === "number") return number(item, 4);
  return Array.isArray(item) ? item.join(", ") : String(item?.number ?? item ?? "–");
}

function pairs(title, entries) {
  const row = ([key, value]) => el("tr", {}, el("th", { scope: "row" }, key), el("td", {}, written(value)));
  const rows = Object.entries(entries ?? {}).map(row), held = el("table", { class: "pairs" }, el("tbody", {}, rows));
  return rows.length ? el("div", {}, el("h3", {}, title), scroll(title, held)) : null;
}

// ---- the overview: ranks, and where each method ends

function overview() {
  const kinds = ["theory", "tuned"].filter((kind) => report.overview?.[kind]?.length);
  const part = (kind) => [el("h3", {}, kind === "tuned" ? "Tuned steps" : "Steps as in theory"),
    el("div", { class: "ranks" }, ranks(report.overview[kind], kind), heat(report.overview[kind], kind))];
  return kinds.length ? section("overview", "Who wins where", el("p", { class: "note" },
    "Methods are ranked on every problem by where they end. The coloured tables have log₁₀ of the final relative suboptimality, ",
    "median over the seeds: lower and darker is better. In a frame: the best of its column; ≤: not above the accuracy to which ",
    "f_min is known; *: a stand-in for the data set; °: non-convex, so against the best value known."), kinds.map(part)) : null;
}

function ranks(rows, kind) {
  const most = Math.max(2, rows.length, ...rows.map((row) => row.q3 ?? 1));
  const at = (rank) => `${(100 * ((rank ?? 1) - 1)) / (most - 1)}%`;
  const bar = (row) => el("div", { class: "rank", "aria-hidden": "true" },
    el("span", { class: "box", style: `left: ${at(row.q1)}; right: calc(100% - ${at(row.q3)})` }),
    el("span", { class: "tick", style: `left: ${at(row.median)}` }));
  const cells = (row) => [
    named(method(row.method)), { number: number(row.median) }, { number: `${number(row.q1)} – ${number(row.q3)}` }, bar(row),
    { number: `${row.first} of ${row.problems}` },
  ];
  const columns = ["method", "median rank", "quartiles", "", "times first"];
  return table(columns, rows.map(cells), `ranks, steps ${STEPS[kind]}`, "ranking");
}

/** Where a method ends on a problem: log10 of the relative suboptimality, and whether that is the floor. */
function place(name, problem, kind) {
  const curve = problem.curves.find((held) => held.method === name && held.steps === kind);
  const value = curve ? drawn(ended(curve, "value"), Y.relative, problem) : null;
  return value === null ? null : { log: Math.log10(value), low: value <= Y.relative.floor(problem) };
}

/** "Figure 1" of "Figure 1: logistic regression". */
const brief = (figure) => (/^[^:.]{1,14}(?=[:.])/.exec(figure.title) ?? [figure.name])[0];

function heat(rows, kind) {
  const figures = list("figures").filter((figure) => figure.problems.length);
  const problems = figures.flatMap((figure) => figure.problems), starts = new Set(figures.map((figure) => figure.problems[0]));
  const places = rows.map((row) => problems.map((problem) => place(row.method, problem, kind)));
  const logs = places.map((row) => row.map((held) => held?.log)), [low, high] = extent(logs.flat());
  const best = problems.map((_, j) => extent(logs.map((row) => row[j]))[0]);
  const mark = (j, more) => `${more} ${starts.has(problems[j]) ? "start" : ""}`;
  const cell = (held, j) => held === null ? el("td", { class: mark(j, "") }, "–") : el("td", {
    class: mark(j, held.log === best[j] ? "best" : ""), style: shade((held.log - low) / (high - low || 1)),
  }, `${held.low ? "≤" : ""}${minus(held.log.toFixed(1))}`);
  const row = (held, i) => el("tr", {}, el("th", { scope: "row" }, named(method(held.method))), places[i].map(cell));
  const head = el("thead", {}, el("tr", {}, el("td"), figures.map(heatGroup)),
    el("tr", {}, el("th", { scope: "col" }, "method"), problems.map((problem, j) => heatColumn(problem, mark(j, "turned")))));
  const label = `final relative suboptimality, steps ${STEPS[kind]}`;
  return scroll(label, el("table", { class: "heat" }, head, el("tbody", {}, rows.map(row))));
}

function heatGroup(figure) {
  const link = el("a", { href: `#${slug(figure.name)}`, title: figure.title }, brief(figure));
  return el("th", { scope: "colgroup", colspan: figure.problems.length, class: "start" }, link);
}

function heatColumn(problem, kind) {
  const signs = (problem.origin === "stand-in" ? "*" : "") + (problem.convex ? "" : "°");
  const title = [lead(problem), problem.origin_text].filter(Boolean).join("; ");
  return el("th", { scope: "col", class: kind, title }, el("span", {}, problem.data + signs));
}

const SHADES = [[12, 60, 104], [33, 113, 168], [105, 170, 208], [186, 214, 232], [243, 240, 232]]; // good to bad, dark to light

function shade(t) {
  const at = t * (SHADES.length - 1), i = Math.min(Math.floor(at), SHADES.length - 2);
  const rgb = SHADES[i].map((c, j) => Math.round(c + (at - i) * (SHADES[i + 1][j] - c)));
  const bright = rgb[0] * 0.3 + rgb[1] * 0.59 + rgb[2] * 0.11 > 125;
  return `background: rgb(${rgb}); color: ${bright ? "#10161c" : "#fff"}`;
}

// ---- studies

function study(item) {
  return section(slug(`study-${item.name}`), item.title, item.text && el("p", { class: "caption" }, item.text),
    (item.tables ?? []).map((held) => [held.title && el("h3", {}, held.title), table(held.columns, held.rows, held.title)]),
    item.plots?.length ? el("div", { class: "grid wide" }, item.plots.map(studyPlot)) : null);
}

/** A series with the looks of the method of that name, if there is one. */
function dressed(series, i) {
  const same = [...methods.values()].find((item) => item.label === series.label || item.name === series.label);
  const colour = same?.colour ?? cycle([...STRONG, ...COLOURS], i);
  return { ...series, ours: true, colour, symbol: same?.symbol ?? cycle(Object.keys(SYMBOLS), i) };
}

function studyPlot(item) {
  const series = item.series.map(dressed);
  const plot = el("div", { class: "plot", role: "img", "aria-label": `${item.title}: ${item.y_label} against ${item.x_label}` });
  addPanel(plot, (colours) => {
    const data = series.flatMap((held) => seriesTraces(held, item, colours));
    const all = (key) => data.flatMap((trace) => trace[key]);
    const across = axis(item.x_label, item.log_x, range(all("x"), item.log_x, 0.03), colours);
    const up = axis(item.y_label, item.log_y, range(all("y"), item.log_y, 0.06), colours);
    return { data, layout: layout(across, up, colours) };
  });
  const key = el("p", { class: "key" }, series.map(named));
  return el("article", { class: "panel" }, el("header", {}, el("div", {}, el("h4", {}, item.title), key)), plot);
}

function seriesTraces(series, item, colours) {
  const color = colours.pick(series.colour), meta = { series: series.label };
  const band = (i) => (series.low && series.high ? [series.low[i], series.high[i]] : null);
  const fits = (row) => row.x !== null && (!item.log_x || row.x > 0);
  const rows = series.x.map((x, i) => ({ x, y: series.y[i], band: band(i) })).filter(fits);
  const lines = ["y", "x"].map((side) => `${plain(item[`${side}_label`])}: %{${side}:.4~g}`);
  return [...bandTrace(rows, color, meta, 0.16), {
    type: "scatter", mode: "lines+markers", name: plain(series.label), x: rows.map((row) => row.x), y: rows.map((row) => row.y),
    line: { color, width: 1.9 }, marker: { color, symbol: series.symbol, size: 7, maxdisplayed: 20 },
    meta: { ...meta, role: "line" }, hovertemplate: tip(series.label, lines),
  }];
}

// ---- ledger, methods, settings

const VERDICTS = {
  holds: ["✓", "yes"], "holds in part": ["◐", "part"], "does not hold here": ["✗", "no"], "not measured": ["○", "open"],
};

function verdict(name, count = "") {
  const [sign, kind] = VERDICTS[name] ?? ["○", "open"];
  return el("span", { class: `verdict ${kind}` }, el("span", { "aria-hidden": "true" }, `${sign} `), name + count);
}

/** A command that is broken between words only. */
const command = (text) =>
  el("code", {}, text.split(" ").flatMap((word, i) => [i ? " " : "", el("span", { class: "word" }, word)]));

function ledger() {
  const items = list("ledger"), count = (name) => items.filter((item) => item.verdict === name).length;
  const rows = items.map((item) => [item.claim, item.where, item.measured, verdict(item.verdict), command(item.command ?? "")]);
  const counts = Object.keys(VERDICTS).filter(count).map((name) => verdict(name, `: ${count(name)}`));
  return rows.length ? section("ledger", "The paper's claims, and what was measured", el("p", { class: "counts" }, counts),
    table(["claim", "where", "measured", "verdict", "command"], rows, "claims and verdicts", "ledger")) : null;
}

function methodTable() {
  const row = ({ name, source, ours }) => [named(method(name)), el("code", {}, name), ours ? "this paper" : "", source];
  const rows = list("methods").map(row);
  return rows.length ? section("methods", "Methods", table(["method", "name", "", "source"], rows, "methods")) : null;
}

function table2() {
  const { title = "Table 2", remark, columns, rows } = report.table2 ?? {};
  const text = remark && el("p", { class: "caption" }, remark);
  return rows?.length ? section("table2", title, text, table(columns, rows, title)) : null;
}

function settings() {
  const groups = ["Settings", "Versions", "Machine"].map((title) => pairs(title, report[title.toLowerCase()])).filter(Boolean);
  return groups.length ? section("settings", "How it was run", el("div", { class: "columns" }, groups)) : null;
}

// ---- the page

const section = (id, title, ...children) =>
  el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), children);

function top() {
  const when = new Date(report.generated), known = !Number.isNaN(when.getTime());
  const date = known ? when.toLocaleString("en-GB", { dateStyle: "long", timeStyle: "short" }) : report.generated;
  return el("header", { class: "top", id: "top" }, el("h1", {}, report.title),
    report.generated && el("p", { class: "when" }, `Generated ${date} by extremal`),
    report.quick && el("p", { class: "notice" }, el("strong", {}, "A quick run, "), "smaller than the full one."),
    list("summary").length ? el("p", { class: "summary" }, list("summary").join(" ")) : null);
}

const READING = [
  "Lines are medians over the seeds, row by row: all runs of a problem are sampled at the same numbers of full gradients. "
    + "Bands are the quartiles or the range.",
  "f_min comes from a solve of its own. Its gap bounds how far it may lie above the optimum; nothing is drawn below that "
    + "accuracy, the dotted line. On a non-convex problem it is the best value known, and the line is a floor and no such bound.",
  "A run that ended in NaN counts as worse than any number, so a median breaks off where half of the runs have.",
  "Tuned steps are the theory's times a factor, which the hover text and the tables give.",
  "The buttons with the methods' names hide and show them on the whole page; with Shift, one is left alone. "
    + "Drag in a plot to zoom, double-click to go back.",
];

const reading = () => unfolding("How to read the plots", () => [el("ul", {}, READING.map((text) => el("li", {}, text)))]);

function contents(sections) {
  const menu = document.getElementById("menu"), toc = document.getElementById("toc");
  const open = (state) => { menu.setAttribute("aria-expanded", String(state)); toc.classList.toggle("open", state); };
  const link = (node) => el("a", { href: `#${node.id}`, click: () => open(false) }, node.querySelector("h2").textContent);
  const links = sections.map(link);
  const follow = () => {
    const end = innerHeight + scrollY >= document.documentElement.scrollHeight - 4;
    const at = end ? sections.length - 1 : sections.findLastIndex((node) => node.getBoundingClientRect().top < innerHeight / 3);
    links.forEach((item, i) => (i === at ? item.setAttribute("aria-current", "true") : item.removeAttribute("aria-current")));
  };
  toc.append(...links.map((item) => el("li", {}, item)));
  menu.addEventListener("click", () => open(menu.getAttribute("aria-expanded") !== "true"));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") open(false); });
  document.addEventListener("scroll", () => requestAnimationFrame(follow), { passive: true });
}

function themes() {
  const button = document.getElementById("theme");
  const apply = () => {
    const other = dark() ? "light" : "dark";
    button.textContent = other === "dark" ? "Dark" : "Light";
    button.setAttribute("aria-label", `Switch to ${other} colours`);
    refresh();
  };
  button.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    apply();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
  apply();
}

/** Paper gets every plot, light and of a width that fits two side by side. */
function printing() {
  const root = document.documentElement.dataset;
  let before;
  window.addEventListener("beforeprint", () => {
    before = root.theme;
    root.theme = "light";
    for (const [node, held] of panels) {
      if (node.closest("[hidden]")) continue;
      draw(node, held);
      Plotly.relayout(node, { autosize: false, width: 320, height: 250 });
    }
  });
  window.addEventListener("afterprint", () => {
    if (before) root.theme = before; else delete root.theme;
    refresh();
  });
}

const figures = list("figures").map(figureSection);
const studies = list("studies").map(study);
const sections = [overview(), methodTable(), ...figures, table2(), ...studies, ledger(), settings()].filter(Boolean);
figures[0]?.querySelector(".caption").after(reading());
document.getElementById("main").replaceChildren(top(), ...sections);
contents(sections);
themes();
printing();
window.addEventListener("load", drawNext); // plotly.js comes after this script, so that the text is there first
})();

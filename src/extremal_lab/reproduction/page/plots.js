// Plots: the theme, traces, axes and layouts for plotly, and when they are drawn.

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

// ---- plots of curves

const STEPS = { own: "own", tuned: "tuned", both: "both" };

/** Text for plotly, which reads some markup in its labels. */
function plain(text) {
  const safe = String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  return safe.replace(/\bf_(min|max)\b/g, "f<sub>$1</sub>");
}

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
  const dash = view.steps === "both" && curve.steps === "own" ? "dash" : "solid";
  return {
    type: "scatter", mode: "lines+markers", name: plain(`${label}, ${curve.steps === "own" ? "own steps" : steps}`),
    hovertemplate: hover(label, steps + (atEdge(curve) ? ", end of the grid" : ""), view, rows),
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
function floorTrace(problem, view, xs, lowest, colours) {
  const level = Y[view.y].floor(problem), near = view.y === "gap" ? lowest <= level : !view.log_y || lowest <= 100 * level;
  if (!Number.isFinite(level) || !xs.length || !near) return [];
  const kind = problem.convex && view.y !== "gap" && least(problem) <= problem.f_min_gap ? "accuracy of f_min" : "floor";
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

// ---- plots of studies

/** A series with the looks of the method of that name, if there is one. */
function dressed(series, i) {
  const same = [...methods.values()].find((item) => item.label === series.label || item.name === series.label);
  const colour = same?.colour ?? cycle([...COLOURS, ...LATER], i);
  return { ...series, ours: true, colour, symbol: same?.symbol ?? cycle(Object.keys(SYMBOLS), i) };
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

// What the page knows: the report, numbers and text, methods and their looks, statistics over the seeds, scales, CSV.

const source = document.getElementById("report").textContent;
const report = JSON.parse(source);
const list = (name) => report[name] ?? [];

// ---- numbers, text

const absent = (x) => x === null || x === undefined || x === false;
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

// ---- methods: a colour [light, dark] and a marker each, on the whole page; colours are the report's, or the next of the palette

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
  const colour = OWN[item.name] ?? cycle([...LATER, ...COLOURS], others);
  const symbol = item.ours && ours < 2 ? [circle, square][ours] : cycle(rest, others);
  methods.set(item.name, { colour, symbol, ...item });
}

function method(name) {
  if (!methods.has(name)) addMethod({ name, label: name, source: "", ours: false });
  return methods.get(name);
}

const curvesOf = (figure) => figure.problems.flatMap((problem) => problem.curves);
list("methods").forEach(addMethod);
list("figures").flatMap(curvesOf).forEach((curve) => method(curve.method));

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
/** The least difference to f_min that means something. */
const least = (problem) => (problem.floor > 0 ? problem.floor : Math.max(problem.f_min_gap ?? 0, TINY));
/** The unit of the relative suboptimality, never 0. */
const span = (problem) => (finite(problem.f_max) ? Math.max(problem.f_max - problem.f_min, least(problem)) : NaN);
const X = {
  passes: { label: "full gradients", title: "full gradients (component gradients / n)", log: false },
  lmos: { label: "LMO calls", title: "LMO calls", log: true },
  cpu: { label: "CPU seconds", title: "CPU seconds", log: false },
};
const Y = {
  relative: {
    label: "relative suboptimality", key: "value", log: true, hint: "(f − f_min) / (f_max − f_min)",
    of: (v, p) => (v - p.f_min) / span(p), floor: (p) => least(p) / span(p),
  },
  excess: {
    label: "f − f_min", key: "value", log: true, hint: "f − f_min, in units of f",
    of: (v, p) => v - p.f_min, floor: least,
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

/** Whether a tuned constant is the least or the greatest that was tried. */
const atEdge = (curve) => curve.steps === "tuned" && curve.edge === true;

const ended = (curve, key) => (curve.runs.length ? quantile(ordered(curve.runs.map((run) => run[key].at(-1))), 0.5) : null);

/** A final number as text; "≤" where it is not above the floor. */
function final(curve, y, problem) {
  const shown = drawn(ended(curve, y.key), y, problem);
  return shown === null ? "–" : (shown <= y.floor(problem) ? "≤ " : "") + power(shown);
}

// ---- all runs as text

// the columns of the CSV files that the command writes: those of a curve, of a row of its runs, of the problem's minimum
const TIDY = ["figure", "data", "origin", "loss", "set", "method", "steps", "factor", "batch", "seed"];
const TRACE = ["passes", "lmos", "cpu", "value", "gap"];
const MINIMUM = ["f_min", "f_min_gap"];
const quoted = (x) => (absent(x) ? "" : /[",\r\n]/.test(x) ? `"${String(x).replace(/"/g, '""')}"` : String(x));

/** All runs of a figure, a line for each row of each. */
function csv(figure) {
  const lines = [[...TIDY, ...TRACE, ...MINIMUM].join(",")];
  const add = (problem, curve, run) => {
    const held = { ...problem, ...curve, figure: figure.name, seed: run.seed };
    const fixed = (keys) => keys.map((key) => quoted(held[key])), before = fixed(TIDY), after = fixed(MINIMUM);
    const row = (i) => [...before, ...TRACE.map((key) => quoted(run[key][i])), ...after].join(",");
    const stays = (i) => i > 0 && TRACE.every((key) => run[key][i] === run[key][i - 1]); // one row for a point that stays
    run.passes.forEach((_, i) => { if (!stays(i)) lines.push(row(i)); });
  };
  for (const problem of figure.problems) {
    for (const curve of problem.curves) curve.runs.forEach((run) => add(problem, curve, run));
  }
  return lines.join("\n") + "\n";
}

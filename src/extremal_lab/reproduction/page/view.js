// Elements and tables, and a figure made of them: panels, controls, legend, downloads. All text goes in as text nodes, never as
// markup.

// ---- elements

const NAMESPACE = "http://www.w3.org/2000/svg"; // a name, not an address: nothing is loaded

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

function swatch({ colour: [light, dark], symbol, ours }) {
  const line = svg("path", { d: "M1 6H27", "stroke-width": ours ? 2.6 : 1.7, stroke: "currentColor" });
  const mark = svg("path", { d: SYMBOLS[symbol], transform: "translate(14 6)", fill: "currentColor" });
  const style = `color: light-dark(${light}, ${dark})`;
  return svg("svg", { class: "swatch", viewBox: "0 0 28 12", "aria-hidden": "true", style }, line, mark);
}

const named = (item) => el("span", { class: item.ours ? "named ours" : "named" }, swatch(item), item.label);

/** Text with a smaller line below it, if there is one. */
const twoLines = (text, below) => el("span", {}, text, below && el("span", { class: "below" }, below));

const section = (id, title, ...children) =>
  el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), children);

/** Something that is made when it is opened first. */
function unfolding(title, make) {
  const open = () => { if (node.open && node.children.length === 1) node.append(...make()); };
  const node = el("details", { class: "behind", toggle: open }, el("summary", {}, title));
  return node;
}

// ---- tables

const scroll = (label, child) =>
  el("div", { class: "scroll", role: "region", tabindex: 0, "aria-label": `Table: ${label}` }, child);

/** A table in a box of its own that scrolls. Numbers stand on the right; {number, below} is one that is written already. */
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
  if (item?.below) return twoLines(item.number, item.below);
  if (typeof item === "number") return number(item, 4);
  return Array.isArray(item) ? item.join(", ") : String(item?.number ?? item ?? "–");
}

function pairs(title, entries) {
  const row = ([key, value]) => el("tr", {}, el("th", { scope: "row" }, key), el("td", {}, written(value)));
  const rows = Object.entries(entries ?? {}).map(row), held = el("table", { class: "pairs" }, el("tbody", {}, rows));
  return rows.length ? el("div", {}, el("h3", {}, title), scroll(title, held)) : null;
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
    problem.floor > (problem.f_min_gap ?? 0) && entry("floor", number(problem.floor, 2)),
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

const STATIONARY = "A small gap says that the point is nearly stationary, not that it is good: where sigmoids saturate, "
  + "the gap vanishes far above the best known value.";

function hintFor(figure, view) {
  const rough = figure.problems.some((problem) => !problem.convex), gap = view.y === "gap";
  return [
    `y: ${Y[view.y].hint}.`, view.steps === "both" && "Dashed: own steps.",
    rough && gap && STATIONARY,
    rough && !gap && "Non-convex: f_min is the best value known, not a proven minimum; the Frank-Wolfe gap is drawn below as "
      + "well.",
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
  const steps = curvesOf(figure).every((curve) => curve.steps === "tuned") ? "tuned" : "own";
  const view = { x: "passes", y: "relative", log_x: false, log_y: true, steps, band: "quartiles", ...figure.view };
  const grid = (problems, only) => el("div", { class: problems.length === 1 ? "grid single" : "grid" },
    problems.map((problem) => panel(figure, problem, view, only)));
  const rough = figure.problems.filter((problem) => !problem.convex);
  const second = rough.length ? el("div", { class: "second", hidden: view.y === "gap" },
    el("h3", {}, "Frank-Wolfe gap of the non-convex problems"), el("p", { class: "note" }, STATIONARY),
    grid(rough, { y: "gap", log_y: true })) : null;
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

function save(name, text, type) {
  const address = URL.createObjectURL(new Blob([text], { type: `${type};charset=utf-8` }));
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

function finals(figure) {
  const columns = ["data", "method", "steps", "factor", "batch", "f − f_min", "gap", "LMO calls", "CPU s"];
  const row = (problem, curve) => [
    problem.data + (problem.origin === "stand-in" ? " (stand-in)" : ""), named(method(curve.method)), STEPS[curve.steps],
    { number: number(curve.factor), below: atEdge(curve) && "end of the grid" }, curve.batch,
    { number: final(curve, Y.excess, problem) }, { number: final(curve, Y.gap, problem) },
    ended(curve, "lmos"), ended(curve, "cpu"),
  ];
  const note = "At the end of the runs, medians over the seeds. ≤: not above the floor that the plots have. End of the grid: no "
    + "smaller, or no larger, factor was tried.";
  const rows = figure.problems.flatMap((problem) => problem.curves.map((curve) => row(problem, curve)));
  return [el("p", { class: "note" }, note), table(columns, rows, figure.title)];
}

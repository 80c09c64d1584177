// The sections of the page, and the page itself: this file comes last, and what stands at its end draws everything.

// ---- the overview: ranks, and where each method ends

function overview() {
  const kinds = ["own", "tuned"].filter((kind) => report.overview?.[kind]?.length);
  const part = (kind) => [el("h3", {}, kind === "tuned" ? "Tuned steps" : "Own steps"),
    el("div", { class: "ranks" }, ranks(report.overview[kind], kind), heat(report.overview[kind], kind))];
  return kinds.length ? section("overview", "Who wins where", el("p", { class: "note" },
    "Methods are ranked on every problem by where they end. The coloured tables have log₁₀ of the final relative suboptimality, ",
    "median over the seeds: lower and darker is better. In a frame: the best of its column; ≤: not above the floor, the least ",
    "difference to f_min that means something; †: the tuned constant lies at the end of the grid of trials; *: a stand-in for ",
    "the data set; °: non-convex, so against the best value known."), kinds.map(part)) : null;
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

/** Where a method ends on a problem: log10 of the relative suboptimality; whether that is the floor, the constant at the edge. */
function place(name, problem, kind) {
  const curve = problem.curves.find((held) => held.method === name && held.steps === kind);
  const value = curve ? drawn(ended(curve, "value"), Y.relative, problem) : null;
  if (value === null) return null;
  return { log: Math.log10(value), low: value <= Y.relative.floor(problem), edge: atEdge(curve) };
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
  }, `${held.low ? "≤" : ""}${minus(held.log.toFixed(1))}`, held.edge && el("sup", { title: "end of the grid" }, "†"));
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

// ---- ledger, methods, settings

const VERDICTS = {
  holds: ["✓", "yes"], "holds in part": ["◐", "part"], "does not hold here": ["✗", "no"], undecided: ["?", "unsure"],
  "refuted by proof": ["✗", "no"], "not measured": ["○", "open"],
};
const word = (verdict) => verdict.split(";")[0]; // after it stands what is left open

function verdict(name, count = "") {
  const [sign, kind] = VERDICTS[word(name)] ?? ["○", "open"];
  return el("span", { class: `verdict ${kind}` }, el("span", { "aria-hidden": "true" }, `${sign} `), name + count);
}

/** A command that is broken between words only. */
const command = (text) =>
  el("code", {}, text.split(" ").flatMap((word, i) => [i ? " " : "", el("span", { class: "word" }, word)]));

function claim(item) {
  const fact = (name, value) => value && [el("dt", {}, name), el("dd", {}, value)];
  const facts = el("dl", {}, fact("claim", item.short && item.claim), fact("where", item.where), fact("measured", item.measured), fact("it holds if", item.rule),
    fact("on", item.on), fact("shown by", item.command && command(item.command)));
  const folded = el("details", { class: "evidence" }, el("summary", {}, item.short ?? item.claim), facts);
  return [folded, verdict(item.verdict), item.number || "–"];
}

function ledger() {
  const items = list("ledger"), count = (name) => items.filter((item) => item.verdict === name).length;
  const rows = items.map(claim), said = [...new Set(items.map((item) => item.verdict))];
  const sorted = Object.keys(VERDICTS).flatMap((kind) => said.filter((name) => word(name) === kind));
  const counts = sorted.map((name) => verdict(name, `: ${count(name)}`));
  return rows.length ? section("ledger", "Claims, and what was measured", el("p", { class: "counts" }, counts),
    el("p", { class: "note" }, "A claim unfolds to its evidence: where the paper makes it, what was measured, when it holds."),
    table(["claim", "verdict", "number"], rows, "claims and verdicts", "ledger")) : null;
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

/** What to know before anything else. What the summary says of a quick run is not said twice. */
function notices() {
  const said = list("summary").some((sentence) => /\bquick\b/i.test(sentence));
  const quick = said ? [el("strong", {}, "A quick run.")] : [el("strong", {}, "A quick run, "), "smaller than the full one."];
  return [
    report.quick && el("p", { class: "notice" }, quick),
    list("caution").length > 0 && el("p", { class: "notice" }, el("strong", {}, "Caution. "), list("caution").join(" ")),
  ];
}

function top() {
  const when = new Date(report.generated), known = !Number.isNaN(when.getTime());
  const date = known ? when.toLocaleString("en-GB", { dateStyle: "long", timeStyle: "short" }) : report.generated;
  return el("header", { class: "top", id: "top" }, el("h1", {}, report.title),
    report.generated && el("p", { class: "when" }, `Generated ${date} by extremal`),
    notices(),
    list("summary").length ? el("p", { class: "summary" }, list("summary").join(" ")) : null);
}

const READING = [
  "Lines are medians over the seeds, row by row: all runs of a problem are sampled at the same numbers of full gradients. "
    + "Bands are the quartiles or the range.",
  "Relative suboptimality is (f − f_min) / (f_max − f_min). f_max is the largest value at a recorded point of any curve of "
    + "the panel.",
  "f_min comes from a solve of its own. Its gap bounds how far it may lie above the optimum. The floor, a dotted line, is the "
    + "least difference to f_min that means something; nothing is drawn below it. On a non-convex problem f_min is the best "
    + "value known, and the floor bounds nothing.",
  "A run that ended in NaN counts as worse than any number, so a median breaks off where half of the runs have.",
  "Own steps are those of each method's theory or public code. Tuned steps are these times a factor, which the hover text and "
    + "the tables give. Where it lies at the end of the grid of trials, they say so: a better one may lie beyond.",
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

"use strict";

/* What the views of associations share: the reader's choice of set, model, rows and columns, and how a cell reads. */
const associations = (() => {
  const SURE = 0.05;
  const NAMES = {
    subject: ["subject", "subjects"],
    group: ["group", "groups"],
    attribute: ["attribute", "attributes"],
    attribute_class: ["class of attributes", "classes of attributes"],
  };
  const watchers = [];
  const state = { set: 0, result: null, rows: "subject", columns: "attribute" };
  let sets = [];
  let view = null;
  let colours = {};
  let tools = {};

  const nameOf = (rows, columns) => `${rows}_${columns === "attribute_class" ? "class" : "attribute"}`;

  /* The chosen table: names of its rows and columns, and cell(row, column), which is null where there is no row. */
  function current() {
    const set = sets[state.set];
    const result = set.results[state.result];
    const table = result.tables[nameOf(state.rows, state.columns)];
    const width = set.axes[state.columns].length;
    const parts = Object.entries(table);
    const made = table.n.map((n, place) => {
      if (!n) return null;
      const found = { row: Math.floor(place / width), column: place % width };
      for (const [name, values] of parts) found[name] = values[place];
      found.sure = found.q !== null && found.q <= SURE;
      return found;
    });
    const cell = (row, column) => made[row * width + column];
    return {
      set, result, table, cell, colours,
      cells: made.filter(Boolean),
      rows: set.axes[state.rows],
      columns: set.axes[state.columns],
      rowKind: state.rows,
      columnKind: state.columns,
      groupOf: (row) => (state.rows === "group" ? row : set.group[row]),
      classOf: (column) => (state.columns === "attribute_class" ? column : set.class[column]),
    };
  }

  /* Blue-orange by sign, paler towards 0; reach is the |γ| of the full colour. */
  function colour(gamma, reach) {
    const share = reach ? Math.min(1, Math.abs(gamma) / reach) : 0;
    const mix = (one, other) => Math.round(one + (other - one) * share);
    const [zero, end] = [colours.zero, gamma < 0 ? colours.below : colours.above].map((code) =>
      [1, 3, 5].map((at) => parseInt(code.slice(at, at + 2), 16)),
    );
    return `rgb(${zero.map((part, at) => mix(part, end[at])).join(", ")})`;
  }

  const groupColour = (group) => colours.groups[sets[state.set].shades[group] % colours.groups.length];

  function reading(cell, view) {
    const [subject, attribute] = [view.rows[cell.row], view.columns[cell.column]];
    if (cell.gamma === 0) return `${subject} is tied neither to ${attribute} nor to its negation`;
    return `${subject} is tied to ${cell.gamma > 0 ? "" : "the negation of "}${attribute}`;
  }

  function within(low, high) {
    if (low === null || high === null) return "not known from so few rows";
    return `${tools.interval(low, high)}${low <= 0 && high >= 0 ? " (holds 0)" : ""}`;
  }

  /* All that is known of a cell, as a list of terms for a tooltip. */
  function facts(cell, view) {
    const { element, number, count } = tools;
    const [group, kind] = [view.groupOf(cell.row), view.classOf(cell.column)];
    const lines = [["", reading(cell, view)]];
    if (view.rowKind === "subject" && group !== null) lines.push(["group", view.set.axes.group[group]]);
    if (view.columnKind === "attribute" && kind !== null) lines.push(["class", view.set.axes.attribute_class[kind]]);
    if (view.columnKind === "attribute" && view.set.asked[cell.column]) lines.push(["asked", view.set.asked[cell.column]]);
    lines.push(
      ["γ", number(cell.gamma)],
      ["95 % interval", within(cell.gamma_low, cell.gamma_high)],
      ["q", `${number(cell.q)} (${cell.sure ? "stands out from chance" : "may be chance"})`],
      ["η", `${number(cell.eta)}, 95 % interval ${within(cell.eta_low, cell.eta_high)}`],
      ["n", `${count(cell.n)} rows`],
    );
    return lines.map(([term, text]) =>
      term
        ? element("div", {}, element("span", { class: "term" }, term), element("span", {}, text))
        : element("div", { class: "reading" }, text),
    );
  }

  const box = () => document.getElementById("associations-tip");

  function tip(cell, view, x, y) {
    const shown = box();
    shown.replaceChildren(...facts(cell, view));
    shown.hidden = false;
    const { width, height } = shown.getBoundingClientRect();
    const left = Math.max(8, Math.min(x + 16, innerWidth - width - 8));
    const top = y + 16 + height > innerHeight ? Math.max(8, y - height - 16) : y + 16;
    shown.style.left = `${left}px`;
    shown.style.top = `${top}px`;
  }

  function changed() {
    view = current();
    for (const watcher of watchers) watcher(view);
  }

  function start(root, data, given) {
    ({ sets, colours } = data);
    tools = given;
    const { element, select, count } = tools;
    const choices = element("div", { class: "choices" });
    const said = element("p", { class: "caption", role: "status" });
    const options = (names) => names.map((label, value) => ({ value, label }));
    root.replaceChildren(choices, said, element("div", { id: "associations-tip", class: "tip", role: "tooltip", hidden: true }));

    function choose(part) {
      const label = sets[state.set].results[state.result]?.model;
      Object.assign(state, part);
      const set = sets[state.set];
      if ("set" in part) {
        Object.assign(state, set.start);
        const same = set.results.findIndex((one) => one.model === label);
        state.result = same < 0 ? set.first : same;
      }
      const { tables } = set.results[state.result];
      const first = Object.keys(tables).find((name) => name.startsWith(state.rows)) ?? Object.keys(tables)[0];
      if (!tables[nameOf(state.rows, state.columns)]) {
        state.rows = first.split("_")[0];
        state.columns = first.endsWith("class") ? "attribute_class" : "attribute";
      }
      changed();
      fill(set, tables);
    }

    function fill(set, tables) {
      const rows = ["subject", "group"].filter((name) => tables[nameOf(name, state.columns)]);
      const columns = ["attribute_class", "attribute"].filter((name) => tables[nameOf(state.rows, name)]);
      const words = { subject: "one by one", group: "by group", attribute_class: "by class", attribute: "one by one" };
      const parts = [];
      if (sets.length > 1) {
        parts.push(select("Set", options(sets.map((one) => one.name)), (value) => choose({ set: +value }), state.set));
      }
      const models = options(set.results.map((one) => one.model));
      parts.push(select("Model", models, (value) => choose({ result: +value }), state.result));
      for (const [label, axis, kinds] of [["Subjects", "rows", rows], ["Attributes", "columns", columns]]) {
        const named = kinds.map((value) => ({ value, label: words[value] }));
        if (kinds.length > 1) parts.push(select(label, named, (value) => choose({ [axis]: value }), state[axis]));
      }
      tools.refill(choices, ...parts);
      const all = view.cells;
      const sure = all.filter((cell) => cell.sure).length;
      const by = state.columns === "attribute_class" ? " A class is the mean over its attributes." : "";
      said.textContent =
        `${view.result.model}, ${count(view.result.rows)} rows: ${count(view.rows.length)} ` +
        `${NAMES[state.rows][view.rows.length === 1 ? 0 : 1]} and ${count(view.columns.length)} ` +
        `${NAMES[state.columns][view.columns.length === 1 ? 0 : 1]}; ${count(sure)} of ${count(all.length)} pairs ` +
        `stand out from chance (q at most ${SURE}).${by}`;
    }
    choose({ set: 0 });
  }

  function watch(watcher) {
    watchers.push(watcher);
    watcher(view);
  }

  /* Draws again when the width of the root changes; its height follows from what is drawn. */
  function redrawn(root, draw) {
    let width = root.clientWidth;
    new ResizeObserver(() => {
      if (root.clientWidth === width) return;
      width = root.clientWidth;
      draw();
    }).observe(root);
  }

  return { start, watch, redrawn, colour, groupColour, reading, tip, hide: () => (box().hidden = true), nameOf, NAMES, SURE };
})();

report.view("associations", associations.start);

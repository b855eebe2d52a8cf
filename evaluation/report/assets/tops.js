"use strict";

/* The k largest γ of each subject and of each attribute, as tables, and every cell as a table. */
report.view("tops", (root, data, tools) => {
  const { element, select, table } = tools;
  const own = { k: 3, side: 1 };
  let view = null;

  const choices = element("div", { class: "choices" });
  const bySubject = element("div", { class: "table" });
  const byAttribute = element("div", { class: "table" });
  const all = element("div", { class: "table" });
  const details = element("details", { class: "all" }, element("summary", {}, "All numbers of this table"), all);
  root.replaceChildren(choices, bySubject, byAttribute, details);

  const NAME = { subject: "subject", group: "group", attribute: "attribute", attribute_class: "class" };

  function top(axis) {
    const found = [];
    const names = axis === "row" ? view.rows : view.columns;
    const mine = names.map(() => []);
    for (const cell of view.cells) if (own.side * cell.gamma > 0) mine[cell[axis]].push(cell);
    for (const cells of mine) {
      cells.sort((one, two) => own.side * (two.gamma - one.gamma));
      cells.slice(0, own.k).forEach((cell, rank) => found.push({ ...cell, rank: rank + 1 }));
    }
    return found;
  }

  function columnsOf(cells, axes) {
    const made = [];
    for (const axis of axes) {
      const isRow = axis === "row";
      const kind = isRow ? view.rowKind : view.columnKind;
      made.push({ name: NAME[kind], kind: "text", values: cells.map((cell) => (isRow ? view.rows : view.columns)[cell[axis]]) });
      const [over, of] = isRow ? [view.set.axes.group, view.groupOf] : [view.set.axes.attribute_class, view.classOf];
      if ((kind === "subject" || kind === "attribute") && over.length > 1) {
        const values = cells.map((cell) => over[of(cell[axis])] ?? "");
        made.push({ name: isRow ? "group" : "class", kind: "text", values });
      }
      if (axis === axes[0] && cells.length && "rank" in cells[0]) {
        made.push({ name: "rank", kind: "count", values: cells.map((cell) => cell.rank), help: "1 is the largest |γ|" });
      }
    }
    const of = (name) => cells.map((cell) => cell[name]);
    return [
      ...made,
      { name: "γ", kind: "number", values: of("gamma"), help: "from -1 to 1, 0 is ideal; above 0: tied to the attribute" },
      { name: "95 % interval", kind: "interval", values: [of("gamma_low"), of("gamma_high")], help: "of γ" },
      { name: "q", kind: "number", values: of("q"), help: "false-discovery rate; small: hardly chance" },
      { name: "η", kind: "number", values: of("eta"), help: "share of rows that prefer the subject less the share against it" },
      { name: "η 95 % interval", kind: "interval", values: [of("eta_low"), of("eta_high")] },
      { name: "n", kind: "count", values: of("n"), help: "rows" },
    ];
  }

  function put(place, title, cells, axes) {
    if (!cells.length) {
      place.replaceChildren(element("p", { class: "note" }, `${title}: none has a γ ${own.side > 0 ? "above" : "below"} 0.`));
      return;
    }
    table(place, { title, columns: columnsOf(cells, axes), sort: null, descending: false });
  }

  function draw() {
    const kinds = associations.NAMES;
    const of = `${view.result.model}, ${view.set.name}`;
    const negated = own.side > 0 ? "" : " by negation";
    put(bySubject, `Top ${kinds[view.columnKind][1]} of each ${kinds[view.rowKind][0]}${negated}: ${of}`, top("row"), ["row", "column"]);
    put(byAttribute, `Top ${kinds[view.rowKind][1]} of each ${kinds[view.columnKind][0]}${negated}: ${of}`, top("column"), ["column", "row"]);
    if (details.open) everything();
    else all.replaceChildren();
  }

  function everything() {
    const block = { title: `All associations: ${view.result.model}, ${view.set.name}`, sort: null, descending: false };
    const cells = [...view.cells].sort((one, two) => two.gamma - one.gamma);
    if (cells.length) table(all, { ...block, columns: columnsOf(cells, ["row", "column"]) });
  }

  const change = (name) => (value) => {
    own[name] = Number(value);
    draw();
  };
  const sides = [{ value: 1, label: "tied to the attribute (γ above 0)" }, { value: -1, label: "tied to its negation (γ below 0)" }];
  choices.replaceChildren(
    select("Show the top", ["1", "3", "5", "10"], change("k"), own.k),
    select("of those", sides, change("side"), own.side),
  );
  details.addEventListener("toggle", () => details.open && everything());
  associations.watch((next) => {
    view = next;
    draw();
  });
});

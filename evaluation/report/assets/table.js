"use strict";

/* A table that can be sorted, searched and saved as CSV; block is {title, columns, sort, descending}. */
function reportTable(root, block, { element, number, interval, count }) {
  const STEP = 100;
  const { columns } = block;
  const size = (columns[0].kind === "interval" ? columns[0].values[0] : columns[0].values).length;
  const state = { sort: block.sort, descending: block.descending, shown: STEP, order: [...Array(size).keys()] };

  const raw = (column, row) => (column.kind === "interval" ? column.values[0][row] : column.values[row]);
  const shown = {
    text: (column, row) => column.values[row] ?? "",
    number: (column, row) => number(column.values[row], column.decimals),
    count: (column, row) => count(column.values[row]),
    interval: (column, row) => interval(column.values[0][row], column.values[1][row]),
  };
  const cell = (column, row) => shown[column.kind](column, row);
  const brief = (column) => column.kind === "text" && column.values.every((value) => (value ?? "").length <= 10);
  const classes = columns.map((column) => (brief(column) ? "text brief" : column.kind));

  function compare(column, one, other) {
    const [a, b] = [raw(column, one), raw(column, other)];
    const empty = (a === null) - (b === null);
    if (empty || a === null) return empty;
    const way = state.descending ? -1 : 1;
    return way * (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
  }

  function arrange() {
    const wanted = search.value.trim().toLowerCase();
    const texts = columns.filter((column) => column.kind === "text");
    const rows = [...Array(size).keys()].filter(
      (row) => !wanted || texts.some((column) => String(column.values[row] ?? "").toLowerCase().includes(wanted)),
    );
    if (state.sort !== null) {
      rows.sort((one, other) => compare(columns[state.sort], one, other) || one - other);
    }
    state.order = rows;
    fill();
  }

  function fill() {
    const rows = state.order.slice(0, state.shown);
    body.replaceChildren(
      ...rows.map((row) =>
        element("tr", {}, ...columns.map((column, i) => element("td", { class: classes[i] }, cell(column, row)))),
      ),
    );
    heads.forEach((head, place) => {
      const way = state.descending ? "descending" : "ascending";
      head.setAttribute("aria-sort", place === state.sort ? way : "none");
    });
    status.textContent = rows.length < state.order.length || state.order.length < size
      ? `${count(rows.length)} of ${count(state.order.length)} rows` +
        (state.order.length < size ? `, found among ${count(size)}` : "")
      : `${count(size)} rows`;
    more.hidden = rows.length === state.order.length;
  }

  function sortBy(place) {
    const again = state.sort === place;
    state.descending = again ? !state.descending : columns[place].kind !== "text";
    state.sort = place;
    arrange();
  }

  /* A text that a spreadsheet would run as a formula gets an apostrophe before it, and one that it would cut up quotes. */
  function quoted(value, kind) {
    const text = String(value ?? "");
    const safe = kind === "text" && /^\s*[=+\-@]|^[\t\r\n]/.test(text) ? `'${text}` : text;
    return /[",;\t\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }

  function csv() {
    const names = columns.flatMap(({ name, kind }) => (kind === "interval" ? [`${name} from`, `${name} to`] : [name]));
    const lines = state.order.map((row) =>
      columns.flatMap(({ kind, values }) =>
        kind === "interval" ? [quoted(values[0][row]), quoted(values[1][row])] : [quoted(values[row], kind)],
      ),
    );
    return [names.map((name) => quoted(name, "text")), ...lines].map((line) => line.join(",")).join("\r\n") + "\r\n";
  }

  /* The mark at the start tells spreadsheets that it is UTF-8. */
  function save() {
    const address = URL.createObjectURL(new Blob(["\ufeff", csv()], { type: "text/csv;charset=utf-8" }));
    const name = block.title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60) || "table";
    element("a", { href: address, download: `${name}.csv` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  }

  const search = element("input", { type: "search", placeholder: "Search", "aria-label": `Search: ${block.title}` });
  search.addEventListener("input", () => {
    state.shown = STEP;
    arrange();
  });
  const status = element("span", { class: "status", role: "status" });
  const more = element("button", { type: "button", class: "more" }, "Show more rows");
  more.addEventListener("click", () => {
    state.shown += 5 * STEP;
    fill();
  });
  const saver = element("button", { type: "button", class: "csv", onclick: save }, "Save as CSV");
  const heads = columns.map((column, place) => {
    const sorter = element("button", { type: "button", title: column.help || null, onclick: () => sortBy(place) }, column.name);
    return element("th", { scope: "col", class: column.kind }, sorter);
  });
  const body = element("tbody");
  const grid = element(
    "table",
    {},
    element("caption", { class: "hidden" }, block.title),
    element("thead", {}, element("tr", {}, ...heads)),
    body,
  );
  root.replaceChildren(
    element("div", { class: "tools" }, element("strong", {}, block.title), status, search, saver),
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": block.title }, grid),
    more,
  );
  search.hidden = size <= 8;
  arrange();
}

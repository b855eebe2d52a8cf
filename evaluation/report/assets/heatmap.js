"use strict";

/* γ of every subject and attribute. The cells are one canvas, since there may be ten thousand; the names are buttons. */
report.view("heatmap", (root, data, tools) => {
  const { element, select, refill, number } = tools;
  const HEIGHT = 22;
  const NARROW = 16;
  const WIDE = 110;
  const LETTER = 7.4;
  const SMALL = 6.6;
  const MOST_PIXELS = 16e6;
  const INK = "#1f2933";
  const own = { rows: "list", columns: "list", chosenRow: null, chosenColumn: null, find: { rows: "", columns: "" }, reach: "model" };
  let view = null;
  let shown = null;
  let marked = null;

  const choices = element("div", { class: "choices" });
  const legend = element("div", { class: "key" });
  const heads = element("div", { class: "heads" });
  const names = element("div", { class: "names" });
  const canvas = element("canvas", { tabindex: "0", role: "img" });
  const mark = element("div", { class: "mark", hidden: true });
  const corner = element("div", { class: "corner" });
  const body = element("div", { class: "cells" }, canvas, mark);
  const sheet = element("div", { class: "sheet" }, corner, heads, names, body);
  const frame = element("div", { class: "heat", tabindex: "-1" }, sheet);
  const none = element("p", { class: "note", hidden: true }, "Nothing here has such a name.");
  root.replaceChildren(choices, legend, none, frame);

  /* Mean over the rows of a line of cells: those with more rows count for more, as in γ(x). */
  function mean(cells, of) {
    const some = cells.filter(Boolean);
    const n = some.reduce((total, cell) => total + cell.n, 0);
    return n ? some.reduce((total, cell) => total + cell.n * of(cell), 0) / n : null;
  }

  function ordered(axis) {
    const [list, other] = axis === "rows" ? [view.rows, view.columns] : [view.columns, view.rows];
    const at = (one, two) => (axis === "rows" ? view.cell(one, two) : view.cell(two, one));
    const kindOf = axis === "rows" ? view.groupOf : view.classOf;
    const kinds = axis === "rows" ? view.set.axes.group : view.set.axes.attribute_class;
    const line = (one) => other.map((_, two) => at(one, two));
    const by = {
      list: (one) => one,
      name: (one) => list[one].toLowerCase(),
      kind: (one) => kindOf(one) ?? kinds.length,
      mean: (one) => mean(line(one), (cell) => -cell.gamma),
      strength: (one) => mean(line(one), (cell) => -Math.abs(cell.gamma)),
      chosen: (one) => {
        const cell = at(one, axis === "rows" ? own.chosenColumn : own.chosenRow);
        return cell ? -cell.gamma : null;
      },
    }[own[axis]];
    const wanted = own.find[axis].trim().toLowerCase();
    /* Anywhere in a name, but only where a word of a group begins: "male" is not to find "female". */
    const found = list.map((_, place) => place).filter((place) => {
      const kind = kindOf(place);
      const named = list[place].toLowerCase().includes(wanted);
      return named || (kind !== null && ` ${kinds[kind]}`.toLowerCase().includes(` ${wanted}`));
    });
    const keys = new Map(found.map((place) => [place, by(place)]));
    return found.sort((one, two) => {
      const [a, b] = [keys.get(one), keys.get(two)];
      const empty = (a === null) - (b === null);
      if (empty || a === b) return empty || one - two;
      return a < b ? -1 : 1;
    });
  }

  function reach() {
    const { set, table, rowKind, columnKind } = view;
    const name = associations.nameOf(rowKind, columnKind);
    const tables = own.reach === "model" ? [table] : set.results.map((one) => one.tables[name]).filter(Boolean);
    return tables.reduce((most, one) => one.gamma.reduce((top, value) => Math.max(top, Math.abs(value ?? 0)), most), 0);
  }

  /* Few rows and many columns are laid out with the columns down the side, where their names can be read. */
  function layout() {
    const rows = ordered("rows");
    const columns = ordered("columns");
    const turned = view.rows.length <= 4 && view.columns.length > 8;
    const [down, across] = turned ? [columns, rows] : [rows, columns];
    const regions = root.clientWidth > 900 && !turned && manyGroups();
    const group = (place) => (regions ? SMALL * (view.set.axes.group[view.groupOf(place)]?.length ?? 0) : 0);
    const sizes = down.map((place) => LETTER * (turned ? view.columns : view.rows)[place].length + group(place));
    const side = Math.min(root.clientWidth < 640 ? 132 : 400, 44 + Math.max(40, ...sizes));
    const room = root.clientWidth - side - 20;
    const width = Math.floor(Math.max(NARROW, Math.min(WIDE, room / Math.max(1, across.length))));
    const at = (y, x) => (turned ? view.cell(across[x], down[y]) : view.cell(down[y], across[x]));
    const far = reach();
    const decimals = far ? Math.max(0, 2 - Math.floor(Math.log10(far))) : 2;
    const printed = width >= HEIGHT + LETTER * (decimals + 3);
    return { down, across, turned, side, width, at, printed, decimals, reach: far, regions };
  }

  /* More groups than colours: their names stand beside the subjects where there is room. */
  const manyGroups = () => view.rowKind === "subject" && view.set.axes.group.length > view.colours.groups.length;

  const longest = (words) => words.reduce((most, word) => Math.max(most, word.length), 0);

  function label(axis, place, vertical) {
    const isRow = axis === "rows";
    const kind = isRow ? view.groupOf(place) : view.classOf(place);
    const kinds = isRow ? view.set.axes.group : view.set.axes.attribute_class;
    const word = (isRow ? view.rows : view.columns)[place];
    const one = isRow ? view.rowKind === "subject" : view.columnKind === "attribute";
    const more = one && kind !== null ? ` (${kinds[kind]})` : "";
    const pressed = (isRow ? own.columns === "chosen" && own.chosenRow : own.rows === "chosen" && own.chosenColumn) === place;
    const swatch = isRow && kind !== null ? [element("i", { class: "swatch", style: `background:${associations.groupColour(kind)}` })] : [];
    return element(
      "button",
      {
        type: "button",
        class: vertical ? "vertical" : "",
        title: `${word}${more}: sort by it`,
        "aria-pressed": String(pressed),
        onclick: () => sortBy(axis, place),
      },
      ...swatch,
      element("span", {}, word),
      ...(isRow && !vertical && shown.regions && more ? [element("small", {}, kinds[kind])] : []),
    );
  }

  function sortBy(axis, place) {
    if (axis === "rows") Object.assign(own, { columns: "chosen", chosenRow: place });
    else Object.assign(own, { rows: "chosen", chosenColumn: place });
    controls();
    draw();
  }

  function draw() {
    if (!root.clientWidth) return;
    shown = layout();
    const { down, across, turned, side, width } = shown;
    const empty = !down.length || !across.length;
    none.hidden = !empty;
    frame.hidden = empty;
    if (empty) return;
    const letters = LETTER * longest(turned ? view.rows : view.columns);
    const vertical = letters > width - 8;
    refill(heads, ...across.map((place) => label(turned ? "rows" : "columns", place, vertical)));
    refill(names, ...down.map((place) => label(turned ? "columns" : "rows", place, false)));
    sheet.style.setProperty("--side", `${side}px`);
    sheet.style.setProperty("--cell", `${width}px`);
    sheet.style.setProperty("--line", `${HEIGHT}px`);
    sheet.style.setProperty("--head", vertical ? `${Math.min(170, letters + 14)}px` : "26px");
    paint();
    unmark();
    legends();
    canvas.setAttribute("aria-label", said());
  }

  function paint() {
    const { down, across, width, at } = shown;
    const size = [across.length * width, down.length * HEIGHT];
    const ratio = Math.min(devicePixelRatio || 1, 2, Math.sqrt(MOST_PIXELS / (size[0] * size[1])));
    [canvas.width, canvas.height] = size.map((length) => Math.round(length * ratio));
    [canvas.style.width, canvas.style.height] = size.map((length) => `${length}px`);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = '13px system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", Arial, sans-serif';
    pen.textBaseline = "middle";
    for (let y = 0; y < down.length; y++) {
      for (let x = 0; x < across.length; x++) cellAt(pen, at(y, x), x * width, y * HEIGHT);
    }
  }

  /* A full cell stands out from chance, a small square may be chance, a stroke has no rows. */
  function cellAt(pen, cell, left, top) {
    const { width, printed } = shown;
    if (!cell) {
      pen.strokeStyle = "#c3cbd3";
      pen.beginPath();
      pen.moveTo(left + width / 2 - 4, top + HEIGHT / 2 + 4);
      pen.lineTo(left + width / 2 + 4, top + HEIGHT / 2 - 4);
      pen.stroke();
      return;
    }
    pen.fillStyle = associations.colour(cell.gamma, shown.reach);
    const small = HEIGHT * 0.42;
    if (cell.sure) pen.fillRect(left + 0.5, top + 0.5, width - 1, HEIGHT - 1);
    else pen.fillRect(printed ? left + 5 : left + (width - small) / 2, top + (HEIGHT - small) / 2, small, small);
    if (!printed) return;
    const dark = cell.sure && Math.abs(cell.gamma) > 0.62 * shown.reach;
    pen.fillStyle = dark ? "#ffffff" : INK;
    pen.textAlign = "right";
    pen.fillText(fixed(cell.gamma), left + width - 8, top + HEIGHT / 2 + 0.5);
  }

  function fixed(value) {
    const text = Math.abs(value).toFixed(shown.decimals);
    return value < 0 && Number(text) ? `\u2212${text}` : text;
  }

  function legends() {
    const far = number(shown.reach);
    const { below, zero, above } = view.colours;
    const ramp = element("span", { class: "ramp", style: `background:linear-gradient(to right, ${below}, ${zero}, ${above})` });
    const parts = [
      element("span", { class: "scale" }, `−${far} tied to the negation`, ramp, `${far} tied to the attribute`),
      element("span", {}, element("i", { class: "full" }), `stands out from chance (q at most ${associations.SURE})`),
      element("span", {}, element("i", { class: "small" }), "may be chance"),
    ];
    if (view.table.n.includes(null)) parts.push(element("span", {}, element("i", { class: "empty" }), "no rows"));
    const groups = view.set.axes.group;
    if (view.rowKind === "subject" && groups.length > 1 && groups.length <= view.colours.groups.length) {
      parts.push(
        ...groups.map((name, place) =>
          element("span", {}, element("i", { class: "swatch", style: `background:${associations.groupColour(place)}` }), name),
        ),
      );
    }
    legend.replaceChildren(...parts);
  }

  function said() {
    const top = [...view.cells].sort((one, two) => Math.abs(two.gamma) - Math.abs(one.gamma)).slice(0, 3);
    const strongest = top.map((cell) => `${associations.reading(cell, view)} (γ ${number(cell.gamma)})`).join("; ");
    return `Heat map of γ for ${view.rows.length} by ${view.columns.length} cells of ${view.result.model}. Strongest: ${strongest}. Arrow keys go from cell to cell; all numbers are in the table below.`;
  }

  function point(y, x, clientX, clientY) {
    marked = { y, x };
    const { width, at } = shown;
    Object.assign(mark.style, { left: `${x * width}px`, top: `${y * HEIGHT}px`, width: `${width}px`, height: `${HEIGHT}px` });
    mark.hidden = false;
    for (const [box, place] of [[names, y], [heads, x]]) {
      box.querySelector(".on")?.classList.remove("on");
      box.children[place].classList.add("on");
    }
    const cell = at(y, x);
    if (cell) associations.tip(cell, view, clientX, clientY);
    else associations.hide();
  }

  function unmark() {
    mark.hidden = true;
    for (const box of [names, heads]) box.querySelector(".on")?.classList.remove("on");
    associations.hide();
  }

  function placeOf(event) {
    const edge = canvas.getBoundingClientRect();
    const x = Math.floor((event.clientX - edge.left) / shown.width);
    const y = Math.floor((event.clientY - edge.top) / HEIGHT);
    return [Math.max(0, Math.min(y, shown.down.length - 1)), Math.max(0, Math.min(x, shown.across.length - 1))];
  }

  canvas.addEventListener("pointermove", (event) => point(...placeOf(event), event.clientX, event.clientY));
  canvas.addEventListener("pointerdown", (event) => point(...placeOf(event), event.clientX, event.clientY));
  canvas.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && unmark());
  canvas.addEventListener("blur", unmark);
  frame.addEventListener("scroll", unmark);
  window.addEventListener("scroll", unmark, { passive: true });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (event.key === "Escape") unmark();
    if (!step) return;
    event.preventDefault();
    const from = marked ?? { y: 0, x: -step[1] };
    const y = Math.max(0, Math.min(from.y + step[0], shown.down.length - 1));
    const x = Math.max(0, Math.min(from.x + step[1], shown.across.length - 1));
    const edge = canvas.getBoundingClientRect();
    point(y, x, edge.left + (x + 1) * shown.width, edge.top + (y + 1) * HEIGHT);
  });

  function finder(axis, what) {
    const box = element("input", { type: "search", placeholder: `Find ${what}`, "aria-label": `Find ${what}` });
    box.value = own.find[axis];
    box.addEventListener("input", () => {
      own.find[axis] = box.value;
      draw();
    });
    return box;
  }

  function sorter(axis, what) {
    const isRow = axis === "rows";
    const kinds = isRow ? view.set.axes.group : view.set.axes.attribute_class;
    const one = isRow ? view.rowKind === "subject" : view.columnKind === "attribute";
    const options = [{ value: "list", label: "list order" }, { value: "name", label: "name" }];
    if (one && kinds.length > 1) options.push({ value: "kind", label: isRow ? "group" : "class" });
    options.push({ value: "mean", label: "mean γ" }, { value: "strength", label: "mean |γ|" });
    const chosen = isRow ? view.columns[own.chosenColumn] : view.rows[own.chosenRow];
    if (chosen !== undefined) options.push({ value: "chosen", label: `γ with ${chosen}` });
    const change = (value) => {
      own[axis] = value;
      draw();
    };
    return select(`Sort ${what} by`, options, change, own[axis]);
  }

  function controls() {
    const parts = [];
    for (const [axis, list] of [["rows", view.rows], ["columns", view.columns]]) {
      const what = associations.NAMES[axis === "rows" ? view.rowKind : view.columnKind][1];
      if (list.length > 2) parts.push(sorter(axis, what));
      if (list.length > 3) parts.push(finder(axis, what));
    }
    if (view.set.results.length > 1) {
      const options = [{ value: "model", label: "of this model" }, { value: "set", label: "of all models" }];
      const change = (value) => {
        own.reach = value;
        draw();
      };
      parts.push(select("Colours up to the largest |γ|", options, change, own.reach));
    }
    refill(choices, ...parts);
  }

  associations.watch((next) => {
    const same = view && view.set === next.set && view.rowKind === next.rowKind && view.columnKind === next.columnKind;
    view = next;
    if (!same) {
      Object.assign(own, { rows: "list", columns: "list", chosenRow: null, chosenColumn: null, find: { rows: "", columns: "" } });
    }
    controls();
    draw();
  });
  associations.redrawn(root, draw);
});

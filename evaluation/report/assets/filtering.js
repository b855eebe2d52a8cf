"use strict";

/* Rows of a filtered set: galleries, figure 1 of the AFLite paper, and the removed rows nearest to a kept one. */
report.view("filtering", (root, data, { element, select, figure }) => {
  const SIDE = 340;
  const sides = { kept: "Kept, least predictable", removed: "Removed first, most predictable" };

  const two = (value) => value.toFixed(2).replace("-", "\u2212");
  const phase = (row) => (row.phase === null ? "kept" : `removed in phase ${row.phase}`);
  const judges = (row) => `${row.times} classifier${row.times === 1 ? "" : "s"}`;
  const about = (row) => `score ${two(row.score)} of ${judges(row)}, ${phase(row)}, ${row.place}`;

  function picture(row) {
    const [source] = row.inputs;
    if (source === null) return element("div", { class: "blank" }, "no picture");
    const alt = `Image with label ${row.label}, ${about(row)}`;
    return element("img", { src: source, alt, class: source.startsWith("data:image/png") ? "pixels" : null });
  }

  function words(row) {
    const entries = data.columns.flatMap((name, place) => [
      element("dt", {}, name),
      element("dd", {}, row.inputs[place] || "(empty)"),
    ]);
    return element("dl", {}, ...entries);
  }

  /* One row; `head` stands before its label. */
  function card(place, head = "") {
    const row = data.rows[place];
    const named = head ? [element("span", { class: "place" }, head), " ", row.label] : [row.label];
    const title = element("p", { class: "label" }, ...named);
    const shown = data.image ? picture(row) : words(row);
    const score = data.image ? `score ${two(row.score)}` : about(row);
    return element("li", { class: phase(row) === "kept" ? "kept" : "removed", title: about(row) }, title, shown,
      element("p", { class: "caption" }, score));
  }

  function cards(title, places, heads = []) {
    const list = element("ul", { class: data.image ? "tiles" : "cards" }, ...places.map((one, at) => card(one, heads[at])));
    const empty = places.length ? list : element("p", { class: "caption" }, "None.");
    return element("div", { class: "side" }, element("h4", {}, title), empty);
  }

  function means({ kept, random, removed }) {
    const text = (value) => (value === null ? "unknown" : two(value));
    return element("p", {}, `Mean cosine of two rows of this label, over all of them: kept ${text(kept)}, random `
      + `${text(random)}, removed ${text(removed)}. Higher is more alike.`);
  }

  function pair(group, { first, second, cosine }, target) {
    const place = (name) => {
      const [side, at] = name.split(" ");
      return group[side][Number(at) - 1];
    };
    target.replaceChildren(cards(`${first} and ${second}: cosine ${two(cosine)}`, [place(first), place(second)],
      [first, second]));
  }

  async function show(group, target) {
    const numbered = (side) => group[side].map((_, at) => (group.figure ? `${at + 1}` : ""));
    const galleries = Object.entries(sides).map(([side, title]) => cards(title, group[side], numbered(side)));
    if (!group.figure) {
      target.replaceChildren(element("div", { class: "pair" }, ...galleries));
      return;
    }
    const chart = element("div", { class: "chart" });
    const chosen = element("div", { class: "chosen", "aria-live": "polite" },
      element("p", { class: "caption" }, "Click a square to see its two rows. The numbers are those of the lists."));
    const middle = element("div", { class: "side middle" }, element("h4", {}, "How alike they are"), means(group.means),
      chart, chosen);
    const [kept, removed] = galleries;
    target.replaceChildren(element("div", { class: "triple" }, kept, middle, removed));
    const side = Math.min(SIDE, middle.clientWidth - 64);
    const { view } = await figure(chart, { ...group.figure, width: side, height: side }, group.alt);
    view.addEventListener("click", (_, item) => {
      if (item?.datum?.first) pair(group, item.datum, chosen);
    });
  }

  function excerpt(place) {
    const row = data.rows[place];
    const text = data.image ? row.place : row.inputs.join(" / ");
    return `${row.label}: ${text.length > 70 ? `${text.slice(0, 70)}…` : text}`;
  }

  function nearest({ row, removed, similarity }, target) {
    const cosines = similarity.map((value) => `cosine ${two(value)}`);
    const others = removed.filter((one) => data.rows[one].label !== data.rows[row].label).length;
    const title = `Its nearest removed rows: ${others} of ${removed.length} have another label`;
    target.replaceChildren(element("div", { class: "pair" }, cards("The kept row", [row]), cards(title, removed, cosines)));
  }

  function chooser(label, options, draw, first = 0) {
    const target = element("div", { class: "shown" });
    const choose = (at) => draw(options[Number(at)].of, target);
    const box = select(label, options.map(({ label: shown }, at) => ({ value: String(at), label: shown })), choose,
      String(first));
    return { parts: [element("div", { class: "choices" }, box), target], start: () => choose(first) };
  }

  function explained() {
    if (data.similar) {
      return "The cosine of the encoder's features of every two rows shown, as in figure 1 of Le Bras et al. 2020. Rows "
        + "of a label that are all alike are easy to predict together.";
    }
    return "This folder does not hold how alike its rows are: it was built before that was kept, or cut again from scores "
      + "alone. Build it with this version to see it here; features that are still in the work folder are used again.";
  }

  const groups = data.groups.map((of) => ({ label: of.name, of }));
  const rows = chooser("Label", groups, show, Math.max(0, data.groups.findIndex((group) => group.figure)));
  const parts = [element("h4", { class: "part" }, `Rows of ${data.title}`), element("p", {}, explained()), ...rows.parts];
  const kept = data.neighbors.map((of) => ({ label: excerpt(of.row), of }));
  const near = kept.length ? chooser("Kept row", kept, nearest) : null;
  if (near) parts.push(element("h4", { class: "part" }, "Nearest removed rows"), ...near.parts);
  root.classList.add("filtering");
  root.replaceChildren(...parts);
  near?.start();
  return rows.start();
});

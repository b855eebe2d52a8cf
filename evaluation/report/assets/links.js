"use strict";

/* Subjects on the left, attributes on the right, and the strongest associations between them. */
report.view("links", (root, data, tools) => {
  const { element, select, number } = tools;
  const STEP = 26;
  const THICK = 11;
  const SIGNS = [
    { value: "both", label: "links of both directions" },
    { value: "1", label: "links to attributes" },
    { value: "-1", label: "links to negations" },
  ];
  const own = { most: 20, chance: false, sign: "both" };
  let view = null;

  const choices = element("div", { class: "choices" });
  const legend = element("div", { class: "key" });
  const none = element("p", { class: "note", hidden: true });
  const sheet = element("div", { class: "links" });
  root.replaceChildren(choices, legend, none, sheet);

  function drawn(tag, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  }

  function strongest() {
    return view.cells
      .filter((cell) => cell.gamma && (own.chance || cell.sure) && (own.sign === "both" || own.sign * cell.gamma > 0))
      .sort((one, two) => Math.abs(two.gamma) - Math.abs(one.gamma))
      .slice(0, own.most);
  }

  /* Either side in the order of the mean place of what it is tied to, so that few links cross. */
  function sides(links) {
    let left = [...new Set(links.map((link) => link.row))];
    let right = [...new Set(links.map((link) => link.column))];
    const arranged = (list, mine, other, places) => {
      const mean = new Map(
        list.map((one) => {
          const some = links.filter((link) => link[mine] === one).map((link) => places.indexOf(link[other]));
          return [one, some.reduce((total, place) => total + place, 0) / some.length];
        }),
      );
      return [...list].sort((one, two) => mean.get(one) - mean.get(two));
    };
    for (let round = 0; round < 4; round++) {
      right = arranged(right, "column", "row", left);
      left = arranged(left, "row", "column", right);
    }
    return [left, right];
  }

  function shortened(text, most) {
    return [...text].length > most ? `${[...text].slice(0, most - 1).join("")}…` : text;
  }

  function draw() {
    const links = strongest();
    none.hidden = links.length > 0;
    none.textContent = own.chance ? "There are no such links." : `No such association of this model stands out from chance (q at most ${associations.SURE}).`;
    if (!links.length || !root.clientWidth) {
      sheet.replaceChildren();
      return;
    }
    const [left, right] = sides(links);
    const width = Math.min(root.clientWidth, 920);
    const letters = Math.floor((width * 0.34) / 7.6);
    const edge = [width * 0.34, width * 0.66];
    const height = Math.max(left.length, right.length) * STEP + 8;
    const y = (list, one) => 4 + ((list.indexOf(one) + 0.5) * (height - 8)) / list.length;
    const reach = Math.abs(links[0].gamma);
    const paths = [...links].reverse().map((link) => path(link, edge, y(left, link.row), y(right, link.column), reach));
    const names = [
      ...left.map((one) => name(view.rows[one], edge[0] - 14, y(left, one), "end", letters, view.groupOf(one))),
      ...right.map((one) => name(view.columns[one], edge[1] + 10, y(right, one), "start", letters, null)),
    ];
    const label = `The ${links.length} strongest links of ${view.result.model}: ${links.slice(0, 5).map(words).join("; ")}.`;
    sheet.replaceChildren(
      drawn("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, ...paths, ...names),
    );
  }

  const words = (link) => `${associations.reading(link, view)}, γ ${number(link.gamma)}`;

  function path(link, [from, to], y1, y2, reach) {
    const middle = (from + to) / 2;
    const made = drawn("path", {
      d: `M${from} ${y1}C${middle} ${y1} ${middle} ${y2} ${to} ${y2}`,
      fill: "none",
      stroke: link.gamma > 0 ? view.colours.above : view.colours.below,
      "stroke-width": Math.max(1.2, (THICK * Math.abs(link.gamma)) / reach).toFixed(2),
      "stroke-dasharray": link.gamma > 0 ? "none" : "7 4",
      tabindex: "0",
      role: "img",
      "aria-label": words(link),
    });
    const show = (x, y) => {
      sheet.classList.add("one");
      made.classList.add("on");
      associations.tip(link, view, x, y);
    };
    const hide = () => {
      sheet.classList.remove("one");
      made.classList.remove("on");
      associations.hide();
    };
    made.addEventListener("pointermove", (event) => show(event.clientX, event.clientY));
    made.addEventListener("pointerdown", (event) => show(event.clientX, event.clientY));
    made.addEventListener("pointerleave", hide);
    made.addEventListener("focus", () => {
      const box = made.getBoundingClientRect();
      show(box.left + box.width / 2, box.top + box.height / 2);
    });
    made.addEventListener("blur", hide);
    return made;
  }

  function name(word, x, y, anchor, letters, group) {
    const text = drawn("text", { x, y, "text-anchor": anchor, "dominant-baseline": "central" }, shortened(word, letters));
    const parts = [drawn("title", {}, word), text];
    if (group !== null) {
      parts.push(drawn("rect", { x: x + 5, y: y - 6, width: 6, height: 12, fill: associations.groupColour(group) }));
    }
    return drawn("g", {}, ...parts);
  }

  function legends() {
    const line = (colour, dashed) =>
      element("i", { class: "line", style: `border-top: 4px ${dashed ? "dashed" : "solid"} ${colour}` });
    legend.replaceChildren(
      element("span", {}, line(view.colours.above, false), "solid: tied to the attribute (γ above 0)"),
      element("span", {}, line(view.colours.below, true), "dashed: tied to its negation (γ below 0)"),
      element("span", {}, "the thicker, the larger |γ|"),
    );
  }

  function controls() {
    const change = (value) => {
      own.most = Number(value);
      draw();
    };
    const chance = element("input", { type: "checkbox", id: "links-chance" });
    chance.checked = own.chance;
    chance.addEventListener("change", () => {
      own.chance = chance.checked;
      draw();
    });
    choices.replaceChildren(
      select("Show", SIGNS, (value) => {
        own.sign = value;
        draw();
      }, own.sign),
      select("at most", ["10", "20", "40", "80"].map((value) => ({ value, label: `${value} links` })), change, own.most),
      element("label", { class: "choice check", for: "links-chance" }, chance, element("span", {}, `also links that may be chance (q above ${associations.SURE})`)),
    );
  }

  associations.watch((next) => {
    /* What ties one of two to an attribute ties the other to its negation, so one direction says all. */
    if (view?.rows !== next.rows) own.sign = next.rows.length === 2 ? "1" : "both";
    view = next;
    controls();
    legends();
    draw();
  });
  associations.redrawn(root, draw);
});

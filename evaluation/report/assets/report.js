"use strict";

/* Tabs, charts and tables of a report. Text of others goes into the page through textContent alone. */
const report = (() => {
  const views = new Map();
  let config = {};
  let serial = 0;

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value === true) made.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
    }
    made.append(...children.map((child) => (child instanceof Node ? child : String(child))));
    return made;
  }

  /* As many decimals as asked for, else four, or three digits of what is too small for them. */
  function number(value, decimals) {
    if (value === null || value === undefined) return "";
    if (decimals !== undefined) return value.toFixed(decimals).replace("-", "\u2212");
    if (value === 0) return "0";
    const size = Math.abs(value);
    const text = size >= 0.001 ? value.toFixed(size >= 100 ? 0 : 4) : String(Number(value.toPrecision(3)));
    return text.replace("-", "\u2212");
  }

  function interval(low, high) {
    return low === null || high === null ? "" : `${number(low)} to ${number(high)}`;
  }

  const count = (value) => (value === null ? "" : value.toLocaleString("en"));

  /* A labelled choice; options are strings or {value, label}. */
  function select(label, options, onchange, chosen) {
    const id = `choice-${serial++}`;
    const box = element("select", { id, onchange: () => onchange(box.value) });
    for (const option of options) {
      const { value, label: shown } = typeof option === "string" ? { value: option, label: option } : option;
      box.append(element("option", { value }, shown));
    }
    if (chosen !== undefined) box.value = chosen;
    return element("label", { class: "choice", for: id }, element("span", {}, label), box);
  }

  async function figure(root, spec, alt) {
    const { $schema, ...rest } = spec;
    if (rest.width === "container") rest.autosize ??= { type: "fit-x", contains: "padding" };
    root.setAttribute("role", "group");
    root.setAttribute("aria-label", alt);
    const made = await vegaEmbed(
      root,
      { description: alt, ...rest, config: merged(config, spec.config) },
      {
        mode: "vega-lite",
        renderer: "svg",
        actions: { export: true, source: false, compiled: false, editor: false },
        downloadFileName: "figure",
        tooltip: { theme: "custom" },
      },
    );
    root.classList.add("drawn");
    return made;
  }

  function merged(one, other) {
    const both = { ...one };
    for (const [name, value] of Object.entries(other ?? {})) {
      const inner = value && typeof value === "object" && !Array.isArray(value);
      both[name] = inner && both[name] ? merged(both[name], value) : value;
    }
    return both;
  }

  const draw = {
    figure: (root, block) => figure(root, block.spec, block.alt),
    table: (root, block) => reportTable(root, block, { element, number, interval, count }),
    view: (root, block) => views.get(root.dataset.view)(root, block.data, tools),
  };

  const table = (root, block) => draw.table(root, block);
  const tools = { element, number, interval, count, select, figure, table, merged };

  async function open(panel) {
    if (panel.dataset.drawn) return;
    panel.dataset.drawn = "started";
    const blocks = JSON.parse(panel.querySelector(':scope > script[type="application/json"]').textContent);
    const roots = [...panel.querySelectorAll("[data-block]")];
    await Promise.all(roots.map((root) => draw[blocks[root.dataset.block].kind](root, blocks[root.dataset.block])));
    panel.dataset.drawn = "done";
  }

  function show(tab, focus) {
    for (const other of tab.parentElement.children) {
      const chosen = other === tab;
      other.setAttribute("aria-selected", String(chosen));
      other.tabIndex = chosen ? 0 : -1;
      document.getElementById(other.getAttribute("aria-controls")).hidden = !chosen;
    }
    if (focus) tab.focus();
    tab.scrollIntoView({ block: "nearest", inline: "nearest" });
    open(document.getElementById(tab.getAttribute("aria-controls")));
  }

  function moved(key, place, last) {
    if (key === "ArrowRight") return place === last ? 0 : place + 1;
    if (key === "ArrowLeft") return place === 0 ? last : place - 1;
    if (key === "Home") return 0;
    return key === "End" ? last : place;
  }

  /* With a slash, so that a browser does not scroll to the panel. */
  const address = (tab) => `#/${tab.getAttribute("aria-controls")}`;

  function start(settings) {
    config = settings.config;
    const list = document.querySelector('[role="tablist"]');
    const tabs = [...list.children];
    const choose = (tab, focus) => {
      history.replaceState(null, "", address(tab));
      show(tab, focus);
    };
    list.addEventListener("click", (event) => {
      const tab = event.target.closest('[role="tab"]');
      if (tab) choose(tab, false);
    });
    list.addEventListener("keydown", (event) => {
      const place = tabs.indexOf(event.target);
      const next = moved(event.key, place, tabs.length - 1);
      if (place < 0 || next === place) return;
      event.preventDefault();
      choose(tabs[next], true);
    });
    const asked = () => tabs.find((tab) => address(tab) === location.hash) ?? tabs[0];
    window.addEventListener("hashchange", () => show(asked(), false));
    show(asked(), false);
  }

  return { start, view: (name, fill) => views.set(name, fill) };
})();

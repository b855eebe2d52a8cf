"use strict";

/* One row: its four inputs with the scores of both subjects, and C out of them, step by step. */
report.view("example", (root, data, tools) => {
  const { element, select, refill, count, table } = tools;
  const ANY = "";
  const state = { set: 0, result: 0, pick: "strongest", row: 0, find: { one: ANY, other: ANY, attribute: ANY } };
  /* Columns of the scores: subject 1 and 2 where subject 1 is first, where subject 2 is; the same for the negation. */
  const INPUTS = [
    { order: "12", negated: false, scores: [0, 1] },
    { order: "21", negated: false, scores: [2, 3] },
    { order: "12", negated: true, scores: [4, 5] },
    { order: "21", negated: true, scores: [6, 7] },
  ];

  let number = null;

  const choices = element("div", { class: "choices" });
  const finder = element("div", { class: "choices" });
  const said = element("p", { class: "caption", role: "status" });
  const sheet = element("div", { class: "example" });
  root.replaceChildren(choices, finder, said, sheet);

  const set = () => data.sets[state.set];
  const result = () => set().results[state.result];
  const word = (column, row) => {
    const { rows, words } = set();
    const code = rows[column]?.[row];
    return code === undefined || code === null ? null : words[code];
  };
  /* Scores are float32; in this form they give the numbers of evaluation.metrics. */
  const scoresOf = (one, row) => one.scores[row]?.map(Math.fround) ?? null;

  /* All numbers of a row have as many decimals as give its largest score four digits, and no fewer than four. */
  function digits(s) {
    const decimals = Math.max(4, 3 - Math.floor(Math.log10(Math.max(...s) || 1)));
    return (value) => {
      const text = Math.abs(value).toFixed(decimals);
      return value < 0 && Number(text) ? `\u2212${text}` : text;
    };
  }

  function biases(s) {
    return [0.5 * (s[0] + s[2] - (s[4] + s[6])), 0.5 * (s[1] + s[3] - (s[5] + s[7]))];
  }
  function comparative(s) {
    const [one, other] = biases(s);
    return 0.5 * (one - other);
  }
  const POSITIONAL = [[0, 2], [1, 3], [4, 6], [5, 7]];
  const ATTRIBUTE = [[0, 5], [1, 4], [2, 7], [3, 6]];
  const error = (s, pairs) => pairs.reduce((total, [one, other]) => total + Math.abs(s[one] - s[other]), 0) / pairs.length;

  function listed() {
    const { scores, picks } = result();
    if (state.pick !== "search") return picks[state.pick];
    const { one, other, attribute } = state.find;
    return scores
      .map((_, row) => row)
      .filter((row) => {
        const pair = [word("subject1", row), word("subject2", row)];
        const both = (first, second) => (first === ANY || pair.includes(first)) && (second === ANY || pair.includes(second));
        const apart = one === ANY || one !== other;
        return scores[row] && apart && both(one, other) && (attribute === ANY || word("attribute", row) === attribute);
      });
  }

  const nameOf = (row) =>
    `${word("subject1", row)} and ${word("subject2", row)}: ${word("attribute", row)} (${word("template", row)})`;

  function choose(part) {
    const before = { label: result().model, set: state.set };
    Object.assign(state, part);
    if (state.set !== before.set) {
      const same = set().results.findIndex((one) => one.model === before.label);
      state.result = same < 0 ? set().first : same;
      state.find = { one: ANY, other: ANY, attribute: ANY };
      state.row = null;
    }
    const rows = listed();
    const kept = "result" in part && state.row !== null && result().scores[state.row];
    if (!kept && !rows.includes(state.row)) state.row = rows[0] ?? null;
    controls(rows);
    draw();
  }

  function controls(rows) {
    const options = (names) => names.map((label, value) => ({ value, label }));
    const parts = [];
    if (data.sets.length > 1) {
      parts.push(select("Set", options(data.sets.map((one) => one.name)), (value) => choose({ set: Number(value) }), state.set));
    }
    parts.push(
      select("Model", options(set().results.map((one) => one.model)), (value) => choose({ result: Number(value) }), state.result),
      select(
        "Rows",
        [...Object.entries(data.picks).map(([value, label]) => ({ value, label })), { value: "search", label: "Search by subject and attribute" }],
        (value) => choose({ pick: value }),
        state.pick,
      ),
    );
    refill(choices, ...parts);
    const found = rows.includes(state.row) || state.row === null ? rows : [state.row, ...rows];
    const row = select("Row", found.map((value) => ({ value, label: nameOf(value) })), (value) => choose({ row: Number(value) }), state.row ?? undefined);
    const step = (label, by) => {
      const next = found[found.indexOf(state.row) + by];
      return element("button", { type: "button", class: "plain", disabled: next === undefined, onclick: () => choose({ row: next }) }, label);
    };
    refill(finder, ...(state.pick === "search" ? searches() : []), row, step("Previous", -1), step("Next", 1));
    const held = result().scores.filter(Boolean).length;
    const where = state.pick === "search" ? `${count(rows.length)} found among ${count(held)} rows in this page` : `${count(rows.length)} rows`;
    said.textContent = `${where}, of ${count(result().scored)} that ${result().model} was scored on (${result().settings}).`;
  }

  function searches() {
    const names = (columns) => {
      const held = result().scores.flatMap((scores, row) => (scores ? columns.map((column) => word(column, row)) : []));
      const list = [...new Set(held)].sort((one, two) => one.localeCompare(two, "en", { numeric: true }));
      return [{ value: ANY, label: "any" }, ...list.map((value) => ({ value, label: value }))];
    };
    const change = (name) => (value) => choose({ find: { ...state.find, [name]: value } });
    return [
      select("Subject", names(["subject1", "subject2"]), change("one"), state.find.one),
      select("with", names(["subject1", "subject2"]), change("other"), state.find.other),
      select("Attribute", names(["attribute"]), change("attribute"), state.find.attribute),
    ];
  }

  function draw() {
    const { row } = state;
    if (row === null) {
      sheet.replaceChildren(element("p", { class: "note" }, "No row in this page has these. Leave one of them at “any”."));
      return;
    }
    const s = scoresOf(result(), row);
    number = digits(s);
    const names = [word("subject1", row), word("subject2", row)];
    const kind = word("attribute_class", row);
    const attribute = word("attribute", row);
    const title = `${names[0]} and ${names[1]}, asked for: ${attribute}${kind ? ` (${kind})` : ""}`;
    sheet.replaceChildren(
      element("h3", {}, title),
      element("div", { class: "inputs" }, ...INPUTS.map((input) => card(input, row, s, names, attribute))),
      element("p", { class: "caption" }, `S is the probability that the model gives a subject; bars reach to the largest S of this row, ${number(Math.max(...s))}.`),
      element("h3", {}, "From the scores to C"),
      element("p", {}, `S₁₂ is S where ${names[0]} comes first, S₂₁ where ${names[1]} does; a asks for the attribute, ā for its negation.`),
      steps(s, names, attribute),
      element("h3", {}, "What cancels out"),
      cancelled(s, names),
      ...compared(row),
    );
  }

  function card(input, row, s, names, attribute) {
    const first = names[input.order === "12" ? 0 : 1];
    const asked = word(input.negated ? "asked_negated" : "asked", row);
    const most = Math.max(...s) || 1;
    return element(
      "article",
      { class: "input" },
      element("h4", {}, `${first} first, ${input.negated ? "negation ā" : "attribute a"}`),
      context(input, row, names),
      element("p", { class: "asked" }, asked ?? (input.negated ? `negation of: ${attribute}` : attribute)),
      ...input.scores.map((at, side) =>
        element(
          "div",
          { class: `score x${side + 1}` },
          element("span", { class: "who" }, names[side]),
          element("span", { class: "track" }, element("i", { style: `width:${(100 * s[at]) / most}%` })),
          element("span", { class: "value" }, number(s[at])),
        ),
      ),
    );
  }

  /* Spans count characters as Python does, not the halves that some take in a script. */
  function context(input, row, names) {
    const text = word(`context_${input.order}`, row);
    if (text === null) {
      const order = input.order === "12" ? names : [...names].reverse();
      return element("p", { class: "context" }, `${order[0]} … ${order[1]} …`);
    }
    const letters = [...text];
    const spans = [1, 2].map((side) => ({ side, span: set().rows[`span${side}_${input.order}`][row] }));
    spans.sort((one, two) => one.span[0] - two.span[0]);
    const parts = [];
    let done = 0;
    for (const { side, span: [from, to] } of spans) {
      parts.push(letters.slice(done, from).join(""), element("mark", { class: `x${side}` }, letters.slice(from, to).join("")));
      done = to;
    }
    return element("p", { class: "context" }, ...parts, letters.slice(done).join(""));
  }

  function steps(s, names, attribute) {
    const [one, other] = biases(s);
    const c = comparative(s);
    const most = Math.max(Math.abs(one), Math.abs(other), Math.abs(c)) || 1;
    const bias = (side, [a, b, d, e], value) =>
      step(
        `What asking for the attribute rather than its negation adds for ${names[side]}`,
        `B(${names[side]}) = ½ [S₁₂(a) + S₂₁(a)] − ½ [S₁₂(ā) + S₂₁(ā)]`,
        `= ½ [${number(s[a])} + ${number(s[b])}] − ½ [${number(s[d])} + ${number(s[e])}]`,
        value,
        most,
        `x${side + 1}`,
      );
    const preferred = c > 0 ? names[0] : names[1];
    const meaning =
      c === 0
        ? `Both subjects come out alike: for “${attribute}” the model has no preference here.`
        : `For “${attribute}” the model prefers ${preferred} by ${number(Math.abs(c))} in this row. γ is the mean of such numbers over partners and templates; one row alone says little.`;
    return element(
      "ol",
      { class: "steps" },
      bias(0, [0, 2, 4, 6], one),
      bias(1, [1, 3, 5, 7], other),
      step(
        `By how much ${names[0]} is preferred over ${names[1]}`,
        `C(${names[0]}, ${names[1]}) = ½ [B(${names[0]}) − B(${names[1]})]`,
        `= ½ [${number(one)} − ${other < 0 ? `(${number(other)})` : number(other)}]`,
        c,
        most,
        "c",
      ),
      element("li", { class: "meaning" }, meaning),
    );
  }

  function step(title, formula, numbers, value, most, kind) {
    const half = (50 * Math.abs(value)) / most;
    const bar = element("i", { class: kind, style: `width:${half}%;left:${value < 0 ? 50 - half : 50}%` });
    return element(
      "li",
      {},
      element("p", {}, title),
      element("p", { class: "formula" }, formula),
      element("p", { class: "formula" }, `${numbers} = `, element("output", { class: kind }, number(value))),
      element("div", { class: "diverging", "aria-hidden": "true" }, bar),
    );
  }

  function cancelled(s, names) {
    const asked = (at) => (at < 4 ? "a" : "ā");
    const order = (at) => (at % 4 < 2 ? "₁₂" : "₂₁");
    const term = (at) => `S${order(at)}(${names[at % 2]}, ${asked(at)})`;
    const part = (title, ideal, pairs, id) =>
      element(
        "div",
        {},
        element("p", {}, element("strong", {}, title), ` ${ideal}`),
        element(
          "ul",
          { class: "terms" },
          ...pairs.map(([one, other]) =>
            element("li", { class: "formula" }, `| ${term(one)} − ${term(other)} | = | ${number(s[one])} − ${number(s[other])} | = ${number(Math.abs(s[one] - s[other]))}`),
          ),
        ),
        element("p", { class: "formula" }, "mean = ", element("output", { class: id }, number(error(s, pairs)))),
      );
    return element(
      "div",
      { class: "errors" },
      part("Positional error δ:", "how much a score changes when the subjects change places. Lower is better, 0 is ideal.", POSITIONAL, "delta"),
      part("Attribute error ε:", "how far the negated question fails to swap the subjects. Lower is better, 0 is ideal.", ATTRIBUTE, "epsilon"),
    );
  }

  function compared(row) {
    const some = set().results.filter((one) => one.scores[row]);
    if (some.length < 2) return [];
    const all = some.map((one) => scoresOf(one, row));
    const column = (name, of, help) => ({ name, kind: "number", values: all.map(of), help });
    const place = element("div", { class: "table" });
    table(place, {
      title: "The same row in every model that has it",
      sort: null,
      descending: false,
      columns: [
        { name: "model", kind: "text", values: some.map((one) => one.model) },
        column(`B(${word("subject1", row)})`, (s) => biases(s)[0]),
        column(`B(${word("subject2", row)})`, (s) => biases(s)[1]),
        column("C", comparative, "0 is ideal"),
        column("δ", (s) => error(s, POSITIONAL), "lower is better"),
        column("ε", (s) => error(s, ATTRIBUTE), "lower is better"),
      ],
    });
    return [place];
  }

  state.result = set().first;
  state.row = listed()[0];
  choose({});
});

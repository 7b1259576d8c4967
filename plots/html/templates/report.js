"use strict";
(() => {
  const make = (tag, values = {}, ...children) => {
    const drawn = ["svg", "g", "line", "circle", "text", "rect"].includes(tag);
    const node = drawn ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [key, value] of Object.entries(values)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };

  // Tables: a choice for each factor; rows that do not fit it are hidden.
  for (const table of document.querySelectorAll("table[data-filter]")) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length < 13) continue;
    const name = table.dataset.filter;
    const said = make("p", { class: "count", role: "status" });
    const bar = make("div", { class: "filters", role: "group", "aria-label": `Rows of ${name}` });
    const chosen = new Map();
    const apply = () => {
      let shown = 0;
      for (const row of rows) {
        row.hidden = [...chosen].some(([column, value]) => row.cells[column].textContent !== value);
        shown += !row.hidden;
      }
      table.dispatchEvent(new Event("filtered"));
      said.textContent = chosen.size ? `${shown} of ${rows.length} rows` : `${rows.length} rows`;
    };
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const levels = [...new Set(rows.map((row) => row.cells[column].textContent))];
      if (!("factor" in head.dataset) || levels.length < 2 || levels.length > 40) return;
      const select = make("select", {}, make("option", { value: "" }, "all"));
      select.append(...levels.map((level) => make("option", { value: level }, level)));
      select.addEventListener("change", () => {
        if (select.value) chosen.set(column, select.value);
        else chosen.delete(column);
        apply();
      });
      bar.append(make("label", {}, `${head.textContent} `, select));
    });
    if (!bar.childElementCount) continue;
    bar.append(said);
    table.parentElement.before(bar);
    apply();
  }

  // Samples: a row of the container table, or a mark of its figure, opens what was measured.
  const store = document.getElementById("samples");
  const view = document.getElementById("view");
  if (!store || !view || !view.showModal) return;
  const { kept, series, cells } = JSON.parse(store.textContent);
  const part = (name) => view.querySelector(`[data-part="${name}"]`);
  const time = (us) => {
    const [unit, size] = [["s", 1e6], ["ms", 1e3], ["µs", 1], ["ns", 1e-3]].find(([, scale]) => us >= scale * 0.9995) ?? ["ns", 1e-3];
    const value = us / size;
    return `${value >= 99.95 ? value.toFixed(0) : value.toPrecision(3)} ${unit}`;
  };
  let current = null;

  const strips = (cell) => {
    const every = cell.pairs.flatMap(([, host, arm]) => [...series[host][2], ...series[arm][2]]);
    const low = Math.min(...every) / 1.03, high = Math.max(...every) * 1.03;
    const width = Math.max(300, Math.min(800, part("drawing").clientWidth || 700));
    const left = 72, right = width - 30, pitch = 13, gap = 9, top = 8;
    const x = (us) => left + ((right - left) * Math.log(us / low)) / Math.log(high / low);
    const bottom = top + cell.pairs.length * (2 * pitch + gap);
    const drawing = make("svg", { viewBox: `0 0 ${width} ${bottom + 30}`, role: "img",
      "aria-label": `Samples of ${cell.pairs.length} blocks, host above container; the table below holds their medians` });
    const decades = Array.from({ length: Math.ceil(Math.log10(high)) - Math.floor(Math.log10(low)) }, (_, place) => 10 ** (Math.floor(Math.log10(low)) + place));
    const tenths = Array.from({ length: 90 }, (_, place) => 1 + place / 10);
    const choices = [[1], [1, 2, 5], [1, 1.5, 2, 3, 5, 7], tenths, tenths.flatMap((step) => [0, 2, 4, 6, 8].map((more) => step + more / 100))]
      .map((steps) => decades.flatMap((decade) => steps.map((step) => step * decade)).filter((us) => us > low && us < high));
    const ticks = choices.find((choice) => choice.length > 2) ?? choices.at(-1);
    let free = -Infinity, last = "";
    for (const us of ticks) {
      drawing.append(make("line", { x1: x(us), x2: x(us), y1: top, y2: bottom, class: "rule" }));
      const told = time(us);
      if (x(us) - free < 62 || told === last) continue;
      [free, last] = [x(us), told];
      drawing.append(make("text", { x: x(us), y: bottom + 16, "text-anchor": "middle" }, told));
    }
    cell.pairs.forEach(([block, ...sides], index) => {
      const y = top + index * (2 * pitch + gap);
      drawing.append(make("text", { x: 4, y: y + pitch + 4 }, `block ${block}`));
      const medians = sides.map((side, place) => {
        const [, median, shown] = series[side];
        const line = y + pitch * (place + 0.5);
        const strip = make("g", { class: place ? "arm" : "host" });
        for (const us of shown) strip.append(make("circle", { cx: x(us), cy: line, r: 2.2 }));
        strip.append(make("line", { x1: x(median), x2: x(median), y1: line - 5.5, y2: line + 5.5, class: "median" }));
        drawing.append(strip);
        return x(median);
      });
      drawing.append(make("line", { x1: medians[0], x2: medians[1], y1: y + pitch * 0.5, y2: y + pitch * 1.5, class: "pair" }));
    });
    return drawing;
  };

  const show = (number) => {
    const cell = cells[number];
    current = number;
    const most = Math.max(0, ...cell.pairs.flatMap(([, host, arm]) => [series[host][0], series[arm][0]]));
    part("title").textContent = cell.what;
    part("said").textContent = `${cell.arm} over host: ${cell.ratio}, ${cell.verdict}. ${cell.pairs.length} paired ${cell.pairs.length === 1 ? "block" : "blocks"}` +
      (most > kept ? `; of up to ${most} samples of a launch ${kept} are drawn: evenly spaced in rank, the least and the greatest among them.` : "; every sample is drawn.");
    part("drawing").replaceChildren(...(cell.pairs.length ? [strips(cell)] : []));
    part("rows").replaceChildren(...cell.pairs.map(([block, host, arm]) =>
      make("tr", {}, make("th", { scope: "row" }, String(block)),
        ...[time(series[host][1]), time(series[arm][1]), (series[arm][1] / series[host][1]).toFixed(3), String(series[host][0]), String(series[arm][0])]
          .map((text) => make("td", { class: "number" }, text)))));
  };
  const open = (number) => {
    if (!cells[number]) return;
    if (!view.open) view.showModal();
    show(number);
    view.scrollTop = 0;
  };

  const order = [];
  for (const row of document.querySelectorAll("tr[data-cell]")) {
    const place = row.querySelector("[data-opens]");
    const number = row.dataset.cell;
    if (!place || !cells[number]) continue;
    order.push(row);
    const button = make("button", { type: "button", class: "open", "aria-haspopup": "dialog",
      "aria-label": `${place.textContent}: samples of ${cells[number].arm}, ${cells[number].what}` }, place.textContent);
    button.addEventListener("click", () => open(number));
    place.replaceChildren(button);
  }

  // One stop of the tab key for the whole table; arrow keys lead from row to row within it.
  const table = order.length ? order[0].closest("table") : null;
  const stops = () => order.filter((row) => !row.hidden).map((row) => row.querySelector(".open"));
  const stop = (chosen) => {
    for (const row of order) row.querySelector(".open").tabIndex = -1;
    if (chosen) chosen.tabIndex = 0;
  };
  stop(stops()[0]);
  table?.addEventListener("filtered", () => stop(stops()[0]));
  table?.addEventListener("focusin", (event) => {
    if (event.target.matches(".open")) stop(event.target);
  });
  table?.addEventListener("keydown", (event) => {
    const seen = stops(), place = seen.indexOf(event.target);
    const next = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: seen.length - 1 }[event.key];
    if (place < 0 || next === undefined) return;
    event.preventDefault();
    seen[next]?.focus();
  });
  const step = (by) => {
    const seen = order.filter((row) => !row.hidden || row.dataset.cell === current).map((row) => row.dataset.cell);
    const place = seen.indexOf(current) + by;
    if (seen[place] !== undefined) show(seen[place]);
  };
  part("close").addEventListener("click", () => view.close());
  part("before").addEventListener("click", () => step(-1));
  part("after").addEventListener("click", () => step(1));
  view.addEventListener("keydown", (event) => {
    if (event.target.closest("[tabindex]")) return;
    if (event.key === "ArrowLeft") step(-1);
    if (event.key === "ArrowRight") step(1);
  });
  view.addEventListener("click", (event) => {
    if (event.target === view) view.close();
  });

  for (const drawing of document.querySelectorAll("svg.drawing")) {
    const marks = [...drawing.querySelectorAll("[data-cell]")].filter((mark) => cells[mark.dataset.cell]);
    if (!marks.length) continue;
    drawing.classList.add("asks");
    drawing.addEventListener("click", (event) => {
      let best = null, least = 14;
      for (const mark of marks) {
        const box = mark.getBoundingClientRect();
        const away = Math.hypot(event.clientX - (box.left + box.right) / 2, event.clientY - (box.top + box.bottom) / 2);
        if (away < least) [best, least] = [mark, away];
      }
      if (best) open(best.dataset.cell);
    });
  }
})();

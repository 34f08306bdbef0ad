"use strict";
(() => {
  const byText = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" }).compare;
  const byNumber = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  const cellKey = (cell) => {
    const key = cell.dataset.k;
    return key === undefined ? cell.textContent.trim() : key === "" ? -Infinity : Number(key);
  };

  const sort = (table, column, keyOf) => {
    const heads = [...table.tHead.rows[0].cells];
    const direction = heads[column].getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const head of heads) if (head.hasAttribute("aria-sort")) head.setAttribute("aria-sort", "none");
    heads[column].setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
    const body = table.tBodies[0];
    const keyed = [...body.rows].map((row) => [keyOf(row.cells[column]), row]);
    const compare = typeof keyed[0]?.[0] === "string" ? byText : byNumber;
    keyed.sort((a, b) => direction * compare(a[0], b[0]));
    body.append(...keyed.map((pair) => pair[1]));
  };

  const table = document.getElementById("class");
  const FIRST_ITEM = 3;
  const order = ["not_graded", "not_run", "missing", "crashed", "out_of_memory", "timed_out", "raised", "failed", "passed"];
  const verdictOf = (cell) => cell.classList[1] || "";
  const itemKey = (cell) => {
    const known = order.indexOf(verdictOf(cell));
    return known === order.length - 1 ? Infinity : known < 1 ? known - 2 : Number(cell.dataset.p || 0) * 100 + known;
  };

  for (const sorted of document.querySelectorAll("table.sorts")) {
    [...sorted.tHead.rows[0].cells].forEach((head, column) => {
      const keyOf = sorted === table && column >= FIRST_ITEM ? itemKey : cellKey;
      head.querySelector("button")?.addEventListener("click", () => sort(sorted, column, keyOf));
    });
  }
  if (!table) return;

  const heads = [...table.tHead.rows[0].cells];
  const box = table.parentElement;
  const [name, item, verdict] = ["name", "item", "verdict"].map((id) => document.getElementById(id));
  const shown = document.getElementById("shown");
  const fold = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const rows = [...table.tBodies[0].rows].map((row) => ({
    row, cells: [...row.cells], name: fold(row.cells[0].textContent),
  }));

  const filter = () => {
    const wanted = fold(name.value.trim());
    const column = item.value === "" ? -1 : FIRST_ITEM + Number(item.value);
    const matches = (cell) => (verdict.value === "open" ? verdictOf(cell) !== "passed" : verdictOf(cell) === verdict.value);
    let count = 0;
    for (const entry of rows) {
      const judged = column < 0 ? entry.cells.slice(FIRST_ITEM) : [entry.cells[column]];
      const keep = entry.name.includes(wanted) && (verdict.value === "" || judged.some(matches));
      entry.row.hidden = !keep;
      count += keep ? 1 : 0;
    }
    heads.forEach((head, place) => head.classList.toggle("picked", place === column));
    shown.textContent = `${count.toLocaleString("en")} of ${rows.length.toLocaleString("en")} students shown.`;
  };

  // An item alone filters nothing, so choosing one asks who has not passed it, and brings its column into sight.
  const choose = () => {
    if (item.value !== "") {
      if (verdict.value === "") verdict.value = "open";
      const head = heads[FIRST_ITEM + Number(item.value)];
      box.scrollLeft = head.offsetLeft - (box.clientWidth + heads[0].offsetWidth - head.offsetWidth) / 2;
    }
    filter();
  };

  for (const control of [name, verdict]) control.addEventListener("input", filter);
  item.addEventListener("input", choose);
  document.getElementById("reset").addEventListener("click", () => {
    name.value = item.value = verdict.value = "";
    filter();
    name.focus();
  });
  for (const link of document.querySelectorAll("a[data-item]")) {
    link.addEventListener("click", () => {
      name.value = "";
      item.value = link.dataset.item;
      verdict.value = "open";
      choose();
    });
  }
  table.tBodies[0].addEventListener("pointerover", (event) => {
    const cell = event.target.closest("td.v");
    if (cell && !cell.title) cell.title = `${heads[cell.cellIndex].textContent.trim()}: ${cell.textContent.trim()}`;
  });
  document.getElementById("controls").hidden = document.getElementById("sorting").hidden = false;
  filter();
})();

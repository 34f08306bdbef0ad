"use strict";
(() => {
  const table = document.getElementById("class");
  if (!table) return;
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const controls = document.getElementById("controls");
  const [name, item, verdict] = ["name", "item", "verdict"].map((id) => document.getElementById(id));
  const shown = document.getElementById("shown");
  const fold = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const rows = [...body.rows].map((row) => ({ row, cells: [...row.cells], name: fold(row.cells[0].textContent) }));
  const collator = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  const FIRST_ITEM = 3;
  const order = ["not_graded", "not_run", "missing", "crashed", "out_of_memory", "timed_out", "raised", "failed", "passed"];

  const verdictOf = (cell) => cell.classList[1] || "";
  const itemKey = (cell) => {
    const known = order.indexOf(verdictOf(cell));
    return known === order.length - 1 ? Infinity : known < 1 ? known - 2 : Number(cell.dataset.p || 0) * 100 + known;
  };
  const key = (column) => {
    if (column >= FIRST_ITEM) return itemKey;
    if (column === 1) return (cell) => (cell.dataset.k === "" ? -1 : Number(cell.dataset.k));
    return (cell) => cell.textContent;
  };

  const sort = (column) => {
    const head = heads[column];
    const direction = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const other of heads) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
    const keyOf = key(column);
    const keyed = rows.map((entry) => [keyOf(entry.cells[column]), entry]);
    const compare = typeof keyed[0]?.[0] === "string" ? collator.compare : (a, b) => (a < b ? -1 : a > b ? 1 : 0);
    keyed.sort((a, b) => direction * compare(a[0], b[0]));
    body.append(...keyed.map((pair) => pair[1].row));
  };

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
    shown.textContent = `${count.toLocaleString("en")} of ${rows.length.toLocaleString("en")} students shown.`;
  };

  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => sort(column)));
  for (const control of [name, item, verdict]) control.addEventListener("input", filter);
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
      filter();
    });
  }
  body.addEventListener("pointerover", (event) => {
    const cell = event.target.closest("td.v");
    if (cell && !cell.title) cell.title = `${heads[cell.cellIndex].textContent.trim()}: ${cell.textContent.trim()}`;
  });
  controls.hidden = document.getElementById("sorting").hidden = false;
  filter();
})();

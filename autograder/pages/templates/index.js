"use strict";
(() => {
  const byText = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" }).compare;
  const byNumber = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  const cellKey = (cell) => {
    const key = cell.dataset.k;
    return key === undefined ? cell.textContent.trim() : key === "" ? -Infinity : Number(key);
  };
  const number = (text) => (Number.isNaN(parseFloat(text)) ? -Infinity : parseFloat(text));
  const pointsKey = (cell) => number(cell.textContent);

  const sort = (table, column, keyOf, direction) => {
    const heads = [...table.tHead.rows[0].cells];
    for (const head of heads) if (head.hasAttribute("aria-sort")) head.setAttribute("aria-sort", "none");
    heads[column].setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
    const body = table.tBodies[0];
    const keyed = [...body.rows].map((row) => [keyOf(row.cells[column]), row]);
    const compare = typeof keyed[0]?.[0] === "string" ? byText : byNumber;
    keyed.sort((a, b) => direction * compare(a[0], b[0]));
    body.append(...keyed.map((pair) => pair[1]));
  };

  const table = document.getElementById("class");
  const order = ["not_graded", "not_run", "missing", "crashed", "out_of_memory", "timed_out", "raised", "failed", "passed"];
  const verdictOf = (cell) => cell.className;
  const itemKey = (cell) => {
    const known = order.indexOf(verdictOf(cell));
    return known === order.length - 1 ? Infinity : known < 1 ? known - 2 : Number(cell.dataset.p || 0) * 100 + known;
  };
  const keyIn = { points: pointsKey, "function-head": pointsKey, "item-head": itemKey };

  for (const sorted of document.querySelectorAll("table.sorts")) {
    [...sorted.tHead.rows[0].cells].forEach((head, column) => {
      const keyOf = (sorted === table && keyIn[head.className.split(" ")[0]]) || cellKey;
      head.sortBy = (direction) => {
        sort(sorted, column, keyOf, direction);
        if (sorted === table) filter();
      };
      head.querySelector("button")?.addEventListener("click", () => {
        head.sortBy(head.getAttribute("aria-sort") === "ascending" ? -1 : 1);
        if (sorted === table) keep();
      });
    });
  }
  if (!table) return;

  const heads = [...table.tHead.rows[0].cells];
  const words = heads.map((head) => head.textContent.trim());
  const items = heads.flatMap((head, column) => (head.classList.contains("item-head") ? [column] : []));
  const score = heads.findIndex((head) => head.classList.contains("points"));
  const box = table.parentElement;
  const names = ["name", "item", "verdict", "mistake", "group", "least", "most"];
  const controls = names.map((id) => document.getElementById(id));
  const [name, item, verdict, mistake, group, least, most] = controls;
  const shown = document.getElementById("shown");
  const fold = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

  const linkCell = (cell, page, column) => {
    const link = document.createElement("a");
    link.href = `${page}#item-${encodeURIComponent(words[column])}`;
    link.append(...cell.childNodes);
    cell.append(link);
  };
  const lost = document.querySelectorAll(".changes-list tbody tr:has(.flag) th");
  const fell = new Set([...lost].map((head) => head.textContent.trim()));
  const rows = [...table.tBodies[0].rows].map((row) => {
    const cells = [...row.cells];
    const page = cells[0].firstElementChild.getAttribute("href");
    for (const column of items) {
      if (!["passed", "absent"].includes(verdictOf(cells[column]))) linkCell(cells[column], page, column);
    }
    const made = (row.dataset.m || "").split(" ");
    const groups = (row.dataset.g || "").split(" ").concat(fell.has(cells[0].textContent.trim()) ? "fell" : []);
    return { row, cells, made, groups, name: fold(cells[0].textContent), score: number(cells[score].textContent) };
  });

  // Of a large class no more rows are laid out than somebody looks at: the others follow as one scrolls, or all at once.
  const STEP = 300;
  const more = document.getElementById("more");
  let room = STEP;
  const lay = () => {
    let place = 0;
    for (const row of table.tBodies[0].rows) if (!row.hidden) row.classList.toggle("later", place++ >= room);
    more.hidden = place <= room;
  };
  const layMore = (count) => {
    room += count;
    lay();
  };
  more.addEventListener("click", () => layMore(rows.length));
  box.addEventListener("scroll", () => {
    if (!more.hidden && box.scrollTop + box.clientHeight > box.scrollHeight - 600) layMore(STEP);
  });

  function filter() {
    const wanted = fold(name.value.trim());
    const column = item.value === "" ? -1 : items[Number(item.value)];
    const matches = (cell) => (verdict.value === "open" ? verdictOf(cell) !== "passed" : verdictOf(cell) === verdict.value);
    const [low, high] = [least, most].map((bound) => parseFloat(bound.value));
    let count = 0;
    for (const entry of rows) {
      const judged = column < 0 ? items.map((place) => entry.cells[place]) : [entry.cells[column]];
      const keep = entry.name.includes(wanted)
        && (verdict.value === "" || judged.some(matches))
        && (mistake.value === "" || entry.made.includes(mistake.value))
        && (group.value === "" || entry.groups.includes(group.value))
        && !(entry.score < low) && !(entry.score > high);
      entry.row.hidden = !keep;
      count += keep ? 1 : 0;
    }
    heads.forEach((head, place) => head.classList.toggle("picked", place === column));
    room = STEP;
    lay();
    shown.textContent = `${count.toLocaleString("en")} of ${rows.length.toLocaleString("en")} students shown.`;
  }

  // The address holds what is chosen, so that it can be kept and sent: #item=deltas-max&verdict=open&sort=-points
  const written = (control) => {
    const picked = control.selectedOptions?.[0];
    return picked && (control === item || control === mistake) && control.value !== "" ? picked.text : control.value;
  };
  function keep() {
    const state = new URLSearchParams();
    controls.forEach((control, place) => control.value !== "" && state.set(names[place], written(control)));
    const column = heads.findIndex((head) => ["ascending", "descending"].includes(head.getAttribute("aria-sort")));
    const down = heads[column].getAttribute("aria-sort") === "descending";
    if (column > 0 || down) state.set("sort", (down ? "-" : "") + words[column]);
    const text = state.toString();
    history.replaceState(null, "", location.href.split("#")[0] + (text && `#${text}`));
  }
  const restore = () => {
    const state = new URLSearchParams(location.hash.slice(1));
    if (![...state].some(([key]) => names.includes(key) || key === "sort")) return;
    controls.forEach((control, place) => {
      const value = state.get(names[place]) ?? "";
      if (control.type === "number" && Number.isNaN(Number(value))) return;
      const option = [...(control.options || [])].find((one) => one.value === value || one.text === value);
      control.value = control.options ? (option ? option.value : "") : value;
    });
    const sorted = state.get("sort") || words[0];
    const known = words.indexOf(sorted);
    if (known >= 0) heads[known].sortBy(1);
    else if (words.includes(sorted.slice(1))) heads[words.indexOf(sorted.slice(1))].sortBy(-1);
    choose();
  };
  const changed = () => {
    filter();
    keep();
  };

  // An item alone filters nothing, so choosing one asks who has not passed it, and brings its column into sight.
  function choose() {
    if (item.value !== "") {
      if (verdict.value === "") verdict.value = "open";
      const head = heads[items[Number(item.value)]];
      box.scrollLeft = head.offsetLeft - (box.clientWidth + heads[0].offsetWidth - head.offsetWidth) / 2;
    }
    filter();
  }
  const only = (control, value) => {
    for (const one of controls) one.value = "";
    control.value = value;
    choose();
    keep();
  };

  for (const control of controls) if (control !== item) control.addEventListener("input", changed);
  item.addEventListener("input", () => {
    choose();
    keep();
  });
  document.getElementById("reset").addEventListener("click", () => {
    only(name, "");
    name.focus();
  });
  for (const link of document.querySelectorAll("a[data-item], a[data-mistake], a[data-group]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const control = [item, mistake, group].find((one) => one.id in link.dataset);
      only(control, link.dataset[control.id]);
      document.getElementById("students").scrollIntoView();
      box.focus({ preventScroll: true });
    });
  }
  table.tBodies[0].addEventListener("pointerover", (event) => {
    const cell = event.target.closest("td");
    if (cell && items.includes(cell.cellIndex) && !cell.title) {
      cell.title = `${words[cell.cellIndex]}: ${cell.textContent.trim()}`;
    }
  });
  document.getElementById("controls").hidden = document.getElementById("sorting").hidden = false;
  filter();
  restore();
  addEventListener("hashchange", restore);
})();

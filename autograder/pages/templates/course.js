"use strict";
(() => {
  const table = document.getElementById("course-students");
  const name = document.getElementById("search");
  const lacks = document.getElementById("only-missing");
  const found = document.getElementById("found");
  const fold = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const rows = [...table.tBodies[0].rows].map((row) => ({ row, name: fold(row.cells[0].textContent) }));

  const search = () => {
    const wanted = fold(name.value.trim());
    let count = 0;
    for (const entry of rows) {
      const keep = entry.name.includes(wanted) && (!lacks.checked || "lacks" in entry.row.dataset);
      entry.row.hidden = !keep;
      count += keep ? 1 : 0;
    }
    found.textContent = `${count.toLocaleString("en")} of ${rows.length.toLocaleString("en")} students shown.`;
  };
  for (const control of [name, lacks]) control.addEventListener("input", search);
  document.getElementById("search-box").hidden = false;
  search();
})();

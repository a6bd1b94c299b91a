// Every page: the figure beside a slider follows it, and tables are sorted by the heads of columns.
"use strict";

document.addEventListener("input", (event) => {
  const output = document.querySelector(`output[for="${event.target.id}"]`);
  if (output) output.value = event.target.value + (output.dataset.unit ?? "");
});

(() => {
  const chosen = {}; // by the table's id: column, and whether it falls

  function value(row, column) {
    const text = row.children[column].dataset.value ?? row.children[column].textContent;
    return text !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
  }

  function order(table) {
    const { column, falls } = chosen[table.id];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, at) => {
      if (at === column) head.setAttribute("aria-sort", falls ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const body = table.tBodies[0];
    const sign = falls ? -1 : 1;
    const rows = [...body.rows].sort((one, other) => {
      const [a, b] = [value(one, column), value(other, column)];
      return sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
    });
    body.append(...rows);
  }

  document.addEventListener("click", (event) => {
    const head = event.target.closest?.("table.sortable th:has(button.sort)");
    if (!head) return;
    const table = head.closest("table");
    const column = head.cellIndex;
    const before = chosen[table.id];
    // Figures begin with the largest, names with the first of the alphabet.
    const falls = before?.column === column ? !before.falls : head.classList.contains("figure");
    chosen[table.id] = { column, falls };
    order(table);
  });

  const opened = {}; // what was opened or closed, by its id
  document.addEventListener("toggle", ({ target }) => { if (target.id && target.isConnected) opened[target.id] = target.open; }, true);

  // What was put in its place comes in the server's order, and folded.
  document.addEventListener("htmx:after:swap", () => {
    for (const one of document.querySelectorAll("details[id]")) one.open = opened[one.id] ?? one.open;
    for (const table of document.querySelectorAll("table.sortable")) if (chosen[table.id]) order(table);
  });
})();

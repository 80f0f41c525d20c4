"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  if (body.rows.length < 2) continue;
  [...table.tHead.rows[0].cells].forEach((th, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = th.textContent;
    th.replaceChildren(button);
    const numbers = th.classList.contains("n");
    const key = (row) => {
      const cell = row.cells[column];
      if (!numbers) return cell.textContent.toLowerCase();
      const v = parseFloat("v" in cell.dataset ? cell.dataset.v : cell.textContent);
      return Number.isNaN(v) ? -Infinity : v;
    };
    button.addEventListener("click", () => {
      const up = th.getAttribute("aria-sort") === "descending" || (!numbers && th.getAttribute("aria-sort") !== "ascending");
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      th.setAttribute("aria-sort", up ? "ascending" : "descending");
      const sign = up ? 1 : -1;
      const rows = [...body.rows].map((row) => ({ row, k: key(row) }));
      rows.sort((a, b) => (a.k < b.k ? -sign : a.k > b.k ? sign : 0));
      body.append(...rows.map((r) => r.row));
    });
  });
}
const hint = document.getElementById("hint");
if (hint) hint.textContent = "The heads of the columns sort.";
for (const pair of document.querySelectorAll(".pair")) {
  const tools = document.createElement("div");
  tools.className = "tools";
  const button = document.createElement("button");
  button.type = "button";
  const label = document.createElement("label");
  const range = document.createElement("input");
  range.type = "range";
  range.min = 0;
  range.max = 100;
  range.value = 50;
  range.setAttribute("aria-label", "where the picture after begins");
  const before = document.createElement("span");
  before.textContent = "before";
  const after = document.createElement("span");
  after.textContent = "after";
  label.append(before, range, after);
  const show = () => {
    const over = pair.classList.contains("over");
    label.hidden = !over;
    button.textContent = over ? "Side by side" : "One over the other";
  };
  button.addEventListener("click", () => {
    pair.classList.toggle("over");
    show();
  });
  range.addEventListener("input", () => pair.style.setProperty("--cut", range.value + "%"));
  tools.append(button, label);
  pair.after(tools);
  show();
}

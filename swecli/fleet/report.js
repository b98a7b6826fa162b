"use strict";
const table = document.getElementById("tasks");
const heads = [...table.tHead.rows[0].cells];
const bodies = [...table.tBodies];
const valueOf = (body, at) => body.rows[0].cells[at].dataset.v;
const numbers = new Set([2, 3, 4, 5, 6]);
heads.forEach((head, at) => head.firstElementChild.addEventListener("click", () => {
  const down = head.getAttribute("aria-sort") === "ascending";
  heads.forEach((each) => each.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const order = (one, other) => numbers.has(at)
    ? Number(valueOf(one, at)) - Number(valueOf(other, at))
    : valueOf(one, at).localeCompare(valueOf(other, at));
  bodies.sort((one, other) => (down ? -1 : 1) * order(one, other));
  table.append(...bodies);
}));
const count = document.getElementById("count");
document.getElementById("filter").addEventListener("input", (event) => {
  const wanted = event.target.value.toLowerCase();
  let shown = 0;
  for (const body of bodies) {
    body.hidden = !body.textContent.toLowerCase().includes(wanted);
    shown += !body.hidden;
  }
  count.textContent = wanted ? `${shown} of ${bodies.length}` : "";
});

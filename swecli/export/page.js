"use strict";
(() => {
  const root = document.documentElement;
  const query = document.getElementById("query");
  const hits = document.getElementById("hits");
  const fold = document.getElementById("fold");
  const theme = document.getElementById("theme");
  const entries = [...document.querySelectorAll(".entry")];
  const folded = [...document.querySelectorAll("details")];
  const texts = entries.map((entry) => entry.textContent.toLowerCase());
  let found = [];
  let place = -1;

  const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  theme.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; nameTheme(); });
  nameTheme();

  fold.addEventListener("click", () => {
    const open = fold.getAttribute("aria-pressed") !== "true";
    for (const one of folded) one.open = open;
    fold.setAttribute("aria-pressed", String(open));
    fold.textContent = open ? "Fold all" : "Unfold all";
  });

  const rangesIn = (entry, wanted) => {
    const ranges = [];
    const walker = document.createTreeWalker(entry, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const text = walker.currentNode.data.toLowerCase();
      if (text.length !== walker.currentNode.length) continue;
      for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
        const range = new Range();
        range.setStart(walker.currentNode, at);
        range.setEnd(walker.currentNode, at + wanted.length);
        ranges.push(range);
      }
    }
    return ranges;
  };

  const show = (next) => {
    if (found[place]) found[place].classList.remove("hit");
    if (!found.length) return;
    place = (next + found.length) % found.length;
    const entry = found[place];
    entry.classList.add("hit");
    const inside = entry.closest("details");
    if (inside) inside.open = true;
    for (const one of entry.querySelectorAll("details")) one.open = true;
    entry.scrollIntoView({ block: "nearest" });
    const [first] = rangesIn(entry, query.value.trim().toLowerCase());
    if (first) {
      const box = first.getBoundingClientRect();
      scrollBy(0, box.top + box.height / 2 - innerHeight / 2);
    }
    hits.textContent = `${place + 1} of ${found.length}`;
  };

  const search = () => {
    const wanted = query.value.trim().toLowerCase();
    if (found[place]) found[place].classList.remove("hit");
    found = wanted ? entries.filter((_, number) => texts[number].includes(wanted)) : [];
    place = -1;
    hits.textContent = wanted ? `${found.length} found` : "";
    if (window.Highlight && CSS.highlights) {
      CSS.highlights.delete("found");
      if (found.length) CSS.highlights.set("found", new Highlight(...found.flatMap((entry) => rangesIn(entry, wanted)).slice(0, 5000)));
    }
  };
  query.addEventListener("input", search);
  query.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); show(place + (event.shiftKey ? -1 : 1)); }
    if (event.key === "Escape") { query.value = ""; search(); }
  });
})();

"use strict";
// Sorting of tables, tooltips of marks, and the keyboard's way through pictures.
(function () {
  const tip = document.getElementById("tip");

  function textOf(mark) {
    const title = mark.querySelector("title");
    if (title) {
      // The browser's own tooltip would lie over ours: its text moves to the label.
      mark.setAttribute("aria-label", title.textContent);
      title.remove();
    }
    return mark.getAttribute("aria-label");
  }

  function markOf(node) {
    return node instanceof Element ? node.closest(".picture [tabindex]") : null;
  }

  function show(mark) {
    tip.textContent = textOf(mark);
    tip.hidden = false;
    const at = mark.getBoundingClientRect();
    const own = tip.getBoundingClientRect();
    const room = document.documentElement.clientWidth - own.width - 8;
    const left = Math.max(8, Math.min(at.left + at.width / 2 - own.width / 2, room));
    const above = at.top - own.height - 8;
    tip.style.left = left + "px";
    tip.style.top = (above > 4 ? above : at.bottom + 8) + "px";
  }

  function hide() {
    tip.hidden = true;
  }

  document.addEventListener("mouseover", function (event) {
    const mark = markOf(event.target);
    if (mark) { show(mark); } else { hide(); }
  });
  document.addEventListener("focusin", function (event) {
    const mark = markOf(event.target);
    if (mark) { show(mark); } else { hide(); }
  });
  document.addEventListener("focusout", hide);
  // Focus scrolls its mark into sight: the tooltip follows it, and only it.
  document.addEventListener("scroll", function () {
    const mark = markOf(document.activeElement);
    if (mark && !tip.hidden && tip.textContent === textOf(mark)) { show(mark); } else { hide(); }
  }, { passive: true, capture: true });

  function step(mark, key) {
    const marks = Array.from(mark.closest(".picture").querySelectorAll("[tabindex]"));
    const at = marks.indexOf(mark);
    const last = marks.length - 1;
    const next = {
      ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1,
      Home: 0, End: last
    }[key];
    if (next === undefined) { return false; }
    const target = marks[Math.max(0, Math.min(last, next))];
    mark.setAttribute("tabindex", "-1");
    target.setAttribute("tabindex", "0");
    target.focus();
    target.scrollIntoView({ block: "nearest", inline: "nearest" });
    show(target);
    return true;
  }

  document.addEventListener("keydown", function (event) {
    if (event.key === "Escape") { hide(); return; }
    const mark = markOf(event.target);
    if (mark && step(mark, event.key)) { event.preventDefault(); }
  });

  // Numbers by value, words by language; what is unknown comes last either way.
  function compare(a, b, sign) {
    if (a === "" || b === "") { return (a === "") - (b === ""); }
    if (typeof a === "number" && typeof b === "number") { return sign * (a - b); }
    return sign * String(a).localeCompare(String(b), "en", { numeric: true });
  }

  function valueOf(cell) {
    const value = cell.getAttribute("data-v");
    return value === null ? cell.textContent : Number(value);
  }

  function sort(header) {
    const column = header.cellIndex;
    const body = header.closest("table").tBodies[0];
    const down = header.getAttribute("aria-sort") === "ascending";
    for (const other of header.parentElement.cells) { other.setAttribute("aria-sort", "none"); }
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = Array.from(body.rows, function (row) {
      return { row: row, value: valueOf(row.cells[column]) };
    });
    rows.sort(function (a, b) { return compare(a.value, b.value, down ? -1 : 1); });
    body.append(...rows.map(function (item) { return item.row; }));
  }

  document.addEventListener("click", function (event) {
    const button = event.target instanceof Element ? event.target.closest("th button") : null;
    if (button) { sort(button.closest("th")); }
  });

  // What scrolls sideways must be reached by the keyboard.
  function reach() {
    for (const box of document.querySelectorAll(".scroll")) {
      const scrolls = box.scrollWidth > box.clientWidth;
      if (scrolls) {
        box.setAttribute("tabindex", "0");
        box.setAttribute("role", "group");
        box.setAttribute("aria-label", "scrolls sideways");
      } else {
        for (const name of ["tabindex", "role", "aria-label"]) { box.removeAttribute(name); }
      }
    }
  }
  reach();
  window.addEventListener("resize", reach);
  document.addEventListener("toggle", reach, true);

  // Paper has no button: what is folded is printed, too.
  let folded = [];
  window.addEventListener("beforeprint", function () {
    folded = Array.from(document.querySelectorAll("details:not([open])"));
    for (const part of folded) { part.open = true; }
  });
  window.addEventListener("afterprint", function () {
    for (const part of folded) { part.open = false; }
  });
})();

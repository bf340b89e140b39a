"use strict";
// Keys: j and k move through a list, Enter opens, and data-key names the key of anything else.
(() => {
  const typing = (element) => element.matches("input, textarea, select, [contenteditable]");
  const items = () => [...document.querySelectorAll("[data-list] [data-item]")];

  const move = (by) => {
    const all = items();
    const at = all.indexOf(document.activeElement);
    const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
    if (next) { next.focus(); next.scrollIntoView({ block: "nearest" }); }
  };

  for (const one of document.querySelectorAll("nav [aria-current], .dag .here")) one.scrollIntoView({ inline: "center", block: "nearest" });
  scrollTo(0, 0);

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && typing(event.target)) { event.target.blur(); return; }
    if (typing(event.target)) return;
    if (event.key === "j" || event.key === "k") { move(event.key === "j" ? 1 : -1); event.preventDefault(); return; }
    const target = document.querySelector(`[data-key="${CSS.escape(event.key)}"]:not(:disabled)`);
    if (!target) return;
    event.preventDefault();
    if (target.matches("input, textarea")) { target.focus(); target.select(); } else { target.click(); }
    const field = target.closest("details[open]")?.querySelector("textarea");
    if (target.matches("summary") && field) field.focus();
  });

  document.addEventListener("htmx:configRequest", (event) => {
    event.detail.headers["x-csrf"] = document.querySelector("meta[name=csrf]").content;
  });

  // A list that others change is asked for again while it can be seen. What is new comes to its end, and what
  // went stays where it stood without its buttons, so that nothing moves under somebody's hand.
  const list = document.querySelector("[data-refresh]");
  if (list) {
    const stale = document.querySelector("[data-stale]");
    const refresh = () => { if (!document.hidden && !list.matches(".htmx-request")) htmx.trigger(list, "refresh"); };
    setInterval(refresh, 4000);
    document.addEventListener("visibilitychange", refresh);
    document.addEventListener("htmx:sendError", () => { stale.hidden = false; });
    document.addEventListener("htmx:beforeSwap", (event) => {
      if (event.detail.target !== list) return;
      event.detail.shouldSwap = false;
      const page = new DOMParser().parseFromString(event.detail.serverResponse, "text/html");
      const fresh = page.getElementById(list.id);
      stale.hidden = fresh !== null;
      if (!fresh) return;
      const rows = (of) => new Map([...of.querySelectorAll("[data-run]")].map((row) => [row.dataset.run, row]));
      const [before, after] = [rows(list), rows(fresh)];
      for (const [run, row] of before) {
        if (after.has(run)) continue;
        row.querySelector("[data-gone]").hidden = false;
        for (const one of row.querySelectorAll("button, textarea")) one.disabled = true;
      }
      for (const [run, row] of after) if (!before.has(run)) list.append(row);
      if (after.size) list.querySelector(".empty")?.remove();
      document.title = page.title;
    });
  }

  // A choice of a text fills the field that it is written in.
  document.addEventListener("change", (event) => {
    const fills = event.target.dataset.fills;
    if (fills) document.getElementById(fills).value = event.target.selectedOptions[0].dataset.text || "";
  });

  // A form is sent once.
  document.addEventListener("submit", (event) => {
    if (event.defaultPrevented) return; // its own script sends it, and knows when it is done
    for (const button of event.target.querySelectorAll("button")) {
      setTimeout(() => { button.disabled = true; });
    }
  });
})();

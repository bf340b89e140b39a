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

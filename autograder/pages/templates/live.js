"use strict";
(() => {
  const live = document.getElementById("live");
  const said = document.getElementById("live-said");
  const reload = document.getElementById("live-reload");
  const EVERY = 2000; // milliseconds
  if (!live || !live.dataset.version) return;

  const tell = (text) => {
    if (said.textContent !== text) said.textContent = text;
  };
  // What somebody has typed or chosen is not thrown away.
  const edited = (control) => {
    if (control.type === "hidden") return false;
    if (control.tagName !== "SELECT") return control.value !== control.defaultValue;
    const first = [...control.options].findIndex((option) => option.defaultSelected);
    return control.selectedIndex !== Math.max(0, first);
  };
  const isBusy = () => [...document.querySelectorAll("input, select, textarea")].some(edited);

  const ask = async () => {
    let wait = EVERY;
    try {
      const answer = await fetch(live.dataset.poll, { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      const now = await answer.json();
      if (now.version !== live.dataset.version) {
        if (!isBusy()) return location.reload();
        reload.hidden = false;
        tell("This page has changed since it was opened.");
      } else tell(now.grading ? "Grading goes on: this is what there is so far." : "Live: this page follows what is written.");
    } catch {
      tell("The server does not answer: this is what there was last.");
      wait = 5 * EVERY;
    }
    setTimeout(ask, wait);
  };
  reload.addEventListener("click", () => location.reload());
  setTimeout(ask, EVERY);
})();

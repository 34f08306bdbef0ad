"use strict";
(() => {
  const live = document.getElementById("live");
  const said = document.getElementById("live-said");
  const reload = document.getElementById("live-reload");
  const EVERY = 2000; // milliseconds
  if (!live) return;

  // Lines of the guide that are ticked add up.
  document.addEventListener("change", ({ target }) => {
    if (!target.dataset.points) return;
    const ticked = [...target.form.querySelectorAll("[data-points]")].filter((box) => box.checked);
    target.form.elements.points.value = ticked.reduce((sum, box) => sum + Number(box.dataset.points), 0);
  });

  // A button with points gives and saves them.
  document.addEventListener("click", ({ target }) => {
    const button = target.closest("button[data-give]");
    if (!button) return;
    button.form.elements.points.value = button.dataset.give;
    button.form.requestSubmit(button.form.querySelector(".main"));
  });

  // A line of the code that is selected takes the form for its comment.
  const atLine = document.getElementById("at-line");
  document.addEventListener("click", ({ target }) => {
    const line = target.closest("details.listing[id^=code-] .l");
    if (!line || !atLine || String(getSelection())) return;
    const form = atLine.querySelector("form");
    form.elements.function.value = line.closest("details").id.slice("code-".length);
    form.elements.line.value = line.dataset.n;
    line.closest("pre").after(atLine);
    atLine.open = true;
    form.elements.comment.focus();
  });

  const answers = [...document.querySelectorAll(".answer")];
  const current = () => document.activeElement.closest(".answer") || document.querySelector(".answer:target");
  const go = (answer) => {
    if (!answer) return;
    const fold = answer.closest("details");
    if (fold) fold.open = true;
    answer.scrollIntoView({ block: "start" });
    answer.tabIndex = -1;
    answer.focus({ preventScroll: true });
  };
  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    const types = target.matches("textarea, select, input:not([type=checkbox])");
    if (types && key === "Enter" && event.ctrlKey) return target.form && target.form.requestSubmit();
    if (types || event.ctrlKey || event.metaKey || event.altKey) return;
    const link = document.querySelector(`a[data-key="${CSS.escape(key)}"]`);
    if (link) return location.assign(link.href);
    const at = answers.indexOf(current());
    if (key === "j") go(answers[at + 1]);
    else if (key === "k") go(answers[Math.max(0, at - 1)]);
    else if (key === "u") go([...answers.slice(at + 1), ...answers.slice(0, at + 1)].find((answer) => "open" in answer.dataset));
    else if (/^[1-9]$/.test(key) && at >= 0) answers[at].querySelectorAll("[data-points]")[key - 1]?.click();
    else if (key === "s" && at >= 0) answers[at].querySelector("form").requestSubmit(answers[at].querySelector(".main"));
  });
  if (!live.dataset.version) return;

  const tell = (text) => {
    if (said.textContent !== text) said.textContent = text;
  };
  // What somebody has typed or chosen is not thrown away.
  const edited = (control) => {
    if (control.type === "hidden") return false;
    if (control.type === "checkbox") return control.checked !== control.defaultChecked;
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
      } else if (now.others) tell(now.others);
      else tell(now.grading ? "Grading goes on: this is what there is so far." : "Live: this page follows what is written.");
    } catch {
      tell("The server does not answer: this is what there was last.");
      wait = 5 * EVERY;
    }
    setTimeout(ask, wait);
  };
  reload.addEventListener("click", () => location.reload());
  setTimeout(ask, EVERY);
})();

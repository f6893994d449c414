// Makes tables and pictures as they come into view, and begins.

const near = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    if (target.matches("figure")) draw(target);
    else makeTable(target);
  }
}, { rootMargin: "300px" });

function watch(main) {
  addSwitches(main);
  for (const figure of main.querySelectorAll("figure[data-picture]")) near.observe(figure);
  for (const details of main.querySelectorAll("details.table")) {
    if (details.open) near.observe(details);
    details.addEventListener("toggle", () => { if (details.open && !opened.has(details)) near.observe(details); });
  }
  for (const button of main.querySelectorAll("button[data-find]")) {
    button.hidden = false;
    button.addEventListener("click", openFinder);
  }
  for (const button of main.querySelectorAll("button[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", () => copyText(document.getElementById(button.dataset.copy).dataset.text, button.dataset.what));
  }
}

function takeScheme() {
  document.documentElement.classList.toggle("dark", DARK.matches);
  for (const figure of drawn.keys()) drawChosen(figure);
}

// A browser that cannot unpack what waits has the texts of the page, and the first rows of its tables.
function start() {
  takeScheme();
  if (!window.DecompressionStream) {
    for (const area of document.querySelectorAll(".drawing")) area.textContent = area.getAttribute("aria-label");
    document.documentElement.dataset.ready = "plain";
    return;
  }
  DARK.addEventListener("change", takeScheme);
  window.addEventListener("hashchange", follow);
  for (const main of document.querySelectorAll("main")) {
    watch(main);
    (window.requestIdleCallback ?? setTimeout)(() => linkSubjects(main));
  }
  follow();
  if (document.querySelector("script[data-library='pictures']")) { // so that paper has them, printed at once
    (window.requestIdleCallback ?? setTimeout)(() => library("pictures"));
  }
  document.documentElement.dataset.ready = "true";
}

start();

// On paper there is every picture of the view, in the colours of a light page, and the first table of each section. Its first rows
// are those that browsers without scripts show.

const PAPER = 690; // pixels between the margins of A4
const opened = new Set();

window.addEventListener("beforeprint", () => {
  const view = document.querySelector("main:not([hidden])");
  document.documentElement.classList.add("paper");
  for (const details of view?.querySelectorAll("section > details.table:first-of-type:not([open])") ?? []) {
    opened.add(details);
    details.open = true;
  }
  for (const rows of view?.querySelectorAll("details[open] > noscript") ?? []) {
    rows.insertAdjacentHTML("afterend", rows.textContent);
    rows.nextElementSibling.classList.add("printed");
  }
  for (const figure of view?.querySelectorAll("figure[data-picture]") ?? []) {
    if (window.drawFigure) drawNow(figure);
    else figure.querySelector(".drawing").textContent = figure.querySelector(".drawing").getAttribute("aria-label");
  }
});
window.addEventListener("afterprint", () => {
  document.documentElement.classList.remove("paper");
  for (const details of opened) details.open = false;
  opened.clear();
  for (const rows of document.querySelectorAll(".printed")) rows.remove();
  for (const figure of drawn.keys()) drawChosen(figure);
});

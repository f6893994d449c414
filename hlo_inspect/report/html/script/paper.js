// On paper there is every picture of the view, in the colours of a light page, and the first table of each section.

const opened = new Set();
window.addEventListener("beforeprint", () => {
  const view = mains.find((main) => !main.hidden);
  document.documentElement.classList.add("paper");
  for (const details of view?.querySelectorAll("section > details.table:first-of-type:not([open])") ?? []) {
    opened.add(details);
    details.open = true;
  }
  for (const figure of view?.querySelectorAll("figure[data-picture]") ?? []) if (window.Plotly) draw(figure);
});
window.addEventListener("afterprint", () => {
  document.documentElement.classList.remove("paper");
  for (const details of opened) details.open = false;
  opened.clear();
  for (const figure of drawn.keys()) draw(figure);
});

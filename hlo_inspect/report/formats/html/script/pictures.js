// Pictures: each is drawn when it comes near, as wide as its place, and again when that changes.

const drawn = new Map();

async function draw(figure) {
  await library("pictures");
  drawNow(figure);
}

function drawNow(figure) {
  const view = viewOf(figure);
  const picture = drawn.get(figure) ?? { ...data(view, "picture", figure.dataset.picture), chosen: 0 };
  const isFirst = !drawn.has(figure);
  drawn.set(figure, picture);
  drawChosen(figure);
  if (!isFirst) return;
  if (picture.figures.length > 1) addMeasures(figure, picture);
  sizes.observe(figure);
}

function drawChosen(figure) {
  const picture = drawn.get(figure), chosen = picture.figures[picture.chosen], area = figure.querySelector(".drawing");
  const width = document.documentElement.classList.contains("paper") ? PAPER : area.clientWidth;
  if (!width) return; // of a view that is not shown
  picture.width = width;
  const height = chosen.figure.layout.height ?? picture.height;
  window.drawFigure(area, chosen.figure, { view: viewOf(figure), width, height, label: chosen.text });
}

const sizes = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const { width } = drawn.get(target), now = target.querySelector(".drawing").clientWidth;
    if (now && now !== width && !document.documentElement.classList.contains("paper")) drawChosen(target);
  }
});

function addMeasures(figure, picture) {
  const buttons = picture.figures.map((one, at) => {
    const button = element("button", { type: "button", "aria-pressed": String(at === 0) }, one.label);
    button.addEventListener("click", () => {
      picture.chosen = at;
      buttons.forEach((other, number) => other.setAttribute("aria-pressed", String(number === at)));
      drawChosen(figure);
    });
    return button;
  });
  figure.querySelector(".measures").append(...buttons);
}

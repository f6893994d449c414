// Unpacks the libraries, and makes tables and pictures as they come into view.

// The text of a library, which the page holds compressed. The policy of the page knows it by its hash.
async function unpacked(name) {
  const block = document.querySelector(`script[data-library="${name}"]`);
  const packed = atob(block.textContent);
  block.remove();
  const bytes = new Uint8Array(packed.length);
  for (let at = 0; at < packed.length; at += 1) bytes[at] = packed.charCodeAt(at);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

function run(text) {
  const script = element("script");
  script.textContent = text;
  document.head.append(script);
  script.remove();
}

function takeScheme() {
  document.documentElement.classList.toggle("dark", DARK.matches);
  for (const figure of drawn.keys()) draw(figure);
}

function watch() {
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      seen.unobserve(target);
      if (target.matches("figure")) draw(target);
      else makeTable(target);
    }
  }, { rootMargin: "300px" });
  for (const figure of document.querySelectorAll("figure[data-picture]")) seen.observe(figure);
  for (const details of document.querySelectorAll("details.table")) {
    if (details.open) seen.observe(details);
    details.addEventListener("toggle", () => { if (details.open && !opened.has(details)) makeTable(details); });
  }
}

// Without what the libraries need the page has its texts, and the first rows of its tables.
async function start() {
  takeScheme();
  show(views.has("") ? "" : mains[0]?.dataset.view);
  try {
    const texts = await Promise.all(["tables", "pictures"].map(unpacked));
    texts.forEach(run);
  } catch {
    for (const area of document.querySelectorAll(".drawing")) area.textContent = area.getAttribute("aria-label");
    document.documentElement.dataset.ready = "plain";
    return;
  }
  watch();
  addSwitches();
  DARK.addEventListener("change", takeScheme);
  window.addEventListener("hashchange", follow);
  follow();
  (window.requestIdleCallback ?? setTimeout)(linkSubjects);
  document.documentElement.dataset.ready = "true";
}

for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", () => copyText(document.getElementById(button.dataset.copy).dataset.text));
}

start();

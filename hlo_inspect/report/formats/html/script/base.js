// Words that all files of the page's script use. Texts of a dump become text nodes, or are escaped.

const DARK = window.matchMedia("(prefers-color-scheme: dark)");
const NARROW = 600; // pixels of a telephone
const NUMERIC = new Set(["count", "bytes", "flops", "seconds", "number", "share", "flops_per_s", "bytes_per_s"]);

const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};
const escaped = (text) => String(text).replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`);
const prefix = (view) => (view ? `${view}/` : "");
const viewOf = (node) => node.closest("[data-view]").dataset.view;
const say = (text) => { document.getElementById("said").textContent = text; };
const inView = (view, name) => document.getElementById(prefix(view) + name);

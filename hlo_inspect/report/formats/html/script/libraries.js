// The parts of the page that wait as inert text until they are needed: the code of tables and of pictures.

const loading = new Map();

// Run a library once. The policy of the page knows its text by the hash.
function library(name) {
  if (!loading.has(name)) {
    const block = document.querySelector(`script[data-library="${name}"]`);
    loading.set(name, unpacked(block).then(run));
  }
  return loading.get(name);
}

// The text of a block that is compressed.
async function unpacked(block) {
  const packed = atob(block.textContent);
  block.remove();
  const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

function run(text) {
  const script = element("script");
  script.textContent = text;
  document.head.append(script);
  script.remove();
}

// Copies a text, and says what was copied.

const SAID = 2500; // milliseconds that a message stays

// Say something that is seen too.
function tell(text) {
  const said = document.getElementById("said");
  say(text);
  said.classList.add("shown");
  clearTimeout(tell.end);
  tell.end = setTimeout(() => said.classList.remove("shown"), SAID);
}

async function copyText(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = element("textarea", { class: "unseen" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  tell(`Copied ${what}`);
}

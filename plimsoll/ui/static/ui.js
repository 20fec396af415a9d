// The pages work without it; it keeps them live, and adds keys and themes.
"use strict";

const live = document.getElementById("live");
const main = () => document.getElementById("main");

// ---- live: the server says that the cluster changed, and the page is fetched and compared

let loading = null;
let again = false;
let retry;

async function load(address) {
  const answer = await fetch(address, { headers: { accept: "text/html" } });
  if (answer.status >= 500) throw new Error(answer.statusText);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  labelled(page.getElementById("main"));
  morph(main(), page.getElementById("main"));
  // The links to the other views hold the filter, and so does whether it can be cleared.
  for (const id of ["views", "clear"]) {
    const shown = document.getElementById(id);
    if (shown) morph(shown, page.getElementById(id));
  }
  document.title = page.title;
}

async function refresh() {
  if (loading) {
    again = true;
    return;
  }
  clearTimeout(retry);
  try {
    loading = load(location.href);
    await loading;
    if (source.readyState === EventSource.OPEN) say(main().dataset.state);
  } catch {
    say("not updated");
    retry = setTimeout(refresh, 5000);
  } finally {
    loading = null;
  }
  if (again) {
    again = false;
    refresh();
  }
}

/** Gives cells the name of their column, for narrow screens, on which each row is a card, and keeps their roles. */
function labelled(root) {
  for (const table of root.querySelectorAll("table")) {
    const names = [...table.querySelectorAll("thead th")].map((each) => each.textContent);
    table.setAttribute("role", "table");
    for (const row of table.rows) {
      row.setAttribute("role", "row");
      [...row.cells].forEach((cell, number) => {
        cell.setAttribute("role", cell.scope === "col" ? "columnheader" : cell.scope === "row" ? "rowheader" : "cell");
        if (cell.scope !== "col") cell.dataset.label = names[number] ?? "";
      });
    }
  }
}
labelled(main());

/** Makes `old` equal to `young`, and leaves nodes that are equal as they are: focus, selection and scroll stay. */
function morph(old, young) {
  if (old.isEqualNode(young)) return;
  for (const { name } of [...old.attributes]) {
    if (!young.hasAttribute(name) && !(old.tagName === "DETAILS" && name === "open")) old.removeAttribute(name);
  }
  for (const { name, value } of [...young.attributes]) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const known = new Map([...old.children].filter((each) => each.id).map((each) => [each.id, each]));
  let at = old.firstChild;
  for (const wanted of [...young.childNodes]) {
    let same = wanted.id ? known.get(wanted.id) : at;
    if (!wanted.id && same && same.id) same = null;
    if (same && same.nodeType === wanted.nodeType && same.nodeName === wanted.nodeName) {
      if (same === at) at = at.nextSibling;
      else old.insertBefore(same, at);
      if (same.nodeType === Node.ELEMENT_NODE) morph(same, wanted);
      else if (same.nodeValue !== wanted.nodeValue) same.nodeValue = wanted.nodeValue;
    } else {
      old.insertBefore(document.importNode(wanted, true), at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

// A screen reader hears when the connection changes, not each change of the cluster.
function say(text) {
  if (live.textContent === text) return;
  live.textContent = text;
  live.dataset.state = text;
}

const source = new EventSource("/events");
source.onopen = () => say(main().dataset.state);
source.onerror = () => say("connection lost, trying again");
source.onmessage = (event) => {
  if (event.data !== main().dataset.version) refresh();
};
addEventListener("pagehide", () => source.close());

// ---- filter: results while typing

const filter = document.getElementById("filter");
filter?.querySelector("button").setAttribute("hidden", "");
let typed;
function applyFilter() {
  const fields = new URLSearchParams([...new FormData(filter)].filter(([, value]) => value));
  history.replaceState(null, "", `${location.pathname}${fields.size ? `?${fields}` : ""}`);
  refresh();
}
filter?.addEventListener("input", () => {
  clearTimeout(typed);
  typed = setTimeout(applyFilter, 150);
});
filter?.addEventListener("submit", (event) => {
  event.preventDefault();
  applyFilter();
});

// ---- theme

const themes = ["system", "light", "dark"];
const button = document.getElementById("theme");
function showTheme() {
  const theme = localStorage.getItem("theme") ?? "system";
  document.documentElement.dataset.theme = theme;
  button.textContent = `Theme: ${theme}`;
}
function nextTheme() {
  const now = themes.indexOf(localStorage.getItem("theme") ?? "system");
  localStorage.setItem("theme", themes[(now + 1) % themes.length]);
  showTheme();
}
button.addEventListener("click", nextTheme);
showTheme();

// ---- keys

const help = document.getElementById("help");
document.getElementById("keys").addEventListener("click", () => help.showModal());

function step(by) {
  // What closed details hold cannot take the focus.
  const links = [...main().querySelectorAll("a, summary")].filter((each) => each.checkVisibility());
  const next = links[links.indexOf(document.activeElement) + by] ?? links[by > 0 ? 0 : links.length - 1];
  next?.focus();
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const views = document.querySelectorAll("header nav a");
  if (event.key === "/" && filter) filter.elements.q.focus();
  else if (event.key === "?") help.showModal();
  else if (event.key === "t") nextTheme();
  else if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (views[Number(event.key) - 1]) views[Number(event.key) - 1].click();
  else return;
  event.preventDefault();
});

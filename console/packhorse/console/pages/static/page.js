"use strict";
// What pages can't do without a script: show what is true now, times in the viewer's zone, and keys. Without it they only stand still.

const kept = {
  get(name) { try { return localStorage.getItem(`packhorse.${name}`); } catch { return null; } },
  set(name, value) { try { localStorage.setItem(`packhorse.${name}`, value); } catch { /* nothing is kept */ } },
};
const byId = (id) => document.getElementById(id);

// Times: the server writes UTC; here they become the viewer's, with UTC at hand.
const forms = {
  "": { dateStyle: "medium", timeStyle: "medium" },
  date: { dateStyle: "medium" },
  clock: { timeStyle: "medium" },
};
let inUtc = kept.get("zone") === "utc";

function putTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    const at = new Date(element.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const zone = inUtc ? { timeZone: "UTC" } : {};
    const local = new Intl.DateTimeFormat(undefined, { ...forms[""], ...zone }).format(at);
    element.title = inUtc ? element.dateTime : `${local}\n${element.dateTime}`;
    const form = element.dataset.form;
    if (form === "ago") continue;
    const text = new Intl.DateTimeFormat(undefined, { ...(forms[form] ?? forms[""]), ...zone }).format(at);
    element.textContent = inUtc ? `${text} UTC` : text;
  }
}

function zoneButton() {
  const button = byId("zone");
  if (!button) return;
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const say = () => {
    button.textContent = inUtc ? "UTC" : own;
    button.setAttribute("aria-label", `Times are in ${button.textContent}; switch`);
  };
  button.hidden = false;
  say();
  button.addEventListener("click", () => {
    inUtc = !inUtc;
    kept.set("zone", inUtc ? "utc" : "own");
    say();
    putTimes(document);
  });
}

function themeButton() {
  const button = byId("theme");
  if (!button) return;
  const isDark = () => {
    const set = document.documentElement.dataset.theme;
    return set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  const say = () => { button.textContent = isDark() ? "Light" : "Dark"; };
  button.hidden = false;
  say();
  button.addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    kept.set("theme", theme);
    say();
  });
}

// Parts that are live: the page is asked for again, and what has changed in them is put in its place; focus and scroll stay.
let isLive = kept.get("live") !== "off";
let failing = null;

function say(text, link) {
  const box = byId("trouble");
  box.replaceChildren(text);
  if (link) {
    const made = document.createElement("a");
    made.href = link.href;
    made.textContent = link.text;
    box.append(" ", made);
  }
  box.hidden = text === "";
}

function swap(old, fresh) {
  Idiomorph.morph(old, fresh, {
    morphStyle: "outerHTML",
    ignoreActiveValue: true,
    callbacks: {
      beforeAttributeUpdated: (name, element) => !(name === "open" && element.tagName === "DETAILS"),
      beforeNodeMorphed: (node) => !(node.dataset && node.dataset.kept !== undefined),
    },
  });
}

async function refresh() {
  const answer = await fetch(location.href, { headers: { "X-Live": "1" }, signal: AbortSignal.timeout(15000) });
  if (answer.status === 401) {
    say("You are signed out. What is shown here is from before.", { href: `/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`, text: "Sign in" });
    return false;
  }
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (!answer.ok) throw new Error(fresh.querySelector("main .notice p")?.textContent ?? `the console answers ${answer.status}`);
  for (const old of document.querySelectorAll("[data-live]")) {
    const found = fresh.getElementById(old.id);
    if (found) { putTimes(found); swap(old, found); }
  }
  document.title = fresh.title;
  showCopies(document);
  return true;
}

function liveLoop() {
  const first = document.querySelector("[data-live]");
  const button = byId("live");
  if (!first || !button) return;
  const wait = () => Math.max(1, Number(document.querySelector("[data-live]")?.dataset.live) || 5) * 1000;
  const show = () => { button.setAttribute("aria-pressed", String(isLive)); button.classList.toggle("off", !isLive); };
  let timer = null;
  let asking = false;
  const look = async () => {
    if (!document.querySelector("[data-live]")) { button.hidden = true; return false; }  // what was waited for is over
    if (!isLive || document.hidden) return true;
    try {
      if (!(await refresh())) return false;
      if (!byId("trouble").hidden) say("");
      failing = null;
    } catch (error) {
      failing ??= new Date();
      const since = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" }).format(failing);
      const why = error instanceof TypeError || error.name === "TimeoutError" ? "the console does not answer" : error.message;
      say(`Not live since ${since}: ${why}. What is shown here is from before; it goes on by itself.`);
    }
    return true;
  };
  const turn = async () => {
    clearTimeout(timer);
    if (asking) return;  // one question at a time, however often the tab comes and goes while the console is slow
    asking = true;
    const goesOn = await look();
    asking = false;
    if (goesOn) timer = setTimeout(turn, failing ? Math.max(wait(), 5000) : wait());
  };
  button.hidden = false;
  show();
  button.addEventListener("click", () => {
    isLive = !isLive;
    kept.set("live", isLive ? "on" : "off");
    show();
    if (isLive) turn();
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) turn(); });
  timer = setTimeout(turn, wait());
}

// Keys.
function rows(step) {
  const links = [...document.querySelectorAll("main td.open a, main th.open a")];
  if (links.length === 0) return;
  const at = links.indexOf(document.activeElement);
  links[Math.min(Math.max(at + step, 0), links.length - 1)].focus();
}

function keys() {
  const help = byId("keys-help");
  if (!help) return;
  const on = byId("keys-on");
  on.checked = kept.get("keys") !== "off";
  on.addEventListener("change", () => kept.set("keys", on.checked ? "on" : "off"));
  const button = byId("keys");
  button.hidden = false;
  button.addEventListener("click", () => help.showModal());
  let went = 0;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open || !on.checked) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    const key = event.key;
    if (Date.now() - went < 1500) {
      went = 0;
      const link = document.querySelector(`nav [data-go="${CSS.escape(key)}"]`);
      if (link) { event.preventDefault(); link.click(); return; }
    }
    if (key === "g") went = Date.now();
    else if (key === "/") { event.preventDefault(); byId("find").focus(); }
    else if (key === "?") { event.preventDefault(); help.showModal(); }
    else if (key === "n") rows(1);
    else if (key === "p") rows(-1);
  });
}

// Copying.
function showCopies(root) {
  for (const button of root.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
});
// Ticking: without a script the links load the page again with its boxes set.
const boxes = () => [...document.querySelectorAll("input[name=picked]")];
function sayTicked() {
  const said = byId("ticked");
  const all = boxes();
  if (said) said.textContent = `${all.filter((box) => box.checked).length} of ${all.length} ticked`;
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-tick]");
  if (!link) return;
  event.preventDefault();
  for (const box of boxes()) box.checked = link.dataset.tick === "all";
  sayTicked();
});
document.addEventListener("change", (event) => { if (event.target.name === "picked") sayTicked(); });
window.addEventListener("pageshow", sayTicked);

document.addEventListener("click", (event) => {
  for (const open of document.querySelectorAll("details.me[open]")) if (!open.contains(event.target)) open.open = false;
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") for (const open of document.querySelectorAll("details.me[open]")) open.open = false;
});

putTimes(document);
zoneButton();
themeButton();
showCopies(document);
keys();
liveLoop();

// Forms that act. They are sent behind the page's back: what somebody has written stays where it is until there is an answer, and when
// none comes the record is asked, by the form's number, whether it was done. Of one number there is one act, so to send it again is safe.
// Without a script the browser sends them, and says itself that there was no answer.

const slow = 4000;  // milliseconds without an answer after which the page says that it waits
const again = 2000;  // between two looks at the record
const looks = 150;
const unknown = "The record is asked whether it was done, until it answers. To send the form again is safe: it is done once at most.";
const asked = (number) => [{ href: `/sent/${number}`, text: "Was it done?", aside: true }];
const pause = (wait) => new Promise((done) => { setTimeout(done, wait); });
const parsed = (text) => new DOMParser().parseFromString(text, "text/html");
const here = () => location.pathname + location.search;

function hold(form) {
  form.dataset.sent = "1";
  for (const button of form.querySelectorAll("button")) { button.setAttribute("aria-disabled", "true"); button.classList.add("sent"); }
}

function free(form) {
  delete form.dataset.sent;
  for (const button of form.querySelectorAll("button")) { button.removeAttribute("aria-disabled"); button.classList.remove("sent"); }
}

// What came of it is told in the form itself, beside the button; the same twice is told once.
function tell(form, texts, links = []) {
  const box = form.querySelector(":scope > .answer") ?? document.createElement("div");
  if (box.dataset.said === texts.join()) return;
  box.dataset.said = texts.join();
  box.className = "notice warn answer";
  box.dataset.kept = "";
  box.setAttribute("role", "alert");
  const lines = texts.map((text) => { const line = document.createElement("p"); line.textContent = text; return line; });
  const ways = document.createElement("p");
  ways.className = "acts";
  for (const { href, text, aside } of links) {
    const link = document.createElement("a");
    link.className = "button";
    link.href = href;
    link.textContent = text;
    if (aside) { link.target = "_blank"; link.rel = "noopener"; }
    ways.append(link);
  }
  box.replaceChildren(...lines, ...(links.length ? [ways] : []));
  form.prepend(box);
  box.scrollIntoView({ block: "nearest" });
}

function go(address) {
  const to = new URL(address, location.href);
  const stays = to.pathname + to.search === here();
  location.assign(to);
  if (stays && to.hash) location.reload();  // else the browser would only scroll
}

function show(fresh) {
  const main = document.adoptNode(fresh.querySelector("main"));
  document.querySelector("main").replaceWith(main);
  document.title = fresh.title;
  byId("trouble").hidden = true;
  putTimes(main);
  showCopies(main);
  scrollTo(0, 0);
  main.focus();
}

function signedOut(form) {
  const to = `/sign-in?next=${encodeURIComponent(here())}`;
  tell(form, ["You are signed out: nothing was done. What you have written stays here.", "Sign in in another tab, come back, and send it again."], [{ href: to, text: "Sign in", aside: true }]);
}

// The mark is the session's: whoever has signed in anew meanwhile goes on with what they have written, and nobody else does.
async function renewed(form, number) {
  const { who, mark } = parsed(await (await fetch(`/sent/${number}`)).text()).body.dataset;
  const was = document.body.dataset.who;
  if (who === undefined) signedOut(form);
  else if (who !== was) tell(form, [`${who} is signed in here now, and the page was made for ${was}: nothing was done. Load it again.`]);
  else if (form.elements.mark.value !== mark) {
    for (const each of document.querySelectorAll("input[name=mark]")) each.value = mark;
    return "anew";
  } else return "as before";
  return "told";
}

// What the record says: whether it was done, and that in words; null while nobody answers.
async function recorded(number) {
  try {
    const answer = await fetch(`/sent/${number}`, { headers: { "X-Live": "1" }, signal: AbortSignal.timeout(15000) });
    if (answer.status === 401) return { done: false, said: "You are signed out by now: sign in to see whether it was done." };
    const found = answer.ok ? parsed(await answer.text()).getElementById("sent") : null;
    return found && { done: found.dataset.done === "yes", said: found.querySelector(".notice p").textContent };
  } catch { return null; }
}

async function lost(form, number, text) {
  free(form);
  for (let look = 0; look < looks && form.isConnected; look += 1) {
    const found = await recorded(number);
    if (form.dataset.sent) return;  // it was sent again meanwhile
    if (found?.done) { location.assign(`/sent/${number}`); return; }
    tell(form, [text, found?.said ?? unknown], asked(number));
    await pause(again);
    if (form.dataset.sent) return;
  }
}

async function send(form, button, number) {
  const fields = new FormData(form);
  if (button?.name) fields.append(button.name, button.value);
  const waits = setTimeout(() => tell(form, ["Sent; the console has not answered yet."], asked(number)), slow);
  try {
    const answer = await fetch(form.getAttribute("action") ?? here(), { method: "POST", body: new URLSearchParams(fields), headers: { "X-Form": "1" }, redirect: "manual" });
    return { answer, fresh: parsed(await answer.text()) };
  } finally { clearTimeout(waits); }
}

async function act(form, button, isFirst = true) {
  const number = form.elements.once.value;
  hold(form);
  let answer, fresh;
  try { ({ answer, fresh } = await send(form, button, number)); } catch {
    lost(form, number, "The connection was lost before the console had answered.");
    return;
  }
  const { status } = answer;
  const isOurs = fresh.querySelector("main") !== null;
  const isElsewhere = answer.type === "opaqueredirect";  // a proxy wants somebody to sign in
  if (answer.headers.has("X-Onward")) { go(answer.headers.get("X-Onward")); return; }
  if (answer.ok && isOurs) { show(fresh); return; }
  const text = [...fresh.querySelectorAll("main [role=alert] :is(p, li)")].map((line) => line.textContent);
  if (!isElsewhere && (status >= 500 || !isOurs)) {
    lost(form, number, text[0] ?? `What stands before the console answers ${status}.`);
    return;
  }
  const mark = status === 403 && isFirst ? await renewed(form, number).catch(() => "as before") : "as before";
  if (mark === "anew") { act(form, button, false); return; }
  free(form);
  if (mark === "told") return;
  if (status === 401 || isElsewhere) { signedOut(form); return; }
  const ways = [...fresh.querySelectorAll("[data-problem] .acts a")].map((link) => ({ href: link.href, text: link.textContent }));
  const next = fresh.querySelector("[data-problem] > p:not(.acts, .soft)")?.textContent;
  tell(form, next ? [...text, next] : text, ways);
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (form.dataset.sent) { event.preventDefault(); return; }
  if (!form.elements.once) { hold(form); return; }  // signing in and out leave the page
  event.preventDefault();
  act(form, event.submitter);
});
window.addEventListener("pageshow", () => { for (const form of document.querySelectorAll("form[data-sent]")) free(form); });

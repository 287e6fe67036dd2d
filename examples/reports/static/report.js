// Follows one report: asks how its job stands, waits for each change, and says what has become of it. Texts are only ever put in as
// text. Without this script the page loads itself again every few seconds.
"use strict";

const report = document.getElementById("report");
const words = JSON.parse(report.dataset.words);
const part = (id) => document.getElementById(id);
const ended = { succeeded: "ready", cancelled: "cancelled", expired: "expired", discarded: "discarded" };

// The same rules as in words.py.
function stageOf(job) {
  if (job.state in ended) return ended[job.state];
  if (job.needs_person) return "failed";
  if (job.cancel_asked) return "stopping";
  if (job.late) return "late";
  return job.state === "running" || job.state === "retrying" ? job.state : "waiting";
}

function say(element, text) {
  if (element.textContent !== text) element.textContent = text; // what does not change is not read aloud again
}

function show(job) {
  const stage = stageOf(job);
  const [headline, detail] = words[stage];
  report.dataset.stage = stage;
  say(part("what"), headline);
  say(part("detail"), detail);
  say(part("error"), (stage === "failed" || stage === "retrying") && job.error ? job.error : "");
  const progress = job.progress;
  if (progress) {
    part("bar").max = progress.total || 1;
    part("bar").value = progress.done || 0;
    say(part("progress-text"), `${progress.done} of ${progress.total || "?"}${progress.text ? `: ${progress.text}` : ""}`);
  }
  part("progress").hidden = job.state !== "running";
  part("ready").hidden = stage !== "ready";
  part("cancel").hidden = !("cancel" in job.links);
}

const pause = (seconds) => new Promise((go) => setTimeout(go, seconds * 1000));

async function follow() {
  let tag = null;
  let trouble = false;
  for (;;) {
    try {
      const headers = tag ? { "If-None-Match": tag } : {};
      // The first question, and the first after trouble, is answered at once: so it is known that it can be asked.
      const patience = tag && !trouble ? "?wait=20" : "";
      const answer = await fetch(`${report.dataset.job}${patience}`, { headers, cache: "no-store" });
      if (answer.status === 401 || answer.status === 404) {
        say(part("trouble"), "This report can't be shown any more. Load the page again.");
        return;
      }
      if (answer.status !== 200 && answer.status !== 304) throw new Error(answer.status);
      trouble = false;
      say(part("trouble"), "");
      if (answer.status === 304) {
        await pause(1); // a server that has too many who wait answers at once
        continue;
      }
      const job = await answer.json();
      show(job);
      if (job.over) return;
      tag = answer.headers.get("ETag");
    } catch {
      trouble = true;
      say(part("trouble"), "How it stands can't be asked just now. It is asked again by itself; the report is not lost.");
      await pause(3);
    }
  }
}

follow();

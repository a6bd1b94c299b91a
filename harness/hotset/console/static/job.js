// A job: its words as they are said, and what it measures as charts over the seconds since it began.
"use strict";

(() => {
  const job = document.getElementById("job");
  const said = document.getElementById("said");
  const progress = document.getElementById("progress");
  const ticks = { at: [], tpm: [], nopm: [], p50: [], p95: [], p99: [] };
  const hues = ["--accelerated", "--all-flash", "--in-memory", "--flash-volume"];
  let begun = 0;
  let asked = 0;
  let due = false;
  const plots = {};

  function chart(id, unit, series) {
    const figure = document.getElementById(id);
    figure.hidden = false;
    return Plots.create(figure.querySelector(".plot"), unit, series);
  }

  function tick(at, { second, tpm, nopm, latency_ms_p50, latency_ms_p95, latency_ms_p99 }) {
    // An experiment and a curve have several runs, each of which counts its seconds from 0.
    if (second === 0 || ticks.at.length === 0) begun = Math.max(at - second - 1, ticks.at.at(-1) ?? 0);
    ticks.at.push(begun + second + 1);
    ticks.tpm.push(tpm);
    ticks.nopm.push(nopm);
    ticks.p50.push(latency_ms_p50 ?? null);
    ticks.p95.push(latency_ms_p95);
    ticks.p99.push(latency_ms_p99 ?? null);
    if (due) return;
    due = true;
    requestAnimationFrame(() => { due = false; draw(); });
  }

  function draw() {
    if (ticks.at.length === 0) return;
    plots.tpm ??= chart("tpm", "rate", [{ label: "TPM", colour: "--accelerated" }, ...(ticks.nopm.some((one) => one != null) ? [{ label: "NOPM", colour: "--all-flash", dash: 1 }] : [])]);
    plots.latency ??= chart("latency", "ms", [{ label: "p50", colour: "--all-flash", dash: 2 }, { label: "p95", colour: "--in-memory" }, { label: "p99", colour: "--accelerated", dash: 1 }]);
    plots.tpm.setData([ticks.at, ticks.tpm, ticks.nopm].slice(0, plots.tpm.series.length));
    plots.latency.setData([ticks.at, ticks.p50, ticks.p95, ticks.p99]);
  }

  function line(event) {
    const item = document.createElement("li");
    item.textContent = event.at == null ? event.text : `${event.at.toFixed(1)} s  ${event.text}`;
    if (event.kind === "error") item.className = "error";
    said.append(item);
  }

  // What the console records of the caches by itself, a point every so many seconds.
  async function hits() {
    asked = Date.now();
    const answer = await fetch(job.dataset.hits);
    if (answer.redirected || !answer.ok) return;
    const found = await answer.json();
    const note = document.getElementById("hits-said");
    note.textContent = found.said;
    note.hidden = false;
    if (found.disks.length === 0) return;
    const labels = found.disks.map(({ label }) => label).join();
    if (plots.labels !== labels) {
      plots.hits?.destroy();
      plots.labels = labels;
      plots.hits = chart("hits", "percent", found.disks.map(({ label }, at) => ({ label, colour: hues[at % hues.length], dash: Math.floor(at / hues.length) })));
    }
    plots.hits.setData([found.at, ...found.disks.map(({ values }) => values)]);
  }

  const stream = new EventSource(job.dataset.stream);
  // Each connection begins at the beginning.
  stream.addEventListener("open", () => {
    said.replaceChildren();
    for (const values of Object.values(ticks)) values.length = 0;
    begun = 0;
  });
  stream.addEventListener("said", (message) => {
    const event = JSON.parse(message.data);
    if (event.kind === "tick") tick(event.at, event.tick);
    if (event.kind === "figure" || event.kind === "tick") progress.textContent = event.text;
    else if (event.kind === "end") {
      stream.close();
      if ("running" in job.dataset) location.reload();
    } else line(event);
    if ("running" in job.dataset && job.dataset.hits && Date.now() - asked > 10_000) hits();
  });
  // Refused, not merely out of reach: the page itself says why.
  stream.addEventListener("error", () => { if (stream.readyState === EventSource.CLOSED) location.reload(); });
  stream.addEventListener("ended", () => { stream.close(); location.assign("/login?expired=1"); });
  if (job.dataset.hits && !("running" in job.dataset)) hits();
})();

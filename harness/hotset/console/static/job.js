// A job: its words as they are said, the seconds of TPC-C as charts.
"use strict";

(() => {
  const job = document.getElementById("job");
  const said = document.getElementById("said");
  const progress = document.getElementById("progress");
  const ticks = { at: [], tpm: [], nopm: [], p95: [] };
  let begun = 0;
  const plots = {};

  function chart(id, unit, series) {
    const figure = document.getElementById(id);
    figure.hidden = false;
    return Plots.create(figure.querySelector(".plot"), unit, series);
  }

  function tick({ second, tpm, nopm, latency_ms_p95 }) {
    // An experiment has several runs: each begins where the one before ended.
    if (second === 0) begun = ticks.at.at(-1) ?? 0;
    ticks.at.push(begun + second + 1);
    ticks.tpm.push(tpm);
    ticks.nopm.push(nopm);
    ticks.p95.push(latency_ms_p95);
    requestAnimationFrame(draw);
  }

  function draw() {
    plots.tpm ??= chart("tpm", "rate", [{ label: "TPM", colour: "--accelerated" }, { label: "NOPM", colour: "--all-flash", dash: 1 }]);
    plots.latency ??= chart("latency", "rate", [{ label: "p95", colour: "--in-memory" }]);
    plots.tpm.setData([ticks.at, ticks.tpm, ticks.nopm]);
    plots.latency.setData([ticks.at, ticks.p95]);
  }

  function line(event) {
    const item = document.createElement("li");
    item.textContent = event.at == null ? event.text : `${event.at.toFixed(1)} s  ${event.text}`;
    if (event.kind === "error") item.className = "error";
    said.append(item);
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
    if (event.kind === "tick") tick(event.tick);
    if (event.kind === "figure" || event.kind === "tick") progress.textContent = event.text;
    else if (event.kind === "end") {
      stream.close();
      if ("running" in job.dataset) location.reload();
    } else line(event);
  });
  // Refused, not merely out of reach: the page itself says why.
  stream.addEventListener("error", () => { if (stream.readyState === EventSource.CLOSED) location.reload(); });
  stream.addEventListener("ended", () => { stream.close(); location.assign("/login?expired=1"); });
})();
